"""Values that are given to a secret's name: in code, settings, JSON, YAML, headers, addresses, and in plain sentences."""

import re
from enum import Enum

import msgspec

from omegad.log.secrets import values
from omegad.log.secrets.rule import Span

NAME_CHARACTERS = 48  # looked at before the word that says what a value is
JUDGED_CHARACTERS = 128  # of a value; the rest of a longer one goes with them
WORD_CHARACTERS_MIN = 12  # of letters alone that are a key or a token
PASSCODE_DIGITS_MIN = 4
AFTER_CHARACTERS = 64  # and behind the value


class Kind(msgspec.Struct, frozen=True):
    """What a name says of its value. Where nothing sets the value off, it needs `bare_min` characters; otherwise `quoted_min`.

    A value `may_be_word` if letters alone are enough. What a sentence says must have `told_min` characters.
    """

    quoted_min: int
    bare_min: int
    told_min: int
    may_be_word: bool


PASSWORD = Kind(quoted_min=3, bare_min=3, told_min=6, may_be_word=True)
SECRET = Kind(quoted_min=6, bare_min=8, told_min=12, may_be_word=True)
KEY = Kind(quoted_min=8, bare_min=8, told_min=16, may_be_word=True)
TOKEN = Kind(quoted_min=8, bare_min=8, told_min=16, may_be_word=True)
ANY_TOKEN = Kind(quoted_min=12, bare_min=16, told_min=16, may_be_word=False)
"""A `token` of what, nobody says: parsers have them too."""


class Form(Enum):
    """How a value is written: within quotes; right behind an equals sign, as shells and properties have it; or behind a space."""

    QUOTED = "quoted"
    TIGHT = "tight"
    LOOSE = "loose"


class Written(msgspec.Struct, frozen=True):
    """A value as it stands in a text, and what is around it on its line."""

    span: Span
    value: str
    form: Form
    name: str
    sign: str
    before: str
    after: str


STEM = r"(?P<stem>passw(?:or[dt]|d)|passphrase|passcode|pass|pwd?|secret|token|key)(?:_?[0-9]{1,2}|_base|_value)?"
_LISTED = r",?\s{1,40}[\"'`]?value[\"'`]?[ \t]{0,3}[:=][ \t]{0,3}"  # name: …, value: …
ASSIGNS = rf"{STEM}(?:\\?[\"'`]\]?)?(?:[ \t]{{0,3}}(?P<sign>=>|:=|={{1,3}}|:(?!:)|\?=)(?P<space>[ \t]{{0,8}})|{_LISTED})(?P<quote>\\?[\"'`])?"
_KEY_OF = re.compile(
    r"(?:api|app|application|access|account|private|secret|signing|encryption|master|shared|admin|auth|service|license|webhook|ingest|deploy"
    r"|access[_ -]key[_ -]?secret)[_ -]?(?:access[_ -]?)?\Z"
)
_TOKEN_OF_TEXT = re.compile(
    r"(?:next|page|continuation|sync|eos|bos|pad|unk|sep|cls|mask|stop|special|start|end|image|cancellation|cancel|design|max|min|per|first|last|prev"
    r"|previous|current|num|no|public[_ -]?key)[_ -]?(?:page[_ -]?)?\Z"
)
_PREFIX = re.compile(r"[A-Za-z0-9_.$-]*\Z")
_WITHIN_CODE = re.compile(r"(?:[(,][ \t]*|\b(?:const|let|var|val|self|this|return|def|fn|func|function)\b.*)\Z", re.DOTALL)
_END_OF_LINE = re.compile(r"[ \t]*(?:[}\])>]*,?[ \t]*(?:[\r\n]|\\n|\Z|[ \t](?:#|//))|\\?[\"'`])")
_QUOTED = {quote: re.compile(rf"(?:[^{quote}\\\r\n]|\\.){{0,500}}(?={quote})") for quote in "\"'`"}
_ESCAPED = {f"\\{quote}": re.compile(rf"(?:[^{quote}\\\r\n]|\\(?!{quote})){{0,500}}(?=\\{quote})") for quote in "\"'`"}
_CLOSED = _QUOTED | _ESCAPED
_BARE = re.compile(rf"(?:[^\s\"'`,;()<&\\]|&(?!&|[\w.%-]{{1,32}}=)|\\(?![\"'`])){{1,{JUDGED_CHARACTERS}}}")
_BARE_IN_QUERY = re.compile(rf"[^\s\"'`,;()<\\&#]{{1,{JUDGED_CHARACTERS}}}")
_REST = re.compile(r"[^\s\"'`,;()<\\]*")


def assigned(text: str, match: re.Match[str]) -> Span | None:
    """Return where the value is that a match of `ASSIGNS` gives to a secret's name."""
    first = match.start("stem")
    before = text[max(0, first - NAME_CHARACTERS) : first]
    prefix = prefix_of(before)
    stem = text[first : match.end("stem")]
    kind = kind_of(stem, prefix, before)
    if kind is None or before.endswith("/etc/"):
        return None
    name = prefix + stem
    written = _written(text, match, name, before[: len(before) - len(prefix)])
    if written is None or not _is_secret(kind, written):
        return None
    first, last = written.span
    rest = _REST.match(text, last) if len(written.value) == JUDGED_CHARACTERS else None
    return first, rest.end() if rest else last


