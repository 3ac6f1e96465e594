"""Copies of the live views, kept now and then, so that the views of an earlier moment are not made from the
first event of the log.

One is taken when the log has grown by `COPY_EVERY` events since the last. There are `COPIES_MAX` at most,
together no larger than `COPIES_TIMES` the latest; where there are more, that one goes whose neighbours are
nearest to each other, so that those that stay are spread over the log. They outlive the service. An erasure
removes them all, and one that was made by another version of the views, or of another log, is never used.
"""

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread

from omegad.log.checkpoint import start_of
from omegad.log.event import Position
from omegad.log.event_log import EventLog
from omegad.log.projection import Projection
from omegad.storage import own_files
from omegad.storage.database import open_reader, translated
from omegad.views import checkpoints, generation
from omegad.views.current import Views

COPY_EVERY = 25_000
COPIES_MAX = 8
COPIES_TIMES = 3
PREFIX = "copy-"
_UNFINISHED = f"{PREFIX}new"
_NAME = re.compile(rf"{PREFIX}([0-9]{{1,18}})-[0-9a-f]{{16}}\.db")


class Copies:
    """The copies in one folder, named `copy-<position>-<what made it>.db`."""

    def __init__(self, folder: Path, log: EventLog, views: Views, projections: Sequence[Projection]) -> None:
        """Copy what *views* serve."""
        self._folder = folder
        self._log = log
        self._views = views
        self._versions = repr([start_of(projection) for projection in projections])

    async def check(self) -> None:
        """Remove the copies that another log or another version of the projections was shown in, and all
        where an erasure was broken off.
        """
        is_erasing = await self._log.is_erasing()
        for position, path in self.all():
            if is_erasing or path != self._path(position, await self._log.chain_at(position)):
                generation.remove(path)

    def all(self) -> list[tuple[Position, Path]]:
        """Return what the copies show, and where they are, the earliest first."""
        return sorted((int(path.name.split("-")[1]), path) for path in own_files.named(self._folder, _NAME))

    async def take(self) -> None:
        """Copy the live views, if it is time to. Raises storage errors, and then there is no further copy."""
        driver, views = self._views.driver, self._views
        latest = max((position for position, _ in self.all()), default=0)
        if driver.position() - latest < COPY_EVERY or views.rebuilding or driver.failure(views.names):
            return
        async with views.proving:  # whoever rebuilds or erases waits for the end of it
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self._take, views.file)

    def _take(self, live: Path) -> None:
        own_files.make(self._folder)
        if shutil.disk_usage(self._folder).free < COPIES_TIMES * sum(
            path.stat().st_size for path in generation.with_belongings(live)
        ):
            return
        unfinished = self._folder / _UNFINISHED
        generation.remove(unfinished)
        try:
            with translated():
                with closing(open_reader(live)) as source:
                    generation.copy_to(source, unfinished)
                with closing(open_reader(unfinished)) as copy:
                    marks = checkpoints.load(copy).values()
            with unfinished.open("rb") as file:
                os.fsync(file.fileno())
            if not any(mark.failed_position for mark in marks):
                latest = max(marks, key=lambda mark: mark.position)
                unfinished.rename(self._path(latest.position, latest.chain))
        finally:
            generation.remove(unfinished)
        self._thin_out()

    def _thin_out(self) -> None:
        kept = self.all()
        bytes_max = COPIES_TIMES * kept[-1][1].stat().st_size if kept else 0
        while len(kept) > COPIES_MAX or sum(path.stat().st_size for _, path in kept) > bytes_max:
            places = [0, *(position for position, _ in kept)]
            _, path = kept.pop(min(range(len(kept) - 1), key=lambda place: places[place + 2] - places[place]))
            generation.remove(path)

    def remove_all(self) -> None:
        """Remove every copy."""
        if own_files.is_own(self._folder):
            for path in (*(path for _, path in self.all()), self._folder / _UNFINISHED):
                generation.remove(path)

    def _path(self, position: Position, chain: bytes | None) -> Path:
        """Return the name of a copy of these projections as of a position of a log with that chain there."""
        return (
            self._folder
            / f"{PREFIX}{position}-{sha256(self._versions.encode() + (chain or b'')).hexdigest()[:16]}.db"
        )
