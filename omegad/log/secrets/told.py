"""Secrets that a sentence, a command line or an address tells."""

import binascii
import re

from omegad.log.secrets import values
from omegad.log.secrets.assigned import KEY, NAME_CHARACTERS, PASSCODE_DIGITS_MIN, PASSWORD, Kind, kind_of, prefix_of
from omegad.log.secrets.randomness import is_random
from omegad.log.secrets.rule import Span

CHOSEN_CHARACTERS_MIN = 8
USER_TOKEN_CHARACTERS_MIN = 20
HEXADECIMAL_TOKEN_CHARACTERS_MIN = 36  # half of what a digest has is a public key in some addresses
OPTION_CHARACTERS_MIN = 3
HOST_CHARACTERS = 128

# "The password [for …] is", "… was changed to", or nothing between the word and its value.
TOLD = (
    r"(?P<stem>passw(?:or[dt]|d)|passphrase|passcode|pw|secret|token|key)(?<![a-z0-9]pw)"
    r"(?:(?: for(?: [\w.@-]{1,40}){1,4}?)?(?P<verb> (?:(?:is|was|has been|been|got) )?(?:now )?(?:changed|set|reset|updated|rotated) to:?"
    r"| to| (?:is|was)(?: now)?:?))?"
    r"[ \t](?P<quote>[\"'`])?"
)
_CHANGES = re.compile(r"\b(?:re)?(?:set|chang|updat|rotat)[a-z]*\b[^.\n]*\Z", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z0-9]+_[A-Z0-9_]+")  # as in a Dockerfile's ENV
_CLOSED = {quote: re.compile(rf"[^{quote}\r\n]{{1,128}}(?={quote})") for quote in "\"'`"}
_WORD = re.compile(r"[^\s\"'`,;()<>]+")
_TOKEN = re.compile(r"[\w.~+/-]+=*")
_HEXADECIMAL = re.compile(r"[0-9a-f]+", re.IGNORECASE)
_SIGN_OR_CASES = re.compile(r"(?=[^\s]*[!@#$%^&*+?_][^\s]|[^\s]*[!@#$%^&*+?]\Z)|(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9][0-9])")
_ELEMENT = re.compile(r"<[\w:-]*\Z")
_HOST = re.compile(r"(?:\A|[^\w.*:/-])[A-Za-z0-9.*][\w.*-]*\Z")
_MEASURE = re.compile(r"[ -]?(?:char|letter|digit|byte|bit|second|minute|hour|day|week|month|year|time|of\b|[0-9/:-])", re.IGNORECASE)
_FLAG_VALUE = re.compile(r"[^\s\"'`;|&()]+")


def told(text: str, match: re.Match[str]) -> Span | None:
    """Return where the value is that a match of `TOLD` says."""
    first = match.start("stem")
    before = text[max(0, first - NAME_CHARACTERS) : first]
    name = f"{prefix_of(before)}{text[first : match.end('stem')]}"
    kind = kind_of(name[-len(match["stem"]) :], name[: -len(match["stem"])], before)
    found = (_CLOSED[match["quote"]] if match["quote"] else _WORD).match(text, match.end())
    if kind is None or found is None:
        return None
    is_said = (match["verb"] or " to") != " to" or (match["verb"] is not None and _CHANGES.search(before) is not None)
    is_given = (is_said and match["verb"].rstrip(":").endswith(" to")) or _VARIABLE.fullmatch(name) is not None
    value = found[0] if match["quote"] else found[0].rstrip(".,:;")
    span = (found.start(), found.start() + len(value))
    if kind is PASSWORD and is_said and value.isdigit():
        return span if len(value) >= PASSCODE_DIGITS_MIN and not _MEASURE.match(text, found.end()) else None
    if values.is_placeholder(value) or values.is_prose(value) or (not match["quote"] and values.is_code(value, text[found.end() : found.end() + 1])):
        return None
    if kind is not PASSWORD:
        return span if _is_told_token(value, kind) else None
    is_told = _is_told_phrase(value, match["stem"]) if match["quote"] else _is_told_password(value, is_said=is_said, is_given=is_given)
    return span if is_told and (is_said or values.looks_chosen(value)) else None


def _is_told_phrase(value: str, stem: str) -> bool:
    return " " not in value or values.is_phrase(value, words_min=2 if stem == "passphrase" else 4)


def _is_told_password(value: str, *, is_said: bool, is_given: bool) -> bool:
    """Judge a bare value: a sentence may say of a password what it is, set it to a value, or only go on."""
    has_signs = _SIGN_OR_CASES.match(value) is not None
    if not is_said and not is_given:
        return len(value) >= CHOSEN_CHARACTERS_MIN and values.has_digit_and_letter(value) and has_signs
    return len(value) >= PASSWORD.told_min and values.looks_chosen(value) and ("-" not in value or has_signs or is_given)


