"""What a handler is given: a call, and who is calling."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Raw


class Peer:
    """The program at the other end of one connection."""

    __slots__ = ("connection", "name", "written")

    def __init__(self, connection: int, name: str = "") -> None:
        """Number *connection* is unknown by name until it says hello."""
        self.connection = connection
        self.name = name
        self.written = 0
        """The highest position at which one of its commands was acknowledged."""


Notify: TypeAlias = Callable[[str, object], Awaitable[None]]


class Call:
    """One request or notification, for a handler to answer."""

    __slots__ = ("method", "notify", "params", "peer")

    def __init__(self, method: str, params: Raw, peer: Peer, notify: Notify) -> None:
        """Take *params* as received: a JSON object or array, or nothing at all."""
        self.method = method
        self.params = params
        self.peer = peer
        self.notify = notify
        """Sends the caller a notification (method, params); waits while the caller reads slowly; raises
        `Unavailable` when it is gone.
        """


Handler: TypeAlias = Callable[[Call], Awaitable[object]]
"""Returns the result (anything msgspec encodes), or raises an `OmegadError` that becomes the answer."""
