"""How new an answer is: it shows what its own connection wrote, always; what others wrote, within a stated bound."""

from collections.abc import Collection

import anyio

from omegad.dispatch.services import DaemonServices
from omegad.errors import Invalid, Stale
from omegad.log.event import Position

OWN_WRITES_S = 10.0  # for the views to show what this connection wrote; longer means that they cannot


class Freshness:
    """Waits for views before they are read."""

    def __init__(self, services: DaemonServices, fresh_wait_s: float) -> None:
        """Wait *fresh_wait_s* at most for what other clients wrote."""
        self._log = services.log
        self._views = services.views
        self._fresh_wait_s = fresh_wait_s

    async def wait(self, names: Collection[str], own: Position, acknowledged: Position, wanted: Position | None = None) -> None:
        """Wait until the views named show the caller's *own* writes and the position *wanted*; a while for what was *acknowledged* to others.

        Raises `Invalid` for a position that is not in the log, `Stale`, or `ViewFailed`.
        """
        if wanted is not None and wanted > self._log.head:
            raise Invalid(f"min_position {wanted} is beyond the end of the log, {self._log.head}")
        must = max(own, wanted or 0)
        with anyio.move_on_after(OWN_WRITES_S) as patience:
            await self._views.wait_for(must, names)
        if patience.cancelled_caught:
            raise Stale(f"the views did not reach position {must} within {OWN_WRITES_S:.0f} s")
        with anyio.move_on_after(self._fresh_wait_s):
            await self._views.wait_for(acknowledged, names)
