"""Which span of time a question names: "on 8 May 2023", "on 08.05.2023", "in March", "last week", "between
June and August", "Q3 2025". Pure.

English. Days begin and end in UTC; a season is three calendar months of the northern year. Where a year is
left out, the latest one that has begun is meant. Two things are read generously: a week begins on a Monday or
on a Sunday, so that it holds the days of both readings; and what is told as so long "ago" may be a quarter of
that time off, and at least a day. What may be another word ("may", "dec") or a number is no time.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import msgspec
from dateutil.relativedelta import MO, SU, relativedelta, weekday

from omegad.runtime.times import EPOCH, MICROSECOND

_TRIED_MAX = 64  # of what may be a time, of each kind; who has said as much has asked about none of it

_MONTHS = {
    name: place
    for place, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_THREE_MONTHS = {
    "spr": 3,
    "sum": 6,
    "aut": 9,
    "fal": 9,
    "win": 12,
    "q1": 1,
    "q2": 4,
    "q3": 7,
    "q4": 10,
}  # the month that each begins in
_WEEKDAYS = {
    "monday": 0,
    "tuesday": 1,
    "wednesday": 2,
    "thursday": 3,
    "friday": 4,
    "saturday": 5,
    "sunday": 6,
    "weekend": 5,
}
_COUNTS = {
    "couple of": 2,
    "couple": 2,
    "an": 1,
    "a": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "few": 4,
}
_SHIFTS = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}
_DAY = relativedelta(days=1)
_LENGTHS = {"day": _DAY, "night": _DAY, "week": _DAY * 7} | {
    name: relativedelta(months=n) for name, n in (("month", 1), ("quarter", 3), ("year", 12))
}
_OPEN = frozenset({"since", "after", "before", "until", "till"})
_LEADS = _OPEN | {"in", "during", "throughout", "from"}
_MONTH_LEADS = _LEADS | {"of", "by", "around", "for"}
_SEASON_LEADS = _LEADS - {"from", "after", "before"} | {"over"}
_WEEKDAY_LEADS = frozenset({"on", "since", "from", "after", "over", "during"})
_ANY_LEADS = _MONTH_LEADS | _SEASON_LEADS | _WEEKDAY_LEADS

_A_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|(?-i:May)|may(?!"
    r" [a-z])|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b"
)
_MONTH, _DAY_NUMBER = rf"(?P<name>{_A_MONTH})", r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_SINCE_DAY = r"(?:(?P<begin>\d{1,2})(?:st|nd|rd|th)?(?:-| to | and )(?:the )?)?"
_YEAR = r"(?:of )?(?P<year>(?:19|20)\d\d\b(?![.:/]\d)|(?:last|this|next) year\b)"
_WHICH = rf"\b(?:(?P<which>{'|'.join(_SHIFTS)}) )?"
_COUNT, _UNIT = rf"(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})", rf"(?P<unit>{'|'.join(_LENGTHS)})"
_PART = r"(?:\b(?:early|late|mid|(?:start|end|beginning|middle|half|rest|course) of)[ -])"
_ALONE = r"(?<![\w.:/=#$-])"  # no part of a version, a path, a ratio or a file's name
_NO_OTHER_YEAR = r"(?!\.?,?[ -]\d{4}\b)"  # that is not read: the time is of another year than the latest
_NO_CODE = (
    _NO_OTHER_YEAR + r"(?-i:(?<!\b(?!may)[a-z]{3})(?<!\b[A-Z]{3}))(?![\w-]|\.\w)"
)  # as dec, OCT and march.py are


def _matching(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


_LEAD = _matching(rf"(?:\b(?P<lead>{'|'.join(_ANY_LEADS)}) )?(?:the )?(?P<part>{_PART})?(?:the )?$")
_BESIDE = _matching(rf"(?:\b{_COUNT} )?\b(?:{_UNIT}s?|{'|'.join(_WEEKDAYS)}) (?:before|after) (?:the )?$")
_FROM, _TO = (
    _matching(rf"\b(?:between|from) (?:the )?{_PART}?"),
    _matching(rf",? (?:and|to|until|till|through) (?:the )?{_PART}?"),
)
_ALSO_A_WORD = re.compile(r"\b(?:may|march|mar|dec|oct|sep|MAY|MARCH|MAR|DEC|OCT|SEP)\b")
_TOLD_FROM_NOW = _matching(r"\b(?:last|past|previous|this|ago|back|yesterday|today|tonight)\b")
# What is yet to come, and what was years ago, is told in the same words by memories of any time.
_HELD_BY_ITSELF = _matching(
    rf"\b(?:{_A_MONTH}|Q[1-4]\b|spring|summer|autumn|fall\b|winter|years?\b|(?:19|20)\d\d|\d\d\.\d\d)"
)
# Without any of these no time is named, as in most questions, and nothing more is looked for.
_SEASONS = ("spring", "summer", "autumn", "fall", "winter")
_OF_DAYS = ("tomorrow", "morning", "afternoon", "evening")
_NEEDED = re.compile("|".join(("[0-9]", *_MONTHS, *_SEASONS, *_WEEKDAYS, *_LENGTHS, *_OF_DAYS)))
_WORD, _DATED = re.compile(r"[^\W_]+"), _matching(rf"\d.*|{_A_MONTH}")


class Period(msgspec.Struct, frozen=True):
    """A span of time, from its first moment to before its last, in microseconds since 1970, the words that
    name it, in lower case, and those of its name that are in no date: of "last week" both.

    `told_from_now` is its name, as it is written, where that means another time whenever it is said.
    """

    start_us: int
    end_us: int
    words: frozenset[str]
    undated: frozenset[str]
    told_from_now: tuple[str, ...] = ()

    @property
    def days(self) -> str:
        """Its first and its last day, as ISO 8601 has them; of what is open at the start the last alone."""
        first, last = ((EPOCH + moment * MICROSECOND).date() for moment in (self.start_us, self.end_us - 1))
        if first == date.min:
            return f"until {last}"
        return f"{first}" if first == last else f"{first} to {last}"

    def is_named_by(self, text: str) -> bool:
        """Say whether a text is a part of the period's name."""
        return self.words.issuperset(_WORD.findall(text.lower()))