def _is_told_token(value: str, kind: Kind) -> bool:
    is_token = len(value) >= kind.told_min and _TOKEN.fullmatch(value) is not None
    return is_token and values.has_digit_and_letter(value) and not values.has_joined_word(value)


OPTION = (
    r"(?:--(?!no-)(?P<of>[\w-]{0,20}[-.])?(?P<flag>password|passwd|passphrase|pass|secret|token|(?:api|access|secret)-key)|(?<=\s)-(?P<short>storepass|keypass))"
    r"[ \t]+(?P<quote>[\"'`])?"
)
OPTION_OF = (
    r"(?:(?:mysql(?:dump|admin)?|mariadb)\b[^\n|;&]{0,100}?[ \t]-p(?=[^\s-])|sshpass\b[^\n|;&]{0,100}?[ \t]-p[ \t]?"
    r"|docker login\b[^\n|;&]{0,100}?[ \t]-p[ \t]"
    r"|redis-cli\b[^\n|;&]{0,100}?[ \t]-a[ \t]?|curl\b[^\n|;&]{0,200}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"'$<]{1,64}:|-pass(?:in|out)[ \t]+pass:"
    r"|requirepass[ \t]+)(?P<quote>[\"'`])?"
)


def option(text: str, match: re.Match[str]) -> Span | None:
    """Return where the value is that a command line gives to an option named like a secret."""
    found = _argument(text, match)
    if found is None:
        return None
    value = text[found[0] : found[1]]
    if match["flag"] == "secret" and not match["of"] and not (value.isalnum() and values.has_digit_and_letter(value)):
        return None  # the name of one that is kept elsewhere
    if match["quote"]:
        return found
    return None if values.is_prose(value) or values.is_code(value, "") else found


def option_of(text: str, match: re.Match[str]) -> Span | None:
    """Return where the value is that a command line gives to a program's option for secrets."""
    return _argument(text, match)


def _argument(text: str, match: re.Match[str]) -> Span | None:
    found = (_CLOSED[match["quote"]] if match["quote"] else _FLAG_VALUE).match(text, match.end())
    if found is None or found[0].startswith("-"):
        return None
    value = found[0] if match["quote"] else found[0].rstrip(".,:")
    if len(value) < OPTION_CHARACTERS_MIN or values.is_placeholder(value):
        return None
    return found.start(), found.start() + len(value)


def written_out(text: str, match: re.Match[str]) -> Span | None:
    """Return the group `secret`, if it is no stand-in."""
    first, last = match.span("secret")
    return None if values.is_placeholder(text[first:last]) else (first, last)


def unworded(text: str, match: re.Match[str]) -> Span | None:
    """Return the group `secret`, if no part of it is a word."""
    first, last = match.span("secret")
    return None if values.has_joined_word(text[first:last]) else (first, last)


def element(text: str, match: re.Match[str]) -> Span | None:
    """Return the content of an element that is named like a secret."""
    if not _ELEMENT.search(text[max(0, match.start() - NAME_CHARACTERS) : match.start()]):
        return None
    value = text[slice(*match.span("secret"))]
    is_secret = values.has_digit_and_letter(value) and len(value) >= KEY.quoted_min
    if match["of"].startswith("pass"):
        is_secret = not (values.is_field(value) or values.is_prose(value))
    return match.span("secret") if is_secret and not values.is_placeholder(value) else None


def last_of_pgpass(text: str, match: re.Match[str]) -> Span | None:
    """Return the last field of a line of PostgreSQL's password file, where the first is a host."""
    return written_out(text, match) if _HOST.search(text[max(0, match.start() - HOST_CHARACTERS) : match.start()]) else None


def user_token(text: str, match: re.Match[str]) -> Span | None:
    """Return a token that stands where an address has its user."""
    value = text[slice(*match.span("secret"))]
    if _HEXADECIMAL.fullmatch(value):
        return match.span("secret") if len(value) >= HEXADECIMAL_TOKEN_CHARACTERS_MIN else None
    return match.span("secret") if len(value) >= USER_TOKEN_CHARACTERS_MIN and is_random(value) else None


def encoded_credentials(text: str, match: re.Match[str]) -> Span | None:
    """Return a user and a password that are written as base64."""
    encoded = text[slice(*match.span("secret"))]
    try:
        decoded = binascii.a2b_base64(encoded + "=" * (-len(encoded) % 4), strict_mode=True)
    except binascii.Error:
        return None
    return match.span("secret") if b":" in decoded and decoded.isascii() and not re.search(rb"[\0-\x1f]", decoded) else None
