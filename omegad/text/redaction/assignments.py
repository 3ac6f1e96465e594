"""Values that are given to a secret's name: in code, settings, JSON, YAML, headers, queries, options, and
in plain sentences.
"""

import re
import string
from enum import IntEnum

import msgspec

from omegad.text.redaction import values

NAME_CHARACTERS = 48  # looked at before the word that says what a value is
KIND_CHARACTERS = 24
JUDGED_CHARACTERS = 128  # of a value; the rest of a longer one goes with it
AFTER_CHARACTERS = 64
LETTERS_MIN = 12  # of letters alone that are a key
WORD_MIN = 4  # of letters or digits alone that are a password behind a colon
LONG_MIN = 15
TOLD_MIN = 6  # of a password in a sentence


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


_SIGN = (
    r"=>|>|:{1,3}=|\.=|={1,3}|!={1,2}|(?<=[\"'`])[ \t]?,|:(?!:)|\?{1,2}=|\+=|:? ?\??(?:string"
    r"|str)\??[ \t]{0,3}="
    r"|,?\s{1,40}[\"'`]?value[\"'`]?[ \t]{0,3}[:=]"  # as in name: …, value: …
)
NAMED = (
    r"(?P<stem>passw(?:or[dt]|d)|passphrase|passcode|pass|pwd?|secret|token|key)(?:_?[0-9]{1,2}|(?:_(?:base"
    r"|value|secure|super|prod|production|staging|live|dev|old|new|plain|plaintext|raw"
    r"|primary|secondary|admin|root)){1,2})?(?:\[[0-9]{0,5}\](?=[ \t]{0,3}=)"
    r"| \[(?:none|\*{4,40}\w{0,8})\](?=:))?"
    rf"(?:(?:\\{{0,15}}[\"'`]\]?)?[ \t]{{0,3}}(?P<sign>{_SIGN})"
    r"(?P<space>(?<=[0-9a-z]>)\s{1,40}|[ \t]{0,8})"
    r"|(?P<said>(?:['\u2019]s| (?:is|was|should be|will be))(?: now)?(?: (?:set|changed|reset) to)?:?)?"
    r"[ \t]{1,8})(?:(?:@|[bru]{1,2})(?=[\"']))?"
    rf"(?P<quote>{values.QUOTE})?"
)
"""A secret's name in lower case, and what leads from it to its value."""

_NAME = f"{string.ascii_letters}{string.digits}_.$-"
_ALWAYS = dict.fromkeys(("password", "passwort", "passwd", "passphrase", "passcode"), Kind.PASSWORD) | {
    "secret": Kind.SECRET
}
_KIND = re.compile(
    r"(?P<PASSWORD>(?<![0-9a-z])(?:pass|pwd?)|(?:(?<=db)|(?<=user)"
    r"|(?<=root)|(?<=ssh)|(?<=smtp)|(?<=mail)|(?<=ldap)|(?<=admin)|(?<=ftp))pass)\Z"
)
# Without a group, what is no secret: a mark in a text, or how many there are; it begins before the end that
# would make it a key.
_KIND_OF = {
    "token": re.compile(
        r"(?:(?P<KEY>(?:[0-9a-z][_.$-]{0,2}|-|\b(?:auth|access|refresh|api|bearer) )token)|(?P<TOKEN>token)"
        r"|(?:next|page|continuation|sync|eos|bos|pad|unk|sep|cls|mask|stop|special|start|end|image"
        r"|cancellation|cancel|design|max|min|per|first"
        r"|last|prev|previous|current|num|no|public[_-]?key)[_-]?(?:page[_-]?)?token)\Z"
    ),
    "key": re.compile(
        r"(?P<KEY>(?:api|app|application|access|account|private|secret|signing|encryption|master|shared"
        r"|admin|auth|service|license|webhook|ingest"
        r"|deploy|softlayer|cloudant|iam|(?<![0-9a-z])(?:sl|cl|ibm(?:[_-]?cloud)?)|access[_ -]key[_"
        r" -]?secret)[_ -]?(?:access[_ -]?)?key)\Z"
    ),
}
_USER_BEFORE = re.compile(r"(?:user(?:name)?|login|e-?mail)\W{1,4}\S{1,40}[\s,;/]{1,8}\Z", re.IGNORECASE)
_CODE_BEFORE = re.compile(
    r"(?:[(,][ \t]*|(?<!-)\b(?:const|let|var|val|self|this|return|def|fn|func|function)\b.*)\Z", re.DOTALL
)
_END_OF_LINE = re.compile(r"[ \t]*(?:[}\])>]*,?[ \t]*(?:[\r\n]|\\n|\Z|[ \t](?:#|//))|\\{0,15}[\"'`])")
_BARE = re.compile(rf"(?:[^\s\"'`,;()<&\\]|&(?!&|[\w.%-]{{1,32}}=)|\\(?![\"'`])){{0,{JUDGED_CHARACTERS}}}")
_REST = re.compile(r"[^\s\"'`,;()<\\]*")
_HANDED = re.compile(
    r"\b(?:use|using|with|enter|try|type)(?: (?:the|this|that|my|our|your|a))?(?: [a-z]{2,16}){0,2} \Z",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"[\"'`]?\s{0,4}(?:[.,;!?)»”]|\s{1,4}(?:for|to|in|on|of|and|when|at|from|until|if|there|now|please)\b"
    r"|\s{0,4}(?:[\r\n]|\Z))"
)
_HEX = re.compile(r"(?=.{0,40}[0-9])(?=.{0,40}[a-f])[0-9a-f]{32,128}")
_IN_CODE = re.compile(r"\w*_\w*|[A-Z]\w*[A-Z]\w*|[a-z]+(?:[A-Z][a-z]+)+")


