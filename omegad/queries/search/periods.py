"""Which span of time a question names: "on 8 May 2023", "in March", "last week", "between June and August", "Q3 2025". Pure.

English. A day begins and ends in UTC. Where a year is left out, the latest one that has begun is meant; what is told from now is read
generously at both ends, as people tell it.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import msgspec

from omegad.times import EPOCH, MICROSECOND

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month that each begins in, north of the equator."""

_UNIT_DAYS = {"day": 1, "night": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "couple of": 2, "a couple of": 2, "few": 4, "a few": 4}
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]}|t)?" if name == "september" else f"{name[:3]}(?:{name[3:]})?" for name in MONTHS)
_YEAR = r"(?:19|20)\d{2}"
_COUNT = r"\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT = "(day|night|week|month|quarter|year)"
_BEFORE_MONTH = "in|on|by|since|during|of|from|last|this|early|late|mid|after|until|till|before|around|end of|start of|beginning of"
_BEFORE_SEASON = "last|this|previous|past|early|late|in the|over the|during the|since the|in|since|during"


def _matching(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


_ISO_DAY = _matching(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_ISO_MONTH = _matching(rf"\b({_YEAR})-(0[1-9]|1[0-2])\b(?![-\w])")
_BETWEEN = _matching(rf"\b(?:between|from) ({_MONTH})\b\.?(?: ({_YEAR}))? (?:and|to|until|till|through) ({_MONTH})\b\.?(?: ({_YEAR}))?")
_DAY_MONTH = _matching(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[ -]({_MONTH})\b\.?,?(?: ({_YEAR}))?")
_MONTH_DAY = _matching(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?!:),?(?: ?({_YEAR}))?")
_MONTH_YEAR = _matching(rf"\b({_MONTH})\.?,? ({_YEAR})\b")
_IN_MONTH = _matching(rf"\b(?:{_BEFORE_MONTH})[ -](?:early |late |mid[ -]?)?({_MONTH})\b")
_QUARTER = _matching(rf"\b(?:({_YEAR})[ -]?q([1-4])|q([1-4])(?:[ -/]?(?:of )?({_YEAR}))?)\b")
_SEASON = _matching(rf"\b(?:{_BEFORE_SEASON}) ({'|'.join(SEASONS)})\b(?:(?: of)? ({_YEAR}))?|\b({'|'.join(SEASONS)})(?: of)? ({_YEAR})\b")
_IN_YEAR = _matching(rf"\b(?:in|during|of|since|from|late|early|mid|throughout)[ -]({_YEAR})\b")
_AGO = _matching(rf"\b({_COUNT}) {_UNIT}s? (?:ago|earlier|back)\b")
_ROLLING = _matching(rf"\b(?:last|past|previous) ({_COUNT}) {_UNIT}s?\b")
_LAST = _matching(rf"\b(last|past|previous|this) {_UNIT}\b")
_NEXT = _matching(r"\b(?:(tomorrow)|(?:next|coming) (week|month))\b")
_NEAR = _matching(r"\b(?:(the day before yesterday)|(yesterday)|(today|this morning|this afternoon|tonight))\b")
_WEEKDAY = _matching(rf"\b(?:on|last|this|since|from) (?:last |past )?({'|'.join(WEEKDAYS)})\b")
_WORD = re.compile(r"[^\W_]+")
_A_MONTH = _matching(_MONTH)
_SINCE = _matching(r"\b(?:since|after)\W+(?:(?:the|last|early|late|mid|start of|end of|beginning of) )?$")

_DAYS_OF_MONTH, _DAYS_OF_SEASON, _DAYS_OF_YEAR = 31, 92, 366


class Period(msgspec.Struct, frozen=True):
    """A span of time, from its first moment to before its last, in microseconds since 1970, and the words that name it, in lower case."""

    start_us: int
    end_us: int
    words: frozenset[str]

    def is_named_by(self, text: str) -> bool:
        """Say whether a text is a part of the period's name."""
        return self.words.issuperset(_words(text))

    @property
    def undated(self) -> frozenset[str]:
        """The words of its name that are in no date: of "last week" both."""
        return frozenset(word for word in self.words if not word[0].isdigit() and not _A_MONTH.fullmatch(word))


class _Span(NamedTuple):
    first: date
    days: int


_Reader = Callable[[re.Match[str], datetime], _Span | None]


def period(text: str, now_us: int) -> Period | None:
    """Return the time that a question asked at *now_us* names; None where it names none that a calendar has."""
    now = EPOCH + now_us * MICROSECOND
    for pattern, read in _READERS:
        for match in pattern.finditer(text):
            span = read(match, now)
            if span is not None:
                return _period(span, match, now)
    return None


def _period(span: _Span, match: re.Match[str], now: datetime) -> Period:
    start_us = (datetime(span.first.year, span.first.month, span.first.day, tzinfo=UTC) - EPOCH) // MICROSECOND
    end_us = start_us + timedelta(days=span.days) // MICROSECOND
    is_open = match.group().lower().startswith(("since ", "after ")) or _SINCE.search(match.string, 0, match.start())
    tomorrow_us = (datetime(now.year, now.month, now.day, tzinfo=UTC) - EPOCH) // MICROSECOND + timedelta(days=1) // MICROSECOND
    return Period(start_us, max(end_us, tomorrow_us) if is_open else end_us, _words(match.group()))


def _iso_day(match: re.Match[str], now: datetime) -> _Span | None:
    del now
    return _spanned(int(match[1]), int(match[2]), int(match[3]), days=1)


def _iso_month(match: re.Match[str], now: datetime) -> _Span | None:
    del now
    return _spanned(int(match[1]), int(match[2]), 1, days=_DAYS_OF_MONTH)


def _between(match: re.Match[str], now: datetime) -> _Span | None:
    first, last = _number_of(match[1]), _number_of(match[3])
    end_year = int(match[4]) if match[4] else _latest_year(now, last, 1)
    start_year = int(match[2]) if match[2] else end_year - (first > last)
    months = (end_year - start_year) * 12 + last - first + 1
    return _spanned(start_year, first, 1, days=months * _DAYS_OF_MONTH) if months > 0 else None


def _day_month(match: re.Match[str], now: datetime) -> _Span | None:
    return _one_day(_number_of(match[2]), int(match[1]), match[3], now)


def _month_day(match: re.Match[str], now: datetime) -> _Span | None:
    if _is_verb(match[1]) and not re.search(r"\b(?:on|by|of|since|until|before|after)\W+$", match.string[: match.start()], re.IGNORECASE):
        return None
    return _one_day(_number_of(match[1]), int(match[2]), match[3], now)


def _month_year(match: re.Match[str], now: datetime) -> _Span | None:
    del now
    return _spanned(int(match[2]), _number_of(match[1]), 1, days=_DAYS_OF_MONTH)


def _in_month(match: re.Match[str], now: datetime) -> _Span | None:
    month = _number_of(match[1])
    return _spanned(_latest_year(now, month, 1), month, 1, days=_DAYS_OF_MONTH)


def _quarter(match: re.Match[str], now: datetime) -> _Span | None:
    month = int(match[2] or match[3]) * 3 - 2
    year = match[1] or match[4]
    return _spanned(int(year) if year else _latest_year(now, month, 1), month, 1, days=_DAYS_OF_SEASON)


def _season(match: re.Match[str], now: datetime) -> _Span | None:
    name, year = match[1] or match[3], match[2] or match[4]
    if name == "Spring" and not year:  # the framework
        return None
    month = SEASONS[name.lower()]
    return _spanned(int(year) if year else _latest_year(now, month, 1), month, 1, days=_DAYS_OF_SEASON)


def _in_year(match: re.Match[str], now: datetime) -> _Span | None:
    del now
    return _spanned(int(match[1]), 1, 1, days=_DAYS_OF_YEAR)


def _ago(match: re.Match[str], now: datetime) -> _Span | None:
    days = _count_of(match[1]) * _UNIT_DAYS[match[2].lower()]
    slack = max(1, days // 4)
    return _back(now, days + slack, 2 * slack + 1)


def _rolling(match: re.Match[str], now: datetime) -> _Span | None:
    days = _count_of(match[1]) * _UNIT_DAYS[match[2].lower()]
    return _back(now, days + max(1, days // 4), days + max(1, days // 4) + 1)


def _last(match: re.Match[str], now: datetime) -> _Span | None:
    is_this, unit = match[1].lower() == "this", match[2].lower()
    if unit == "year":
        return _spanned(now.year - (not is_this), 1, 1, days=_DAYS_OF_YEAR)
    days = (1 if is_this else 2) * _UNIT_DAYS[unit]
    return _back(now, days, days + 1)


def _next(match: re.Match[str], now: datetime) -> _Span | None:
    if match[1]:
        return _ahead(now, 1, 1)
    return _ahead(now, 1, 2 * _UNIT_DAYS[match[2].lower()])


def _near(match: re.Match[str], now: datetime) -> _Span | None:
    return _back(now, 2 if match[1] else 1 if match[2] else 0, 1)


def _weekday(match: re.Match[str], now: datetime) -> _Span | None:
    days = (now.weekday() - WEEKDAYS.index(match[1].lower())) % 7
    return _back(now, days or 7, 1)


_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (_ISO_DAY, _iso_day),
    (_BETWEEN, _between),
    (_DAY_MONTH, _day_month),
    (_MONTH_DAY, _month_day),
    (_ISO_MONTH, _iso_month),
    (_MONTH_YEAR, _month_year),
    (_IN_MONTH, _in_month),
    (_QUARTER, _quarter),
    (_SEASON, _season),
    (_IN_YEAR, _in_year),
    (_AGO, _ago),
    (_ROLLING, _rolling),
    (_WEEKDAY, _weekday),
    (_LAST, _last),
    (_NEXT, _next),
    (_NEAR, _near),
)
"""The most exact first."""


def _one_day(month: int, number: int, year: str | None, now: datetime) -> _Span | None:
    return _spanned(int(year) if year else _latest_year(now, month, number), month, number, days=1)


def _spanned(year: int, month: int, number: int, *, days: int) -> _Span | None:
    """Return a span from a day on; None for a day that no calendar has."""
    try:
        return _Span(date(year, month, number), days)
    except ValueError:
        return None


def _back(now: datetime, days: int, span: int) -> _Span | None:
    today = now.date()
    return _Span(today - timedelta(days=days), span) if days < today.toordinal() else None


def _ahead(now: datetime, days: int, span: int) -> _Span | None:
    today = now.date()
    return _Span(today + timedelta(days=days), span) if today.toordinal() + days <= date.max.toordinal() else None


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _count_of(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word.lower()]


def _number_of(month: str) -> int:
    return next(place for place, name in enumerate(MONTHS, 1) if name.startswith(month.lower()[:3]))


def _is_verb(month: str) -> bool:
    """Say whether a word may be `may` or `march`, and no month."""
    return month in {"may", "march", "mar"}


def _latest_year(now: datetime, month: int, number: int) -> int:
    return now.year if (month, number) <= (now.month, now.day) else now.year - 1
