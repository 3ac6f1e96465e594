"""What a reaction offers, and all that it may ask for.

There are three kinds. A `Reaction` turns an event into commands, a `Schedule` turns a slot of time into
commands; both are usually modules, and carried out once for each event or slot. A `Sweep` does what is
lacking, however it came to lack: it is an object.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from omegad.log.event import Event, RecordedEvent
from omegad.requests.command import Command
from omegad.storage.driver import Connection


class Reader(NamedTuple):
    """What a reaction may look at: one moment of the views it named, and the time in microseconds since
    1970.
    """

    connection: Connection
    now_us: int


class ReactionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Up to which position of the log (or which slot of time, where that is what it goes by) a reaction
    has done all there was to do.
    """

    position: int
    lag: int
    trouble: str | None = None
    set_aside: int = 0


class Recurring(Protocol):
    """What both kinds that are carried out once have: a name, a version, and the views that the reader has to
    show.

    `VERSION` goes up whenever the commands for an event become others; where it goes on stays as it was.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802, D102  constants of a module
    @property
    def VERSION(self) -> int: ...  # noqa: N802, D102
    @property
    def VIEWS(self) -> tuple[str, ...]: ...  # noqa: N802, D102


@runtime_checkable
class Reaction(Recurring, Protocol):
    """Turns events into commands. A new one starts at the end of the log.

    A command is known by the reaction's name and version, the event's position, and its place among the
    commands: after a crash `react` is asked again, and each command that was carried out is left at that. So
    what it returns must not depend on its own commands having been carried out. One that is refused by how
    things stand is passed over.

    Where one has `passes_over(recorded) -> bool`, that is asked first, of each event of the log in turn,
    whether of `EVENTS` or not: from one that it passes over nothing follows, and no views are read for it.

    Where a module has `async effect(recorded) -> None`, that is done first: something outside the home's
    files, which the commands then record. It may be done more than once, and must come to the same each time.
    """

    @property
    def EVENTS(self) -> tuple[type[Event], ...]: ...  # noqa: N802, D102
    def react(self, recorded: RecordedEvent, reader: Reader, /) -> Iterable[Command]:
        """Return what follows from *recorded*, whose event is one of `EVENTS`; views show it, and perhaps
        more. Reads, and is pure otherwise.
        """
        ...


@runtime_checkable
class Schedule(Recurring, Protocol):
    """Turns slots of time into commands. Slots are `EVERY` seconds long and numbered from 1970 on.

    The present slot is carried out once, also by a daemon that starts within it; those missed before it are
    not.
    """

    @property
    def EVERY(self) -> int: ...  # noqa: N802, D102
    def due(self, slot: int, reader: Reader, /) -> Iterable[Command]:
        """Return what is to be done in a slot; views show the end of the log. Reads, and is pure
        otherwise.
        """
        ...


@runtime_checkable
class Sweep(Protocol):
    """Does what is lacking, found by looking at the views rather than in the order of events. What was
    done is for the log's state to say.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802, D102
    @property
    def trouble(self) -> str | None:
        """What cannot be done and why, in words."""
        ...

    def concerns(self, events: Sequence[RecordedEvent], /) -> bool:
        """Say whether something may be lacking because of *events*."""
        ...

    def is_due(self) -> bool:
        """Say whether there is a reason to look that is no event; asked every few seconds."""
        ...

    async def sweep(self) -> bool:
        """Do all that is lacking; say whether that could be done, since it is tried again shortly where it
        could not.
        """
        ...
