"""The nearest neighbours that are kept in memory: the same as those of the vectors there are, while
memories come, go and change.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omegad.index import vector_index
from omegad.index.columns import Selection
from omegad.index.vector_index import VectorIndex
from projections import memories as memories_view
from projections import vectors as vectors_view
from tests.builders import (
    DIMENSIONS,
    EMBEDDER,
    START_US,
    deleted,
    edited,
    embedded,
    evolved,
    expired,
    recorded,
    repeated,
    restored,
    rows,
    stored,
    superseded,
    vector_of,
)
from tests.searching import DAY_US, Searched

ANY = Selection(named={}, now_us=START_US)


@pytest.fixture(params=["kept whole", "read from the file"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the vectors of a test are kept whole, or only as bits, as those beyond `EXACT_MAX` are."""
    if request.param == "read from the file":
        monkeypatch.setattr(vector_index, "EXACT_MAX", 1)
        monkeypatch.setattr(vector_index, "RESCORED", 16)
    return str(request.param)


def index_of(views: Searched) -> VectorIndex:
    found = views.index.of(EMBEDDER)
    assert found is not None
    return found


def nearest(views: Searched, text: str, limit: int = 10, wanted: Selection = ANY) -> dict[int, float]:
    index_of(views).sync(views.connection)
    return dict(index_of(views).nearest(views.connection, vector_of(text), wanted, limit))


def brute_force(views: Searched, vector: bytes, limit: int) -> list[tuple[int, float]]:
    sql = """
    SELECT m.id, v.vector FROM memory_vectors AS v JOIN memories AS m ON m.node_id = v.memory_id
      WHERE m.status = 'active' AND v.embedder_id = ?
    """
    best: dict[int, float] = {}
    for row, other in rows(views.connection, sql, EMBEDDER):
        cosine = float(np.frombuffer(other, "<f4").astype(float) @ np.frombuffer(vector, "<f4").astype(float))
        best[row] = max(cosine, best.get(row, -1.0))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def test_beyond_what_is_rescored_the_nearest_are_still_found(views: Searched) -> None:
    random = np.random.default_rng(6)
    words = [f"word{number}" for number in range(400)]
    for number in range(1_200):
        views.put(f"m{number}", " ".join(random.choice(words, 8)))
    index_of(views).sync(views.connection)
    hits = 0
    for _ in range(10):
        vector = vector_of(" ".join(random.choice(words, 8)))
        found = index_of(views).nearest(views.connection, vector, ANY, 5)
        hits += len({row for row, _ in found} & {row for row, _ in brute_force(views, vector, 5)})
    assert hits >= 48


def test_an_index_that_is_not_whole_takes_a_tenth_at_most_and_finds_the_same(views: Searched) -> None:
    for number in range(1_000):
        views.put(f"m{number}", f"alpha {number}", f"beta {number % 7}")
    whole, small = (VectorIndex(EMBEDDER, is_whole=is_whole) for is_whole in (True, False))
    found = []
    for index in (whole, small):
        index.sync(views.connection)
        found.append(index.nearest(views.connection, vector_of("alpha 5 beta 3"), ANY, 50))
    assert found[0] == found[1]
    assert len(found[0]) == 50
    assert small.size_bytes * 10 < whole.size_bytes


