"""Habits: what is done at the same occasion in several sessions of a project becomes a preference on
probation, which its person confirms or denies.

Two kinds are looked for, in the audit of tool calls: the command that is run next after files were edited,
and the one that is run last before a commit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from omegad.log.event import RecordedEvent
from omegad.memory.store import StoreMemory
from omegad.reactions.contract import Reader
from omegad.requests import details
from omegad.session import tool_inputs
from omegad.session.events import SessionEnded
from omegad.session.tool_inputs import SHELLS
from omegad.storage.driver import Connection

NAME = "habits"
VERSION = 1
EVENTS = (SessionEnded,)
SESSIONS_MIN = 3
FOUND_MAX = 3  # at the end of one session

HABIT_BY = "auto_habit"
ABOUT = "habit:"
"""What the name of what a habit is about begins with."""
VIEWS = ("memories", "audit", "conversations", details.VIEW)

SESSIONS_MAX = 30
"""So many of a project's sessions are looked at, those that began last."""
COMMAND_CHARACTERS_MAX = 120
_EDITS_TEXT = """
edit write multiedit notebookedit apply_patch replace write_file edit_file create_file create str_replace
"""
EDITS = frozenset(_EDITS_TEXT.split())
_COMMON_TEXT = """
cat cd echo find git grep head ls mkdir pwd rg sed sleep tail wc which
"""
COMMON = frozenset(_COMMON_TEXT.split())
"""Programs that say nothing of a person's habits."""

_SESSIONS = """
SELECT session_id FROM agent_sessions WHERE project = ? AND started_position <= ?
  ORDER BY started_position DESC LIMIT ?
"""
# Where it is not known any more what one call was given, nobody knows what came before or after it.
_CALLS = """
SELECT lower(tool_name), coalesce(input_summary, '') FROM coord_audit
WHERE session_id = ?1 AND id <= ?2
  AND id > coalesce((SELECT through FROM details_aged WHERE kind = 'tools'), 0)
  AND status != 'denied' AND lower(tool_name) IN (SELECT value FROM json_each(?3)) ORDER BY call_index
"""
_KNOWN = (
    "SELECT entity_id FROM memories WHERE project = ? AND id <= ? AND source = ? AND entity_id IS NOT NULL"
)


class Habit(NamedTuple):
    """A command, and the occasion at which it is run."""

    occasion: str
    command: str

    @property
    def entity_id(self) -> str:
        """What the memory of this habit is about, and it alone."""
        digest = blake2b(f"{self.occasion}: {self.command}".encode(), digest_size=8)
        return f"{ABOUT}{digest.hexdigest()}"


def sessions(connection: Connection, project: str, position: int) -> list[set[Habit]]:
    """Return what each of a project's latest sessions did, up to a position."""
    named = [session_id for (session_id,) in connection.execute(_SESSIONS, (project, position, SESSIONS_MAX))]
    tools = msgspec.json.encode(sorted(EDITS | SHELLS)).decode()
    return [done(connection.execute(_CALLS, (session_id, position, tools))) for session_id in named]


def done(calls: Iterable[tuple[str, str]]) -> set[Habit]:
    """Return what a session did, given its edits and shell commands: each tool's name in lower case, and
    its input.
    """
    found, was_edited, before = set[Habit](), False, None
    for tool, given in calls:
        if tool in EDITS:
            was_edited, before = True, None
            continue
        command = tool_inputs.command_of(given)
        if command is None or not command.is_whole or len(command.text) > COMMAND_CHARACTERS_MAX:
            continue  # too long to be a habit
        if command.text.startswith("git commit"):
            found |= {Habit("before a commit", before)} if before else set()
        elif command.text.partition(" ")[0] not in COMMON:
            found |= {Habit("after edits", command.text)} if was_edited else set()
            was_edited, before = False, command.text
    return found


def react(recorded: RecordedEvent, reader: Reader) -> Iterator[StoreMemory]:
    """Propose what has become a habit; what was proposed before is not again, whatever became of that."""
    project, position = recorded.project, recorded.position
    if project is None:
        return
    seen = Counter(habit for session in sessions(reader.connection, project, position) for habit in session)
    # Whatever became of them
    known = {about for (about,) in reader.connection.execute(_KNOWN, (project, position, HABIT_BY))}
    often = [
        habit for habit, count in seen.most_common() if count >= SESSIONS_MIN and habit.entity_id not in known
    ]
    for habit in often[:FOUND_MAX]:
        yield StoreMemory(
            content=f"Habit: {habit.occasion}, `{habit.command}` is run",
            event_type="user_preference",
            project=project,
            entity_id=habit.entity_id,
            source=HABIT_BY,
            metadata={"source": HABIT_BY, "sessions": seen[habit]},
        )
