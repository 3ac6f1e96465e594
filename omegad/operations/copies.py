"""What holds a memory, or a phrase: its own events, verbatim copies of its wordings in any other, and what
omegad itself made of these.
"""

import re
from bisect import bisect_right
from collections.abc import AsyncIterator, Collection, Container, Iterable, Iterator, Sequence

import anyio.to_thread
import msgspec

from omegad.embedding.cache import text_hash
from omegad.embedding.passages import passages, short_passages
from omegad.knowledge.events import ThesisRevised, ThesisStated
from omegad.log.codec import tag_of
from omegad.log.copies import ERASED, LONE_MIN, PHRASE_CUT_MIN, CopyFinder, is_lone, is_short
from omegad.log.erasure import Remnant, SearchTerms
from omegad.log.event import Position, RecordedEvent
from omegad.log.projection import to_json
from omegad.memory.content import content_key
from omegad.memory.events import MemoryEdited, MemoryEmbedded, MemoryErased, MemoryStored
from omegad.memory.upkeep import clusters
from omegad.memory.upkeep.clusters import Member
from omegad.operations.scrubbing import (
    COMPOSED,
    NAMES_MAX,
    SAID,
    TAKEN_OUT,
    TOLD_WITHIN,
    Affected,
    Copy,
    ErasureTarget,
    Scrubbed,
    SummaryParts,
    members_of,
)
from omegad.operations.services import DaemonServices
from omegad.runtime.errors import Invalid, NotFound
from omegad.runtime.times import rfc3339
from omegad.session.events import MemorySurfaced
from omegad.storage.driver import Connection
from omegad.views.barrier import Barrier

EVENTS_AT_ONCE = 100
VIEWS = ("memories", "histories")
VIEWS_WAIT_S = 10.0
ROUNDS_MAX = 8
NAME_CHARACTERS_MAX = 256  # of a session, a project, a client
"""How long a line of texts, each made of the one before, is followed."""
_HISTORY = """
SELECT position FROM memory_history WHERE memory_id IN (SELECT value FROM json_each(?)) AND position > ?
"""
_ROWS = """
SELECT json_object(
    'memory_id', node_id, 'event_type', event_type, 'project', project, 'entity_id', entity_id, 'session_id',
      session_id, 'content', content,
    'tags', json(tags), 'auto_tags', json(auto_tags), 'metadata', json(metadata), 'source', source,
      'redacted', json(redacted)
) FROM memories WHERE node_id IN (SELECT value FROM json_each(?))
"""
_ID = re.compile(r"(?:mem|th|task|msg)-[0-9a-f-]{8,64}")


class MemoryRow(msgspec.Struct, frozen=True):
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


class ErasurePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be erased as the log stands at `head`: the memories, what remains of each payload, and
    the edits of other memories.
    """

    head: Position
    sought: ErasureTarget
    remnants: tuple[Remnant, ...]
    affected: tuple[Affected, ...] = ()
    edits: tuple[tuple[str | None, MemoryEdited], ...] = ()
    """Each with the project of its memory."""
    summaries: frozenset[str] = frozenset()
    """Those that are made again."""
    again: dict[str, str] = {}
    """Their wordings, which stand in answers, too, each with what takes its place."""
    is_name: bool = False
    """Whether it also stands in names beside events, which stay: a row that shows it may show either."""

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memories that are erased."""
        return tuple(sorted(self.sought.memory_ids))

    @property
    def has_names(self) -> bool:
        """Whether names of memories go, by which they are found, or cannot be told from what goes."""
        return self.is_name or (self.sought.is_phrase and any(one.is_renamed for one in self.remnants))

    @property
    def text_hashes(self) -> set[str]:
        """Under which the cache may have vectors of what is erased: those that events name, and those of
        every wording, named or not.
        """
        found = set[str]()
        for one in self.remnants:
            if issubclass(one.kind, (MemoryEmbedded, *SAID)):
                event = one.before.event
                found.update(event.text_hashes if isinstance(event, MemoryEmbedded) else ())
                for text in _contents(event):
                    found.update(map(text_hash, (*passages(text), *short_passages(text))))
        return found

    @property
    def copies(self) -> Iterator[Copy]:
        """The events that hold it, as they are told."""
        own = (*SAID, MemoryEmbedded)
        for one in self.remnants:
            was = one.before
            is_own = isinstance(was.event, own) and was.event.memory_id in self.sought.memory_ids
            yield Copy(
                position=one.position,
                tag=was.tag,
                session_id=was.session_id,
                occurred_at=rfc3339(was.occurred_at),
                loses="text" if one.body is None or is_own else "copy",
            )

    @property
    def answer_terms(self) -> SearchTerms:
        """As `ErasureTarget.terms`, of the answers that were given."""
        terms = self.sought.terms
        return (
            (*terms, *((name,) for name in sorted(self.summaries)))
            if terms and len(self.summaries) <= NAMES_MAX
            else ()
        )

    def clean_answer(self, value: object) -> object:
        """Return an answer that was given without it: a text goes whole that has more of it than a copy,
        or a run would be left of another.
        """
        match value:
            case str():
                if value in self.again or _ID.fullmatch(value):
                    return self.again.get(value, value)
                clean = self.sought.wordings.clean(value)
                return clean if self.sought.clean(clean) == clean else ERASED
            case dict():
                return {
                    self.sought.wordings.data(key): self.clean_answer(item) for key, item in value.items()
                }
            case list():
                return [self.clean_answer(item) for item in value]
            case _:
                return value

    def with_more(self, other: "ErasurePlan") -> "ErasurePlan":
        """Return all that was found before and then."""
        affected = tuple(dict.fromkeys((*self.affected, *other.affected)))
        return msgspec.structs.replace(other, remnants=(*self.remnants, *other.remnants), affected=affected)


