"""What a team holds, in one form: made of its facts, or read from a home's views. The two are equal once
everybody has spoken, in whatever order it was heard.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from omegad.log.event import Erased, Event
from omegad.memory.events import (
    MemoryDeleted,
    MemoryEdited,
    MemoryErased,
    MemoryRated,
    MemoryStored,
    MemorySuperseded,
)
from omegad.sharing.fact import Fact
from omegad.sharing.incoming import Heard
from omegad.sharing.state import STANDING, WORDING, Stamped, register
from omegad.sharing.wording import COLUMNS, Wording, read, worded
from omegad.storage.driver import Connection


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that a team holds. `status` is active, superseded or deleted: when it expires each home says
    for itself.
    """

    memory_id: str
    event_type: str
    project: str | None
    entity_id: str | None
    created_us: int
    wording: Wording
    status: str = "active"
    superseded_by: str | None = None
    rating: int = 0


_HAD = ("tags", "priority", "metadata")
"""What every memory has, and a rewording that does not give it leaves."""
_ROWS = f"""
SELECT node_id, event_type, project, entity_id, created_us, status, superseded_by, rating, {COLUMNS}
FROM memories WHERE node_id IN (SELECT value FROM json_each(?))
"""


def of_facts(facts: Iterable[Heard]) -> list[Held]:
    """Return what a team holds by all of its facts, in any order that keeps each origin's."""
    held, last, erased = dict[str, Held](), dict[tuple[str, str], Stamped](), set[str]()
    rest = list[tuple[Fact, Event]]()
    for one in facts:
        fact, event = one.fact, one.event
        if event is None or isinstance(event, Erased | MemoryErased):
            erased.update([fact.subject] if isinstance(event, MemoryErased) else [])
        elif isinstance(event, MemoryStored):
            held.setdefault(fact.subject, _stored(fact, event))
        else:
            rest.append((fact, event))
    for fact, event in rest:
        if (known := held.get(fact.subject)) is None:
            continue
        if isinstance(event, MemoryRated):
            held[fact.subject] = msgspec.structs.replace(known, rating=known.rating + event.points)
            continue
        name, stamp = register(event), (fact.hlc, fact.event_id)
        if name not in {WORDING, STANDING} or last.get((fact.subject, name), (0, "")) >= stamp:
            continue
        last[fact.subject, name] = stamp
        held[fact.subject] = _changed(known, event)
    return [held[one] for one in sorted(held.keys() - erased)]


def of_views(connection: Connection, memory_ids: Sequence[str]) -> list[Held]:
    """Return what the views of a home hold of these."""
    rows = connection.execute(_ROWS, (msgspec.json.encode(list(memory_ids)).decode(),))
    return sorted(map(_row, rows), key=lambda one: one.memory_id)


def _stored(fact: Fact, stored: MemoryStored) -> Held:
    return Held(
        memory_id=stored.memory_id,
        event_type=stored.event_type,
        project=fact.project,
        entity_id=stored.entity_id,
        created_us=fact.occurred_at,
        wording=_wording(worded(stored)),
    )


def _wording(said: dict[str, Any]) -> Wording:
    said["tags"] = tuple(sorted(said["tags"]))
    return Wording(**said)


def _changed(known: Held, event: Event) -> Held:
    match event:
        case MemoryEdited() as edit:
            new = worded(edit)
            kept = {name: getattr(known.wording, name) for name in _HAD if new[name] is None}
            return msgspec.structs.replace(known, wording=_wording(new | kept))
        case MemorySuperseded(superseded_by=by):
            return msgspec.structs.replace(known, status="superseded", superseded_by=by)
        case MemoryDeleted():
            return msgspec.structs.replace(known, status="deleted", superseded_by=None)
        case _:
            return msgspec.structs.replace(known, status="active", superseded_by=None)


def _row(row: tuple[Any, ...]) -> Held:
    memory_id, event_type, project, entity_id, created_us, status, superseded_by, rating, *said = row
    return Held(
        memory_id=memory_id,
        event_type=event_type,
        project=project,
        entity_id=entity_id,
        created_us=created_us,
        wording=_wording(read(tuple(said))),
        status="active" if status == "expired" else status,
        superseded_by=superseded_by if status == "superseded" else None,
        rating=rating,
    )
