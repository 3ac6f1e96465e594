"""What a session leaves behind: what it used is rated, what it learned by failing is stored, where it stood
is a checkpoint, its tasks are open.

All is read as of the session's end, so that it comes to the same however often it is asked. An end that
follows another looks at what happened between them. Before its context is compacted, where it stands is a
checkpoint, too, in whose place the next one comes.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from omegad.coordination.task import ReleaseTasks
from omegad.log.event import RecordedEvent
from omegad.memory.events import MadeOf
from omegad.memory.lifecycle import RateMemory
from omegad.memory.store import SUPERSEDES_MAX, DeriveMemory, StoreMemory
from omegad.reactions.contract import Reader
from omegad.requests.command import Command
from omegad.session import story as session
from omegad.session.events import SessionCompacted, SessionEnded
from omegad.session.story import Call
from omegad.text.quoting import shortened

NAME = "session_end"
VERSION = 2
EVENTS = (SessionEnded, SessionCompacted)
VIEWS = session.VIEWS

CAPTURED_MIN, CALLS_MIN = 3, 30
"""A session that stored so many memories, or made so many tool calls, gets a checkpoint unless it has one."""
LEARNING_CALLS_MIN = 20
LEARNED_MAX = 3
RECOVERY_CALLS = 10
STUCK_CALLS = 5
CONTEXT_CHARACTERS = 100
FILES_MAX = 30
TEXT_CHARACTERS = 600
STEPS_CHARACTERS = 200
"""A handoff is found by its id: a checkpoint only says how it begins."""
SOURCES_MAX = 500

CHECKPOINTED_BY = "auto_checkpoint"


class Learning(NamedTuple):
    """What failing taught."""

    content: str
    polarity: str
    position: int
    made_of: tuple[int, ...] = ()
    """The positions of the calls that it tells of."""


def react(recorded: RecordedEvent, reader: Reader) -> Iterator[Command]:
    """Rate, learn, write the checkpoint, and open the session's tasks again."""
    assert isinstance(recorded.event, SessionEnded | SessionCompacted)
    session_id, position, after = recorded.session_id or "", recorded.position, recorded.event.after
    calls = session.calls(reader.connection, session_id, position)
    if isinstance(recorded.event, SessionEnded):
        for memory_id in session.used(reader.connection, session_id, position, after):
            yield RateMemory(memory_id=memory_id, rating="helpful", reason="retrieval_used")
        yield from _learned(recorded, calls, after)
    yield from _checkpoint(recorded, reader, calls, after)
    if isinstance(recorded.event, SessionEnded):
        # Last, so that whoever takes a task up is told of the checkpoint just written.
        yield ReleaseTasks(
            session_id=session_id,
            before=position,
            reason=f"session ended: {recorded.event.reason or 'it did not say why'}",
        )


def _learned(recorded: RecordedEvent, calls: Sequence[Call], after: int) -> Iterator[StoreMemory]:
    if len(calls) < LEARNING_CALLS_MIN:
        return
    known = learnings(calls)[:LEARNED_MAX]
    # An earlier end that came too early to learn anything left that to this one.
    was_enough = sum(call.position <= after for call in calls) >= LEARNING_CALLS_MIN
    for learning in known:
        if learning.position > after or not was_enough:
            yield DeriveMemory(
                content=learning.content,
                made_of=MadeOf(positions=learning.made_of),
                event_type="lesson_learned",
                session_id=recorded.session_id,
                project=recorded.project,
                source=session.LEARNED_BY,
                metadata={
                    "source": session.LEARNED_BY,
                    "polarity": learning.polarity,
                    "memory_type": "procedural",
                },
            )