async def find(services: DaemonServices, memory_id: str) -> ErasurePlan:
    """Find all that holds a memory. Raises `NotFound`, and what reading the views raises."""
    await services.log.settled()
    head = services.log.head
    found = _events(services, await _history(services, [memory_id], head, after=0))
    history = [one async for part in found for one in part]
    stored = next(
        (
            one.event
            for one in history
            if isinstance(one.event, MemoryStored) and one.event.memory_id == memory_id
        ),
        None,
    )
    if stored is None:
        raise NotFound(f"there is no memory {memory_id[:80]}")
    if gone := [
        one.position
        for one in history
        if isinstance(one.event, MemoryErased) and one.event.memory_id == memory_id
    ]:
        raise NotFound(f"memory {memory_id} was erased at position {gone[0]}")
    wordings = CopyFinder(_said(history, {memory_id}))
    return await _find(
        services,
        ErasureTarget(
            wordings=wordings, memory_ids=frozenset({memory_id}), is_composed=stored.source in COMPOSED
        ),
        head,
        after=0,
    )


async def find_phrase(services: DaemonServices, text: str) -> ErasurePlan:
    """Find all that holds a phrase. Raises `Invalid` for one that stands for too much, and what reading
    the views raises.
    """
    text = text.strip()
    lone = text if is_short(text) and is_lone(text) else ""
    if is_short(text) and not lone:
        raise Invalid(
            f"the text is shorter than {LONE_MIN} characters, of digits alone, or a single plain word, so it"
            " stands in many texts for something else",
            hint="name the words around it as well, or find the memories with it, `omegad query`, and erase"
            " these by their ids",
        )
    if _ID.fullmatch(text):
        raise Invalid(
            "that is an id, which tells nothing", hint="`omegad memory erase ID` erases a memory by it"
        )
    await services.log.settled()
    sought = ErasureTarget(wordings=CopyFinder((text,), PHRASE_CUT_MIN, lone), is_phrase=True)
    return await _find(services, sought, services.log.head, after=0)


async def find_more(services: DaemonServices, found: ErasurePlan) -> ErasurePlan:
    """Find what was appended while *found* was being erased."""
    await services.log.settled()
    head, said, after, sought = services.log.head, list[str](), found.head, found.sought
    while after < head and (part := await services.log.read(after, EVENTS_AT_ONCE)):
        said += [text for text in _said(part, sought.memory_ids) if text.strip()]
        after = part[-1].position
    if said:
        sought = msgspec.structs.replace(
            sought, wordings=CopyFinder((*sought.wordings.texts, *said), lone=sought.wordings.lone)
        )
    holding = tuple(one.position for one in found.remnants)
    return await _find(services, sought, head, after=0 if said else found.head, holding=holding)


