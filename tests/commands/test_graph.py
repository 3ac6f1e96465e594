"""Decisions on edges."""

import pytest

from omegad.catalog import service
from omegad.log.decision import Decision
from omegad.memory import edges as graph
from omegad.memory.edges import LinkMemories, UnlinkMemories
from omegad.memory.events import EdgeType, MemoryLinked, MemoryUnlinked
from omegad.memory.state import MemoryState
from omegad.runtime.errors import Invalid, NotFound, Refused
from tests.commands.deciding import NOW_US, facts, guard, guards

KNOWN = (guard("a", project="p"), guard("b"))


def link(command: LinkMemories, *known: MemoryState) -> Decision:
    return graph.link(command, guards(*known), NOW_US)


def unlink(edge_type: EdgeType | None, found: tuple[EdgeType, ...], *known: MemoryState) -> Decision:
    return graph.unlink(UnlinkMemories(memory_id="a", target_id="b", edge_type=edge_type), found, guards(*known), NOW_US)


def test_an_edge_is_drawn_in_the_memorys_project() -> None:
    decision = link(LinkMemories(memory_id="a", target_id="b", edge_type="evolves", weight=0.5), *KNOWN)
    assert facts(decision) == [MemoryLinked(memory_id="a", target_id="b", edge_type="evolves", weight=0.5)]
    assert decision.events[0].project == "p"
    assert facts(link(LinkMemories(memory_id="a", target_id="b"), *KNOWN)) == [
        MemoryLinked(memory_id="a", target_id="b", edge_type="related", weight=1.0)
    ]


def test_hidden_memories_can_be_linked() -> None:
    assert facts(link(LinkMemories(memory_id="a", target_id="b"), guard("a", state="superseded"), guard("b", state="deleted")))


@pytest.mark.parametrize(("memory_id", "target_id"), [("a", "nobody"), ("nobody", "a")])
def test_an_edge_to_or_from_nothing_is_refused(memory_id: str, target_id: str) -> None:
    with pytest.raises(NotFound, match="nobody"):
        link(LinkMemories(memory_id=memory_id, target_id=target_id), *KNOWN)


def test_an_edge_to_itself_is_refused() -> None:
    with pytest.raises(Refused, match="itself"):
        link(LinkMemories(memory_id="a", target_id="a"), *KNOWN)


def test_the_edges_there_are_can_be_taken_away() -> None:
    decision = unlink(None, ("evolves", "related"), *KNOWN)
    assert facts(decision) == [MemoryUnlinked(memory_id="a", target_id="b", edge_types=("evolves", "related"))]
    assert decision.events[0].project == "p"


@pytest.mark.parametrize(("edge_type", "message"), [(None, "no edge from a to b"), ("evolves", "no evolves edge from a to b")])
def test_an_edge_that_is_not_there_cannot_be_taken_away(edge_type: EdgeType | None, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        unlink(edge_type, (), *KNOWN)


def test_edges_of_a_memory_that_was_never_stored_cannot_be_taken_away() -> None:
    for known in KNOWN:
        with pytest.raises(NotFound, match="no memory"):
            unlink(None, ("related",), known)


@pytest.mark.parametrize("params", ['"weight": 1.1', '"weight": -0.1', '"edge_type": "likes"', '"target_id": ""'])
def test_parameters_out_of_bounds_are_refused(params: str) -> None:
    with pytest.raises(Invalid):
        service.parse("memory.link", f'{{"memory_id": "a", "target_id": "b", {params}}}'.encode())