def period(text: str, now_us: int) -> Period | None:
    """Return the time that a question asked at *now_us* names; None where it names none that a calendar has.

    What is before or until a time begins with the calendar; what is since or after one holds its first day,
    and today; a week, or a Sunday, before a day reaches up to that day, on which it may be told.
    """
    if not _NEEDED.search(text.lower()):
        return None
    today, text = (EPOCH + now_us * MICROSECOND).date(), " ".join(text.split())
    text = "m" + text[1:] if text.startswith("May ") else text  # the verb, as the first word
    impossible = suppress(ValueError, OverflowError)  # a day that no calendar has
    for begun in islice(_FROM.finditer(text), _TRIED_MAX):
        with impossible:
            # From what is named where the match ends to what is named after it, where both are times.
            start = _at(text, begun.end(), today, today)
            joint = _TO.match(text, start[1]) if start else None
            last = _at(text, joint.end(), today, today) if joint else None
            start = _at(text, begun.end(), today, last[0][0]) if last else None
            if start and last and start[0][0] < last[0][1]:
                return _period((start[0][0], last[0][1]), text[begun.start() : last[1]])
    unread = list[re.Match[str]]()
    for pattern, read, leads in _READERS:
        for match in islice(pattern.finditer(text), _TRIED_MAX):
            if any(match.start() < one.end() and one.start() < match.end() for one in unread):
                continue
            try:
                if found := _meant(match, read, leads, today):
                    return found
            except (
                ValueError,
                OverflowError,
            ):  # a day that no calendar has, of which the month is none either
                if match.groupdict().get("year") or match.group()[0].isdigit():
                    unread.append(match)
    return None


def _at(text: str, place: int, today: date, by: date) -> tuple[tuple[date, date], int] | None:
    """Return the span that is named at a place of a text, and where its name ends."""
    matches = ((pattern.match(text, place), read) for pattern, read, _ in _READERS)
    return next(((read(match, today, by), match.end()) for match, read in matches if match), None)


