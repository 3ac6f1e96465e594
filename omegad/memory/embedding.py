"""What follows once a memory that was stored without its vectors has been embedded: the vectors, and its
relations if they are to come.
"""

import msgspec

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent
from omegad.memory.events import MemoryEmbedded, MemoryRelated, MemorySuperseded
from omegad.memory.relating import effects, relations
from omegad.memory.state import Memories
from omegad.memory.store import PreparedStore, StoreMemory, look_around, still_valid
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod, RequestContext, Services


class EmbedMemory(Command, frozen=True, kw_only=True, tag="memory.embed"):
    """Give a memory that was stored without them its vectors and relations. `content_key` is that of the
    content which is embedded.
    """

    memory_id: str
    content_key: str
    content: str
    event_type: str
    project: str | None = None
    entity_id: str | None = None
    session_id: str | None = None


class MemoryHasVectors(Acknowledged, frozen=True):
    """Whether the model could embed the memory."""

    is_done: bool


async def prepare(services: Services, command: EmbedMemory, context: RequestContext) -> PreparedStore:
    """Embed a memory's content, and look at what is near; without the model nothing of either."""
    embedded = await services.embed(command.content, is_backlog=True)
    base = PreparedStore(memory_id=command.memory_id, content=command.content, read_position=0)
    if embedded is None:
        return base
    said = StoreMemory(
        content=command.content,
        event_type=command.event_type,
        project=command.project,
        entity_id=command.entity_id,
        session_id=command.session_id,
    )
    at_head = msgspec.structs.replace(context, written=services.head)
    return await look_around(services, said, base, embedded, at_head)


def embed(command: EmbedMemory, prepared: PreparedStore, state: DecisionState, now_us: int) -> Decision:
    """Decide what follows once a memory that was stored without the model has been embedded: its vectors, and
    its relations if pending.

    Where it then proves to say what an older one says, that one supersedes it. Does nothing where the
    embedder's vectors are recorded already, or the content is not the one of the command any more, so that it
    can be asked any number of times. Raises `Outdated` as `store` does.
    """
    if prepared.embedder_id is None:
        return Decision(answer=MemoryHasVectors(is_done=False))
    memory = state[Memories].get(prepared.memory_id)
    if (
        memory is None
        or memory.content_key != command.content_key
        or state[Memories].is_embedded(memory.memory_id, prepared.embedder_id)
    ):
        return Decision(answer=MemoryHasVectors(is_done=True))
    vectors = MemoryEmbedded(
        memory_id=memory.memory_id, embedder_id=prepared.embedder_id, text_hashes=prepared.text_hashes
    )
    facts: list[Event] = [vectors]
    if memory.pending:
        neighbours = still_valid(prepared, state, now_us)
        older = [
            n
            for n in neighbours
            if (other := state[Memories].get(n.memory_id)) and other.stored_at < memory.stored_at
        ]
        same = next((n.memory_id for n in older if n.duplicate), None)
        related, also_near = ((), ()) if same else relations(neighbours)
        facts.append(MemoryRelated(memory_id=memory.memory_id, related=related, also_near=also_near))
        if same and memory.state == "active":
            facts.append(
                MemorySuperseded(memory_id=memory.memory_id, superseded_by=same, reason="says the same")
            )
        elif memory.state == "active":
            # What it denied when it was stored stays as it is: somebody may have restored it since.
            undenied = [
                n
                for n in older
                if (other := state[Memories].get(n.memory_id)) and other.denied_by != memory.memory_id
            ]
            done = effects(memory.memory_id, memory.said_at, undenied, (), state, is_asked=False)
            facts.extend(new.event for new in done.events)
    events = tuple(NewEvent(event=fact, cause=memory.stored_at) for fact in facts)
    return Decision(events=events, answer=MemoryHasVectors(is_done=True))


METHODS = (
    CommandMethod(
        params=EmbedMemory, answer=MemoryHasVectors, prepare=prepare, decide=embed, is_internal=True
    ),
)
