"""What deciding a store needs of the world: its content clean, its vectors, and what is near, with what its text makes of that."""

from collections.abc import Iterable
from functools import partial

import msgspec

from omegad import index
from omegad.index.neighbours import neighbours
from omegad.log.event import Position
from omegad.log.sanitise import TAGS_MAX
from omegad.memory import relating
from omegad.memory.content import auto_tags, beside_if_long, check_metadata, cleaned
from omegad.memory.ids import new_id
from omegad.memory.relating import Near, Neighbour, Scope
from omegad.memory.store import PreparedStore, Stored, StoreMemory, store
from omegad.memory.types import MemoryTypes
from omegad.requests.method import CommandMethod, Embedded, Moment, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.errors import ReadTooLong, Stale
from omegad.runtime.times import parse_time
from omegad.storage.driver import Connection
from omegad.text.redaction import redact


async def prepare(services: Services, command: StoreMemory, context: RequestContext) -> PreparedStore:
    """Check and clean a store before any work is done for it, embed it, and look at what is near. Raises `Invalid`, `Refused`."""
    base = await beside_if_long(services, command.content, partial(begun, services, command, context))
    embedded = None if command.ack == "durable" else await services.embed(base.content)
    if command.ack == "durable":
        return msgspec.structs.replace(base, pending=True)
    return await look_around(services, command, base, embedded, context)


def begun(services: Services, command: StoreMemory, context: RequestContext) -> PreparedStore:
    """Check a store, and clean it. Raises `Invalid`, and `Refused` for the noise of a system."""
    in_metadata = check_metadata(command.metadata)
    if command.referenced_date is not None:
        parse_time(command.referenced_date, "referenced_date")
    content = cleaned(command.content, services.rules)
    named = {tag.casefold() for tag in command.tags}
    found = [tag for tag in auto_tags(content.text, command.project, services.rules) if tag.casefold() not in named]
    return PreparedStore(
        memory_id=new_id(services),
        content=content.text,
        kind=services[MemoryTypes].of(command.event_type),
        redacted=tuple(dict.fromkeys((*content.redacted, *in_metadata, *redact(" ".join(command.tags))[1]))),
        auto_tags=tuple(found[: TAGS_MAX - len(named)]),
        client=context.client,
        read_position=0,
    )


async def look_around(
    services: Services, command: StoreMemory, base: PreparedStore, embedded: Embedded | None, context: RequestContext
) -> PreparedStore:
    """Return a store with what is near, and what its text makes of that; without vectors it is near by its words, and waits for them."""
    scope = Scope(event_type=command.event_type, entity_id=command.entity_id, session_id=command.session_id)
    is_whole = embedded is not None and embedded.is_whole
    jaccard_min = services[MemoryTypes].of(command.event_type).jaccard

    def read(connection: Connection, moment: Moment) -> tuple[tuple[Neighbour, ...], frozenset[str], Position]:
        searched = None if moment.index is None or embedded is None else (moment.index, embedded.vector)
        rows = neighbours(connection, base.content, command.project, searched, now_us=moment.now_us, leave_out=base.memory_id)
        near = [Near(**msgspec.structs.asdict(row), is_comparable=is_whole) for row in rows]
        known = command.known_before()
        shown = _shown_among(connection, command.session_id, (one.memory_id for one in near)) if known is None else known
        return relating.compare(base.content, scope, near, jaccard_min), shown, moment.position

    try:
        found, shown, position = await services.look(read, at_least=context.written, names=(*index.VIEWS, "retrievals"))
    except (Stale, ReadTooLong):  # the views cannot be read before they are built again, or not in time; the backlog decides the relations then
        return msgspec.structs.replace(base, pending=True)
    # What a session was shown a moment ago is in the log before what it says of that, and perhaps not in the views.
    is_exact = command.known_before() is not None or (context.is_again and position >= context.written)
    base = msgspec.structs.replace(base, neighbours=found, shown=shown, is_shown_exact=is_exact)
    ready = msgspec.structs.replace(base, read_position=position, is_last_try=context.is_last_try)
    if embedded is None:
        return msgspec.structs.replace(ready, pending=True, degraded="embedding")
    services.remember(base.memory_id, command.project, embedded.vector)
    return msgspec.structs.replace(
        ready,
        embedder_id=embedded.embedder_id,
        text_hashes=embedded.text_hashes,
        arrived=partial(services.recent, command.project, embedded.vector),
    )


def _shown_among(connection: Connection, session_id: str | None, memory_ids: Iterable[str]) -> frozenset[str]:
    """Return those of some memories that a session was shown."""
    if session_id is None:
        return frozenset()
    sql = "SELECT DISTINCT memory_id FROM retrievals WHERE session_id = ? AND memory_id IN (SELECT value FROM json_each(?))"
    return frozenset(memory_id for (memory_id,) in connection.execute(sql, (session_id, msgspec.json.encode(list(memory_ids)).decode())))


METHODS = (
    CommandMethod(
        params=StoreMemory,
        answer=Stored,
        prepare=prepare,
        decide=store,
        verb=Verb(
            "store",
            by="memories.store",
            examples=(
                'omegad store "Prefers tabs over spaces" --event-type user_preference',
                'omegad store "Retry on 429 with jitter" --event-type lesson_learned --tag http --tag retries --priority 4',
                "omegad store - --project shop < notes.txt",
            ),
        ),
    ),
)
