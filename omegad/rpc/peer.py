"""What a handler is given: a call, and who is calling."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Raw


@dataclass(slots=True, eq=False)
class Peer:
    """The program at the other end of one connection, unknown by name until it says hello."""

    connection: int
    name: str = ""
    written: int = 0
    """The highest position at which one of its commands was acknowledged."""


Notify: TypeAlias = Callable[[str, object], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Call:
    """One request or notification, for a handler to answer, with its parameters as received: a JSON object or
    array, or nothing at all.
    """

    method: str
    params: Raw
    peer: Peer
    notify: Notify
    """Sends the caller a notification (method, params); waits while the caller reads slowly; raises
    `Unavailable` when it is gone.
    """


Handler: TypeAlias = Callable[[Call], Awaitable[object]]
"""Returns the result (anything msgspec encodes), or raises an `OmegadError` that becomes the answer."""
