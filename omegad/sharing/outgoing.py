"""What the team is told: facts, made of this home's own events, of what is shared.

A rewording travels as all that the memory says after it, so that one last word is enough; what a project held
when it was chosen travels as it says now, and its past stays here.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from omegad.log.event import Event, Position, RecordedEvent
from omegad.log.projection import to_json
from omegad.memory import owner
from omegad.memory.events import (
    MemoryContradicted,
    MemoryDeleted,
    MemoryEdited,
    MemoryErased,
    MemoryEvolved,
    MemoryLinked,
    MemoryPromoted,
    MemoryRated,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
    MemoryUnlinked,
)
from omegad.sharing.events import ShareChosen
from omegad.sharing.state import Choice
from omegad.sharing.wording import COLUMNS, Wording, read, worded
from omegad.storage.driver import Connection

NEVER = frozenset({"checkpoint", "session_summary", "handoff", "reminder", "task_completion"})
"""Types that are of one session, or of one person, and are never shared."""
AGENT = "share"
"""The client by which this home does what others told it to."""

TOLD = (
    MemoryStored,
    MemoryRepeated,
    MemoryEvolved,
    MemoryEdited,
    MemorySuperseded,
    MemoryDeleted,
    MemoryRestored,
    MemoryContradicted,
    MemoryLinked,
    MemoryUnlinked,
    MemoryRated,
    MemoryErased,
    MemoryPromoted,
    ShareChosen,
)
"""The events that facts are made of."""
PLAIN = (
    MemorySuperseded,
    MemoryDeleted,
    MemoryRestored,
    MemoryContradicted,
    MemoryLinked,
    MemoryUnlinked,
    MemoryRated,
    MemoryErased,
)
"""Those that travel as they are."""
_ROW = f"""
SELECT {COLUMNS}, id, node_id, content_hash, event_type, entity_id, auto_tags, redacted, project, status,
  on_probation, ttl_seconds, created_us,
  {owner.is_elsewhere("node_id")},
  (SELECT coalesce(sum(points), 0) FROM memory_feedback WHERE memory_id = node_id AND memory_feedback.id < ?1)
FROM memories
"""


class Said(Wording, frozen=True, kw_only=True):
    """What a memory says now, as the views show it; `position` is that of the event that stored it."""

    position: Position
    memory_id: str
    content_key: str
    event_type: str
    entity_id: str | None
    auto_tags: tuple[str, ...]
    redacted: tuple[str, ...]
    project: str | None
    status: str
    on_probation: bool
    ttl_seconds: int | None
    created_us: int
    is_elsewhere: bool
    """Whether another home stored it, which then is for that one to tell, to its own team."""
    rating: int = 0
    """What it had been given before a position."""

    def stored(self) -> MemoryStored:
        """Return the event that stores this elsewhere."""
        return MemoryStored(
            memory_id=self.memory_id,
            content_key=self.content_key,
            event_type=self.event_type,
            entity_id=self.entity_id,
            auto_tags=self.auto_tags,
            ttl_seconds=self.ttl_seconds,
            redacted=self.redacted,
            **worded(self),
        )

    def counted(self) -> MemoryRated | None:
        """Return the event that gives it elsewhere the rating that it has, None where it has none."""
        if not self.rating:
            return None
        return MemoryRated(
            memory_id=self.memory_id,
            rating="helpful" if self.rating > 0 else "unhelpful",
            points=self.rating,
            reason="rated so before it was shared",
        )

    def edited(self) -> MemoryEdited:
        """Return the event that has it say this elsewhere, whatever it said."""
        return MemoryEdited(
            memory_id=self.memory_id,
            content_key=self.content_key,
            auto_tags=self.auto_tags,
            redacted=self.redacted,
            **worded(self),
        )


def says(connection: Connection, memory_ids: Collection[str]) -> dict[str, Said]:
    """Return what memories say now, by id; those that are gone are left out."""
    ids = msgspec.json.encode(list(memory_ids)).decode()
    rows = connection.execute(f"{_ROW} WHERE node_id IN (SELECT value FROM json_each(?2))", (0, ids))
    return {one.memory_id: one for one in map(_said, rows)}


def whole(connection: Connection, memory_id: str, before: Position) -> Said | None:
    """Return what a memory says now, with the rating that it had before a position."""
    row = connection.execute(f"{_ROW} WHERE node_id = ?2", (before, memory_id)).fetchone()
    return row and _said(row)


def held(
    connection: Connection, *, choice: Choice, after: Position, before: Position, limit: int
) -> list[Said]:
    """Return what a project holds of this home that may be shared, oldest first, of what was stored between
    two positions, with the rating that it had at the second.
    """
    rows = connection.execute(
        f"{_ROW} WHERE project = ?2 AND status = 'active' AND NOT on_probation AND id < ?1 AND id > ?3"
        f" AND NOT {owner.is_elsewhere('node_id')} AND event_type NOT IN (SELECT value FROM json_each(?4))"
        " AND (?5 = '[]' OR event_type IN (SELECT value FROM json_each(?5))) ORDER BY id LIMIT ?6",
        (before, choice.project, after, to_json(sorted(NEVER)), to_json(choice.types), limit),
    )
    return [_said(row) for row in rows]


def may_go(event_type: str, choice: Choice | None, position: Position) -> bool:
    """Say whether a memory of a type is shared at a position by what was chosen for its project before."""
    return (
        choice is not None
        and choice.chosen_at < position
        and event_type not in NEVER
        and (not choice.types or event_type in choice.types)
    )


def facts_of(recorded: RecordedEvent, said: Mapping[str, Said]) -> Iterator[Event]:
    """Yield what the team is told of an event about a memory that is shared, by what memories say now."""
    event = recorded.event
    match event:
        case MemoryStored():
            yield msgspec.structs.replace(event, related=(), also_near=(), made_of=None, pending=False)
        case MemoryRepeated():
            yield msgspec.structs.replace(event, content=None, tags=(), made_of=None)
            if event.tags and (now := said.get(event.memory_id)):
                yield now.edited()
        case MemoryEvolved() | MemoryEdited():
            if now := said.get(event.memory_id):
                yield now.edited()
        case _ if isinstance(event, PLAIN):
            yield event


def _said(row: tuple[Any, ...]) -> Said:
    known = dict(zip(Said.__struct_fields__, row, strict=True))
    known |= read(row[: len(Wording.__struct_fields__)])
    for name in ("auto_tags", "redacted"):
        known[name] = msgspec.json.decode(known[name], type=tuple[str, ...])
    for name in ("on_probation", "is_elsewhere"):
        known[name] = bool(known[name])
    return Said(**known)
