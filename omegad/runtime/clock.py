"""Time and identity: the two things a program can only ask the world for.

Everything that needs them takes a `Clock`; tests pass one that steps.
"""

import secrets
import time

HLC_COUNTER_BITS = 16
STEP_US = 60_000_000
"""By how much a clock may be wrong before something is made of it."""


class Clock:
    """Where the time and new identifiers come from: the machine's clock and its random source."""

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
    random = clock.random_bits(74)
    value = (
        (clock.now_us() // 1000) << 80
        | 0x7 << 76
        | (random >> 62) << 64
        | 0b10 << 62
        | (random & (1 << 62) - 1)
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid7_after(time_us: int) -> str:
    """Return what sorts after every identifier that was made by a moment, and before those made a
    millisecond later.
    """
    text = f"{time_us // 1000 + 1:012x}"
    return f"{text[:8]}-{text[8:]}"


def uuid7_us(identifier: str) -> int:
    """Return what the clock said when an identifier was made, to the millisecond."""
    return int(identifier[:8] + identifier[9:13], 16) * 1000


def next_hlc(last: int, now_us: int) -> int:
    """Return the hybrid logical time after *last*: 48 bits of milliseconds, 16 of counter.

    Kulkarni et al., "Logical Physical Clocks" (2014): it follows the wall clock, and never runs backwards
    when that does.
    """
    return max(last + 1, (now_us // 1000) << HLC_COUNTER_BITS)