def _meant(match: re.Match[str], read: "_Reader", leads: frozenset[str] | None, today: date) -> Period | None:
    """Return the time that a match and the words before it name; None where these do not make it one."""
    before = match.string[max(0, match.start() - 40) : match.start()]
    said = match.groupdict() | (leading.groupdict() if (leading := _LEAD.search(before)) else {})
    lead = (said["lead"] or "").lower()
    is_led = (
        lead in (_ANY_LEADS if leads is None else leads)
        or said["part"]
        or said.get("which")
        or said.get("year")
    )
    if not is_led and (leads is not None or _ALSO_A_WORD.search(match.group())):
        return None
    span, name = read(match, today, today), f"{lead} {match.group()}" if lead in _OPEN else match.group()
    if beside := _BESIDE.search(before):
        length = _so_long(beside)
        span = (span[0] - length, span[1]) if lead == "before" else (span[0], span[1] + length)
    elif lead in {"since", "after"}:
        span = (span[0], max(span[1], today + _DAY))
    elif lead in _OPEN:
        span = (date.min, span[0] if lead == "before" else span[1])
    return _period(span, name)


def _period(span: tuple[date, date], name: str) -> Period:
    start_us, end_us = (
        (datetime(day.year, day.month, day.day, tzinfo=UTC) - EPOCH) // MICROSECOND for day in span
    )
    words = frozenset(_WORD.findall(name.lower()))
    if _TOLD_FROM_NOW.search(name) and not _HELD_BY_ITSELF.search(name):
        return Period(start_us, end_us, words, words, (name,))
    return Period(start_us, end_us, words, frozenset(word for word in words if not _DATED.fullmatch(word)))


def _so_long(match: re.Match[str]) -> relativedelta:
    count = (match["count"] or "one").lower()
    return _LENGTHS[(match["unit"] or "week").lower()] * (_COUNTS.get(count) or int(count))


def _from(first: date, length: relativedelta) -> tuple[date, date]:
    return (first, first + length)


def _of_year(match: re.Match[str], today: date, by: date) -> tuple[date, date]:
    """Return a day, month, quarter or season: of the year that is named, else the latest by a day, or as
    "last", "this" and "next" say.
    """
    said, name = match.groupdict(), match["name"][:3].lower()
    month, day = (_MONTHS | _THREE_MONTHS)[name], int(said.get("day") or 1)
    length = _DAY if said.get("day") else _LENGTHS["month" if name in _MONTHS else "quarter"]
    starts = [
        date(year, month, day)
        for year in range(by.year - 8, by.year + 3)
        if day <= monthrange(year, month)[1]
    ]
    shift = _SHIFTS.get((said.get("which") or "").lower())
    if year := said.get("year"):
        first = date(
            int(year) if year.isdigit() else today.year + _SHIFTS[year.split()[0].lower()], month, day
        )
    elif shift is None or shift < 0:
        first = max(start for start in starts if (start if shift is None else start + length) <= by)
    else:
        first = min(
            start
            for start in starts
            if start > by or (shift == 0 and (start.year == by.year or start + length > by))
        )
    return min(first, first.replace(day=int(said.get("begin") or day))), first + length


