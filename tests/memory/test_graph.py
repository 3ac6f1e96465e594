"""How memories relate: what edges lead to, hop by hop, and what is most like one."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.catalog import service
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.memory import graph
from omegad.memory.events import MemoryLinked
from omegad.memory.graph import Graph, SimilarAnswer, SimilarMemories, TraverseMemories
from omegad.runtime.errors import Invalid, NotFound
from tests.builders import EMBEDDER, deleted, expired, linked, superseded, vector_of
from tests.shown import DAY_US, NOW_US, Shown


def draw(views: Shown, *edges: tuple[str, str, float]) -> None:
    """Store the memories named and draw the edges between them."""
    for memory_id in dict.fromkeys(end for edge in edges for end in edge[:2]):
        views.store(memory_id)
    for source, target, weight in edges:
        views.show(linked(source, target, weight=weight))


def walk(views: Shown, memory_id: str = "a", now_us: int = NOW_US, **changes: Any) -> Graph:
    return graph.traverse(
        views.connection, TraverseMemories(memory_id=memory_id, **changes), views.moment(now_us)
    )


def hops(found: Graph) -> list[tuple[str, int]]:
    return [(node.memory_id, node.hop) for node in found.nodes]


def walked(found: Graph) -> list[tuple[str, str, int]]:
    return [(edge.source_id, edge.target_id, edge.hop) for edge in found.edges]


CHAIN = (("a", "b", 0.9), ("b", "c", 0.8), ("c", "d", 0.7), ("d", "e", 0.6), ("e", "f", 0.5), ("f", "g", 0.4))


def test_memories_are_reached_hop_by_hop_and_no_further_than_asked(views: Shown) -> None:
    draw(views, *CHAIN)
    assert hops(walk(views)) == [("a", 0), ("b", 1), ("c", 2)]
    assert hops(walk(views, max_hops=5)) == [("a", 0), ("b", 1), ("c", 2), ("d", 3), ("e", 4), ("f", 5)]
    assert walked(walk(views)) == [("a", "b", 1), ("b", "c", 2)]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"max_hops": 6}, "max_hops"),
        ({"max_hops": 0}, "max_hops"),
        ({"min_weight": 1.5}, "min_weight"),
        ({"edge_types": ["x"]}, "x"),
    ],
)
def test_a_traversal_beyond_the_limits_is_not_valid(wrong: dict[str, object], where: str) -> None:
    with pytest.raises(Invalid, match=where):
        service.parse("memory.traverse", msgspec.json.encode({"memory_id": "a", **wrong}))
    assert service.parse("memory.traverse", b'{"memory_id": "a", "max_hops": 5}')


def test_the_shortest_way_counts_and_heavier_edges_come_first(views: Shown) -> None:
    draw(views, ("a", "b", 0.2), ("b", "c", 1.0), ("a", "c", 0.5), ("a", "d", 0.5), ("c", "a", 0.1))
    found = walk(views, max_hops=3)
    assert hops(found) == [("a", 0), ("c", 1), ("d", 1), ("b", 1)]
    assert walked(found) == [("a", "c", 1), ("a", "d", 1), ("a", "b", 1), ("c", "a", 1), ("b", "c", 2)]


def test_edges_are_followed_the_way_that_is_asked_for(views: Shown) -> None:
    draw(views, ("a", "b", 1.0), ("c", "a", 1.0), ("d", "c", 1.0), ("b", "e", 1.0))
    assert hops(walk(views, direction="out")) == [("a", 0), ("b", 1), ("e", 2)]
    assert hops(walk(views, direction="in")) == [("a", 0), ("c", 1), ("d", 2)]
    assert hops(walk(views, direction="both")) == [("a", 0), ("b", 1), ("c", 1), ("e", 2), ("d", 2)]


def test_light_edges_and_edges_of_other_types_are_not_followed(views: Shown) -> None:
    draw(views, ("a", "b", 0.5), ("b", "c", 0.49), ("a", "d", 0.5))
    views.store("e")
    views.show(linked("d", "e", "evolves", 0.9), linked("a", "d", "evolves", 0.6))
    assert hops(walk(views, min_weight=0.5)) == [("a", 0), ("d", 1), ("b", 1), ("e", 2)]
    assert hops(walk(views, edge_types=("evolves",))) == [("a", 0), ("d", 1), ("e", 2)]
    assert {edge.edge_type for edge in walk(views, edge_types=("evolves", "contradicts")).edges} == {
        "evolves"
    }


def test_what_was_superseded_or_is_over_says_so_and_what_was_deleted_is_not_passed_through(
    views: Shown,
) -> None:
    draw(views, ("a", "gone", 1.0), ("gone", "beyond", 1.0), ("a", "old", 1.0), ("a", "done", 1.0))
    views.store("brief", ttl_seconds=60)
    views.store("unasked", on_probation=True)
    views.show(
        linked("a", "brief"), linked("a", "unasked"), superseded("old", "a"), deleted("gone"), expired("done")
    )
    states = {node.memory_id: node.status for node in walk(views).nodes}
    assert states == {
        "a": "active",
        "old": "superseded",
        "done": "expired",
        "brief": "expired",
        "unasked": "probation",
    }
    assert hops(walk(views, "gone"))[0] == ("gone", 0)
    assert ("beyond", 1) in hops(walk(views, "gone"))


def test_a_preview_is_the_beginning_of_a_content(views: Shown) -> None:
    views.store("a", "é" * 300)
    assert walk(views).nodes[0].content == "é" * 200


def test_no_more_memories_than_the_limit_are_told_and_edges_only_between_those(views: Shown) -> None:
    draw(views, ("a", "b", 0.9), ("a", "c", 0.8), ("a", "d", 0.7), ("d", "b", 1.0))
    found = walk(views, limit=3)
    assert (hops(found), walked(found), found.truncated) == (
        [("a", 0), ("b", 1), ("c", 1)],
        [("a", "b", 1), ("a", "c", 1)],
        True,
    )
    assert walk(views, limit=4).truncated is False


def test_the_heaviest_edges_of_a_hop_are_followed_where_there_are_too_many(
    views: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "STEP_EDGES_MAX", 2)
    draw(views, ("a", "b", 0.7), ("a", "c", 0.9), ("a", "d", 0.8))
    found = walk(views)
    assert (hops(found), found.truncated) == ([("a", 0), ("c", 1), ("d", 1)], True)


def test_a_memory_that_was_never_stored_is_not_found(views: Shown) -> None:
    with pytest.raises(NotFound, match="there is no memory a"):
        walk(views)
    with pytest.raises(NotFound, match="there is no memory a"):
        alike(views, "a")


@pytest.mark.parametrize("direction", ["out", "in", "both"])
def test_a_hop_is_answered_from_the_indexes(views: Shown, direction: str) -> None:
    values = {"frontier": '["a"]', "min_weight": 0.0, "types": "[]", "limit": 10}
    plan = views.plan(graph.STEPS[direction], values)
    assert ("SEARCH e USING INDEX sqlite_autoindex_edges_1 (source_id=?)" in plan) == (direction != "in")
    assert ("SEARCH e USING INDEX edges_by_target (target_id=?)" in plan) == (direction != "out")
    assert "SCAN e" not in plan
    assert "SCAN m" not in plan


NAMES = "abcdefgh"
EDGES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda ends: ends[0] != ends[1]),
    max_size=20,
)


@given(edges=EDGES, max_hops=st.integers(1, 5), direction=st.sampled_from(["out", "in", "both"]))
def test_a_hop_is_the_least_number_of_edges_whatever_the_graph(
    edges: list[tuple[str, str]], max_hops: int, direction: str
) -> None:
    views = Shown()
    for name in NAMES:
        views.store(name)
    views.show(*(linked(source, target) for source, target in edges))
    found = walk(views, max_hops=max_hops, direction=direction)
    views.connection.close()
    assert dict(hops(found)) == _distances(edges, max_hops, direction)
    assert [node.hop for node in found.nodes] == sorted(node.hop for node in found.nodes)
    told = [(edge.source_id, edge.target_id) for edge in found.edges]
    assert len(told) == len(set(told))
    assert set(told) <= set(edges)


def _distances(edges: list[tuple[str, str]], max_hops: int, direction: str) -> dict[str, int]:
    """Count the edges of every shortest way by relaxing all edges again and again (Bellman 1958, Ford
    1956).
    """
    forward = edges if direction != "in" else []
    backward = [(target, source) for source, target in edges] if direction != "out" else []
    distance = {"a": 0}
    for _ in NAMES:
        for source, target in (*forward, *backward):
            if source in distance:
                distance[target] = min(distance.get(target, len(NAMES)), distance[source] + 1)
    return {name: hops for name, hops in distance.items() if hops <= max_hops}


def alike(views: Shown, memory_id: str, index: VectorIndexes | None = None, **changes: Any) -> SimilarAnswer:
    query = SimilarMemories(memory_id=memory_id, **changes)
    return graph.similar(
        views.connection,
        query,
        msgspec.structs.replace(views.moment(), index=index or VectorIndexes(VectorIndex(EMBEDDER))),
    )


def ids(found: SimilarAnswer) -> list[str]:
    return [one.memory_id for one in found.results]


def remember(views: Shown, memory_id: str, *texts: str, **changes: Any) -> None:
    views.store(memory_id, " ".join(texts), **changes)
    views.embed(memory_id, *texts)


def test_the_nearest_memories_of_every_project_come_first_without_the_one_asked_about(views: Shown) -> None:
    remember(views, "a", "red green blue black")
    remember(views, "near", "red green blue white", project="q")
    remember(views, "far", "red one two three")
    found = alike(views, "a")
    assert ids(found) == ["near", "far"]
    expected = np.dot(
        *(np.frombuffer(vector_of(text), "<f4") for text in ("red green blue black", "red green blue white"))
    )
    assert found.results[0].similarity == pytest.approx(float(expected), abs=1e-5)
    assert found.degraded is None
    assert ids(alike(views, "a", limit=1)) == ["near"]
    assert ids(alike(views, "a", project="p")) == ["far"]


def test_the_two_nearest_passages_count(views: Shown) -> None:
    remember(views, "a", "apples and pears", "trains and boats")
    remember(views, "by-second", "plums", "trains and boats")
    remember(views, "by-first", "apples and plums")
    found = alike(views, "a")
    assert ids(found) == ["by-second", "by-first"]
    assert found.results[0].similarity == pytest.approx(1.0, abs=1e-5)


def test_hidden_memories_are_not_similar_to_anything_but_have_similar_ones(views: Shown) -> None:
    for name in ("a", "b", "c", "d"):
        remember(views, name, f"red green {name}")
    views.store("brief", "red green brief", ttl_seconds=60)
    views.embed("brief", "red green brief")
    views.show(superseded("b", "a"), deleted("c"))
    assert ids(alike(views, "a")) == ["d"]
    assert set(ids(alike(views, "c"))) == {"a", "d"}


def test_filters_say_which_memories_may_be_similar(views: Shown) -> None:
    remember(views, "a", "red green")
    remember(views, "tagged", "red green blue", tags=("t",))
    remember(views, "rule-tagged", "red green white", auto_tags=("t",))
    remember(views, "decided", "red green black", event_type="decision")
    assert set(ids(alike(views, "a", tags=("t",)))) == {"tagged", "rule-tagged"}
    assert ids(alike(views, "a", event_types=("decision",))) == ["decided"]


def test_vectors_of_another_model_are_compared_among_themselves(views: Shown) -> None:
    for name in ("a", "b"):
        views.store(name, f"red green {name}")
        views.embed(name, f"red green {name}", embedder_id="paper-0")
    remember(views, "newer", "red green a")
    assert ids(alike(views, "a")) == ["b"]


def test_without_vectors_words_decide_and_the_answer_says_so(views: Shown) -> None:
    views.store("a", "red green blue")
    views.store("near", "Red green, black!", project="q")
    views.store("far", "red " + "other words " * 3)
    views.store("none", "entirely else")
    found = alike(views, "a")
    assert (ids(found), found.degraded) == (["near", "far"], "keyword")
    assert found.results[0].similarity == 0.5
    assert ids(alike(views, "a", project="q")) == ["near"]
    views.store("signs", "?!")
    assert alike(views, "signs").results == []


def test_types_between_two_memories_are_found_one_way_only(views: Shown) -> None:
    draw(views, ("a", "b", 1.0))
    views.show(
        linked("a", "b", "evolves"),
        MemoryLinked(memory_id="b", target_id="a", edge_type="contradicts", weight=1.0),
    )
    assert graph.edge_types_between(views.connection, ends=("a", "b"), edge_type=None) == (
        "evolves",
        "related",
    )
    assert graph.edge_types_between(views.connection, ends=("a", "b"), edge_type="evolves") == ("evolves",)
    assert graph.edge_types_between(views.connection, ends=("a", "b"), edge_type="contradicts") == ()


def test_what_is_over_at_the_moment_of_the_question_is_not_similar(views: Shown) -> None:
    remember(views, "a", "red green")
    remember(views, "brief", "red green blue", ttl_seconds=2 * 3_600)
    assert ids(alike(views, "a")) == ["brief"]
    later = views.moment(NOW_US + DAY_US)
    found = graph.similar(
        views.connection,
        SimilarMemories(memory_id="a"),
        msgspec.structs.replace(later, index=VectorIndexes(VectorIndex(EMBEDDER))),
    )
    assert found.results == []
