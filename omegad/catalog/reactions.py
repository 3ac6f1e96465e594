"""The reactions and schedules: modules of a room that are one."""

from omegad.catalog import rooms
from omegad.reactions.contract import Reaction, Schedule

ALL: tuple[Reaction | Schedule, ...] = tuple(
    module for module in rooms.modules() if isinstance(module, Reaction | Schedule)
)
