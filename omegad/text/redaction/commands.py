"""Passwords that are given to commands: by the options that their manuals name, and in the places where a
few commands take one without.
"""

import re
from importlib import resources
from typing import Literal

import msgspec

from omegad.text.redaction import manifests, values
from omegad.text.redaction.values import Span

LOOK_BACK = 600  # characters of a command before its option
CONTINUED_LINES = 8
USER_CHARACTERS = 24  # of an option that names a user
STEP = 200  # characters by which the beginning of a long command is moved on
HEAD_WORDS = 10
VALUE_MIN = 3


Form = Literal[
    "next",  # -x VALUE and --long=VALUE
    "attached",  # -xVALUE
    "both",  # -x VALUE and -xVALUE
    "user",  # -x USER:VALUE
    "percent",  # -x USER%VALUE
    "comma",  # -x USER,VALUE
    "pair",  # -x NAME=VALUE
    "source",  # -x pass:VALUE
    "guessed",  # -u USER … -p VALUE
]
"""How a value follows its option."""


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
    r"|\\{0,15}[\"'],[ \t]{0,4}\\{0,15}[\"'])?(?:pass:(?=(?P<source>)))?"
    r"(?:(?P<quote>\\{0,15}[\"'])(?P<closed>(?:[^\"'\\\r\n]|\\{1,64}+(?![\"'\\])"
    r"|(?!(?P=quote))\\{0,64}+[\"']){0,300})(?P=quote)(?::(?P<rest>[^\s:]{1,200}))?"
    # Of a text of JSON that ends before the quote is closed.
    r"|\\{0,15}[\"'](?P<open>[^\s\"'`\\]{1,300}+)(?=\\{0,15}\"\s{0,8}[,}\]])"
    r"|(?P<bare>(?:[^\s\"'`\\]|\\(?![nrt\"'])){1,300}))"
)
_QUOTED = re.compile(r"(?P<quote>[\"'])(?P<closed>[^\"'\r\n]{1,200})(?P=quote)")
_WORD = re.compile(r"[^\s\"'`,;|&()\[\]{}<>=]+")
_SEPARATORS = ("\n", ";", "|", "&", "`", "(", "\\n")
_SEPARATOR = re.compile(r"[\n;|&`(]|\\n")
_USER = re.compile(
    r"(?:[ \t\"'](?:-[A-Za-z]{0,3}[uUl]|--?(?:user|username|login|user-name|email)|-usr)(?:[ \t=]|[\"'],)"
    r"|[ \t]-u\w)"
)
_PLACE = re.compile(
    r"[0-9]{1,5}(?:[:/,-].*)?|(?:[0-9]{1,3}\.){3}[0-9]{1,3}.*|[~.]{0,2}/.*|[\w.-]+:[0-9]{1,5}(?:[:/].*)?"
    r"|[\w.-]+/[\w./-]*|\W.*"
)

_BEFORE_SECRET: dict[Form, str] = {"user": ":", "percent": "%", "comma": ",", "pair": "="}


def passwords(text: str) -> list[Span]:
    """Return where values stand that are given to a command as a password."""
    spans: list[Span] = []
    forms: dict[str, Form | None] = {}
    start, searched, head = -1, 0, frozenset[str]()
    seen, has_user = 0, False
    for match in OPTION.finditer(text):
        at = match.start()
        if spans and at < spans[-1][1]:
            continue
        command, searched = _command_start(text, searched, at, start), at
        if command != start:
            start, head, forms = command, _head(text, command), {}
            seen, has_user = start, False
        option = match["long"] or match["short"] or "u"
        if option not in forms:
            forms[option] = _form(option, head)
        form = forms[option]
        if form == "guessed":
            has_user = has_user or _USER.search(text, seen, at + 1) is not None
            seen = max(start, at - USER_CHARACTERS)
            form = form if has_user else None
        span = _value(text, match.end(), form, is_short=match["short"] is not None) if form else None
        if span and (form != "guessed" or not _PLACE.fullmatch(text, *span)):
            spans.append(span)
    return spans


