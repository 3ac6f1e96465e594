"""At its end a session gets a summary, made of what the log holds of it; one in which nothing was done gets
none. One that goes on after its end gets another in the place of the first.
"""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.memory.derive import SUMMARISED_BY, DeriveMemory
from omegad.memory.events import MadeOf
from omegad.memory.types import DAY_SECONDS
from omegad.reactions.contract import Reader
from omegad.session import story, summary
from omegad.session.events import SessionEnded

NAME = "session_summaries"
VERSION = 1
EVENTS = (SessionEnded,)
VIEWS = story.VIEWS

TTL_SECONDS = 21 * DAY_SECONDS
"""How long a summary is kept by itself: until the summary of its week has taken its place, and longer where
nobody was there to make that.
"""
SOURCES_MAX = 500
SUPERSEDES_MAX = 16


def react(recorded: RecordedEvent, reader: Reader) -> Iterator[DeriveMemory]:
    """Store the summary, unless nothing was done since the last end."""
    assert isinstance(recorded.event, SessionEnded)
    session_id, position, after = recorded.session_id or "", recorded.position, recorded.event.after
    calls = story.calls(reader.connection, session_id, position)
    stored = story.stored(reader.connection, session_id, position)
    own = [one for one in stored if one.source == SUMMARISED_BY]
    others = [one for one in stored if one.event_type not in story.STATES and one.source != story.LEARNED_BY]
    if not any(call.position > after and not call.shows_memories for call in calls) and not any(
        one.position > after for one in others
    ):
        return
    said = story.said(reader.connection, session_id, position)
    folder = story.folder(reader.connection, session_id)
    told = summary.Told(recorded.project, folder, calls, others, said)
    made_of = [call.position for call in calls if call.edited or call.status == "error" or call.command]
    made_of += [one.position for one in said]
    yield DeriveMemory(
        content=summary.text(told),
        made_of=MadeOf(
            memories=tuple(one.memory_id for one in others[:SOURCES_MAX]),
            positions=tuple(sorted(made_of)[-SOURCES_MAX:]),
        ),
        event_type="session_summary",
        session_id=recorded.session_id,
        project=recorded.project,
        source=SUMMARISED_BY,
        ttl_seconds=TTL_SECONDS,
        supersedes=tuple(one.memory_id for one in own if one.status == "active")[-SUPERSEDES_MAX:],
        metadata={
            "source": SUMMARISED_BY,
            "files": summary.files(calls, folder)[: summary.FILES_MAX],
            "tool_calls": len(calls),
        },
    )
