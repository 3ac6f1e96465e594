"""What dispatching needs, put together by the composition root."""

from dataclasses import dataclass

from omegad.clock import Clock
from omegad.dispatch.neighbourhood import Neighbourhood
from omegad.ingestion.noise import NoiseRules
from omegad.ingestion.tagging import TagRules
from omegad.log.event_log import EventLog
from omegad.memory_types import MemoryTypes
from omegad.views.current import Views


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is noise, and which tags a text has by rule."""

    noise: NoiseRules
    tags: TagRules


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The log, the views, the embedder with its mirror, the known types, the rules of ingestion, and the clock."""

    log: EventLog
    views: Views
    near: Neighbourhood
    types: MemoryTypes
    rules: Rules
    clock: Clock