async def _find(
    services: DaemonServices,
    sought: ErasureTarget,
    head: Position,
    *,
    after: Position,
    holding: Sequence[Position] = (),
) -> ErasurePlan:
    """Find what holds it after a position; the events at *holding* did, and are erased."""
    # Each goes through the whole log, so they are few, and may find more than they need to.
    marks = ('"made_of":{', *sorted({f'"source":"{source.partition("_")[0]}' for source in COMPOSED}))
    terms = sought.terms and (*sought.terms, *((mark,) for mark in marks))
    positions = set(await services.log.erasable(terms, after))
    positions |= set(await services.log.tagged((tag_of(ThesisStated), tag_of(ThesisRevised)), after))
    positions |= await _history(services, sought.memory_ids, head, after)
    positions |= await _led_to(services, holding, after)
    own, holders = sought.memory_ids, set[str]()
    rounds = 0
    while True:
        rounds += 1
        taken = await _scrubbed(services, positions, sought, holding)
        rows = await _rows(services, taken.memory_ids, head)
        again = await _made_again(services, taken, sought, head)
        left = ((one, _clean(taken, one, again)) for one in rows)
        whole = {one.memory_id for one, text in left if text != one.content and _is_empty(text)}
        whole -= sought.memory_ids
        sought = msgspec.structs.replace(sought, memory_ids=sought.memory_ids | whole)
        holders |= taken.memory_ids
        more = await _history(services, taken.memory_ids | sought.memory_ids, head, after)
        more |= await _led_to(services, taken.positions, after)
        if (more <= positions and not whole) or rounds == ROUNDS_MAX:
            break
        positions |= more
    made, taken = taken.compacted.keys(), await _scrubbed(services, positions, sought, holding, again)
    holders = (holders - made) | (taken.memory_ids & made) | (sought.memory_ids & made)
    edits = {
        one.memory_id: edit
        for one in rows
        if one.memory_id not in sought.memory_ids and (edit := _edited(one, taken))
    }
    return ErasurePlan(
        head=head,
        is_name=any(
            [
                await services.log.names_with(text)
                for text in sought.wordings.texts
                if len(text) <= NAME_CHARACTERS_MAX
            ]
        ),
        sought=sought,
        remnants=tuple(taken.remnants),
        affected=tuple(
            Affected(
                memory_id=other,
                outcome="erased" if other in sought.memory_ids else "edited" if other in edits else "history",
            )
            for other in sorted(holders - own)
        ),
        edits=tuple((one.project, edits[one.memory_id]) for one in rows if one.memory_id in edits),
        again={old: new for one in taken.remnants for old, new in _made_of(one, made)},
        summaries=frozenset(made),
    )


async def _led_to(services: DaemonServices, positions: Sequence[Position], after: Position) -> set[Position]:
    """Return where what was made of the events at *positions* may stand, beside what says so itself."""
    if not positions:
        return set()
    told = set(await services.log.tagged((tag_of(MemorySurfaced),), max(after, min(positions))))
    told &= {near for position in positions for near in range(position + 1, position + 1 + TOLD_WITHIN)}
    return told | {one for one in await services.log.caused(positions) if one > after}


async def _made_again(
    services: DaemonServices, taken: Scrubbed, sought: ErasureTarget, head: Position
) -> dict[str, SummaryParts]:
    """Return what the summaries are made again of, those members that are left of each; of one whose
    members are all gone that is nothing.
    """
    named = {one for stored in taken.compacted.values() for one in members_of(stored)}
    rows = {
        one.memory_id: one
        for one in await _rows(services, named, head)
        if one.memory_id not in sought.memory_ids
    }
    found: dict[str, SummaryParts] = {}
    for memory_id, stored in taken.compacted.items():
        left = [one for name in members_of(stored) if (one := rows.get(name))]
        said = [(one, _clean(taken, one, found)) for one in left]
        members = [
            Member(memory_id=one.memory_id, content=text, event_type=one.event_type)
            for one, text in said
            if not _is_empty(text)
        ]
        found[memory_id] = SummaryParts(
            content=await anyio.to_thread.run_sync(clusters.summary, members) if members else "",
            kept=tuple(member.content for member in members),
            tags=frozenset(tag for one in left for tag in _tags(taken, one, found)),
        )
    return found


def _made_of(one: Remnant, made: Collection[str]) -> list[tuple[str, str]]:
    """Return what an event had one of the summaries *made* again say, and what it has it say now."""
    if not made or one.body is None or not issubclass(one.kind, SAID):
        return []
    before, after = one.before.event, one.after
    if after is None or not isinstance(before, SAID) or before.memory_id not in made:
        return []
    return list(zip(_contents(before), _contents(after.event), strict=False))


def _contents(event: object) -> list[str]:
    """Return what an event says that a memory says."""
    return (
        [text for text in (event.content, getattr(event, "wording", None)) if text]
        if isinstance(event, SAID)
        else []
    )


