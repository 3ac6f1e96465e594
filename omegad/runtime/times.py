"""Moments as people and programs write them; everywhere else a moment is microseconds since 1970, UTC."""

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache

import msgspec

from omegad.runtime.errors import Invalid

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
LAST_US = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - EPOCH) // MICROSECOND
"""The last moment that can be written."""

FIRST_YEAR, LAST_YEAR = 2, 9_998  # every zone can write these
FIRST_US = (datetime(FIRST_YEAR, 1, 1, tzinfo=UTC) - EPOCH) // MICROSECOND


def rfc3339(time_us: int) -> str:
    """Write microseconds since 1970 as an RFC 3339 UTC string."""
    minutes, us = divmod(time_us, 60_000_000)
    days, minute = divmod(minutes, 1_440)
    return f"{_date(days)}T{_time(minute)}:{us / 1_000_000:09.6f}Z"


@lru_cache(maxsize=64)
def _date(days: int) -> str:
    """Write a day, counted from 1970; moments that are written one after the other share most of theirs."""
    return (EPOCH + timedelta(days=days)).isoformat()[:10]


@cache
def _time(minute: int) -> str:
    """Write a minute of a day."""
    return f"{minute // 60:02}:{minute % 60:02}"


def day(time_us: int) -> str:
    """Write the day of a moment, UTC, in words: `8 May 2023`."""
    moment = EPOCH + time_us * MICROSECOND
    return f"{moment.day} {moment:%B} {moment.year}"


def parse_time(text: str, name: str) -> int:
    """Read an RFC 3339 time, or a bare date (its first moment, UTC), as microseconds since 1970.

    Raises `Invalid`, naming the parameter, for anything else, a time without its zone, and the first and last
    years of the calendar.
    """
    try:
        moment = msgspec.convert(text + "T00:00:00Z" if len(text) == len("2026-01-31") else text, datetime)
    except msgspec.ValidationError:
        moment = None
    if moment is None or moment.tzinfo is None or not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise Invalid(
            f"{name} is not a time: {text[:40]!r}",
            hint="write it like 2026-01-31T09:30:00Z, or as a date 2026-01-31",
        )
    return (moment - EPOCH) // MICROSECOND