def prefix_of(before: str) -> str:
    """Return what of a name stands at the end of *before*."""
    found = _PREFIX.search(before)
    return found[0] if found else ""


def kind_of(stem: str, prefix: str, before: str = "") -> Kind | None:
    """Return what kind of secret a name is that ends with *stem*; *before* it, words may stand apart from it."""
    match stem.lower():
        case "key":
            return KEY if _KEY_OF.search((before or prefix)[-24:].lower()) else None
        case "token":
            if _TOKEN_OF_TEXT.search(prefix.lower()):
                return None
            return TOKEN if prefix.strip("_.$") or re.search(r"\b(?:auth|access|refresh|api|bearer) \Z", before.lower()) else ANY_TOKEN
        case "pass" | "pw" | "pwd":
            # A word of its own, or one of two that a capital parts; else they end bypass and compass.
            is_apart = not prefix or prefix[-1] in "_.-$" or (stem[0].isupper() and not prefix[-1].isupper())
            return PASSWORD if is_apart else None
        case "secret":
            return SECRET
        case _:
            return PASSWORD


def _written(text: str, match: re.Match[str], name: str, before: str) -> Written | None:
    sign, quote = match["sign"] or ":", match["quote"]
    found = _CLOSED[quote].match(text, match.end()) if quote else None
    form = Form.QUOTED
    if found is None:
        found = (_BARE_IN_QUERY if before[-1:] in {"?", "&", "#"} else _BARE).match(text, match.end())
        form = Form.LOOSE if sign == ":" or match["space"] else Form.TIGHT
    if found is None:
        return None
    is_whole = form is Form.QUOTED or len(found[0]) == JUDGED_CHARACTERS
    value = found[0] if is_whole else found[0].rstrip(".}]>")
    first, last = found.start(), found.start() + len(value)
    sign = f"{sign}{match['space'] or ''}"
    return Written(span=(first, last), value=value, form=form, name=name, sign=sign, before=before, after=text[last : last + AFTER_CHARACTERS])


def _is_secret(kind: Kind, written: Written) -> bool:
    value = written.value
    is_literal = written.name.isupper()
    if values.is_placeholder(value) or (not is_literal and value.lower() in written.name.lower()):
        return False
    if written.form is Form.QUOTED:
        return _is_quoted_secret(kind, written)
    if written.name.lower() == "pass":
        return False  # what tests do
    if values.is_code(value, written.after) or value.startswith("-") or len(value) < kind.bare_min:
        return False
    if values.is_words(value):
        return kind.may_be_word and _is_word_secret(kind, written)
    return _is_mixed_secret(kind, written)


def _is_quoted_secret(kind: Kind, written: Written) -> bool:
    value = written.value
    if len(value) < kind.quoted_min or values.is_field(value) or values.is_prose(value):
        return False
    if " " in value:
        return kind in {PASSWORD, SECRET} and values.is_phrase(value)
    if kind in {PASSWORD, SECRET}:
        return not written.sign.startswith("==") or values.looks_chosen(value)
    if values.has_digit_and_letter(value):
        return kind is not ANY_TOKEN or not values.has_joined_word(value)
    return kind.may_be_word and value.isalpha() and len(value) >= WORD_CHARACTERS_MIN


def _is_mixed_secret(kind: Kind, written: Written) -> bool:
    """Judge a bare value that is not of letters alone."""
    value = written.value
    if kind is ANY_TOKEN:
        return values.has_digit_and_letter(value) and not values.has_joined_word(value) and not values.is_prose(value)
    if written.name.lower() == "pw" and not values.looks_chosen(value):
        return False  # a width in pixels
    if written.form is Form.TIGHT:
        return True
    if value.isdigit():
        return kind is PASSWORD and len(value) >= PASSCODE_DIGITS_MIN and _END_OF_LINE.match(written.after) is not None
    if values.is_prose(value) or (kind is not PASSWORD and values.has_joined_word(value)):
        return False
    return values.looks_chosen(value)


def _is_word_secret(kind: Kind, written: Written) -> bool:
    """Judge a bare value of letters alone, which may be a password, a variable or a word of a sentence."""
    value = written.value
    if values.is_field(value) or (kind in {KEY, TOKEN} and len(value) < WORD_CHARACTERS_MIN):
        return False
    is_literal = written.name.isupper()
    is_within_code = _WITHIN_CODE.search(written.before) is not None
    if written.form is Form.TIGHT:
        return is_literal or not (is_within_code or written.after[:1] == ")")
    if values.is_prose(value) or values.is_type_name(value) or not _END_OF_LINE.match(written.after) or written.sign == ":":
        return False
    if is_literal:
        return True
    return kind is PASSWORD and "_" not in value and written.after[:1] not in {",", ";", ")"} and not is_within_code