def _said(events: Iterable[RecordedEvent], own: Container[str]) -> list[str]:
    said = [one.event for one in events if isinstance(one.event, SAID) and one.event.memory_id in own]
    return [text for event in said for text in _contents(event)]


def _clean(taken: Scrubbed, one: MemoryRow, again: dict[str, SummaryParts]) -> str:
    """Return what a memory says without what is erased."""
    if one.memory_id in again:
        return taken.summary(one.memory_id, one.content, again[one.memory_id])
    return taken.sought.wordings.clean_runs(one.content, taken.least.get(one.memory_id, 0))


def _tags(taken: Scrubbed, one: MemoryRow, again: dict[str, SummaryParts]) -> Sequence[str]:
    tags = (*one.tags, *one.auto_tags)
    return taken.tags(tags, again[one.memory_id]) if one.memory_id in again else tags


def _is_empty(text: str) -> bool:
    return not text.replace(ERASED, "").strip()


def _edited(one: MemoryRow, taken: Scrubbed) -> MemoryEdited | None:
    """Return the edit that takes copies out of what a memory says now and is known by; None where there
    are none.
    """
    least = taken.least.get(one.memory_id, 0)
    wordings = taken.sought.wordings
    content = wordings.clean_runs(one.content, least)
    source = None if one.source is None else wordings.clean_runs(one.source, least)
    tags, auto_tags = [
        [wordings.clean_runs(tag, least) for tag in given] for given in (one.tags, one.auto_tags)
    ]
    if one.memory_id in taken.compacted:
        content = taken.summary(one.memory_id, one.content, taken.again(one.memory_id))
        tags, auto_tags = [list(taken.tags(given, taken.again(one.memory_id))) for given in (tags, auto_tags)]
    key = content_key(content, one.event_type, one.project, one.entity_id, one.session_id)
    metadata = wordings.data(one.metadata, least)
    assert isinstance(metadata, dict)
    if one.memory_id in taken.without_digest:
        metadata.pop("digest", None)
    edit = MemoryEdited(
        memory_id=one.memory_id,
        content=content,
        content_key=key,
        reason=TAKEN_OUT,
        auto_tags=tuple(auto_tags),
        redacted=tuple(one.redacted),
        tags=tuple(tags),
        source=source,
    )
    is_clean = (content, tags, auto_tags, metadata, source) == (
        one.content,
        one.tags,
        one.auto_tags,
        one.metadata,
        one.source,
    )
    return None if is_clean else msgspec.structs.replace(edit, metadata=metadata)


async def _history(
    services: DaemonServices, memory_ids: Iterable[str], head: Position, after: Position
) -> set[Position]:
    values = (to_json(sorted(memory_ids)), after)
    return await services.views.at(
        Barrier(names=VIEWS, min_position=head, wait_s=VIEWS_WAIT_S),
        lambda connection, _: {row[0] for row in connection.execute(_HISTORY, values)},
    )


async def _rows(services: DaemonServices, memory_ids: Iterable[str], head: Position) -> list[MemoryRow]:
    given = to_json(sorted(memory_ids))

    def read(connection: Connection, _: object) -> list[MemoryRow]:
        return [msgspec.json.decode(row, type=MemoryRow) for (row,) in connection.execute(_ROWS, (given,))]

    return await services.views.at(Barrier(names=VIEWS, min_position=head, wait_s=VIEWS_WAIT_S), read)


async def _scrubbed(
    services: DaemonServices,
    positions: Iterable[Position],
    sought: ErasureTarget,
    holding: Sequence[Position],
    again: dict[str, SummaryParts] | None = None,
) -> Scrubbed:
    """Take what is sought out of the events at *positions*, some of them in memory at a time; the other
    arguments are those of `Scrubbed`.
    """
    taken = Scrubbed(services.log.codec, sought, set(holding), again)

    def take(events: Iterable[RecordedEvent]) -> None:
        for recorded in events:
            taken.take(recorded)

    async for part in _events(services, positions):
        await anyio.to_thread.run_sync(take, part)
    return taken


async def _events(
    services: DaemonServices, positions: Iterable[Position]
) -> AsyncIterator[list[RecordedEvent]]:
    """Yield the events at *positions*, in order, as many at a time as one read gives."""
    left = sorted(positions)
    while left and (part := await services.log.read_at(left[:EVENTS_AT_ONCE])):
        yield part
        left = left[bisect_right(left, part[-1].position) :]
