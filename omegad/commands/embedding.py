"""What follows once a memory that was stored without its vectors has been embedded: the vectors, and its relations if they are to come."""

from omegad.commands.relating import relations
from omegad.commands.replacing import effects
from omegad.commands.store import PreparedStore, Stored, still_valid
from omegad.events.memory import MemoryEmbedded, MemoryRelated, MemorySuperseded
from omegad.log.decision import Decision
from omegad.log.event import Event, NewEvent
from omegad.state import DecisionState


def embed(prepared: PreparedStore, embedded_key: str, state: DecisionState, now_us: int) -> Decision:
    """Decide what follows once a memory that was stored without the model has been embedded: its vectors, and its relations if pending.

    Where it then proves to say what an older one says, that one supersedes it. Does nothing where the embedder's vectors are recorded
    already, or the content is not the one of *embedded_key* any more, so that it can be asked any number of times. Raises `Outdated` as
    `store` does.
    """
    assert prepared.embedder_id is not None
    memory = state.memory(prepared.memory_id)
    if memory is None or memory.content_key != embedded_key or state.is_embedded(memory.memory_id, prepared.embedder_id):
        return Decision(answer=Stored(memory_id=prepared.memory_id, outcome="stored"))
    vectors = MemoryEmbedded(memory_id=memory.memory_id, embedder_id=prepared.embedder_id, text_hashes=prepared.text_hashes)
    facts: list[Event] = [vectors]
    if memory.pending:
        neighbours = still_valid(prepared, state, now_us)
        older = [n for n in neighbours if (other := state.memory(n.memory_id)) and other.stored_at < memory.stored_at]
        same = next((n.memory_id for n in older if n.duplicate), None)
        facts.append(MemoryRelated(memory_id=memory.memory_id, related=() if same else relations(neighbours)))
        if same and memory.state == "active":
            facts.append(MemorySuperseded(memory_id=memory.memory_id, superseded_by=same, reason="says the same"))
        elif memory.state == "active":
            # What it denied when it was stored stays as it is: somebody may have restored it since.
            undenied = [n for n in older if (other := state.memory(n.memory_id)) and other.denied_by != memory.memory_id]
            facts.extend(new.event for new in effects(memory.memory_id, memory.said_at, undenied, (), state).events)
    events = tuple(NewEvent(event=fact, cause=memory.stored_at) for fact in facts)
    return Decision(events=events, answer=Stored(memory_id=memory.memory_id, outcome="stored"))
