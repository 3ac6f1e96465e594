"""What a question tells about its answer beside its words: whom it names, what it quotes, which time it means. Pure.

English, by rule; a question in another language has none of these and loses nothing by it.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Literal

import msgspec

from omegad.times import EPOCH, MICROSECOND

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

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > len("may") else name for name in _MONTHS)
_UNIT_DAYS = {"day": 1, "week": 7, "month": 31, "year": 366}
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "a couple of": 2, "a few": 3}
_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_IN_MONTH = re.compile(
    rf"\b(?:in|on|since|during|of|from|last|this|early|late|mid|end of|(\d{{1,2}})(?:st|nd|rd|th)?)[ -]({_MONTH})\b\.?,?(?: (\d{{4}}))?",
    re.IGNORECASE | re.ASCII,
)
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b,?(?: (\d{{4}}))?", re.IGNORECASE | re.ASCII)
_MONTH_YEAR = re.compile(rf"\b({_MONTH})\.? (\d{{4}})\b", re.IGNORECASE | re.ASCII)
_YEAR = re.compile(r"\b(?:in|during|of|since|from) ((?:19|20)\d{2})\b", re.IGNORECASE | re.ASCII)
_AGO = re.compile(r"\b(\d{1,3}|" + "|".join(_NUMBERS) + r") (day|week|month|year)s? ago\b", re.IGNORECASE | re.ASCII)
_LAST = re.compile(r"\b(last|past|previous|this) (week|month|year)\b", re.IGNORECASE | re.ASCII)
_NEAR = re.compile(r"\b(yesterday|today|this morning)\b", re.IGNORECASE | re.ASCII)


class Window(msgspec.Struct, frozen=True):
    """A span of time, from its first moment to before its last, in microseconds since 1970."""

    start_us: int
    end_us: int


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a question says of its answer.

    `names` are its capitalised words, in lower case, `proper` those beside the first word, and the identifiers; `identifiers` its file
    names, paths, versions, codes and compound names, as written; `tense` is `now` where it asks how things stand, `then` where it
    asks how they stood, `past` where it tells of what happened; `window` is the time it names.
    """

    names: frozenset[str]
    proper: frozenset[str]
    identifiers: tuple[str, ...]
    tense: Tense
    asks_why: bool
    window: Window | None


def understood(text: str, now_us: int) -> Question:
    """Read a question, asked at *now_us*."""
    window = _window(text, EPOCH + now_us * MICROSECOND)
    exact, first = identifiers(text), _FIRST.match(text)
    later = frozenset(match.group().lower() for match in _NAME.finditer(text, first.end() if first else 0))
    return Question(
        names=frozenset(match.group().lower() for match in _NAME.finditer(text)),
        proper=later.union(name.lower() for name in exact),
        identifiers=exact,
        tense="then" if window else _tense(text),
        asks_why=bool(_WHY.search(text)),
        window=window,
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


def _tense(text: str) -> Tense:
    if _NOW.search(text):
        return "now"
    if _THEN.search(text) or _WHY.search(text):
        return "then"
    return "past" if _PAST.search(text) and not _CHOSEN.search(text) else "now"


def _window(text: str, now: datetime) -> Window | None:
    for read in (_day, _month_day, _month, _year, _relative):
        found = read(text, now)
        if found is not None:
            first, days = found
            start_us = (datetime(first.year, first.month, first.day, tzinfo=UTC) - EPOCH) // MICROSECOND
            return Window(start_us, start_us + timedelta(days=days) // MICROSECOND)
    return None


def _day(text: str, now: datetime) -> tuple[date, int] | None:
    del now
    match = _DAY.search(text)
    return _dated(int(match[1]), int(match[2]), int(match[3])) if match else None


def _month_day(text: str, now: datetime) -> tuple[date, int] | None:
    match = _MONTH_DAY.search(text)
    if match:
        month, number, year = _month_number(match[1]), int(match[2]), match[3]
    elif (match := _IN_MONTH.search(text)) and match[1]:
        month, number, year = _month_number(match[2]), int(match[1]), match[3]
    else:
        return None
    return _dated(int(year) if year else _latest_year(now, month, number), month, number)


def _month(text: str, now: datetime) -> tuple[date, int] | None:
    if match := _MONTH_YEAR.search(text):
        month, year = _month_number(match[1]), int(match[2])
    elif match := _IN_MONTH.search(text):
        month = _month_number(match[2])
        year = int(match[3]) if match[3] else _latest_year(now, month, 1)
    else:
        return None
    found = _dated(year, month, 1)
    return (found[0], 31) if found else None


def _year(text: str, now: datetime) -> tuple[date, int] | None:
    del now
    match = _YEAR.search(text)
    found = _dated(int(match[1]), 1, 1) if match else None
    return (found[0], 366) if found else None


def _relative(text: str, now: datetime) -> tuple[date, int] | None:
    """Read a time told from now: generous at both ends, as people are."""
    today = now.date()
    if match := _AGO.search(text):
        word = match[1].lower()
        days = (int(word) if word.isdigit() else _NUMBERS[word]) * _UNIT_DAYS[match[2].lower()]
        slack = max(1, days // 4)
        return _back(today, days + slack, 2 * slack + 1)
    if match := _LAST.search(text):
        days = _UNIT_DAYS[match[2].lower()]
        return _back(today, days if match[1].lower() == "this" else 2 * days, 2 * days + 1)
    if match := _NEAR.search(text):
        return _back(today, 1, 1) if match[1].lower() == "yesterday" else (today, 1)
    return None


def _back(today: date, days: int, span: int) -> tuple[date, int] | None:
    return (today - timedelta(days=days), span) if days < today.toordinal() else None


def _dated(year: int, month: int, number: int) -> tuple[date, int] | None:
    try:
        return date(year, month, number), 1
    except ValueError:
        return None


def _month_number(name: str) -> int:
    return next(place for place, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()[:3]))


def _latest_year(now: datetime, month: int, number: int) -> int:
    return now.year if (month, number) <= (now.month, now.day) else now.year - 1
