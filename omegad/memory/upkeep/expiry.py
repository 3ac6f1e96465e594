"""Memories whose time to live is over get that recorded.

Searches hide them from their own moment on; the event is for the books, and lets an index leave them out for
good. Whether it was recorded already, and whether a memory was renewed or kept meanwhile, is the log's state
to say.
"""

from collections.abc import Iterator

from omegad.memory.lifecycle import ExpireMemories
from omegad.memory.upkeep import due as upkeep
from omegad.reactions.contract import Reader

NAME = "expiry"
VERSION = 1
EVERY = 60
VIEWS = ("memories",)
AT_ONCE_MAX = 500  # in one append
ALL = -1


def due(_slot: int, reader: Reader) -> Iterator[ExpireMemories]:
    """Name all whose time is over and not recorded as over."""
    over = upkeep.due(reader.connection, reader.now_us, ALL)
    for start in range(0, len(over), AT_ONCE_MAX):
        yield ExpireMemories(memory_ids=over[start : start + AT_ONCE_MAX])
