"""Views out of which is taken what the log has lost: rows changed in place, indexes tidied, the file left
without the bytes.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

from omegad.log.erasure import Remnant
from omegad.log.patching import patch
from omegad.log.projection import Projection
from omegad.runtime.errors import Refused
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing
from omegad.storage.wiping import wipe
from omegad.views import generation, kept
from omegad.views.current import Views

WAIT_S = 10.0  # for a rebuild or a check to end, which read what is about to be erased


class PausedViews:
    """The views while nothing copies or replays them: entered before an erasure changes the log."""

    def __init__(self, views: Views, projections: Sequence[Projection]) -> None:
        self._views = views
        self._projections = projections

    async def __aenter__(self) -> None:
        """Wait for rebuilds and checks to end; raises `Refused` where one goes on."""
        with anyio.move_on_after(WAIT_S) as patience:
            await self._views.proving.acquire()
        if patience.cancelled_caught:
            raise Refused(
                "the views are being rebuilt or verified, which reads what is to be erased",
                hint="ask again when that is over",
            )

    async def __aexit__(self, *_: object) -> None:
        self._views.proving.release()

    @asynccontextmanager
    async def at_last(self) -> AsyncIterator[None]:
        """Wait for rebuilds and checks to end, however long that takes, and hold others off for the block."""
        async with self._views.proving:
            yield

    async def build_again(self, name: str) -> None:
        """Build what could not be brought to that, and keep nothing of what it takes the place of."""
        await self._views.rebuild((name,), lambda _done, _total: None)
        generation.remove_previous(self._views.file)

    async def take_out(
        self, erased: Sequence[Remnant], pieces: Sequence[bytes], *, has_names: bool
    ) -> list[str]:
        """Bring the views to what a replay says since events were *erased*, which they show; return those
        that have to be built again instead.

        Where *has_names* tells that names went, or cannot be told from what went, what shows any of the
        events is built again.
        """
        served = self._views.driver.generation
        generation.remove_previous(served.path)

        def on_thread(connection: Connection) -> list[str]:
            with writing(connection):
                kept.forget(connection)
                unlike = [
                    one.NAME
                    for one in self._projections
                    if not patch(connection, served.checkpoints[one.NAME].tables, one, erased)
                ]
                for projection in self._projections:
                    for sql in getattr(projection, "WIPES", ()):
                        connection.execute(sql)
            wipe(connection, served.path, pieces)
            return unlike

        unlike = await served.writer.run(on_thread)
        alone = [
            one.NAME
            for one in self._projections
            if has_names and any(issubclass(remnant.kind, one.EVENTS) for remnant in erased)
        ]
        return [*dict.fromkeys((*unlike, *alone))]
