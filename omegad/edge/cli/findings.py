"""What a check of `omegad doctor` comes to."""

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One part, whether it works (`warn`: not as it could), what was seen, and what to do about it."""

    part: str
    state: Literal["ok", "warn", "FAIL"]
    seen: str
    remedy: str = ""