def test_of_what_is_beyond_those_kept_whole_the_signs_are_read_and_say_the_same(
    views: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(90):
        views.put(f"m{number}", f"alpha {number}", f"beta {number % 7}")
    found, sizes = [], []
    for whole, of, chunk in ((16_384, 65_536, 1_024), (50, 180, 7), (50, 179, 7)):
        monkeypatch.setattr(vector_index, "EXACT_MAX", whole)
        monkeypatch.setattr(vector_index, "EXACT_OF", of)
        monkeypatch.setattr(vector_index, "RESCORED", 30)
        monkeypatch.setattr(vector_index, "CHUNK", chunk)
        monkeypatch.setattr(vector_index, "SIGNS_CHUNK", chunk)
        index = VectorIndex(EMBEDDER)
        index.sync(views.connection)
        assert len(index) == 180
        found.append(index.nearest(views.connection, vector_of("alpha 5 beta 3"), ANY, 20))
        sizes.append(index.size_bytes)
    assert found[0] == found[1] == found[2]
    assert sizes[1] - sizes[2] >= 50 * vector_index.VECTOR_BYTES  # of so many none is kept whole


def test_what_expires_is_hidden_at_its_moment_and_what_is_said_again_lives_on(views: Searched) -> None:
    row = views.put("a", "alpha", at=START_US, ttl_seconds=10)
    over = Selection(named={}, now_us=START_US + 10_000_000)
    assert row in nearest(views, "alpha", wanted=Selection(named={}, now_us=START_US + 9_999_999))
    assert row not in nearest(views, "alpha", wanted=over)
    views.show(repeated("a"), occurred_at=START_US + 5_000_000)
    assert row in nearest(views, "alpha", wanted=over)
    views.show(expired("a"))
    views.show(restored("a", is_permanent=True))
    assert row in nearest(views, "alpha", wanted=Selection(named={}, now_us=START_US + 900 * DAY_US))


def test_vectors_that_come_late_and_memories_whose_rows_come_after_their_vectors_are_found(
    views: Searched,
) -> None:
    """One view may lag behind another for a while, as when one alone is built again."""
    early, later = views.show(stored("x", "alpha")), views.put("y", "beta")
    assert list(nearest(views, "alpha")) == [later]
    views.embed("x", "alpha")
    assert list(nearest(views, "alpha")) == [early, later]
    first, second = recorded(stored("a", "alpha"), 11), recorded(stored("b", "alpha"), 13)
    vectors = [
        recorded(embedded(name, "alpha", embedder_id="other"), place)
        for name, place in (("b", 14), ("a", 15))
    ]
    views.apply(vectors_view, *vectors)
    known = VectorIndex("other")
    for memory, found in ((first, [11]), (second, [11, 13])):
        views.apply(memories_view, memory)
        known.sync(views.connection)
        assert [row for row, _ in known.nearest(views.connection, vector_of("alpha"), ANY, 5)] == found


def test_what_is_asked_by_row_is_answered_by_row(views: Searched, kept: str) -> None:
    several, without, hidden = (
        views.put("a", "alpha", "beta"),
        views.show(stored("c", "gamma")),
        views.put("b", "beta"),
    )
    views.show(deleted("b"))
    nearest(views, "alpha")
    found = index_of(views).vectors_of(views.connection, [without, several, hidden])
    assert found.shape == (3, DIMENSIONS), kept
    assert found[1] == pytest.approx(np.frombuffer(vector_of("alpha"), "<f4")), "its first passage"
    assert not found[[0, 2]].any()
    cosines = index_of(views).cosines_of(views.connection, vector_of("beta"), [several, without, hidden])
    assert cosines == pytest.approx({several: 1.0, hidden: 1.0}), "its nearest passage"
    assert index_of(views).vectors_of(views.connection, []).shape == (0, DIMENSIONS)
    assert index_of(views).cosines_of(views.connection, vector_of("beta"), []) == {}


def test_what_is_selected_is_told_by_row_and_so_is_what_has_no_vector(views: Searched) -> None:
    rows_of = {
        name: views.put(name, "alpha", "another passage", project=name[0])
        for name in ("p1", "q1", "p2", "p3")
    }
    without = views.store("p4", "alpha")
    views.show(deleted("p3"))
    assert len(index_of(views)) == 0
    index_of(views).sync(views.connection)
    assert len(index_of(views)) == 8
    assert VectorIndex("another").nearest(views.connection, vector_of("alpha"), ANY, 5) == []
    of_p = Selection(named={"project": frozenset("p")}, now_us=START_US)
    assert index_of(views).selected(ANY).rows.tolist() == [rows_of["p1"], rows_of["q1"], rows_of["p2"]]
    assert index_of(views).selected(of_p).rows.tolist() == [rows_of["p1"], rows_of["p2"]]
    assert index_of(views).selected(of_p).count == 2
    asked = np.array([rows_of["p3"], rows_of["p2"], without, rows_of["q1"], rows_of["p1"], 10**6])
    assert index_of(views).selected(of_p).holds(asked).tolist() == [False, True, False, False, True, False]
    assert VectorIndex("another").selected(ANY).count == 0
    assert not VectorIndex("another").selected(ANY).holds(asked).any()
    assert list(nearest(views, "alpha", wanted=of_p)) == [
        rows_of["p1"],
        rows_of["p2"],
    ], "equals are in order of their rows"
    assert list(
        nearest(
            views, "alpha", wanted=msgspec.structs.replace(of_p, among=frozenset([rows_of["p2"], without]))
        )
    ) == [rows_of["p2"]]
    asked = np.array([*rows_of.values(), without], np.int64)
    assert index_of(views).without(asked).tolist() == [without]
    assert index_of(views).without(asked[:0]).tolist() == []


CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "edit", "late edit", "hide", "restore", "look"]), st.integers(0, 5)),
    max_size=30,
)


@settings(max_examples=60)
@given(CHANGES, st.sampled_from([1, 3, 1_000]), st.sampled_from([2, 1_000]))
def test_after_any_changes_it_equals_brute_force(
    changes: Sequence[tuple[str, int]], exact_max: int, chunk: int
) -> None:
    views, texts = Searched(), ["alpha beta", "beta gamma", "gamma", "delta alpha", "epsilon", "beta"]
    status: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_index, "EXACT_MAX", exact_max)
        patch.setattr(vector_index, "CHUNK", chunk)
        for number, (kind, which) in enumerate(changes):
            name, text = f"m{which}", texts[(number + which) % len(texts)]
            state = status.get(name)
            if kind == "put" and state is None:
                status[name] = "active"
                views.put(name, text, *texts[:which])
            elif kind in {"edit", "late edit"} and state == "active":
                views.show((edited, evolved)[which % 2](name, text))
                if kind == "edit":
                    views.embed(name, text)
            elif kind == "hide" and state == "active":
                status[name] = "hidden"
                views.show((deleted(name), superseded(name, "other"), expired(name))[which % 3])
            elif kind == "restore" and state == "hidden":
                status[name] = "active"
                views.show(restored(name))
            elif kind == "look":
                nearest(views, text)
        for text in texts:
            assert nearest(views, text) == pytest.approx(
                dict(brute_force(views, vector_of(text), 10)), abs=1e-6
            )
    views.connection.close()
