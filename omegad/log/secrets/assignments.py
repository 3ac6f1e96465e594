"""Values that are given to a secret's name: in code, settings, JSON, YAML, headers, queries, options, and in plain sentences."""

import re
import string
from enum import IntEnum

import msgspec

from omegad.log.secrets import values

NAME_CHARACTERS = 48  # looked at before the word that says what a value is
JUDGED_CHARACTERS = 128  # of a value; the rest of a longer one goes with it
AFTER_CHARACTERS = 64
LETTERS_MIN = 12  # of letters alone that are a key or a token
DIGITS_MIN = 4
TOLD_PASSWORD_MIN = 6  # in a sentence
TOLD_TOKEN_MIN = 12


class Kind(IntEnum):
    """What a name says of its value; how many characters such a value has at least."""

    PASSWORD = 3
    SECRET = 6
    KEY = 8  # and a token of which the name says what it is for
    TOKEN = 12  # of what, nobody says: parsers have them too


class Given(msgspec.Struct, frozen=True):
    """A value as it stands in a text, and what is around it."""

    kind: Kind
    name: str
    value: str
    before: str
    after: str


_SAID = r"(?: (?:is|was|has been|been|got))?(?: now)? (?:changed|set|reset|updated|rotated) to:?| (?:is|was)(?: now)?:?"
_SIGN = r"=>|:=|={1,3}|:(?!:)|\?=|,?\s{1,40}[\"'`]?value[\"'`]?[ \t]{0,3}[:=]"  # the last as in name: …, value: …
NAMED = (
    r"(?P<stem>passw(?:or[dt]|d)|passphrase|passcode|pass|pwd?|secret|token|key)(?:_?[0-9]{1,2}|_base|_value)?"
    rf"(?:(?:\\?[\"'`]\]?)?(?:[ \t]{{0,3}}(?P<sign>{_SIGN})|(?P<element>>))(?P<space>[ \t]{{0,8}})"
    rf"|(?P<said>(?: for(?: [\w.@-]{{1,40}}){{1,4}}?)?(?:{_SAID}))?(?P<to> to)?[ \t]{{1,8}})(?P<quote>\\?[\"'`])?"
)
"""A secret's name in lower case, and what leads from it to its value."""

_NAME = f"{string.ascii_letters}{string.digits}_.$-"
_KEY_OF = re.compile(
    r"(?:api|app|application|access|account|private|secret|signing|encryption|master|shared|admin|auth|service|license|webhook|ingest|deploy"
    r"|access[_ -]key[_ -]?secret)[_ -]?(?:access[_ -]?)?\Z"
)
_TOKEN_OF_TEXT = re.compile(
    r"(?:next|page|continuation|sync|eos|bos|pad|unk|sep|cls|mask|stop|special|start|end|image|cancellation|cancel|design|max|min|per|first|last|prev"
    r"|previous|current|num|no|public[_ -]?key)[_ -]?(?:page[_ -]?)?\Z"
)
_TOKEN_OF = re.compile(r"[a-z0-9][_.$-]*\Z|-\Z|\b(?:auth|access|refresh|api|bearer) \Z")
_CODE_BEFORE = re.compile(r"(?:[(,][ \t]*|\b(?:const|let|var|val|self|this|return|def|fn|func|function)\b.*)\Z", re.DOTALL)
_SETS = re.compile(r"\b(?:re)?(?:set|chang|updat|rotat)[a-z]*\b[^.\n]*\Z", re.IGNORECASE)
_END_OF_LINE = re.compile(r"[ \t]*(?:[}\])>]*,?[ \t]*(?:[\r\n]|\\n|\Z|[ \t](?:#|//))|\\?[\"'`])")
_MEASURE = re.compile(r"[ -]?(?:char|letter|digit|byte|bit|second|minute|hour|day|week|month|year|time|of\b|[0-9/:-])", re.IGNORECASE)
_CLOSED = {quote: re.compile(rf"(?:[^{quote}\\\r\n]|\\.){{0,500}}(?={quote})") for quote in "\"'`"} | {
    f"\\{quote}": re.compile(rf"(?:[^{quote}\\\r\n]|\\(?!{quote})){{0,500}}(?=\\{quote})") for quote in "\"'`"
}
_BARE = re.compile(rf"(?:[^\s\"'`,;()<&\\]|&(?!&|[\w.%-]{{1,32}}=)|\\(?![\"'`])){{0,{JUDGED_CHARACTERS}}}")
_BARE_IN_QUERY = re.compile(rf"[^\s\"'`,;()<\\&#]{{0,{JUDGED_CHARACTERS}}}")
_REST = re.compile(r"[^\s\"'`,;()<\\]*")
_TOKEN = re.compile(r"[\w.~+/-]+=*")
_SIGN_OR_CASES = re.compile(r".*[!@#$%^&*+?_]|(?=.*[a-z])(?=.*[A-Z]).*[0-9][0-9]")


