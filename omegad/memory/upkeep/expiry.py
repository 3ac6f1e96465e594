"""Memories whose time to live is over get that recorded.

Searches hide them from their own moment on; the event is for the books, and lets an index leave them out for
good. Whether it was recorded already, and whether a memory was renewed or kept meanwhile, is the log's state
to say.
"""

from collections.abc import Iterator

from omegad.index.active import is_over, overdue
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory import owner
from omegad.memory.events import MemoryExpired
from omegad.memory.state import Memories
from omegad.reactions.contract import Reader
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod
from omegad.storage.driver import Connection

NAME = "expiry"
VERSION = 1
EVERY = 60
VIEWS = ("memories", owner.VIEW)
AT_ONCE_MAX = 500  # in one append
ALL = -1

# Of what another home stored that one may have renewed it, which is heard of later.
_DUE = f"""
SELECT node_id FROM memories AS m WHERE {overdue("?")} AND NOT {owner.is_elsewhere("m.node_id")}
ORDER BY expires_us, id LIMIT ?
"""


class ExpireMemories(Command, frozen=True, kw_only=True, tag="memory.expire"):
    """Record of memories that their time is over."""

    memory_ids: tuple[Name, ...]


def expire(command: ExpireMemories, state: DecisionState, now_us: int) -> Decision:
    """Record of the memories named that their time is over, of those where it is; the rest have been hidden,
    kept or renewed meanwhile, or are another home's.
    """
    found = (state[Memories].get(memory_id) for memory_id in command.memory_ids)
    events = tuple(
        NewEvent(event=MemoryExpired(memory_id=memory.memory_id, expired_at=memory.expires_at))
        for memory in found
        if memory
        and memory.state == "active"
        and is_over(memory.expires_at, now_us)
        and not state[Memories].is_elsewhere(memory)
    )
    return Decision(events=events, answer=Acknowledged())


def over(connection: Connection, now_us: int, limit: int) -> tuple[str, ...]:
    """Return memories whose time to live is over and whose expiry is not recorded, the longest over first."""
    return tuple(row[0] for row in connection.execute(_DUE, (now_us, limit)))


def due(_slot: int, reader: Reader) -> Iterator[ExpireMemories]:
    """Name all whose time is over and not recorded as over."""
    found = over(reader.connection, reader.now_us, ALL)
    for start in range(0, len(found), AT_ONCE_MAX):
        yield ExpireMemories(memory_ids=found[start : start + AT_ONCE_MAX])


METHODS = (CommandMethod(params=ExpireMemories, answer=Acknowledged, decide=expire, is_internal=True),)
