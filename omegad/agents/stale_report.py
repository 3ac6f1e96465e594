"""Once a week, what should be looked at again is noted, for the briefings of that week."""

from collections.abc import Iterator

from omegad.agents import briefing
from omegad.memory import owner
from omegad.memory.lifecycle import DeleteMemory
from omegad.memory.store import StoreMemory
from omegad.memory.upkeep import review
from omegad.reactions.contract import Reader
from omegad.requests.command import Command

NAME = "reflect_stale"
VERSION = 1
EVERY = 7 * 86_400
VIEWS = ("memories", owner.VIEW)
EACH = 10  # of a project, of which a briefing shows the first that are still so


def due(_slot: int, reader: Reader) -> Iterator[Command]:
    """Store one insight in the place of the one before, or take that away where nothing is stale."""
    found = review.worst(reader.connection, reader.now_us, each=EACH, besides=briefing.REFLECTED_BY)
    before = briefing.reflected(reader.connection)
    if found:
        lines = (f"- {memory_id}: {why}" for memory_id, why in found.items())
        yield StoreMemory(
            content="\n".join(["Stale memories to review:", *lines]),
            event_type="advisor_insight",
            source=briefing.REFLECTED_BY,
            metadata={"source": briefing.REFLECTED_BY, "stale": list(found)},
            supersedes=before,
        )
    else:
        yield from (DeleteMemory(memory_id=memory_id, reason="nothing is stale") for memory_id in before)