def _ago(match: re.Match[str], today: date, _by: date) -> tuple[date, date]:
    """Return the days around that so long ago, or those of so long up to today."""
    first = today - _so_long(match)
    slack = timedelta(days=max(1, (today - first).days // 4))
    return (first - slack, first + slack + _DAY) if match.groupdict().get("ago") else (first, today + _DAY)


def _unit(match: re.Match[str], today: date, _by: date) -> tuple[date, date]:
    shift, length = _SHIFTS[match["which"].lower()], _LENGTHS[match["unit"].lower()]
    if match["unit"].lower() == "week":
        starts = [today + relativedelta(weekday=day(-1)) for day in (MO, SU)]
        return (min(starts) + length * shift, max(starts) + length * (shift + 1))
    months = length.months or 12
    return _from(date(today.year, (today.month - 1) // months * months + 1, 1) + length * shift, length)


def _weekday(match: re.Match[str], _today: date, by: date) -> tuple[date, date]:
    name, shift = match["weekday"].lower(), _SHIFTS[(match["which"] or "last").lower()]
    length = _DAY * 2 if name == "weekend" else _DAY
    origin = {-1: by - length, 0: by + relativedelta(weekday=MO(-1)), 1: by + _DAY}[shift]
    return _from(origin + relativedelta(weekday=weekday(_WEEKDAYS[name])(-1 if shift < 0 else 1)), length)


_Reader = Callable[[re.Match[str], date, date], tuple[date, date]]
_READERS: tuple[tuple[re.Pattern[str], _Reader, frozenset[str] | None], ...] = (
    (
        _matching(rf"{_ALONE}(?P<iso>(?:19|20)\d\d-\d\d)(?P<day>-\d\d)?(?:(?=T\d)|(?![\w-]|\.\w))"),
        lambda match, _today, _by: _from(
            date.fromisoformat(match["iso"] + (match["day"] or "-01")),
            _LENGTHS["day" if match["day"] else "month"],
        ),
        None,
    ),
    (
        _matching(rf"{_ALONE}(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>(?:19|20)\d\d)(?![\w-]|\.\w)"),
        lambda match, _today, _by: _from(
            date(int(match["year"]), int(match["month"]), int(match["day"])), _DAY
        ),
        None,
    ),
    (
        _matching(
            rf"{_ALONE}{_SINCE_DAY}{_DAY_NUMBER}(?: of)?[ -]{_MONTH}(?:\.?,?[ -]{_YEAR}|{_NO_OTHER_YEAR})"
        ),
        _of_year,
        None,
    ),
    (
        _matching(rf"\b{_MONTH}\.? (?:the )?{_DAY_NUMBER}(?![.:/-]\d|%)(?:,? ?{_YEAR}|{_NO_OTHER_YEAR})"),
        _of_year,
        None,
    ),
    (_matching(rf"{_WHICH}{_MONTH}(?:\.?,? {_YEAR}|{_NO_CODE})"), _of_year, _MONTH_LEADS),
    (_matching(rf"{_WHICH}(?P<name>(?-i:Q)[1-4])\b(?:[ /-]{_YEAR})?"), _of_year, _MONTH_LEADS),
    (_matching(r"\b(?P<year>(?:19|20)\d\d)[ /-]?(?P<name>Q[1-4])\b"), _of_year, None),
    (
        _matching(
            rf"{_WHICH}(?P<name>spring|summer|autumn|fall(?!(?<=this fall) [a-z])|winter)\b(?:,?"
            rf" {_YEAR}|(?-i:(?<!Spring))(?!-| of\b| boot\b))"
        ),
        _of_year,
        _SEASON_LEADS,
    ),
    (
        _matching(
            r"\b(?P<only>(?:19|20)\d\d)\b(?![%-]|[.:/,]\d| to (?!19|20)\d|"
            r" (?!(?:was|is|as|does|has)\b)[a-z]+s\b)"
        ),
        lambda match, _today, _by: _from(date(int(match["only"]), 1, 1), _LENGTHS["year"]),
        _LEADS,
    ),
    (_matching(rf"\b(?:a (?=few|couple))?{_COUNT} {_UNIT}s? (?P<ago>ago|back)\b"), _ago, None),
    (_matching(rf"\b(?:the last|past)(?: {_COUNT}|(?! day| night)) {_UNIT}s?\b(?! of\b)"), _ago, None),
    (_matching(rf"{_WHICH}(?P<weekday>{'|'.join(_WEEKDAYS)})\b"), _weekday, _WEEKDAY_LEADS),
    (
        _matching(rf"\b(?P<which>{'|'.join(_SHIFTS)}) (?P<unit>week|month|quarter|year)\b(?! of\b)"),
        _unit,
        None,
    ),
    (
        _matching(r"\bthe day before yesterday\b"),
        lambda _match, today, _by: _from(today - _DAY * 2, _DAY),
        None,
    ),
    (_matching(r"\byesterday\b"), lambda _match, today, _by: _from(today - _DAY, _DAY), None),
    (_matching(r"\blast night\b"), lambda _match, today, _by: _from(today - _DAY, _DAY * 2), None),
    (
        _matching(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b"),
        lambda _match, today, _by: _from(today, _DAY),
        None,
    ),
    (_matching(r"\btomorrow\b"), lambda _match, today, _by: _from(today + _DAY, _DAY), None),
)
"""How each kind of name is written and read, the most exact first, and the words of which one makes it a
time; None where it needs none.
"""
