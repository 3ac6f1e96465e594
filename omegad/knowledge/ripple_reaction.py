"""What is said speaks for what is near to it, and for the theses there: evidence, unless it is an echo of
what its session had been shown.

It follows what was decided when the memory was stored, its nearest neighbours or that it was said before, and
the vectors of what theses are made of. A contradiction counts where somebody has drawn it.
"""

from collections.abc import Iterable, Iterator

from omegad.knowledge import ripples
from omegad.knowledge.events import Effect, Touch
from omegad.knowledge.ripple import RippleMemory
from omegad.knowledge.thesis import OpenThesis, RetractEvidence
from omegad.log.event import RecordedEvent
from omegad.memory.events import (
    MemoryEvolved,
    MemoryLinked,
    MemoryRelated,
    MemoryRepeated,
    MemoryStored,
    MemoryUnlinked,
    Relation,
)
from omegad.memory.relating import RIPPLE_COSINE
from omegad.memory.store import THESIS, THESIS_TYPE
from omegad.reactions.contract import Reader
from omegad.requests.command import Command

NAME = "ripple"
VERSION = 4
EVENTS = (MemoryStored, MemoryRelated, MemoryRepeated, MemoryEvolved, MemoryLinked, MemoryUnlinked)
VIEWS = ripples.VIEWS

CONTRADICTS = "contradicts"
SAME = 1.0


def react(recorded: RecordedEvent, reader: Reader) -> Iterator[Command]:
    """Open the thesis that a decision states, and record what was said does."""
    match recorded.event:
        case MemoryStored(memory_id=memory_id) as stored:
            if stored.event_type == THESIS_TYPE and stored.metadata.get(THESIS) is True:
                yield OpenThesis(memory_id=memory_id, statement=stored.content, metadata=stored.metadata)
            near = (*stored.related, *stored.also_near)
            yield from _near(reader, memory_id, near, is_embedded=not stored.pending)
        case MemoryRelated(memory_id=memory_id) as decided:
            near = (*decided.related, *decided.also_near)
            yield from _near(reader, memory_id, near, is_embedded=True)
        case (
            MemoryRepeated(memory_id=memory_id, content=content)
            | MemoryEvolved(memory_id=memory_id, wording=content)
        ):
            if said := ripples.said(
                reader.connection, memory_id, recorded.session_id, recorded.position, content
            ):
                yield from _rippled(reader, said, [(memory_id, SAME)])
        case MemoryLinked(memory_id=memory_id, target_id=target_id, edge_type=edge_type, weight=weight) if (
            edge_type == CONTRADICTS
        ):
            theses = tuple(
                Touch(thesis_id=one, side="against", is_echo=False)
                for one in ripples.theses_of(reader.connection, target_id)
            )
            effect = Effect(
                memory_id=target_id, similarity=weight, side="against", is_echo=False, theses=theses
            )
            if origin := ripples.origin(reader.connection, memory_id):
                versions = ripples.versions(reader.connection, (effect,))
                yield RippleMemory(
                    memory_id=memory_id, origin=origin, effects=(effect,), versions=versions, by="hand"
                )
        case MemoryUnlinked(memory_id=memory_id, target_id=target_id, edge_types=edge_types) if (
            CONTRADICTS in edge_types
        ):
            for thesis_id, evidence_id in ripples.denials(reader.connection, memory_id, target_id):
                yield RetractEvidence(
                    thesis_id=thesis_id, evidence_id=evidence_id, why="the contradiction was taken away"
                )
        case _:
            pass


def _near(
    reader: Reader, memory_id: str, related: tuple[Relation, ...], *, is_embedded: bool
) -> Iterator[RippleMemory]:
    decided = {edge.memory_id: edge.similarity for edge in related if edge.similarity > RIPPLE_COSINE}
    if (decided or ripples.are_open(reader.connection)) and (
        said := ripples.stored(reader.connection, memory_id)
    ):
        near = dict(ripples.near(reader.connection, said, is_embedded=is_embedded))
        yield from _rippled(reader, said, (near | decided).items())


def _rippled(reader: Reader, said: ripples.Said, near: Iterable[tuple[str, float]]) -> Iterator[RippleMemory]:
    if effects := ripples.effects(reader.connection, said, near):
        versions = ripples.versions(reader.connection, effects)
        yield RippleMemory(memory_id=said.memory_id, origin=said.origin, effects=effects, versions=versions)
