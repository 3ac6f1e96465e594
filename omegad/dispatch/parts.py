"""What dispatching needs, put together by the composition root."""

from dataclasses import dataclass

from omegad.clock import Clock
from omegad.commands.memory_types import MemoryTypes
from omegad.dispatch.neighbourhood import Neighbourhood
from omegad.log.event_log import EventLog
from omegad.views.current import Views


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The log, the views, the embedder with its mirror, the known types, and the clock."""

    log: EventLog
    views: Views
    near: Neighbourhood
    types: MemoryTypes
    clock: Clock
