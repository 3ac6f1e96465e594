"""What a question tells about its answer beside its words: whom it names, what it quotes, which time it means. Pure.

English, by rule; a question in another language has none of these and loses nothing by it.
"""

import re
from typing import Literal

import msgspec

from omegad.queries.search.periods import Period, period
from omegad.queries.search.terms import STOP_WORDS, without_place

IDENTIFIERS_MAX = 16
ACRONYM_LETTERS_MAX = 4  # a longer word in capitals is a code, like SIGTERM; a shorter one a word, like DNS
CODE_DIGITS = 3  # a shorter number counts something
YEAR_DIGITS = 4
STABLE_WORDS_MIN = 2  # beside what is volatile, for it to say nothing

Tense = Literal["now", "past", "then"]

_NAME = re.compile(r"\b[A-Z]\w+")
_FIRST = re.compile(r"\W*\w+")
_PART = re.compile(r"\S+")
_PLAIN = re.compile(  # what has signs or digits within it, and names nothing
    r"\d+(?:st|nd|rd|th)|\d{4}-\d{2}(?:-\d{2})?(?:T[\d:.Z+-]+)?|\d{1,2}:\d{2}(?::\d{2})?|\d{1,2}/\d{1,2}(?:/\d{2,4})?"
    r"|\d+(?:[.,]\d+)?(?:%|[ap]m|x|s|ms|h|min)|\.*(?:e\.g|i\.e|a\.m|p\.m|etc)\.?|and/or|he/she|his/her|s/he|w/o|\.+\w?",
    re.IGNORECASE | re.ASCII,
)
_VOLATILE = re.compile(
    r"\b(?:0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{12,}|\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?"
    r"|(?:pid|tid|thread|process|line|lineno)[ =:#]{1,2}(\d+))\b",
    re.IGNORECASE | re.ASCII,
)
_WORD = re.compile(r"[^\W_]+")
_ENGLISH = re.compile(
    r"\b(?:the|are|what|which|who|how|why|when|where|does|did|of|to|and|for|with|our|it|this|that|has|have|by|from|about|can|should|my|your|i)\b",
    re.IGNORECASE | re.ASCII,
)
_EDGE = ".,;:!?\"'`()[]{}<>*"
_WHY = re.compile(
    r"^\W*(?:why|how come|for what reason|what(?:'s| is| was| were) the (?:reason|rationale|motivation))\b"
    r"|\b(?:reasons?|rationale)\b",
    re.IGNORECASE | re.ASCII,
)
_NOW = re.compile(
    r"\b(?:current(?:ly)?|now|nowadays|these days|still|latest|newest|most recent(?:ly)?|at present|presently|any ?more|today)\b",
    re.IGNORECASE | re.ASCII,
)
_CHOSEN = re.compile(
    r"\bdid (?:we|you|i|they|the team) (?:decide|choose|settle|pick|agree|end up|go with|adopt|switch|move)\b", re.IGNORECASE | re.ASCII
)
_THEN = re.compile(
    r"\b(?:original(?:ly)?|initial(?:ly)?|at first|previous(?:ly)?|former(?:ly)?|before|earlier|used to|back (?:in|then|when)|older?|history"
    r"|since when|in (?:what|which) (?:year|month|release|version)|in v?\d+|as of|at the time)\b|^\W*when (?:did|was|were)\b",
    re.IGNORECASE | re.ASCII,
)
_PAST = re.compile(
    r"\b(?:did|didn't|was|wasn't|were|weren't|had|been|happened|ago|yesterday"
    r"|last (?:night|time|day|week(?:end)?|month|quarter|year|spring|summer|autumn|fall|winter))\b",
    re.IGNORECASE | re.ASCII,
)
# Of have and has, only what makes a perfect: "has it failed", and not "does it have", "who has access".
_OWNED = re.compile(
    r"\b(?:do|does|don't|doesn't|to|will|should|must|can|could|would|may|might|shall)\b[^?.!;]{0,60}?\bhave\b", re.IGNORECASE | re.ASCII
)
_PERFECT = re.compile(
    r"\b(?:has|have|hasn't|haven't)\b(?: [\w'-]+){0,4}? (?:\w{2,}ed|become|begun|bought|broken|brought|built|caught|chosen|come|cut|dealt|done"
    r"|drawn|driven|eaten|fallen|felt|flown|forgotten|found|given|gone|got|gotten|grown|had|heard|held|hit|kept|known|led|left|let|lost|made|met"
    r"|paid|put|read|ridden|risen|run|said|seen|sent|set|shown|slept|sold|spent|spoken|sung|swum|taken|taught|thought|thrown|told|won|worn"
    r"|written)\b",
    re.IGNORECASE | re.ASCII,
)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says of its answer.

    `names` are its capitalised words, in lower case; `identifiers` its file names, paths, versions, codes and compound names, as written,
    `exact` the same in lower case, and `proper` these and, in English, the names beside the first word. `dispensable` is in lower case
    what an answer need not hold: "now", and what differs each time that the same thing happens (addresses, process numbers, lines), in a
    question that has more to say. `tense` is
    `now` where it asks how things stand, `then` where it asks how they stood, `past` where it tells of what happened; `period` is the
    time it names.
    """

    names: frozenset[str]
    proper: frozenset[str]
    exact: frozenset[str]
    dispensable: frozenset[str]
    identifiers: tuple[str, ...]
    tense: Tense
    asks_why: bool
    period: Period | None


def understood(text: str, now_us: int) -> Question:
    """Read a question, asked at *now_us*."""
    named = period(text, now_us)
    volatile = _volatile(text)
    exact = tuple(name for name in identifiers(text) if name.lower() not in volatile and (named is None or not named.is_named_by(name)))
    first = _FIRST.match(text)
    later = (match.group() for match in _NAME.finditer(text, first.end() if first else 0)) if _ENGLISH.search(text) else ()
    lowered = frozenset(name.lower() for name in exact)
    return Question(
        names=frozenset(match.group().lower() for match in _NAME.finditer(text)),
        proper=lowered.union(name.lower() for name in later if not (name.isupper() and len(name) <= ACRONYM_LETTERS_MAX)),
        exact=lowered,
        dispensable=volatile.union(word for match in _NOW.finditer(text) for word in match[0].lower().split()),
        identifiers=exact,
        tense=_tense(text, named, now_us),
        asks_why=bool(_WHY.search(text)),
        period=named,
    )


def identifiers(text: str) -> tuple[str, ...]:
    """Return the parts of *text* that name a thing exactly: they hold a digit, an inner capital, or a sign within the word."""
    stripped = (match.group().lstrip(_EDGE.replace(".", "")).rstrip(_EDGE).removesuffix("'s") for match in _PART.finditer(text))
    found = dict.fromkeys(without_place(part) for part in stripped if part and _is_identifier(part))
    return tuple(found)[:IDENTIFIERS_MAX]


def _volatile(text: str) -> frozenset[str]:
    """Return what is volatile in a text, in lower case; nothing where there is hardly anything else in it."""
    found = frozenset(part.lower() for match in _VOLATILE.finditer(text) for part in (match[0], match[1]) if part)
    rest = _VOLATILE.sub(" ", text) if found else ""
    return found if sum(word.lower() not in STOP_WORDS for word in _WORD.findall(rest)) >= STABLE_WORDS_MIN else frozenset()


def _is_identifier(part: str) -> bool:
    if not part.isascii() or not any(sign.isalnum() for sign in part) or _PLAIN.fullmatch(part):
        return False
    inner = part[1:-1]
    if any(sign in "_./\\:@#" for sign in inner) or part.startswith("-") or part[0] in "./_$@":
        return True
    if part.isdigit():
        return len(part) >= CODE_DIGITS and not (len(part) == YEAR_DIGITS and part[:2] in {"19", "20"})
    if any(sign.isdigit() for sign in part):
        return True
    return any(sign.isupper() for sign in part[1:]) and (any(sign.islower() for sign in part) or len(part) > ACRONYM_LETTERS_MAX)


def _tense(text: str, named: Period | None, now_us: int) -> Tense:
    if _NOW.search(text) and (named is None or named.end_us > now_us):
        return "now"
    if named or _THEN.search(text) or _WHY.search(text):
        return "then"
    if _CHOSEN.search(text):
        return "now"
    return "past" if _PAST.search(text) or _PERFECT.search(_OWNED.sub(" ", text)) else "now"
