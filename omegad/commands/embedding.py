"""What follows once a memory that was stored without its vectors has been embedded: the vectors, and its relations if they are to come."""

from omegad.commands.relating import relations
from omegad.commands.replacing import effects
from omegad.commands.store import PreparedStore, Stored, still_valid
from omegad.events.fact import Fact, NewEvent
from omegad.events.memory import MemoryEmbedded, MemoryRelated, MemorySuperseded
from omegad.log.decision import Decision
from omegad.log.guards import Guards


def embed(prepared: PreparedStore, embedded_key: str, guards: Guards, now_us: int) -> Decision:
    """Decide what follows once a memory that was stored without the model has been embedded: its vectors, and its relations if pending.

    Where it then proves to say what an older one says, that one supersedes it. Does nothing where the embedder's vectors are recorded
    already, or the content is not the one of *embedded_key* any more, so that it can be asked any number of times. Raises `Outdated` as
    `store` does.
    """
    assert prepared.embedder_id is not None
    guard = guards.memory(prepared.memory_id)
    if guard is None or guard.content_key != embedded_key or guards.is_embedded(guard.memory_id, prepared.embedder_id):
        return Decision(answer=Stored(memory_id=prepared.memory_id, outcome="stored"))
    vectors = MemoryEmbedded(memory_id=guard.memory_id, embedder_id=prepared.embedder_id, text_hashes=prepared.text_hashes)
    facts: list[Fact] = [vectors]
    if guard.pending:
        neighbours = still_valid(prepared, guards, now_us)
        older = [n for n in neighbours if (other := guards.memory(n.memory_id)) and other.stored_at < guard.stored_at]
        same = next((n.memory_id for n in older if n.duplicate), None)
        facts.append(MemoryRelated(memory_id=guard.memory_id, related=() if same else relations(neighbours)))
        if same and guard.state == "active":
            facts.append(MemorySuperseded(memory_id=guard.memory_id, superseded_by=same, reason="says the same"))
        elif guard.state == "active":
            # What it denied when it was stored stays as it is: somebody may have restored it since.
            undenied = [n for n in older if (other := guards.memory(n.memory_id)) and other.denied_by != guard.memory_id]
            facts.extend(new.event for new in effects(guard.memory_id, guard.said_at, undenied, (), guards).events)
    events = tuple(NewEvent(event=fact, cause=guard.stored_at) for fact in facts)
    return Decision(events=events, answer=Stored(memory_id=guard.memory_id, outcome="stored"))
