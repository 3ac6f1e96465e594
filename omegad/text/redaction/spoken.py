"""Passwords and PINs as people tell them to each other, whatever the language: "mot de passe : …", "密码是…",
"**Password:** …", "the PIN is …".

What stands behind the word has to look chosen, with a digit or a sign among its letters: a word alone cannot
be told from the rest of a sentence.
"""

import re
from importlib import resources
from itertools import chain

import msgspec

from omegad.text.redaction import assignments, values
from omegad.text.redaction.values import Span

VALUE_MIN = 5
TOLD_MIN = 6  # of one that is far from its word
DIGITS_MIN = 4  # of one of digits alone
BEFORE_CHARACTERS = 24
AFTER_CHARACTERS = 24
AS_CHARACTERS = 120  # from a password to its word, in "use X as the password"


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"is_": "is"}):
    """What `spoken.toml` holds."""

    ascii: tuple[str, ...]
    pins: frozenset[str]
    alone: dict[str, tuple[str, ...]]
    is_: tuple[str, ...]
    reads: tuple[str, ...]
    glued: str
    about: tuple[str, ...]
    others: dict[str, tuple[str, ...]]


WORDS = msgspec.toml.decode(
    resources.files("omegad.text.redaction").joinpath("spoken.toml").read_bytes(), type=_Words
)
STEMS = sorted(dict.fromkeys([*WORDS.ascii, *chain(*WORDS.others.values())]), key=len, reverse=True)
PIN_DIGITS = {"pin": (4, 8), "cvv": (3, 4), "cvc": (3, 4), "cvv2": (3, 4), "cvc2": (3, 4)}
CODE_DIGITS = (4, 5)  # six behind "pin code" are a place in India
_ASCII = frozenset(WORDS.ascii)
_SIZES = sorted({len(word) for word in WORDS.ascii}, reverse=True)
_SHORT = 7  # characters of a word that longer words end with

_CLOSED = "\"'`*_ )"
# Words for other things as well.
_NO_WORD_BEHIND = WORDS.pins | {"clave", "parola", "parolă", "парола", "암호", "口令", "κωδικός", "heslo"}
_ABOUT = re.compile(rf"(?:{'|'.join(WORDS.about)}).*")


def signed(sign: str) -> re.Pattern[str]:
    """Return a pattern for a sign behind a word's last letters, or behind such and what closes the word.

    To look for each of the words takes ten times as long.
    """
    shorts = [word for word in WORDS.ascii if len(word) == len("pin")]
    longs = [word for word in STEMS if word[-1].isascii() and word not in shorts]
    ends = (
        r"[^\x00-\x7f]",
        f"(?:{'|'.join(dict.fromkeys(word[-4:] for word in longs))})",
        rf"\b(?:{'|'.join(shorts)})",
    )
    behind, closed, bold = (
        "|".join(f"(?<={end}{between}{sign})" for end in ends) for between in ("", ".", r"\*\*")
    )
    last = "".join({word[-1] for word in (*longs, *shorts)})
    return re.compile(
        rf"{sign}(?:(?<=[{last}]{sign})(?:{behind})|(?<=[^\x00-\x7f]{sign})"
        rf"|(?<=[{_CLOSED}]{sign})(?:{closed}|{bold}))"
    )


_AT_COLON, _AT_EQUALS = map(signed, ":=")

