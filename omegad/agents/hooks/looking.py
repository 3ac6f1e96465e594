"""What a hook reads of the views: before all who ask something else, and it goes on without what takes too long."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from omegad.log.event import Position
from omegad.requests.method import Moment, Services
from omegad.runtime.errors import ReadTooLong
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

T = TypeVar("T")


async def looked(
    services: Services, work: Callable[[Connection, Moment], T], otherwise: T, *, at_least: Position, names: Sequence[str], wait_s: float
) -> T:
    """Return what *work* finds in the views, *otherwise* where that takes too long; whoever reads for it says so in the log."""
    try:
        return await services.look(work, at_least=at_least, names=names, wait_s=wait_s, turn=Turn.FIRST)
    except ReadTooLong:
        return otherwise
