"""Passwords that are given to commands: by the options that their manuals name, and in the places where a
few commands take one without.
"""

import re
from enum import Enum
from importlib import resources

import msgspec

from omegad.text.redaction import values

LOOK_BACK = 600  # characters of a command before its option
CONTINUED_LINES = 8
HEAD_WORDS = 10
VALUE_MIN = 3


class Form(Enum):
    """How a value follows its option."""

    NEXT = "next"  # -x VALUE and --long=VALUE
    ATTACHED = "attached"  # -xVALUE
    BOTH = "both"  # -x VALUE and -xVALUE
    USER = "user"  # -x USER:VALUE
    PERCENT = "percent"  # -x USER%VALUE
    COMMA = "comma"  # -x USER,VALUE
    SOURCE = "source"  # -x pass:VALUE
    GUESSED = "guessed"  # -u USER … -p VALUE


class Command(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Commands that take a password by the same options, and the manual that says so.

    Of `name+word` the word has to stand among the command's first; options are without their first hyphen.
    """

    commands: tuple[str, ...]
    options: tuple[str, ...]
    form: Form
    manual: str


class _Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `commands.toml` holds: the commands, options that take a user and a password whatever the command,
    commands whose `-u` or `-p` says something else, and words that stand for a password in examples.
    """

    given: tuple[Command, ...]
    user_options: frozenset[str]
    no_user: frozenset[str]
    placeholders: frozenset[str]


_RULES = msgspec.toml.decode(
    resources.files("omegad.text.redaction").joinpath("commands.toml").read_bytes(), type=_Rules
)
# With a user's option before it in the same command, these are followed by a password, unless it looks like a
# port, a path or a host.
_WITH_USER = frozenset({"p", "P", "-password", "-pass"})


_ROWS: dict[str, list[tuple[frozenset[str], Form]]] = {
    option: [] for option in _RULES.user_options | _WITH_USER
}
for _given in _RULES.given:
    for _option in _given.options:
        _ROWS.setdefault(_option, []).extend(
            (frozenset(command.split("+")), _given.form) for command in _given.commands
        )
_LONG, _SHORT = (
    sorted((name for name in _ROWS if (len(name) > 1) == is_long), key=len, reverse=True)
    for is_long in (True, False)
)
# It begins with its one character that every option has, so that only these places are looked at.
OPTION = re.compile(
    rf"-(?<=[\s\"'(\[,]-)(?:(?P<long>{'|'.join(map(re.escape, _LONG))})(?![\w-])"
    rf"|(?P<cluster>[a-zA-Z]{{1,6}}u(?=[ \t]))|(?P<short>[{''.join(_SHORT)}]))"
)
VALUE = re.compile(
    r"(?P<gap>[ \t]{1,8}(?:\\\r?\n[ \t]{0,40})?|[ \t]?=[ \t]?"
    r"|\\?[\"'],[ \t]{0,4}\\?[\"'])?(?:pass:(?=(?P<source>)))?"
    r"(?:(?P<quote>\\?[\"'])(?P<closed>(?:[^\"'\\\r\n]|\\(?![\"'])"
    r"|(?!(?P=quote))\\?[\"']){0,300})(?P=quote)(?::(?P<rest>[^\s:]{1,200}))?"
    r"|(?P<bare>(?:[^\s\"'`\\]|\\(?![nrt\"'])){1,300}))"
)
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<closed>[^\"'\r\n]{1,200})(?P=quote)")
_WORD = re.compile(r"[^\s\"'`,;|&()\[\]{}<>=]+")
_SEPARATORS = ("\n", ";", "|", "&", "`", "(", "\\n")
_USER = re.compile(
    r"(?:[ \t\"'](?:-[A-Za-z]{0,3}[uUl]|--?(?:user|username|login|user-name|email)|-usr)(?:[ \t=]|[\"'],)"
    r"|[ \t]-u\w)"
)
_PLACE = re.compile(
    r"[0-9]{1,5}(?:[:/,-].*)?|(?:[0-9]{1,3}\.){3}[0-9]{1,3}.*|[~.]{0,2}/.*|[\w.-]+:[0-9]{1,5}(?:[:/].*)?"
    r"|[\w.-]+/[\w./-]*|\W.*"
)

Span = tuple[int, int]


def passwords(text: str) -> list[Span]:
    """Return where values stand that are given to a command as a password."""
    spans: list[Span] = []
    head: tuple[int, frozenset[str]] = (-1, frozenset())
    for match in OPTION.finditer(text):
        if spans and match.start() < spans[-1][1]:
            continue
        start = _command_start(text, match.start())
        if start != head[0]:
            head = start, _head(text, start)
        option = match["long"] or match["short"] or "u"
        form = next((form for command, form in _ROWS[option] if command <= head[1]), None) or (
            None if match["cluster"] else _guessed(option, head[1], text[start : match.start() + 1])
        )
        span = _value(text, match.end(), form, is_short=match["short"] is not None) if form else None
        if span and (form is not Form.GUESSED or not _PLACE.fullmatch(text, *span)):
            spans.append(span)
    return spans


def _command_start(text: str, at: int) -> int:
    first, start = max(0, at - LOOK_BACK), at
    for _ in range(CONTINUED_LINES):
        start = max(text.rfind(sign, first, start) for sign in _SEPARATORS)
        if start <= first or text[start] != "\n" or text[start - 1 : start] not in {"\\", "^"}:
            break
    return max(first, start)


def _head(text: str, start: int) -> frozenset[str]:
    """Return a command's first words: its name, without a folder, and what says which of its commands is
    meant.
    """
    found = []
    for match in _WORD.finditer(text, start, start + LOOK_BACK):
        name = match[0].replace("\\", "/").rpartition("/")[2].lower()
        found.append(name.removesuffix(".exe"))
        if len(found) == HEAD_WORDS:
            break
    return frozenset(found)


def _guessed(option: str, head: frozenset[str], before: str) -> Form | None:
    """Return how a value follows an option of a command that is in no row."""
    if option in _WITH_USER:
        is_asked = any(
            name.startswith(("mysql", "mariadb")) for name in head
        )  # where a password stands at its option, or not at all
        return (
            Form.GUESSED
            if head.isdisjoint(_RULES.no_user) and not is_asked and _USER.search(before)
            else None
        )
    return Form.USER if option in _RULES.user_options else None


def _value(text: str, at: int, form: Form, *, is_short: bool) -> Span | None:
    match = VALUE.match(text, at)
    if match is None or not _follows(match, form, is_short=is_short):
        return None
    group = "closed" if match["closed"] is not None else "bare"
    value, first = match[group], match.start(group)
    if (
        group == "bare"
        and form is Form.USER
        and value.endswith(":")
        and (glued := _QUOTED.match(text, match.end()))
    ):
        return glued.span("closed") if _is_secret(glued["closed"]) else None
    if group == "bare":
        value = value.rstrip("\\;,)|]}")
    elif match["rest"] is not None and form is Form.USER:  # "user":"password", as a shell glues them
        value, first = (
            match["rest"].strip("\"'"),
            match.start("rest") + len(match["rest"]) - len(match["rest"].lstrip("\"'")),
        )
        return (first, first + len(value)) if _is_secret(value) else None
    sign = {Form.USER: ":", Form.PERCENT: "%", Form.COMMA: ","}.get(form)
    if sign:
        user, found, secret = value.partition(sign)
        if not found or (form is Form.USER and not user and not secret):
            return None
        if not secret and form is Form.USER:  # a token in the place of a user
            return (first, first + len(user)) if values.looks_chosen(user) and _is_secret(user) else None
        first, value = first + len(user) + 1, secret
        quote = value[:1] if value[:1] in {'"', "'"} else ""
        first, value = first + len(quote), value.strip("\"'")
    return (first, first + len(value)) if _is_secret(value) else None


def _follows(match: re.Match[str], form: Form, *, is_short: bool) -> bool:
    gap = match["gap"]
    if form is Form.SOURCE:
        return bool(gap) and match["source"] is not None
    if not is_short:
        return bool(gap)
    if form in {Form.NEXT, Form.GUESSED}:
        return bool(gap) and "=" not in gap
    return not gap if form is Form.ATTACHED else True


def _is_secret(value: str) -> bool:
    return (
        len(value) >= VALUE_MIN
        and value[0] not in "-$<>{%*"
        and not values.is_word(value)
        and value.lower() not in _RULES.placeholders
        and not values.is_stand_in(value)
    )
