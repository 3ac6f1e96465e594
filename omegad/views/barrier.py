"""What a read of the views waits for, and the moment that it then sees."""

from pathlib import Path
from typing import TypedDict

import msgspec

from omegad.log.event import Position
from omegad.runtime.errors import Stale
from omegad.storage.driver import Connection

OWN_WRITES_S = 10.0  # for the views to show what this connection wrote; longer means that they cannot


class Barrier(msgspec.Struct, frozen=True, kw_only=True):
    """Which projections a read is about, and what they have to show before it begins.

    They show `own`, the asker's latest write, and `min_position`, or the read fails after `OWN_WRITES_S`;
    `acknowledged`, the latest write of anyone, is waited for `wait_s` at most. A read that `makes_do` waits
    for all of these `wait_s` at most, and then takes what there is, failed and unfinished views as well; any
    other sees all that was in the log when the views were opened.
    """

    names: tuple[str, ...]
    own: Position = 0
    min_position: Position | None = None
    acknowledged: Position = 0
    wait_s: float = 0.25
    makes_do: bool = False

    @property
    def must(self) -> Position:
        """The position without which nothing is read."""
        return 0 if self.makes_do else max(self.own, self.min_position or 0)

    @property
    def wanted(self) -> Position:
        """The position that is worth waiting for."""
        return max(self.own, self.min_position or 0, self.acknowledged)


class Shown(TypedDict):
    """What every answer from the views says of them."""

    position: Position
    stale_by: int


class Extent(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the log views show: everything up to a position, beyond which there are so many
    acknowledged events.

    `versions` are the projections' own, by name: with the position they say what was read.
    """

    position: Position
    stale_by: int
    versions: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def shown(self) -> Shown:
        """What an answer says of it."""
        return {"position": self.position, "stale_by": self.stale_by}

    def require_current(self, missing: str = "nothing is found") -> None:
        """Call before saying that something is *missing*. Raises `Stale` where what was acknowledged is
        not shown yet, and may be just that.
        """
        if self.stale_by:
            raise Stale(
                f"the views do not show position {self.position + self.stale_by} yet, and in what they do"
                f" {missing}"
            )


class Snapshot(Extent, frozen=True, kw_only=True):
    """One moment of a file of views."""

    file: Path


def taken(connection: Connection, file: Path, barrier: Barrier) -> Snapshot:
    """Describe the moment that *connection* sees, from the checkpoints that were committed with its rows."""
    found = connection.execute("SELECT name, position, version FROM checkpoints").fetchall()
    read = [row for row in found if row[0] in barrier.names]
    position = min(row[1] for row in read)
    versions = {row[0]: row[2] for row in read}
    return Snapshot(
        file=file, position=position, stale_by=max(0, barrier.acknowledged - position), versions=versions
    )


def check_whole(snapshot: Snapshot, whole_from: Position, done: Position) -> None:
    """Refuse a file of views that lacks what was in the log when it was opened, of which *done* are built:
    no claim about that can be made.
    """
    if snapshot.position < whole_from:
        raise Stale(
            f"the views are being built from the log: {done:,} of {whole_from:,} events"
            f" ({100 * done // whole_from} %)",
            hint="ask again in a moment; `omegad status` shows how far each view is",
        )
