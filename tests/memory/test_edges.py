"""Decisions on edges."""

import pytest

from omegad.catalog import service
from omegad.log.decision import Decision
from omegad.memory import edges as graph
from omegad.memory.edges import LinkMemories, UnlinkMemories
from omegad.memory.events import EdgeType, MemoryLinked, MemorySuperseded, MemoryUnlinked
from omegad.memory.state import MemoryState
from omegad.runtime.config import Paths
from omegad.runtime.errors import Invalid, NotFound, Refused
from tests.builders import FakeClock, served
from tests.memory.deciding import NOW_US, facts, guard, guards

KNOWN = (guard("a", project="p"), guard("b"))


def link(command: LinkMemories, *known: MemoryState) -> Decision:
    return graph.link(command, guards(*known), NOW_US)


def unlink(edge_type: EdgeType | None, found: tuple[EdgeType, ...], *known: MemoryState) -> Decision:
    return graph.unlink(
        UnlinkMemories(memory_id="a", target_id="b", edge_type=edge_type), found, guards(*known), NOW_US
    )


def test_an_edge_is_drawn_in_the_memorys_project() -> None:
    decision = link(LinkMemories(memory_id="a", target_id="b", edge_type="evolves", weight=0.5), *KNOWN)
    assert facts(decision) == [MemoryLinked(memory_id="a", target_id="b", edge_type="evolves", weight=0.5)]
    assert decision.events[0].project == "p"
    assert facts(link(LinkMemories(memory_id="a", target_id="b"), *KNOWN)) == [
        MemoryLinked(memory_id="a", target_id="b", edge_type="related", weight=1.0)
    ]


@pytest.mark.parametrize(
    ("edge_type", "superseded", "by"), [("supersedes", "b", "a"), ("superseded_by", "a", "b")]
)
def test_an_edge_that_supersedes_supersedes(edge_type: EdgeType, superseded: str, by: str) -> None:
    wanted = LinkMemories(memory_id="a", target_id="b", edge_type=edge_type)
    assert facts(link(wanted, *KNOWN)) == [
        MemorySuperseded(memory_id=superseded, superseded_by=by, reason="linked by hand")
    ]
    with pytest.raises(Refused, match="is superseded"):
        link(wanted, *(guard(one, state="superseded") if one == superseded else guard(one) for one in "ab"))


async def test_a_link_does_what_it_says_until_it_is_taken_back(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        call = it.caller.call
        old, new, other = [
            (await call("memory.store", content=content, project="shop"))["memory_id"]
            for content in ("the ledger is a file", "PostgreSQL has the ledger", "MySQL it is, for orders")
        ]
        await call("memory.link", memory_id=new, target_id=old, edge_type="supersedes")
        replaced = await call("memory.get", memory_id=old)
        assert (replaced["status"], replaced["superseded_by"]) == ("superseded", new)
        ends = {"memory_id": other, "target_id": new}
        await call("memory.link", **ends, edge_type="contradicts", weight=0.5)
        denied = await call("memory.get", memory_id=new)
        assert denied["contradicted_by"] == other
        assert [
            (edge["edge_type"], edge["weight"]) for edge in denied["edges"] if edge["memory_id"] == other
        ] == [("contradicts", 0.5)]
        await call("memory.unlink", **ends)
        assert (await call("memory.get", memory_id=new))["contradicted_by"] is None
        await call("memory.restore", memory_id=old)
        await call("memory.link", memory_id=new, target_id=old, edge_type="superseded_by")
        assert (await call("memory.get", memory_id=new))["superseded_by"] == old
        assert (await call("views.verify"))["ok"]


def test_hidden_memories_can_be_linked() -> None:
    assert facts(
        link(
            LinkMemories(memory_id="a", target_id="b"),
            guard("a", state="superseded"),
            guard("b", state="deleted"),
        )
    )


@pytest.mark.parametrize(("memory_id", "target_id"), [("a", "nobody"), ("nobody", "a")])
def test_an_edge_to_or_from_nothing_is_refused(memory_id: str, target_id: str) -> None:
    with pytest.raises(NotFound, match="nobody"):
        link(LinkMemories(memory_id=memory_id, target_id=target_id), *KNOWN)


def test_an_edge_to_itself_is_refused() -> None:
    with pytest.raises(Refused, match="itself"):
        link(LinkMemories(memory_id="a", target_id="a"), *KNOWN)


def test_the_edges_there_are_can_be_taken_away() -> None:
    decision = unlink(None, ("evolves", "related"), *KNOWN)
    assert facts(decision) == [
        MemoryUnlinked(memory_id="a", target_id="b", edge_types=("evolves", "related"))
    ]
    assert decision.events[0].project == "p"


@pytest.mark.parametrize(
    ("edge_type", "message"), [(None, "no edge from a to b"), ("evolves", "no evolves edge from a to b")]
)
def test_an_edge_that_is_not_there_cannot_be_taken_away(edge_type: EdgeType | None, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        unlink(edge_type, (), *KNOWN)


def test_edges_of_a_memory_that_was_never_stored_cannot_be_taken_away() -> None:
    for known in KNOWN:
        with pytest.raises(NotFound, match="no memory"):
            unlink(None, ("related",), known)


@pytest.mark.parametrize(
    "params", ['"weight": 1.1', '"weight": -0.1', '"edge_type": "likes"', '"target_id": ""']
)
def test_parameters_out_of_bounds_are_refused(params: str) -> None:
    with pytest.raises(Invalid):
        service.parse("memory.link", f'{{"memory_id": "a", "target_id": "b", {params}}}'.encode())
