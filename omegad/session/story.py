"""What became of one session: its tool calls, what it stored, what it was shown and then used; as of a
position, so that it stays the same.
"""

from collections.abc import Iterable

import msgspec

from omegad.session import tool_inputs
from omegad.session.events import TO_JUDGE
from omegad.storage.driver import Connection

VIEWS = ("memories", "audit", "retrievals", "conversations")

RETRIEVING = ("omega_query", "omega_welcome", "omega_lessons", "omega_resume_task", "omega_reflect")
"""Tools whose results show memories, and are no use of them."""

STATES = ("checkpoint", "session_summary")
"""What says where a session stood, rather than what it learned."""

LEARNED_BY = "auto_procedural"
"""The source of what a session's end itself stores of it."""

_CALLS = """
SELECT id, call_index, tool_name, status, coalesce(result_summary, input_summary, ''),
  coalesce(input_summary, ''), given, returned, edited FROM coord_audit
WHERE session_id = ? AND id <= ? ORDER BY call_index
"""
_STORED = """
SELECT id, node_id, event_type, source, content, status FROM memories WHERE session_id = ? AND id <= ?
  ORDER BY id
"""
_SHOWN = """
SELECT memory_id, min(id / 1024) FROM retrievals
WHERE session_id = ? AND id / 1024 <= ? AND how NOT IN (SELECT value FROM json_each(?)) GROUP BY memory_id
"""
_CONTENTS = (
    "SELECT content FROM memories WHERE node_id IN (SELECT value FROM json_each(?)) AND content IS NOT NULL"
    " ORDER BY id"
)
_SAID = "SELECT id, role, content FROM conversations WHERE session_id = ? AND id <= ? ORDER BY id"


class Call(msgspec.Struct, frozen=True):
    """A tool call: where it stands in the log and in its session, how it ended, the beginning of its
    result and of its input, the memories these name, and the files that it was to change.
    """

    position: int
    call_index: int
    tool_name: str
    status: str
    summary: str
    input_summary: str = ""
    given: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    @property
    def shows_memories(self) -> bool:
        """Whether its result is memories that were looked for."""
        return any(name in self.tool_name for name in RETRIEVING)

    @property
    def edited(self) -> tuple[str, ...]:
        """The files that it changed."""
        return self.changes if self.status == "ok" else ()

    @property
    def command(self) -> str | None:
        """The beginning of what a shell was given, None for another tool."""
        found = (
            tool_inputs.command_of(self.input_summary)
            if self.tool_name.lower() in tool_inputs.SHELLS
            else None
        )
        return found and found.text


class Stored(msgspec.Struct, frozen=True):
    """A memory that the session stored."""

    position: int
    memory_id: str
    event_type: str
    source: str | None
    content: str
    status: str


class Said(msgspec.Struct, frozen=True):
    """What a person (`user`) said, an agent (`assistant`), or one that worked for it (`subagent`)."""

    position: int
    role: str
    content: str


def calls(connection: Connection, session_id: str, position: int) -> list[Call]:
    """Return the tool calls of a session, first to last."""
    return [
        Call(*row[:6], *(tuple(msgspec.json.decode(named, type=list[str])) for named in row[6:]))
        for row in connection.execute(_CALLS, (session_id, position)).fetchall()
    ]


def stored(connection: Connection, session_id: str, position: int) -> list[Stored]:
    """Return the memories that a session stored, first to last."""
    return [Stored(*row) for row in connection.execute(_STORED, (session_id, position))]


def said(connection: Connection, session_id: str, position: int) -> list[Said]:
    """Return what was said in a session, first to last."""
    return [Said(*row) for row in connection.execute(_SAID, (session_id, position))]


def shown(connection: Connection, session_id: str, position: int) -> list[str]:
    """Return the memories that a session was shown up to a position, unasked, by a query or in the result
    of a tool.
    """
    return sorted(_seen(connection, session_id, position, calls(connection, session_id, position)))


def _seen(
    connection: Connection, session_id: str, position: int, made: Iterable[Call], but: tuple[str, ...] = ()
) -> dict[str, int]:
    """Return the position at which each memory was shown first, in whatever way *but* these."""
    left_out = msgspec.json.encode(but).decode()
    seen: dict[str, int] = dict(connection.execute(_SHOWN, (session_id, position, left_out)).fetchall())
    for call in made:
        if call.shows_memories:
            for memory_id in call.returned:
                seen[memory_id] = min(seen.get(memory_id, call.position), call.position)
    return seen


def contents(connection: Connection, memory_ids: Iterable[str]) -> list[str]:
    """Return what memories say, those of them that there are."""
    return [
        content
        for (content,) in connection.execute(_CONTENTS, (msgspec.json.encode(list(memory_ids)).decode(),))
    ]


def used(connection: Connection, session_id: str, position: int, after: int) -> list[str]:
    """Return the memories that a session was shown and then named, first between two positions: to a tool, in
    its result, or in what was said.

    What one search shows after another is no use of it.
    """
    made = calls(connection, session_id, position)
    seen = _seen(connection, session_id, position, made, TO_JUDGE)
    places = _named(made, said(connection, session_id, position), seen)
    return [
        memory_id
        for memory_id, since in sorted(seen.items(), key=lambda item: (item[1], item[0]))
        if min((place for place in places[memory_id] if place > since), default=0) > after
    ]


def last_named(
    connection: Connection, session_id: str, position: int, memory_ids: Iterable[str]
) -> dict[str, int]:
    """Return where a session named memories last, up to a position, as `used` counts it; 0 for those that it
    did not name.
    """
    made, spoken = calls(connection, session_id, position), said(connection, session_id, position)
    return {one: max(places, default=0) for one, places in _named(made, spoken, memory_ids).items()}


def _named(made: Iterable[Call], spoken: Iterable[Said], memory_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return the positions at which each memory was named: to a tool, in what it answered, or by an agent."""
    return {
        memory_id: [
            call.position
            for call in made
            if memory_id in call.given or (memory_id in call.returned and not call.shows_memories)
        ]
        + [one.position for one in spoken if one.role != "user" and memory_id in one.content]
        for memory_id in memory_ids
    }


def folder(connection: Connection, session_id: str) -> str | None:
    """Return where a session works, None where no host has said so."""
    found: tuple[str | None, ...] | None = connection.execute(
        "SELECT folder FROM agent_sessions WHERE session_id = ?", (session_id,)
    ).fetchone()
    return found[0] if found else None
