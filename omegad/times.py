"""Moments as people and programs write them; everywhere else a moment is microseconds since 1970, UTC."""

from datetime import UTC, datetime

import msgspec

from omegad.errors import Invalid


def rfc3339(time_us: int) -> str:
    """Write microseconds since 1970 as an RFC 3339 UTC string."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse_time(text: str, name: str) -> int:
    """Read an RFC 3339 time, or a bare date (its first moment, UTC), as microseconds since 1970.

    Raises `Invalid`, naming the parameter, for anything else and for a time without its zone.
    """
    try:
        moment = msgspec.convert(text + "T00:00:00Z" if len(text) == len("2026-01-31") else text, datetime)
    except msgspec.ValidationError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise Invalid(f"{name} is not a time: {text[:40]!r}", hint="write it like 2026-01-31T09:30:00Z, or as a date 2026-01-31")
    return round(moment.timestamp() * 1e6)
