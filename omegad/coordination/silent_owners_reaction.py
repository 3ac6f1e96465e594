"""Sessions that no hook tells of, that have a task, and of which nothing has been heard for hours are
over: the task is open again.
"""

from collections.abc import Iterator

from omegad.coordination import tasks
from omegad.coordination.session_end import IDLE_US, EndSession
from omegad.reactions.contract import Reader

NAME = "silent_owners"
VERSION = 1
EVERY = 300
VIEWS = ("coord_claims", "coord_tasks", "conversations")


def due(_slot: int, reader: Reader) -> Iterator[EndSession]:
    """Name them; whether the daemon has heard of them meanwhile is for the command to say."""
    for session_id in tasks.silent_owners(reader.connection, reader.now_us - IDLE_US):
        yield EndSession(session_id=session_id, reason="idle")
