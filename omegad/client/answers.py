"""What both clients make of what the daemon sends: results, exceptions, notifications."""

from collections import deque
from typing import Any, Final, TypeAlias

import msgspec

from omegad.rpc.protocol import (
    UNREADABLE,
    Incoming,
    InternalError,
    InvalidRequest,
    MethodNotFound,
    ParseFailed,
    WireError,
)
from omegad.runtime.errors import (
    Conflict,
    Invalid,
    NoDaemon,
    NotFound,
    OmegadError,
    Overloaded,
    Refused,
    ShuttingDown,
    Stale,
    Unavailable,
)

ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
UNREAD_NOTIFICATIONS_MAX: Final = 10_000
LOST_NOTIFICATIONS_FROM: Final = 2 * UNREAD_NOTIFICATIONS_MAX  # one read holds fewer than the difference

JSON: TypeAlias = Any
"""What a method answers: any JSON, as msgspec decodes it."""

_BY_CODE: Final = {
    error.code: error
    for error in (
        *(NotFound, Conflict, Refused, Invalid, Stale, Overloaded, Unavailable, ShuttingDown),
        *(ParseFailed, InvalidRequest, MethodNotFound, InternalError),
    )
}


class Notification(msgspec.Struct, frozen=True):
    """Something the daemon tells without being asked again."""

    method: str
    params: JSON


class Inbox:
    """Notifications that were not taken yet, a bounded number; says so when there were more."""

    def __init__(self) -> None:
        self._waiting: deque[Incoming] = deque()
        self._overran = False

    def is_full(self) -> bool:
        """Say whether the daemon should wait."""
        return len(self._waiting) >= UNREAD_NOTIFICATIONS_MAX

    def put(self, message: Incoming) -> None:
        """Keep *message*, or lose it when far too many are waiting."""
        if len(self._waiting) >= LOST_NOTIFICATIONS_FROM:
            self._overran = True
        else:
            self._waiting.append(message)

    def get(self) -> Notification | None:
        """Take the oldest, if any. Raises `Overloaded` once where some were lost."""
        if self._waiting:
            message = self._waiting.popleft()
            return Notification(message.method, decoded(message.params))
        if self._overran:
            self._overran = False
            raise Overloaded(
                "notifications were lost", hint=f"take them before {LOST_NOTIFICATIONS_FROM} are waiting"
            )
        return None


def result_of(message: Incoming) -> JSON:
    """Return the result that *message* brings, or raise the error."""
    if message.error:
        raise rebuild(message.error)
    return decoded(message.result)


def rebuild(wire: WireError) -> OmegadError:
    """Return the catalogue's exception for *wire*, with the kind and tag it came with."""
    error = _BY_CODE.get(wire.code, OmegadError)(wire.message, hint=wire.data.get("hint", ""))
    vars(error).update(
        code=wire.code, kind=wire.data.get("kind", error.kind), tag=wire.data.get("tag", error.tag)
    )
    return error


def decoded(text: msgspec.Raw) -> JSON:
    """Return what some JSON of the daemon's says, None where it is empty. Raises `NoDaemon`."""
    try:
        return msgspec.json.decode(text) if memoryview(text) else None
    except UNREADABLE as error:
        raise NoDaemon(f"what answers is no omegad: {error}") from error
