"""What holds a memory: its own events, and verbatim copies of its wordings in any other."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import anyio.to_thread
import msgspec

from omegad.commands.content import content_key
from omegad.dispatch.services import DaemonServices
from omegad.embedding.cache import text_hash
from omegad.embedding.passages import passages
from omegad.errors import NotFound
from omegad.events import CODEC
from omegad.events.memory import MemoryEdited, MemoryEmbedded, MemoryErased, MemoryEvolved, MemoryRepeated, MemoryStored
from omegad.log.erasure import Remnant, remnant
from omegad.log.event import Erased, Event, Position, RecordedEvent, Unknown
from omegad.queries.erase import Affected, Copy
from omegad.redaction.copies import ERASED, Wordings, blank
from omegad.storage.driver import Connection
from omegad.times import rfc3339
from omegad.views.barrier import Barrier

EVENTS_AT_ONCE = 500
VIEWS = ("memories", "histories")
VIEWS_WAIT_S = 10.0

SAID = (MemoryStored, MemoryEvolved, MemoryEdited, MemoryRepeated)
"""The events that hold what a memory says."""

_HISTORY = "SELECT DISTINCT position FROM memory_history WHERE memory_id IN (SELECT value FROM json_each(?)) ORDER BY position"
_ROWS = """
SELECT json_object(
    'memory_id', node_id, 'event_type', event_type, 'project', project, 'entity_id', entity_id, 'session_id', session_id, 'content', content,
    'tags', json(tags), 'auto_tags', json(auto_tags), 'metadata', json(metadata), 'source', source, 'redacted', json(redacted)
) FROM memories WHERE node_id IN (SELECT value FROM json_each(?))
"""


class Other(msgspec.Struct, frozen=True):
    """A memory as it stands."""

    memory_id: str
    event_type: str
    project: str | None
    entity_id: str | None
    session_id: str | None
    content: str
    tags: list[str]
    auto_tags: list[str]
    metadata: dict[str, object]
    source: str | None
    redacted: list[str]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be erased as the log stands at `head`: the memories, what remains of each payload, and the edits of other memories."""

    head: Position
    wordings: Wordings
    memory_ids: tuple[str, ...]
    remnants: tuple[Remnant, ...]
    affected: tuple[Affected, ...] = ()
    edits: tuple[tuple[str | None, MemoryEdited], ...] = ()
    """Each with the project of its memory."""

    @property
    def text_hashes(self) -> set[str]:
        """Under which the cache may have vectors of what is erased: those that events name, and those of every wording, named or not."""
        named = {digest for one in self.remnants if isinstance(one.before.event, MemoryEmbedded) for digest in one.before.event.text_hashes}
        said = (passage for one in self.remnants for text in _contents(one.before.event) for passage in passages(text))
        return named | set(map(text_hash, said))

    @property
    def copies(self) -> list[Copy]:
        """The events that hold it, as they are told."""
        return [self._copy(one) for one in self.remnants]

    def with_more(self, other: "Found") -> "Found":
        """Return all that was found before and then."""
        return msgspec.structs.replace(
            other, remnants=(*self.remnants, *other.remnants), affected=tuple(dict.fromkeys((*self.affected, *other.affected)))
        )

    def _copy(self, one: Remnant) -> Copy:
        before = one.before
        is_own = isinstance(before.event, (*SAID, MemoryEmbedded)) and before.event.memory_id in self.memory_ids
        told = (before.position, before.tag, before.session_id, rfc3339(before.occurred_at))
        return Copy(position=told[0], tag=told[1], session_id=told[2], occurred_at=told[3], loses="text" if is_own or one.body is None else "copy")


async def find(services: DaemonServices, memory_id: str) -> Found:
    """Find all that holds a memory. Raises `NotFound`, and what reading the views raises."""
    await services.log.settled()
    head = services.log.head
    history = await _events(services, await _history(services, [memory_id], head))
    if not any(isinstance(one.event, MemoryStored) and one.event.memory_id == memory_id for one in history):
        raise NotFound(f"there is no memory {memory_id[:80]}")
    if gone := [one.position for one in history if isinstance(one.event, MemoryErased) and one.event.memory_id == memory_id]:
        raise NotFound(f"memory {memory_id} was erased at position {gone[0]}")
    return await _find(services, Wordings(_said(history, {memory_id})), {memory_id}, head, after=0)


async def find_more(services: DaemonServices, found: Found) -> Found:
    """Find what was appended while *found* was being erased."""
    await services.log.settled()
    head, came, after = services.log.head, list[RecordedEvent](), found.head
    while after < head and (part := await services.log.read(after, EVENTS_AT_ONCE)):
        came += part
        after = part[-1].position
    own = set(found.memory_ids)
    said = [text for text in _said(came, own) if text.strip()]
    wordings = Wordings((*found.wordings.texts, *said))
    return await _find(services, wordings, own, head, after=0 if said else found.head)