_TAIL = (
    r"(?P<of>(?: [^\W\d_][\w'\u2019-]{0,20}){1,5}?| \([^()\n]{1,40}\)|\uff08[^\uff08\uff09\n]{1,40}\uff09)??"
    r"(?P<mark>[\"'`*_\])]{0,3}(?:</\w{1,8}>)?)[ \t]{0,3}"
    r"(?:(?P<sign>:|=|->|=>|\u2192|\u2014|\u2013|\|)"
    # Not the "to" or "la" with which what it is for goes on.
    rf"|(?P<said>(?<!\w)(?:(?:{'|'.join(WORDS.reads)})(?=[\s:])"
    rf"|(?:{'|'.join(map(re.escape, WORDS.is_))})(?=[\s:])(?! [^\W\d_]{{1,40}}[\s,.;:]))"
    rf"|[{WORDS.glued}])(?: ?:)?|(?(of)(?!)|(?=\s\S{{0,40}}\d)))"
    r"(?P<closed>(?:\*\*|__|</\w{1,8}>)?)"
    r"(?P<space>(?:\s|\\n){0,12})(?P<opened>(?:```\w{0,12}\s{1,4}|<\w{1,8}>)?[\"'`*_]{0,3}(?:&quot;)?)"
    # Up to the signs, and the letters, with which a sentence in Chinese, Japanese or Korean goes on.
    r"(?P<value>(?:(?!&(?:quot;|[\w.-]{1,32}=))[^\s\"'`<>|,;\\\u060c\u3001-\u3003\u3008-\u301f\u3040-\u30ff\u3400-\u9fff"
    r"\uac00-\ud7af\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]){3,128})"
)
NAMED = re.compile(rf"(?P<stem>{'|'.join(map(re.escape, STEMS))}){_TAIL}")
WITH_PASS = re.compile(
    r"(?P<stem>pass(?:wor[dt]|wd|phrase|code|ord(?:et)?|e(?:(?<=mot.de.passe)|(?<=motdepasse)|(?<=palavra.passe))))"
    + _TAIL
)
WORD = re.compile(r"pass(?:wor[dt]|wd|phrase|code)[\"'`*_]{0,3}(?![\w-])")
_CHOSEN = re.compile(r"(?=.*?[^\W\d_]).*?[\d!@#$%&*+~?=]")
_HUMPED = re.compile(r"(?=.*[a-z])(?=.*[A-Z])[A-Za-z]+[0-9]{2,}[!?]?")
_STRONG = re.compile(r"(?=.*?[^\W\d_]).*?\d")
_MIXED = re.compile(r"(?=.*?[^\W\d_])(?=.*?\d).*?[!#$%*~?].")  # as nothing but a password is
# The same of letters and digits: of both cases, with digits in two places.
_WOVEN = re.compile(r"(?=.{8})(?=.*[a-z])(?=.*[A-Z])[A-Za-z]*[0-9]+[A-Za-z]+[0-9][0-9A-Za-z]*[!?]?")
_ENDED = re.compile(r"[\"'`*_.]{0,4}(?:```)?[ \t]*(?:[,;\uff0c\u3002\u3001)}\]<|»\u201d]|[\r\n]|\\n|\Z)")
_LINE_ENDS = re.compile(r"\.?[ \t]*(?:[\r\n]|\\n|\Z)")
_IN_CODE = re.compile(r"[A-Z]{2,}|[a-z]+(?:[A-Z][a-z]+)+")
_NAMED_THING = re.compile(r"user\d+|[A-Z]+\d*-(?:[A-Z]+|\d+)")  # WPA2-PSK, PROJ-1234
_NOT_A_PASSWORD = re.compile(r"(?:palabras?|datos?|puntos?|int) $")  # "palabra clave" is a keyword
_UNIT = re.compile(r" ?(?:[mnkµ]?[msavwg]|mm|cm|[kmg]?hz|px|[kmg]?b|bytes|%)\b", re.IGNORECASE)
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?|\d+[.:]\d+.*")


def may_tell(folded: str) -> bool:
    """Say whether *folded*, a text in lower case, may tell a password or a PIN."""
    if (
        (":" in folded and _AT_COLON.search(folded) is not None)
        or ("=" in folded and _AT_EQUALS.search(folded) is not None)
        or any(part in folded for part in WORDS.alone)
    ):
        return True
    return not folded.isascii() and any(
        letter in folded and any(word in folded for word in words) for letter, words in WORDS.others.items()
    )


def passwords(text: str, folded: str) -> list[Span]:
    """Return where passwords and PINs stand that a word tells; *folded* is *text* in lower case, with the
    spaces, colons and digits of ASCII.
    """
    spans: list[Span] = []
    for at in _places(folded):
        if (
            (not spans or at >= spans[-1][1])
            and (match := NAMED.match(folded, at))
            and (span := told(text, match))
        ):
            spans.append(span)
    return spans


def _places(folded: str) -> list[int]:
    """Return where the words stand, in order, that may tell something."""
    places: set[int] = set()
    for signed in (_AT_COLON, _AT_EQUALS):
        for match in signed.finditer(folded):
            first = max(0, match.start() - BEFORE_CHARACTERS)
            before = folded[first : match.start()].rstrip(_CLOSED)
            if word := next((size for size in _SIZES if before[-size:] in _ASCII), 0):
                places.add(first + len(before) - word)
    for part, words in WORDS.alone.items():
        if part in folded:
            places.update(at for word in words for at in values.places(folded, f"{word} "))
    if not folded.isascii():
        for letter, words in WORDS.others.items():
            if letter in folded:
                places.update(at for word in words if word in folded for at in values.places(folded, word))
    return sorted(places) if len(places) > 1 else list(places)


