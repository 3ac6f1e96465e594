"""Sessions of which nothing has been heard for hours are over: a host that is killed says nothing."""

from collections.abc import Iterator

from omegad.coordination.session_end import IDLE_US, EndSession
from omegad.reactions.contract import Reader
from omegad.session import story

NAME = "idle_sessions"
VERSION = 1
EVERY = 300
VIEWS = ("conversations",)


def due(_slot: int, reader: Reader) -> Iterator[EndSession]:
    """Name them."""
    for session_id in story.idle(reader.connection, reader.now_us - IDLE_US):
        yield EndSession(session_id=session_id, reason="idle")