def named(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value is that a match of `NAMED` gives to a secret's name."""
    at, first = match.start("stem"), match.end()
    around = text[max(0, at - NAME_CHARACTERS) : at]
    before = around.rstrip(_NAME)
    name = f"{around[len(before) :]}{text[at : match.end('stem')]}"
    kind = _kind(match["stem"], name, around)
    if kind is None or around.endswith("/etc/"):
        return None
    closed = _CLOSED[match["quote"]].match(text, first) if match["quote"] else None
    found = closed or (_BARE_IN_QUERY if before[-1:] in {"?", "&", "#"} else _BARE).match(text, first)
    value = found[0] if found else ""
    is_long = closed is None and len(value) == JUDGED_CHARACTERS
    if not closed and not is_long:
        value = value.rstrip(".}]>" if match["sign"] else ".:}]>")
    last = first + len(value)
    given = Given(kind, name, value, before, text[last : last + AFTER_CHARACTERS])
    if len(value) < kind or values.is_stand_in(value) or (not name.isupper() and value.lower() in name.lower()):
        return None
    is_word = values.is_word(value) and not (name.isupper() and values.looks_chosen(value))
    if is_word or not _is_secret(given, match, is_closed=closed is not None):
        return None
    rest = _REST.match(text, last) if is_long else None
    return first, rest.end() if rest else last


def _kind(stem: str, name: str, around: str) -> Kind | None:
    """Return what kind of secret a name is that ends with *stem*; *around*, up to the stem, words may stand apart from it."""
    prefix, folded = name[: -len(stem)], around.lower()
    match stem:
        case "key":
            return Kind.KEY if _KEY_OF.search(folded[-24:]) else None
        case "token":
            if _TOKEN_OF_TEXT.search(prefix.lower()):
                return None
            return Kind.KEY if _TOKEN_OF.search(prefix.lower() or folded) else Kind.TOKEN
        case "pass" | "pw" | "pwd":
            # A word of its own, or one of two that a capital parts; else they end bypass and compass.
            is_apart = not prefix or prefix[-1] in "_.-$" or (name[-len(stem)].isupper() and not prefix[-1].isupper())
            return Kind.PASSWORD if is_apart else None
        case "secret":
            return Kind.SECRET
        case _:
            return Kind.PASSWORD


def _is_secret(given: Given, match: re.Match[str], *, is_closed: bool) -> bool:
    sign, is_option = match["sign"] or "", given.name.startswith("-") and not given.name.startswith("--no-")
    if match["element"]:
        return given.before.endswith("<") and given.after.startswith("</") and _is_quoted(given)
    if not sign and not is_option:
        return _is_told(given, match)
    if is_closed:
        return _is_quoted(given) and (sign not in {"==", "==="} or bool(values.looks_chosen(given.value)))
    if given.value.startswith("-") or given.name.lower() == "pass" or values.is_code(given.value, given.after):
        return False  # the second is what tests do
    is_tight = not match["space"] and "=" in sign and not sign.endswith(":")
    return (_is_letters if values.is_letters(given.value) else _is_mixed)(given, is_tight=is_tight, is_option=is_option)


def _is_quoted(given: Given) -> bool:
    value = given.value
    if values.is_prose(value) or " " in value:
        return given.kind <= Kind.SECRET and " " in value and values.is_phrase(value)
    if given.kind <= Kind.SECRET:
        return True
    if values.has_digit_and_letter(value):
        return given.kind is Kind.KEY or not values.has_word(value)
    return given.kind is Kind.KEY and value.isalpha() and len(value) >= LETTERS_MIN


def _is_letters(given: Given, *, is_tight: bool, is_option: bool) -> bool:
    """Judge a bare value of letters alone, which may be a password, a variable or a word of a sentence."""
    value, is_in_code = given.value, _CODE_BEFORE.search(given.before) is not None
    if given.kind is Kind.TOKEN or (given.kind is Kind.KEY and len(value) < LETTERS_MIN):
        return False
    if is_tight and not is_option:
        return given.name.isupper() or not (is_in_code or given.after[:1] == ")")
    if is_option or values.is_prose(value):
        return not values.is_prose(value)
    is_type = any(map(str.isupper, value[1:])) and value[:1].isupper()
    if is_type or not _END_OF_LINE.match(given.after) or given.name.isupper():
        return given.name.isupper() and not is_type and _END_OF_LINE.match(given.after) is not None
    return given.kind is Kind.PASSWORD and "_" not in value and given.after[:1] not in {",", ";", ")"} and not is_in_code


def _is_mixed(given: Given, *, is_tight: bool, is_option: bool) -> bool:
    """Judge a bare value that is not of letters alone."""
    value, kind = given.value, given.kind
    if kind is Kind.TOKEN or (given.name.lower() == "pw" and not values.looks_chosen(value)):  # a width in pixels
        return kind is Kind.TOKEN and bool(values.has_digit_and_letter(value)) and not (values.has_word(value) or values.is_prose(value))
    if is_tight or (is_option and not values.is_prose(value)):
        return True
    if value.isdigit():
        return kind is Kind.PASSWORD and len(value) >= DIGITS_MIN and _END_OF_LINE.match(given.after) is not None
    return bool(values.looks_chosen(value)) and not values.is_prose(value) and (kind is Kind.PASSWORD or not values.has_word(value))


def _is_told(given: Given, match: re.Match[str]) -> bool:
    """Judge a value that a sentence says, or that stands right behind the name."""
    value, kind, name = given.value, given.kind, given.name
    is_said = bool(match["said"] or (match["to"] and _SETS.search(given.before)))
    if kind is Kind.PASSWORD and is_said and value.isdigit():
        return len(value) >= DIGITS_MIN and not _MEASURE.match(given.after)
    if name.lower() in {"pass", "pwd"} or values.is_prose(value) or (not match["quote"] and values.is_code(value, given.after)):
        return False
    if kind is not Kind.PASSWORD:
        is_token = len(value) >= TOLD_TOKEN_MIN and _TOKEN.fullmatch(value) is not None
        return is_token and bool(values.has_digit_and_letter(value)) and not values.has_word(value)
    if match["quote"]:
        is_phrase = " " not in value or values.is_phrase(value, 2 if match["stem"] == "passphrase" else 4)
        return is_phrase and (is_said or bool(values.looks_chosen(value)))
    has_signs = _SIGN_OR_CASES.match(value) is not None
    if is_said or (name.isupper() and "_" in name):  # the latter as in a Dockerfile's ENV
        return len(value) >= TOLD_PASSWORD_MIN and bool(values.looks_chosen(value)) and (has_signs or "-" not in value)
    return has_signs and len(value) >= Kind.KEY and bool(values.has_digit_and_letter(value))
