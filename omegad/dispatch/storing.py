"""What deciding a store or an edit needs from the world: clean content, vectors, neighbours and what the text makes of them."""

from functools import partial

import anyio
import msgspec

from omegad.commands import embedding, lifecycle, relating, store, upsert
from omegad.commands.command import known
from omegad.commands.content import Clean, check_metadata, clean
from omegad.commands.lifecycle import EditMemory, Given, PreparedEdit
from omegad.commands.relating import Near, Neighbour, Scope
from omegad.commands.store import TAG_CHARACTERS_MAX, PreparedStore, StoreMemory
from omegad.commands.upsert import UpsertMemory
from omegad.dispatch.neighbourhood import Embedded
from omegad.dispatch.parts import Parts
from omegad.errors import Invalid, Refused, Stale, Unavailable
from omegad.ingestion.noise import noise_of
from omegad.ingestion.tagging import tags_of
from omegad.log.decision import Decide, Decision
from omegad.queries import search
from omegad.queries.neighbours import neighbours
from omegad.redaction import redact
from omegad.redaction.sanitise import TAGS_MAX
from omegad.state import DecisionState
from omegad.storage.driver import Connection
from omegad.times import parse_time
from omegad.views.barrier import Barrier, Snapshot

FUTURE_US = 24 * 3_600 * 1_000_000  # by which the clock of whoever learned something may be ahead
VIEWS_WAIT_S = 5.0  # for the views to show what is near, before deciding without


