"""Time and identity: the two things a program can only ask the world for.

Everything that needs them takes a `Clock`; tests pass one that steps.
"""

import secrets
import time
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from omegad.errors import Invalid

HLC_COUNTER_BITS = 16


class Clock(Protocol):
    """Where the time and new identifiers come from."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...

    def tz_offset_minutes(self) -> int:
        """Minutes that local time is ahead of UTC."""
        ...

    def random_bits(self, bits: int) -> int:
        """Fresh random bits, as a non-negative integer."""
        ...


class SystemClock:
    """The machine's clock and its random source."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000

    def tz_offset_minutes(self) -> int:
        """Minutes that local time is ahead of UTC."""
        return time.localtime().tm_gmtoff // 60

    def random_bits(self, bits: int) -> int:
        """Fresh random bits, as a non-negative integer."""
        return secrets.randbits(bits)


def uuid7(clock: Clock) -> str:
    """Return a time-ordered identifier as RFC 9562 section 5.7 lays it out."""
    value = (clock.now_us() // 1000) << 80 | 0x7 << 76 | clock.random_bits(12) << 64 | 0b10 << 62 | clock.random_bits(62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def next_hlc(last: int, now_us: int) -> int:
    """Return the hybrid logical time after *last*: 48 bits of milliseconds, 16 of counter.

    Kulkarni et al., "Logical Physical Clocks" (2014): it follows the wall clock, and never runs backwards when that does.
    """
    return max(last + 1, (now_us // 1000) << HLC_COUNTER_BITS)


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