def named(text: str, match: re.Match[str]) -> tuple[int, int] | None:
    """Return where the value is that a match of `NAMED` gives to a secret's name."""
    at, first = match.start("stem"), match.end()
    around = text[max(0, at - NAME_CHARACTERS) : at]
    kind = _ALWAYS.get(match["stem"]) or _kind(match["stem"], text[at], around)
    if kind is None:
        return None
    before = around.rstrip(_NAME)
    name = f"{around[len(before) :]}{text[at : match.end('stem')]}"
    closed = values.CLOSED[match["quote"]].match(text, first) if match["quote"] else None
    found = closed or _BARE.match(text, first)
    value = values.before_json_end(found[0]) if found else ""
    is_long = closed is None and len(value) == JUDGED_CHARACTERS
    if not closed and not is_long:
        value = value.rstrip(".}]>" if match["sign"] else ".:}]>")
    if (
        around.endswith("/etc/")
        or value[:1] == " "
        or (closed and value[-1:] == " ")
        or values.is_stand_in(value)
        or (not name.isupper() and value.lower() in name.lower())
    ):
        return None
    if values.is_word(value) and not (name.isupper() and values.looks_chosen(value)):
        return None
    if len(value) < kind:
        return None
    last = first + len(value)
    given = Given(kind, name, value, before, text[last : last + AFTER_CHARACTERS])
    if not _is_secret(given, match, is_closed=closed is not None):
        return None
    rest = _REST.match(text, last) if is_long else None
    return first, rest.end() if rest else last


def _kind(stem: str, first: str, around: str) -> Kind | None:
    """Return what a name says that ends with a word, of which the *first* letter is written so, behind what
    is around it; None where it names no secret.
    """
    # A capital parts a word from the one before: else they end bypass and compass.
    hump = "-" if around[-1:].islower() and first.isupper() else ""
    found = _KIND_OF.get(stem, _KIND).search(f"{around[-KIND_CHARACTERS:].lower()}{hump}{stem}")
    return Kind[found.lastgroup] if found and found.lastgroup else None


def _is_secret(given: Given, match: re.Match[str], *, is_closed: bool) -> bool:
    sign, is_option = match["sign"] or "", given.name.startswith("-") and not given.name.startswith("--no-")
    if sign == ">" and not (given.before.endswith("<") and given.after.lstrip().startswith("</")):
        return False
    if not sign and not is_option:
        return _is_secret_in_words(given, match)
    if is_closed:
        is_literal = sign not in {"==", "===", "!=", "!==", ","} or bool(values.looks_chosen(given.value))
        is_called = given.before.rstrip("\"'`\\")[-1:] == "(" and not values.has_word(given.value)
        return is_literal and _is_quoted(given) and (not sign.endswith(",") or is_called)
    is_asked = "-ask-" in given.name or given.before.endswith("${")
    if (
        is_asked
        or sign[:1] in {"!", ","}
        or sign.endswith(",")
        or (sign == ":" and given.before.endswith(":"))
    ):  # the last is an emoji
        return False
    if (
        given.value.startswith("-")
        or (
            given.name.lower() == "pass"
            and not (sign == ":" and _USER_BEFORE.search(given.before))
            and not (
                (sign == "=" or (sign == ":" and given.name == given.name.lower()))  # PASS: is a test's name
                and len(given.value) >= TOLD_MIN
                and "/" not in given.value
                and values.is_mixed(given.value)
            )
        )
        or values.is_code(given.value, given.after)
    ):
        return False  # the second is what tests do
    return _is_bare(
        given,
        is_tight=not match["space"] and sign in {"=", ":=", "?=", "==", "===", "=>", ">"},
        is_option=is_option,
    )