class Storing:
    """Prepares stores and edits, and gives back their decisions."""

    def __init__(self, parts: Parts) -> None:
        """Take everything from outside."""
        self._log = parts.log
        self._views = parts.views
        self._near = parts.near
        self._types = parts.types
        self._rules = parts.rules
        self._clock = parts.clock

    def begin(self, command: StoreMemory, client: str | None) -> PreparedStore:
        """Check a store before any work is done for it, and clean it. Raises `Invalid`, and `Refused` for the noise of a system."""
        self._types.check(command.event_type)
        in_metadata = check_metadata(command.metadata)
        if command.referenced_date is not None:
            parse_time(command.referenced_date, "referenced_date")
        if isinstance(command, UpsertMemory) and parse_time(command.timestamp, "timestamp") > self._clock.now_us() + FUTURE_US:
            raise Invalid(f"timestamp {command.timestamp} is in the future", hint="it is when the memory was learned")
        content = self._clean(command.content)
        named = {tag.casefold() for tag in command.tags}
        auto_tags = [tag for tag in self._auto_tags(content.text, command.project) if tag.casefold() not in named]
        return PreparedStore(
            memory_id=f"mem-{self._clock.random_bits(64):016x}",
            content=content.text,
            redacted=tuple(dict.fromkeys((*content.redacted, *in_metadata, *redact(" ".join(command.tags))[1]))),
            auto_tags=tuple(auto_tags[: TAGS_MAX - len(named)]),
            client=client,
            read_position=0,
        )

    async def embed(self, content: str, *, is_backlog: bool = False) -> Embedded | None:
        """Return the vectors of a content, None where the model cannot be used now."""
        return await self._near.embed(content, is_backlog=is_backlog)

    async def prepare(self, command: StoreMemory, base: PreparedStore, embedded: Embedded | None, *, is_last: bool) -> PreparedStore:
        """Look around for a store: what is near, and what its text makes of that."""
        if embedded is None and command.ack == "durable":
            return msgspec.structs.replace(base, pending=True)
        try:
            found, position = await self._look_around(command, base, embedded)
        except Stale:  # the views cannot be read before they are built again; the backlog decides the relations then
            return msgspec.structs.replace(base, pending=True)
        ready = msgspec.structs.replace(base, neighbours=found, read_position=position, is_last_try=is_last)
        if embedded is None:
            ready = msgspec.structs.replace(ready, pending=True, degraded="embedding")
        else:
            ready = msgspec.structs.replace(
                ready,
                embedder_id=embedded.embedder_id,
                text_hashes=embedded.text_hashes,
                arrived=partial(self._near.late.near, command.project, embedded.vector),
            )
        return ready

    def decide_store(self, command: StoreMemory, prepared: PreparedStore, embedded: Embedded | None) -> Decide:
        """Return the decision of a store."""
        kind = self._types.of(command.event_type)
        return self._noting(partial(store.store, command, prepared, kind), command, prepared, embedded)

    def decide_embed(self, command: StoreMemory, prepared: PreparedStore, content_key: str, embedded: Embedded) -> Decide:
        """Return the decision what follows once a stored memory has been embedded."""
        return self._noting(partial(embedding.embed, prepared, content_key), command, prepared, embedded)

    async def decide_edit(self, command: EditMemory, given: Given | None = None) -> Decide:
        """Clean and embed an edit, with which more may be given; return its decision. Raises `Invalid`, and `Refused` for noise."""
        content = self._clean(command.content)
        embedded = None if command.ack == "durable" else await self._near.embed(content.text)
        auto_tags = partial(self._auto_tags, content.text)
        prepared = PreparedEdit(content=content.text, redacted=content.redacted, auto_tags=auto_tags, given=given)
        if embedded is not None:
            prepared = msgspec.structs.replace(prepared, embedder_id=embedded.embedder_id, text_hashes=embedded.text_hashes)
        return partial(lifecycle.edit, command, prepared)

    async def decide_replacement(self, command: UpsertMemory, memory_id: str) -> Decide:
        """Return the decision of an upsert that names its memory: an edit, answered as a store is."""
        prepared = self.begin(command, None)
        given = Given(
            tags=tuple(dict.fromkeys(command.tags)) or None,
            priority=command.priority,
            metadata=command.metadata or None,
            referenced_at=None if command.referenced_date is None else parse_time(command.referenced_date, "referenced_date"),
            source=command.source,
            confidence=command.confidence,
        )
        edit = await self.decide_edit(EditMemory(memory_id=memory_id, content=command.content, ack=command.ack), given)

        def decide(state: DecisionState, now_us: int) -> Decision:
            memory = known(state, memory_id)
            upsert.check_scope(command, memory)
            done = store.effects_of(command, memory_id, (), state, now_us)
            learned = parse_time(command.timestamp, "timestamp")
            facts = (*edit(state, now_us).events, *done.events)
            events = tuple(
                msgspec.structs.replace(new, occurred_at=learned, session_id=command.session_id, follows=place > 0) for place, new in enumerate(facts)
            )
            ignored = upsert.ignored(command, memory)
            answer = store.Stored(memory_id=memory_id, outcome="stored", superseded=done.superseded, redacted=prepared.redacted, ignored=ignored)
            return Decision(events=events, answer=answer)

        return decide

    async def views_reach(self, position: int) -> None:
        """Wait for the views, but not for ever: what they do not show in time is decided without."""
        if self._views.driver.trouble:
            return
        with anyio.move_on_after(VIEWS_WAIT_S):
            try:
                await self._views.wait_for(position, search.VIEWS)
            except (Unavailable, Stale):
                return

    async def views_at_head(self) -> None:
        """Wait for the views to show what is in the log now."""
        await self.views_reach(self._log.head)

    def _noting(self, decide: Decide, command: StoreMemory, prepared: PreparedStore, embedded: Embedded | None) -> Decide:
        """Return *decide*, which then also notes the memory among the late ones, for those that are being decided meanwhile."""

        def noting(state: DecisionState, now_us: int) -> Decision:
            decision = decide(state, now_us)
            if embedded is not None:
                self._near.late.add(prepared.memory_id, command.project, embedded.vector)
            return decision

        return noting

    def _clean(self, content: str) -> Clean:
        found = clean(content)
        if rule := noise_of(found.text, self._rules.noise):
            raise Refused(f"the content is noise of a system ({rule}), not something to remember", hint="store what was learned from it")
        return found

    def _auto_tags(self, content: str, project: str | None) -> tuple[str, ...]:
        return tuple(tag for tag in tags_of(content, project, self._rules.tags) if len(tag) <= TAG_CHARACTERS_MAX)

    async def _look_around(self, command: StoreMemory, base: PreparedStore, embedded: Embedded | None) -> tuple[tuple[Neighbour, ...], int]:
        now_us = self._clock.now_us()
        jaccard_min = self._types.of(command.event_type).jaccard
        is_whole = embedded is not None and embedded.is_whole
        scope = Scope(event_type=command.event_type, entity_id=command.entity_id, session_id=command.session_id)

        def read(connection: Connection, snapshot: Snapshot) -> tuple[tuple[Neighbour, ...], int]:
            mirror = self._near.mirror(snapshot.file)
            searched = None if mirror is None or embedded is None else (mirror, embedded.vector)
            rows = neighbours(connection, base.content, command.project, searched, now_us=now_us, leave_out=base.memory_id)
            near = [Near(**msgspec.structs.asdict(row), is_comparable=is_whole) for row in rows]
            return relating.compare(base.content, scope, near, jaccard_min), snapshot.position

        return await self._views.at(Barrier(names=search.VIEWS, wait_s=0.0, makes_do=True), read)