def learnings(calls: Sequence[Call]) -> list[Learning]:
    """Return what a session's calls teach, in the order in which it showed: what worked after errors of a
    tool, and what never did.
    """
    found = list[Learning]()
    failed: dict[str, list[Call]] = {}
    run = list[Call]()
    for call in calls:
        if call.status != "error" or (run and run[-1].tool_name != call.tool_name):
            found.extend(_stuck(run))
            run = []
        if call.status == "error":
            run.append(call)
            failed.setdefault(call.tool_name, []).append(call)
        elif call.status == "ok" and (before := failed.pop(call.tool_name, None)):
            recent = [one for one in before if call.call_index - one.call_index <= RECOVERY_CALLS]
            if recent:
                content = (
                    f"Approach that worked: {call.tool_name} error resolved after {len(recent)}"
                    f" attempt{'' if len(recent) == 1 else 's'}. Error context:"
                    f" {recent[0].summary[:CONTEXT_CHARACTERS]}. Success context:"
                    f" {call.summary[:CONTEXT_CHARACTERS]}"
                )
                made_of = (recent[0].position, call.position)
                found.append(Learning(content, "positive", call.position, made_of))
    found.extend(_stuck(run))
    return sorted(found, key=lambda learning: learning.position)


def _stuck(run: Sequence[Call]) -> Iterator[Learning]:
    if len(run) >= STUCK_CALLS:
        last = run[-1]
        content = (
            f"Anti-pattern: {last.tool_name} failed {len(run)} consecutive times. Error:"
            f" {last.summary[:CONTEXT_CHARACTERS]}"
        )
        yield Learning(content, "negative", last.position, (last.position,))


def _checkpoint(
    recorded: RecordedEvent, reader: Reader, calls: Sequence[Call], after: int
) -> Iterator[StoreMemory]:
    """Say where a session stood, unless it did little, or said so itself since its last end."""
    session_id = recorded.session_id or ""
    stored = [
        one
        for one in session.stored(reader.connection, session_id, recorded.position)
        if one.source != session.LEARNED_BY
    ]
    captured = [one for one in stored if one.position > after and one.event_type not in session.STATES]
    has_one = any(
        one.event_type == "checkpoint" and one.position > after and one.source != CHECKPOINTED_BY
        for one in stored
    )
    earlier = tuple(
        one.memory_id for one in stored if one.source == CHECKPOINTED_BY and one.status == "active"
    )
    made = [call for call in calls if call.position > after]
    if has_one or (len(captured) < CAPTURED_MIN and len(made) < CALLS_MIN):
        return
    files = list(dict.fromkeys(file for call in calls for file in call.edited))[-FILES_MAX:]
    said = session.said(reader.connection, session_id, recorded.position)
    handoff = next((one for one in reversed(stored) if one.event_type == "handoff"), None)
    next_steps = handoff and shortened(handoff.content, STEPS_CHARACTERS)
    sources = [call.position for call in calls if call.edited]
    parts = [
        (
            f"Checkpoint of a session in {recorded.project or 'no project'}: {len(calls)} tool"
            f" call{'s' * (len(calls) != 1)}, {len(captured)}"
            f" {'memory' if len(captured) == 1 else 'memories'} stored."
        )
    ]
    for role, title in (("user", "Asked last"), ("assistant", "Said last")):
        if last := next((one for one in reversed(said) if one.role == role), None):
            parts.append(f"{title}: {shortened(last.content, TEXT_CHARACTERS)}")
            sources.append(last.position)
    if files:
        parts.append(f"Files touched: {', '.join(files)}")
    if handoff:
        parts.append(f"Next steps: {next_steps} [{handoff.memory_id}]")
    yield DeriveMemory(
        content="\n".join(parts),
        made_of=MadeOf(
            memories=(handoff.memory_id,) if handoff else (), positions=tuple(sources[-SOURCES_MAX:])
        ),
        event_type="checkpoint",
        session_id=recorded.session_id,
        project=recorded.project,
        source=CHECKPOINTED_BY,
        supersedes=earlier[-SUPERSEDES_MAX:],
        metadata={
            "source": CHECKPOINTED_BY,
            "files_touched": files,
            "next_steps": next_steps,
            "tool_calls": len(calls),
        },
    )