def _command_start(text: str, searched: int, at: int, start: int) -> int:
    """Return where the command begins that a place is in; *start*, where that of an earlier place begins, up
    to which it was *searched*.

    Of a long one it is a step before the place, so that many options have the same.
    """
    end, first = at, max(0, searched - 1, at - LOOK_BACK)
    # Between options there mostly is none, which is found at once.
    for _ in range(CONTINUED_LINES if _SEPARATOR.search(text, first, at) else 0):
        end = max(text.rfind(sign, first, end) for sign in _SEPARATORS)
        if end < 0 or text[end] != "\n" or text[end - 1 : end] not in {"\\", "^"}:
            break
    return max(end if end < at else -1, start, (at - LOOK_BACK) // STEP * STEP, 0)


def _head(text: str, start: int) -> frozenset[str]:
    """Return a command's first words: its name, without a folder, and what says which of its commands is
    meant.
    """
    found = []
    for match in _WORD.finditer(text, start, start + LOOK_BACK):
        name = match[0].replace("\\", "/").rpartition("/")[2].lower()
        if name in {"", ":"}:  # of JSON
            continue
        found.append(name.removesuffix(".exe"))
        if len(found) == HEAD_WORDS:
            break
    return frozenset(found)


def _form(option: str, head: frozenset[str]) -> Form | None:
    """Return how a value follows an option of a command with these first words."""
    known: Form | None = next((form for command, form in _ROWS[option] if command <= head), None)
    if known:
        return known
    if option in _RULES.user_options:
        return "user"
    # Of these a password stands at its option, or not at all.
    is_asked = any(name.startswith(("mysql", "mariadb")) for name in head)
    return "guessed" if option in _WITH_USER and head.isdisjoint(_RULES.no_user) and not is_asked else None


def _value(text: str, at: int, form: Form, *, is_short: bool) -> Span | None:
    match = VALUE.match(text, at)
    if match is None or not _follows(match, form, is_short=is_short):
        return None
    group = next(name for name in ("closed", "open", "bare") if match[name] is not None)
    value, first = values.before_json_end(match[group]), match.start(group)
    sign = _BEFORE_SECRET.get(form)
    if form == "user" and match["rest"] is not None:  # "user":"password", as a shell glues them
        value, sign = match["rest"].strip("\"'"), None
        first = match.end("rest") - len(match["rest"].lstrip("\"'"))
    elif (
        group == "bare"
        and form in {"user", "pair"}
        and value.endswith(sign or "")
        and (glued := _QUOTED.match(text, match.end()))
    ):
        if form == "pair" and manifests.is_public(value.rstrip("=")):
            return None
        value, first, sign = glued["closed"], glued.start("closed"), None
    elif group == "bare":
        value = value.rstrip("\\;,)|]}")
    if sign:
        user, found, secret = value.partition(sign)
        if form == "pair" and (not secret or manifests.is_public(user)):
            return None
        if form == "user" and found and not secret and values.looks_chosen(user):
            value = user  # a token in the place of a user
        else:
            first += len(user) + len(found) + (secret[:1] in {'"', "'"})
            value = secret.strip("\"'")
    return (first, first + len(value)) if _is_secret(value) else None


def _follows(match: re.Match[str], form: Form, *, is_short: bool) -> bool:
    gap = match["gap"]
    if form == "source":
        return bool(gap) and match["source"] is not None
    if not is_short:
        return bool(gap)
    if form in {"next", "guessed"}:
        return bool(gap) and "=" not in gap
    return not gap if form == "attached" else True


def _is_secret(value: str) -> bool:
    return (
        len(value) >= VALUE_MIN
        and value[0] not in "-$<>{%*"
        and not values.is_word(value)
        and value.lower() not in _RULES.placeholders
        and not values.is_stand_in(value)
    )
