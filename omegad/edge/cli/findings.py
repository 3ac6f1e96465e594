"""What a check of `omegad doctor` comes to."""

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from omegad.runtime.errors import OmegadError

State = Literal["ok", "warn", "FAIL"]


class Finding(msgspec.Struct, frozen=True):
    """One part, whether it works, what was seen, and what to do about it."""

    part: str
    state: State
    seen: str
    remedy: str = ""


def ok(part: str, seen: str) -> Finding:
    """Say that a part works."""
    return Finding(part, "ok", seen)


def doubtful(part: str, seen: str, remedy: str) -> Finding:
    """Say that a part works, but not as well as it could."""
    return Finding(part, "warn", seen, remedy)


def failed(part: str, seen: str, remedy: str) -> Finding:
    """Say that a part does not work."""
    return Finding(part, "FAIL", seen, remedy)


def examined(part: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Return what *check* finds; an error of the catalogue or of the system is a finding too."""
    found: list[Finding] = []
    try:
        found.extend(check())
    except OmegadError as error:
        found.append(failed(part, str(error), error.hint))
    except OSError as error:
        found.append(
            failed(
                part, str(error), "see what the system's error says; the home must be readable and writable"
            )
        )
    return found