def told(text: str, match: re.Match[str]) -> Span | None:
    """Return where the value is that a match of `NAMED` or `WITH_PASS` tells, None where it tells none."""
    first, last = match.span("value")
    value, stem, at = _closed(text[first:last]).rstrip(".:)]}>*_"), match["stem"], match.start()
    last = first + len(value)
    before, after = text[max(0, at - 1) : at], text[last : last + AFTER_CHARACTERS]
    is_broken = "\n" in match["space"] or "\\n" in match["space"]
    is_led = match["sign"] is not None or match["said"] is not None
    is_near = is_led and not is_broken and not match["of"]
    if (
        (not is_led and (is_broken or (match.re is WITH_PASS and not _is_alone(value))))
        or (is_broken and (match["of"] or not _ENDED.match(after)))
        or (before.isalnum() and match.re is NAMED and stem.isascii() and len(stem) < _SHORT)
        or before == "1"  # 1Password
        or (match["sign"] is not None and text[match.end("sign") : match.end("sign") + 1] == "=")  # == and :=
        or (before == "/" and match["sign"] == "=")  # of an address
        or (stem == "clave" and _NOT_A_PASSWORD.search(text[max(0, at - BEFORE_CHARACTERS) : at]) is not None)
        or (match["sign"] == "|" and text[:at].rstrip(" *`_")[-1:] != "|")
        or value[:1] in {"-", "/", "("}
        or values.is_stand_in(value)
        or values.is_word(value)
    ):
        return None
    if value.isdecimal():
        is_alone = is_broken or (stem in WORDS.pins and _ENDED.match(after) is not None)
        is_secret = (is_near or (is_led and is_alone)) and _is_number(match, value, after)
    elif value.isalpha():
        is_secret = is_near and _is_told_word(match, value, text[max(0, at - BEFORE_CHARACTERS) : at], after)
    else:
        is_secret = stem not in WORDS.pins and _is_password(match, value, after, is_near=is_near)
    return (first, last) if is_secret else None


def _is_alone(value: str) -> bool:
    """Say whether a password that nothing leads to is told from the words of a sentence."""
    return (
        _MIXED.match(value) is not None
        or _HUMPED.fullmatch(value) is not None
        or _WOVEN.fullmatch(value) is not None
    )


def _closed(value: str) -> str:
    """Return a value up to a bracket that closes what is opened before it."""
    for opening, closing in ("()", "[]", "{}"):
        at = value.find(closing)
        if at >= 0 and value.find(opening, 0, at) < 0:
            value = value[:at]
    return value


def _is_number(match: re.Match[str], value: str, after: str) -> bool:
    if match["stem"] in WORDS.pins:
        low, high = PIN_DIGITS.get(match["stem"], CODE_DIGITS)
        return low <= len(value) <= high and not _UNIT.match(after)
    is_signed = (
        match.re is NAMED
        and match["stem"] != "clave"
        and (match["sign"] is not None or match["said"] in {*WORDS.glued})
    )
    return is_signed and len(value) >= DIGITS_MIN and _ENDED.match(after) is not None


def _is_password(match: re.Match[str], value: str, after: str, *, is_near: bool) -> bool:
    if (
        values.is_prose(value)
        or values.is_code(value, after)
        or _DATE.fullmatch(value)
        or _NAMED_THING.fullmatch(value)
    ):
        return False
    # What is English and plain has been judged as an assignment, and "clave" is a key, too.
    is_judged = match.re is WITH_PASS and match["stem"] != "passe" and not (match["closed"] or match["mark"])
    if is_near and match["sign"] in {":", "="} and not is_judged and match["stem"] != "clave":
        return len(value) >= VALUE_MIN and _CHOSEN.match(value.rstrip("!?")) is not None
    return len(value) >= TOLD_MIN and (
        (_STRONG.match(value) is not None and not values.has_word(value)) or values.is_joined(value)
    )


