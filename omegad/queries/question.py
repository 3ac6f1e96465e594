"""What a question tells about its answer beside its words: whom it names, what it quotes, which time it means. Pure.

English, by rule; a question in another language has none of these and loses nothing by it.
"""

import re
from typing import Literal

import msgspec

from omegad.queries.periods import Period, period

IDENTIFIERS_MAX = 16
ACRONYM_LETTERS_MAX = 4  # a longer word in capitals is a code, like SIGTERM; a shorter one a word, like DNS
CODE_DIGITS = 3  # a shorter number counts something
YEAR_DIGITS = 4

Tense = Literal["now", "past", "then"]

_NAME = re.compile(r"\b[A-Z]\w+")
_FIRST = re.compile(r"\W*\w+")
_PART = re.compile(r"\S+")
_PLAIN = re.compile(  # what has signs or digits within it, and names nothing
    r"\d+(?:st|nd|rd|th)|\d{4}-\d{2}(?:-\d{2})?(?:T[\d:.Z+-]+)?|\d{1,2}:\d{2}(?::\d{2})?|\d{1,2}/\d{1,2}(?:/\d{2,4})?"
    r"|\d+(?:[.,]\d+)?(?:%|[ap]m|x|s|ms|h|min)|\.*(?:e\.g|i\.e|a\.m|p\.m|etc)\.?|and/or|he/she|his/her|s/he|w/o|\.+\w?",
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
_PAST = re.compile(r"\b(?:did|didn't|was|wasn't|were|weren't|had|has|have|been|happened|ago|yesterday|last)\b", re.IGNORECASE | re.ASCII)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says of its answer.

    `names` are its capitalised words, in lower case, `proper` those beside the first word, and the identifiers; `identifiers` its file
    names, paths, versions, codes and compound names, as written; `tense` is `now` where it asks how things stand, `then` where it
    asks how they stood, `past` where it tells of what happened; `period` is the time it names.
    """

    names: frozenset[str]
    proper: frozenset[str]
    identifiers: tuple[str, ...]
    tense: Tense
    asks_why: bool
    period: Period | None


def understood(text: str, now_us: int) -> Question:
    """Read a question, asked at *now_us*."""
    named = period(text, now_us)
    exact = tuple(name for name in identifiers(text) if named is None or not named.is_named_by(name))
    first = _FIRST.match(text)
    later = frozenset(match.group().lower() for match in _NAME.finditer(text, first.end() if first else 0))
    return Question(
        names=frozenset(match.group().lower() for match in _NAME.finditer(text)),
        proper=later.union(name.lower() for name in exact),
        identifiers=exact,
        tense=_tense(text, named, now_us),
        asks_why=bool(_WHY.search(text)),
        period=named,
    )


def identifiers(text: str) -> tuple[str, ...]:
    """Return the parts of *text* that name a thing exactly: they hold a digit, an inner capital, or a sign within the word."""
    stripped = (match.group().lstrip(_EDGE.replace(".", "")).rstrip(_EDGE).removesuffix("'s") for match in _PART.finditer(text))
    found = dict.fromkeys(part for part in stripped if part and _is_identifier(part))
    return tuple(found)[:IDENTIFIERS_MAX]


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
    return "past" if _PAST.search(text) and not _CHOSEN.search(text) else "now"