def _is_quoted(given: Given) -> bool:
    value, kind = given.value, given.kind
    if " " in value:
        return kind <= Kind.SECRET and values.is_phrase(value)
    if given.name.lower().rpartition("_")[2] == "pw" and not values.looks_chosen(
        value
    ):  # a country, and its languages
        return False
    if kind is Kind.KEY:
        return (
            bool(values.has_digit_and_letter(value))
            or (value.isalpha() and len(value) >= LETTERS_MIN)
            or _is_long(value)
        )
    return not values.is_prose(value) and (kind is not Kind.TOKEN or _is_drawn(value))


def _is_bare(given: Given, *, is_tight: bool, is_option: bool) -> bool:
    """Judge a value without quotes, which may be a variable or a word of a sentence."""
    value, kind, is_loud = given.value, given.kind, given.name.isupper()
    if kind is Kind.KEY and _is_long(value):
        return True
    is_letters, is_in_code = (
        values.is_letters(value) is not None,
        _CODE_BEFORE.search(given.before) is not None
        and ("(" in given.before or not _USER_BEFORE.search(given.before)),
    )
    if kind is Kind.TOKEN or (kind is Kind.KEY and is_letters and len(value) < LETTERS_MIN):
        return _is_drawn(value) and not values.is_prose(value)
    if is_tight and not is_option:
        return is_loud or not is_letters or not (is_in_code or given.after[:1] == ")")
    if is_letters or value.isdigit():
        is_lone = (
            len(value) >= WORD_MIN
            and _END_OF_LINE.match(given.after) is not None
            and given.after[:1] not in {",", ";", ")"}
        )
        if is_letters and "." in given.name and not is_option:  # an attribute's, and so a variable
            return False
        may_be = (
            not values.is_prose(value) if is_letters else kind is Kind.PASSWORD and given.name.lower() != "pw"
        )  # a width in pixels
        return may_be and (
            is_option
            or (
                is_lone
                and (is_loud or (kind is Kind.PASSWORD and not is_in_code))
                and not _IN_CODE.fullmatch(value)
            )
        )
    is_chosen = bool(values.looks_chosen(value)) and (kind is Kind.PASSWORD or not values.has_word(value))
    return (is_option or is_chosen) and not values.is_prose(value)


def _is_secret_in_words(given: Given, match: re.Match[str]) -> bool:
    """Judge a value that a sentence says, or that stands behind a variable's name as in a Dockerfile's
    ENV.
    """
    value, name = given.value, given.name
    if name.lower() in {"pass", "pwd"}:
        return False
    if not match["said"] and not (name.isupper() and "_" in name):
        is_named = (
            match["quote"] is not None and name.lower() != "pw" and given.kind in {Kind.PASSWORD, Kind.SECRET}
        )
        return (
            (
                is_named
                and len(value) >= TOLD_MIN
                and bool(values.looks_chosen(value))
                and not values.has_word(value)
                and " " not in value
            )
            or (
                given.kind is Kind.PASSWORD
                and may_be_used(value, given.after)
                and _HANDED.search(given.before) is not None
            )
            or (given.kind is Kind.KEY and _HEX.fullmatch(value) is not None)
        )
    if values.is_prose(value) or (not match["quote"] and values.is_code(value, given.after)):
        return False
    if given.kind is not Kind.PASSWORD:
        return len(value) >= Kind.TOKEN and _is_drawn(value)
    if match["quote"]:
        return " " not in value or values.is_phrase(value)
    is_chosen = "-" not in value and values.looks_chosen(value) is not None
    return len(value) >= TOLD_MIN and (is_chosen or values.is_joined(value))


def may_be_used(value: str, after: str) -> bool:
    """Say whether a password is meant that one is to use, as in "use X as the password", with *after* behind
    the last of these words.
    """
    return (
        len(value) >= TOLD_MIN
        and _GOES_ON.match(after) is not None
        and bool(values.has_digit_and_letter(value))
        and not values.is_word(value.rstrip(string.digits))
        and not (values.is_stand_in(value) or values.is_prose(value) or values.is_code(value, ""))
        and (values.is_joined(value) or not values.has_word(value))
    )


def _is_long(value: str) -> bool:
    """Say whether a value is of so many digits as no count has, or of as many signs as no name has."""
    return len(value) >= LONG_MIN and (
        value.isdigit() or (bool(values.has_sign(value)) and not values.has_word(value))
    )


def _is_drawn(value: str) -> bool:
    return bool(values.has_digit_and_letter(value)) and not values.has_word(value)