def _is_told_word(match: re.Match[str], value: str, before: str, after: str) -> bool:
    """Say whether letters alone are a password: in quotes, alone behind a colon at a line's end, or behind
    what is said of nothing but a wording; *before* and *after* stand around the word and the value.
    """
    said, word = match["said"], value.lower()
    is_foreign = match.re is NAMED or match["stem"] == "passe" or said in WORDS.reads
    if (
        not is_foreign
        or match["stem"] in _NO_WORD_BEHIND
        or len(value) < VALUE_MIN
        or word in STEMS
        or _ABOUT.match(word)
        or _IN_CODE.fullmatch(value)
        or values.is_prose(value)
    ):
        return False
    if said in WORDS.reads or (said is not None and said in WORDS.glued):
        return (value.isascii() or said in WORDS.reads) and (
            _ENDED.match(after) is not None or after.lstrip().startswith(("です", "입니다"))
        )
    is_quoted = match["opened"][-1:] in {'"', "'", "`"} and after.startswith(match["opened"][-1])
    if is_quoted and (said or not match["mark"]):
        return True
    is_signed = match["sign"] in {":", "="} or (
        said and ":" in match.string[match.end("said") : match.end("space")]
    )
    is_alone = is_signed and not match["mark"] and not match["opened"]
    return (
        bool(is_alone) and _LINE_ENDS.match(after) is not None and before.rstrip()[-1:] not in {"(", ",", "."}
    )


# Up to a password's word, as "use X as the …" has them.
_AS = re.compile(
    r"(?:\A|[\s(])(?P<quote>[\"'`]?)(?P<value>[^\s\"'`]{6,64})(?P=quote)"
    r" (?:as|for) (?:[a-z][a-z'\u2019]{0,15} ){0,4}\Z",
    re.IGNORECASE,
)


def handed(text: str, match: re.Match[str]) -> Span | None:
    """Return where the value is that is to be used as a password, whose word is a match of `WORD`."""
    first, last = max(0, match.start() - AS_CHARACTERS), match.end()
    before = text[first : match.start()]
    found = _AS.search(before) if " as " in before or " for " in before else None
    if found is None or not assignments.may_be_used(found["value"], text[last : last + AFTER_CHARACTERS]):
        return None
    return first + found.start("value"), first + found.end("value")


_WAS = r"(?:was|is|has been|got) (?:changed|reset|rotated|set|updated)"
_ONE, _OTHER = (rf"[\"'`]?(?P<{name}>[^\s\"'`,;]{{2,63}}[^\s\"'`,;.)!?])[\"'`]?" for name in ("one", "other"))
_CHANGED = re.compile(rf"password (?P<from>from )?{_ONE}(?(from)| {_WAS}) to {_OTHER}")
_LIST = re.compile(r"passwords\W{0,3}[:=] {0,2}(?=[\w.@-]{1,40} ?[=:])")
_PAIR = re.compile(
    r"[\w.@-]{1,40}(?: ?= ?|: ?)[\"'`]?(?P<value>[^\s,;\"'`<>]{2,63}[^\s,;\"'`<>.)])[\"'`]?"
    r"(?:[,;]? (?:and )?)?"
)
_PIN = re.compile(r"pin(?<= pin)(?![\w-])")
_AS_PIN = re.compile(
    r"\b(?:use|try|enter|type) [\"'`]?(?P<value>[0-9]{4,8})[\"'`]? (?:as|for) (?:[a-z']{1,12} ){0,4}\Z"
)


def told_together(text: str, folded: str) -> list[Span]:
    """Return where the passwords stand that a sentence tells several of, "Passwords: anna=…, bob=…" and
    "changed the password from … to …", and the digits that are to be used as a PIN.
    """
    spans = [
        found.span("value")
        for match in (_PIN.finditer(folded) if " pin" in folded else ())
        if (found := _AS_PIN.search(folded, max(0, match.start() - AS_CHARACTERS), match.start()))
    ]
    at = 0
    for match in _LIST.finditer(folded) if "passwords" in folded else ():
        at = max(at, match.end())
        while pair := _PAIR.match(text, at):
            at = pair.end()
            spans += _mixed(text, [pair.span("value")])
    for match in _CHANGED.finditer(folded) if "password " in folded else ():
        both = [match.span("one"), match.span("other")]
        if _mixed(text, both) or "[redacted:" in match[0]:
            spans += [span for span in both if _may_be_chosen(text[slice(*span)])]
    return sorted(spans)


def _mixed(text: str, spans: list[Span]) -> list[Span]:
    return [span for span in spans if span[1] - span[0] >= TOLD_MIN and values.is_mixed(text[slice(*span)])]


def _may_be_chosen(value: str) -> bool:
    """Say whether a value is a password where the one beside it is."""
    return (
        len(value) >= TOLD_MIN
        and values.has_digit_and_letter(value) is not None
        and not (values.is_word(value) or values.is_prose(value) or values.is_stand_in(value))
    )
