"""What a command comes to: events to append, and the answer to give once they are."""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from omegad.log.aging import Remains
from omegad.log.erasure import Erasure
from omegad.log.event import NewEvent, Position
from omegad.storage.driver import Connection


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Events to append, all or none, and the answer to the one who asked.

    An answer whose `position` is 0 is given the position of the last of the events. With an `erasure`, the
    last of them is the `payload.erased` that names what is erased in the same transaction; with what is left
    of payloads that have `aged`, it is the `payloads.aged` that says so. Without events, and where the answer
    has no `position`, it is acknowledged at `position`.
    """

    events: tuple[NewEvent, ...] = ()
    answer: msgspec.Struct
    erasure: Erasure | None = None
    aged: tuple[Remains, ...] = ()
    position: Position = 0


class Tables:
    """Base of what reads a noun's tables for decisions, whatever transaction is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _has(self, sql: str, *values: object) -> bool:
        """Say whether a SELECT finds any row."""
        return self._connection.execute(sql, values).fetchone() is not None


TablesT = TypeVar("TablesT", bound=Tables)


class DecisionState:
    """What one decision is made on, including what earlier proposals of the same transaction wrote: by noun.

    `state[Memories]` is the reader of the memories' tables, made at the first use. It may remember what it
    has read, since nothing is written before the decision is made.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._readers: dict[type[Tables], Tables] = {}
        self.head: Position | None = None
        """The position of the event before the decision; None where that is not known."""

    def __getitem__(self, kind: type[TablesT]) -> TablesT:
        found = self._readers.get(kind)
        if not isinstance(found, kind):
            found = self._readers[kind] = kind(self._connection)
        return found


Decide = Callable[..., Decision]
"""Makes a decision of the decision state, and the time of the append, in microseconds since 1970.

Pure; may raise `Refused` and its like."""


class RequestKey(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a request the same request: its client and id. The digest, as `digests` makes them, is of
    its method and parameters.
    """

    client: str
    request_id: str
    params_digest: bytes


class Cursor(msgspec.Struct, frozen=True):
    """How far someone who acts on events has come: the latest position acted on, or passed over, by a
    version of what it does.
    """

    name: str
    position: Position
    version: int = 1


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A decision to be made in the transaction of its append.

    `decide` is pure: of the state and the time of the append (microseconds since 1970). It may raise
    `Refused` or another error of the catalogue, and then nothing is written. `cursor` is where to move the
    cursor of that name, in the same transaction, whether or not there are events; with a `request` that was
    answered before it moves too. `cause` is that of the events that name none.
    """

    decide: Decide
    client: str | None = None
    cause: Position | None = None
    trace: str | None = None
    request: RequestKey | None = None
    cursor: Cursor | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a proposal: the answer, or as stored JSON when the request had been answered before."""

    answer: msgspec.Struct | msgspec.Raw
    position: int


class _Nothing(msgspec.Struct, frozen=True):
    """There is nothing to say."""


def decide_nothing(state: object, now_us: int) -> Decision:
    """Decide that nothing happens: for a proposal that only moves a cursor, or waits for those before it."""
    del state, now_us
    return Decision(answer=_Nothing())