async def _find(services: DaemonServices, wordings: Wordings, own: set[str], head: Position, *, after: Position) -> Found:
    positions = set(await services.log.erasable(wordings.signs, after)) | {
        position for position in await _history(services, own, head) if position > after
    }
    events = await _events(services, positions)
    others = await anyio.to_thread.run_sync(partial(_others, events, wordings, own))
    rows = await _rows(services, others, head)
    own |= {one.memory_id for one in rows if _says_only_that(wordings, one.content)}
    events = await _events(services, positions | set(await _history(services, others | own, head)))
    remnants = await anyio.to_thread.run_sync(partial(_remnants, events, wordings, own))
    edits = {one.memory_id: edit for one in rows if one.memory_id not in own and (edit := _edited(one, wordings))}
    return Found(
        head=head,
        wordings=wordings,
        memory_ids=tuple(sorted(own)),
        remnants=tuple(remnants),
        affected=tuple(
            Affected(memory_id=other, outcome="erased" if other in own else "edited" if other in edits else "history") for other in sorted(others)
        ),
        edits=tuple((one.project, edits[one.memory_id]) for one in rows if one.memory_id in edits),
    )


def _contents(event: object) -> list[str]:
    """Return what an event says that a memory says."""
    return [text for text in (event.content, getattr(event, "wording", None)) if text] if isinstance(event, SAID) else []


def _said(events: Iterable[RecordedEvent], own: set[str]) -> list[str]:
    said = [one.event for one in events if isinstance(one.event, SAID) and one.event.memory_id in own]
    return [text for event in said for text in _contents(event)]


def _others(events: Iterable[RecordedEvent], wordings: Wordings, own: set[str]) -> set[str]:
    said = [one.event for one in events if isinstance(one.event, SAID) and one.event.memory_id not in own]
    return {event.memory_id for event in said if wordings.without(event) is not event}


def _says_only_that(wordings: Wordings, content: str) -> bool:
    clean = wordings.clean(content)
    return ERASED in clean and not clean.replace(ERASED, "").strip()


def _remnants(events: Iterable[RecordedEvent], wordings: Wordings, own: set[str]) -> list[Remnant]:
    """Return what is to remain of those events, given in their order, that hold what is erased."""
    found = []
    holding: set[str] = set()  # other memories whose present wording, as the log goes on, holds a copy: so do its vectors
    for recorded in events:
        match recorded.event:
            case Erased():
                continue
            case Unknown(body=body):
                if wordings.clean(text := body.decode(errors="replace")) != text:
                    found.append(remnant(recorded, None, CODEC))
                continue
            case event:
                clean = _clean(event, wordings, own, holding)
        if clean != event:
            found.append(remnant(recorded, clean, CODEC))
    return found


def _clean(event: Event, wordings: Wordings, own: set[str], holding: set[str]) -> Event:
    if isinstance(event, MemoryEmbedded):
        return msgspec.structs.replace(event, text_hashes=()) if event.memory_id in own | holding else event
    if not isinstance(event, SAID):
        return wordings.without(event)
    if event.memory_id in own:
        return blank(event)
    clean = wordings.without(event)
    if not isinstance(event, MemoryRepeated):
        is_holding = clean.content != event.content
        (holding.add if is_holding else holding.discard)(event.memory_id)
        return msgspec.structs.replace(clean, content_key="") if is_holding else clean
    return clean


def _edited(one: Other, wordings: Wordings) -> MemoryEdited | None:
    """Return the edit that takes copies out of what a memory says now and is known by; None where there are none."""
    content, source = wordings.clean(one.content), None if one.source is None else wordings.clean(one.source)
    key = content_key(content, one.event_type, one.project, one.entity_id, one.session_id)
    edit = MemoryEdited(
        memory_id=one.memory_id,
        content=content,
        content_key=key,
        reason="a copy of an erased memory was taken out",
        auto_tags=tuple(map(wordings.clean, one.auto_tags)),
        redacted=tuple(one.redacted),
        tags=tuple(map(wordings.clean, one.tags)),
        source=source,
    )
    metadata: Any = wordings.data(one.metadata)
    is_clean = (content, list(edit.tags or ()), list(edit.auto_tags), metadata, source) == (
        one.content,
        one.tags,
        one.auto_tags,
        one.metadata,
        one.source,
    )
    return None if is_clean else msgspec.structs.replace(edit, metadata=metadata)


async def _history(services: DaemonServices, memory_ids: Iterable[str], head: Position) -> list[Position]:
    given = msgspec.json.encode(sorted(memory_ids)).decode()
    barrier = Barrier(names=VIEWS, min_position=head, wait_s=VIEWS_WAIT_S)
    return await services.views.at(barrier, lambda connection, _: [row[0] for row in connection.execute(_HISTORY, (given,))])


async def _rows(services: DaemonServices, memory_ids: Iterable[str], head: Position) -> list[Other]:
    given = msgspec.json.encode(sorted(memory_ids)).decode()

    def read(connection: Connection, _: object) -> list[Other]:
        return [msgspec.convert(msgspec.json.decode(row[0]), Other) for row in connection.execute(_ROWS, (given,))]

    return await services.views.at(Barrier(names=VIEWS, min_position=head, wait_s=VIEWS_WAIT_S), read)


async def _events(services: DaemonServices, positions: Iterable[Position]) -> list[RecordedEvent]:
    """Read the events at *positions*, in order."""
    left, found = sorted(positions), list[RecordedEvent]()
    while left and (part := await services.log.read_at(left[:EVENTS_AT_ONCE])):
        found += part
        left = left[EVENTS_AT_ONCE:] if len(part) == len(left[:EVENTS_AT_ONCE]) else [one for one in left if one > part[-1].position]
    return found
