"""The nearest neighbours that are kept in memory: the same as those of the vectors there are, while memories come, go and change."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import projections
from omegad.events.fact import Recorded
from omegad.queries.search import mirror
from omegad.queries.search.columns import Selection
from omegad.queries.search.mirror import Mirror
from omegad.views.contract import Embedding
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
from tests.queries.searching import DAY_US, Searched

ANY = Selection(named={}, now_us=START_US)


@pytest.fixture
def views() -> Iterator[Searched]:
    made = Searched()
    yield made
    made.connection.close()


@pytest.fixture(params=["kept whole", "read from the file"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the vectors of a test are kept whole, or only as bits, as those beyond `EXACT_MAX` are."""
    if request.param == "read from the file":
        monkeypatch.setattr(mirror, "EXACT_MAX", 1)
        monkeypatch.setattr(mirror, "RESCORED", 16)
    return str(request.param)


def nearest(views: Searched, text: str, limit: int = 10, wanted: Selection = ANY) -> dict[int, float]:
    return dict(views.mirror.nearest(views.connection, vector_of(text), wanted, limit))


def brute_force(views: Searched, vector: bytes, limit: int) -> list[tuple[int, float]]:
    sql = """
    SELECT m.id, v.vector FROM memory_vectors AS v JOIN memories AS m ON m.node_id = v.memory_id WHERE m.status = 'active' AND v.embedder_id = ?
    """
    best: dict[int, float] = {}
    for row, other in rows(views.connection, sql, EMBEDDER):
        cosine = float(np.frombuffer(other, "<f4").astype(float) @ np.frombuffer(vector, "<f4").astype(float))
        best[row] = max(cosine, best.get(row, -1.0))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def test_it_equals_brute_force_while_memories_come_and_go(views: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "CHUNK", 16)
    random = np.random.default_rng(5)
    words = [f"word{number}" for number in range(60)]
    alive: list[str] = []
    for round_number in range(6):
        for number in range(30):
            name = f"m{round_number}-{number}"
            views.put(name, *(" ".join(random.choice(words, 6)) for _ in range(1 + number % 3)))
            alive.append(name)
        for name in random.choice(alive, 8, replace=False):
            views.show(deleted(str(name)))
        for _ in range(3):
            vector = vector_of(" ".join(random.choice(words, 6)))
            found = views.mirror.nearest(views.connection, vector, ANY, 10)
            wanted = brute_force(views, vector, 10)
            assert [row for row, _ in found] == [row for row, _ in wanted]
            assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in wanted])
    assert len(views.mirror) == rows(views.connection, "SELECT count(*) FROM memory_vectors")[0][0]


def test_beyond_what_is_rescored_the_nearest_are_still_found(views: Searched) -> None:
    random = np.random.default_rng(6)
    words = [f"word{number}" for number in range(400)]
    for number in range(1_200):
        views.put(f"m{number}", " ".join(random.choice(words, 8)))
    hits = 0
    for _ in range(10):
        vector = vector_of(" ".join(random.choice(words, 8)))
        found = views.mirror.nearest(views.connection, vector, ANY, 5)
        hits += len({row for row, _ in found} & {row for row, _ in brute_force(views, vector, 5)})
    assert hits >= 48


def test_equal_distances_are_in_order_of_their_rows(views: Searched) -> None:
    in_order = [views.put(f"m{number}", "alpha") for number in range(5)]
    assert list(nearest(views, "alpha")) == in_order


def test_it_holds_one_models_vectors(views: Searched) -> None:
    views.put("a", "alpha")
    assert Mirror("another").nearest(views.connection, vector_of("alpha"), ANY, 5) == []


@pytest.mark.parametrize("seen", [True, False], ids=["after a search", "before any search"])
@pytest.mark.parametrize("reworded", [edited, evolved])
def test_nothing_of_what_a_memory_said_before_is_near_any_more(views: Searched, kept: str, reworded: Any, *, seen: bool) -> None:
    first, row = views.put("other", "gamma"), views.put("a", "alpha alpha")
    if seen:
        assert next(iter(nearest(views, "alpha alpha"))) == row
    views.show(reworded("a", "beta"))
    assert row not in nearest(views, "alpha alpha"), kept
    views.embed("a", "beta")
    found = nearest(views, "alpha alpha")
    assert found.keys() == {first, row}
    assert found[row] == pytest.approx(float(np.frombuffer(vector_of("alpha alpha"), "<f4") @ np.frombuffer(vector_of("beta"), "<f4")), abs=1e-6)
    assert nearest(views, "beta")[row] == pytest.approx(1.0)


def test_a_memory_is_as_near_as_what_it_says_now_for_whoever_asks_by_its_row(views: Searched, kept: str) -> None:
    views.put("other", "gamma")
    row = views.put("a", "alpha")
    nearest(views, "alpha")
    views.show(edited("a", "beta"))
    nearest(views, "alpha")
    assert views.mirror.cosines_of(views.connection, vector_of("alpha"), [row]) == {}, kept
    views.embed("a", "beta")
    nearest(views, "alpha")
    cosine = views.mirror.cosines_of(views.connection, vector_of("beta"), [row])[row]
    assert cosine == pytest.approx(1.0)
    assert views.mirror.cosines_of(views.connection, vector_of("alpha"), [row])[row] < 0.5
    assert views.mirror.vectors_of(views.connection, [row])[0] == pytest.approx(np.frombuffer(vector_of("beta"), "<f4"))


def test_what_is_hidden_is_near_nobody_and_restored_it_is_again(views: Searched, kept: str) -> None:
    row = views.put("a", "alpha")
    views.put("b", "beta")
    for hide in (deleted("a"), superseded("a", "b"), expired("a")):
        assert row in nearest(views, "alpha")
        views.show(hide)
        assert row not in nearest(views, "alpha"), (hide, kept)
        views.show(restored("a"))
    assert nearest(views, "alpha")[row] == pytest.approx(1.0)


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


def test_what_was_edited_while_hidden_comes_back_with_what_it_says_now(views: Searched, kept: str) -> None:
    row = views.put("a", "alpha")
    nearest(views, "alpha")
    views.show(edited("a", "beta"))
    views.embed("a", "beta")
    views.show(deleted("a"))
    assert row not in nearest(views, "beta")
    views.show(restored("a"))
    assert nearest(views, "beta")[row] == pytest.approx(1.0), kept
    assert nearest(views, "alpha")[row] < 0.5


def test_vectors_that_come_late_are_found(views: Searched) -> None:
    early = views.show(stored("a", "alpha"))
    later = views.put("b", "beta")
    assert list(nearest(views, "alpha")) == [later]
    views.embed("a", "alpha")
    assert next(iter(nearest(views, "alpha"))) == early


def test_a_memory_whose_row_comes_after_a_later_vector_is_found_too(views: Searched) -> None:
    """One view may lag behind another for a while, as when one alone is built again."""
    first, second = recorded(stored("a", "alpha"), 1), recorded(stored("b", "alpha"), 3)
    early = recorded(embedded("b", "alpha", embedder_id="other"), 4)
    late = recorded(embedded("a", "alpha", embedder_id="other"), 5)
    known = Mirror("other")
    _show(views, projections.vectors, early, late)
    _show(views, projections.memories, first)
    assert [row for row, _ in known.nearest(views.connection, vector_of("alpha"), ANY, 5)] == [1]
    _show(views, projections.memories, second)
    assert [row for row, _ in known.nearest(views.connection, vector_of("alpha"), ANY, 5)] == [1, 3]


def _show(views: Searched, projection: Any, *events: Recorded) -> None:
    for one in events:
        for sql, values in projection.project(one):
            views.connection.execute(sql, [vector_of("alpha") if isinstance(value, Embedding) else value for value in values])


def test_vectors_of_memories_are_in_the_order_asked_for_with_noughts_where_there_are_none(views: Searched, kept: str) -> None:
    first, second = views.put("a", "alpha", "another passage"), views.put("b", "beta")
    without = views.show(stored("c", "gamma"))
    nearest(views, "alpha")
    found = views.mirror.vectors_of(views.connection, [second, without, first])
    assert found.shape == (3, DIMENSIONS), kept
    assert found[0] == pytest.approx(np.frombuffer(vector_of("beta"), "<f4"))
    assert not found[1].any()
    assert found[2] == pytest.approx(np.frombuffer(vector_of("alpha"), "<f4"))
    assert views.mirror.vectors_of(views.connection, []).shape == (0, DIMENSIONS)


def test_cosines_by_row_are_those_of_the_nearest_passage_and_of_what_has_one(views: Searched, kept: str) -> None:
    several, without, hidden = views.put("a", "alpha", "beta"), views.show(stored("b", "x")), views.put("c", "beta")
    views.show(deleted("c"))
    nearest(views, "beta")
    found = views.mirror.cosines_of(views.connection, vector_of("beta"), [several, without, hidden])
    assert found == pytest.approx({several: 1.0, hidden: 1.0}), kept
    assert views.mirror.cosines_of(views.connection, vector_of("beta"), []) == {}


def test_its_size_is_bounded_and_told(views: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "EXACT_MAX", 64)
    sizes = []
    for number in range(1_600):
        views.put(f"m{number}", f"alpha {number}")
        if (number + 1) % 400 == 0:
            nearest(views, "alpha")
            sizes.append(views.mirror.size_bytes)
    assert len(views.mirror) == 1_600
    arrays = [value for value in vars(views.mirror).values() if isinstance(value, np.ndarray)]
    assert sizes[-1] >= sum(array.nbytes for array in arrays)
    assert sum(len(array) * DIMENSIONS * 4 for array in arrays if array.dtype == np.float32) <= 1_024 * DIMENSIONS * 4
    assert sizes[-1] < 1_024 * DIMENSIONS * 4 + 2 * 1_600 * 200, "what is not kept whole takes less than 200 bytes, with room to grow"


CHANGES = st.lists(st.tuples(st.sampled_from(["put", "edit", "late edit", "hide", "restore", "look"]), st.integers(0, 5)), max_size=30)


@settings(max_examples=60)
@given(CHANGES, st.sampled_from([1, 3, 1_000]))
def test_after_any_changes_it_equals_brute_force(changes: Sequence[tuple[str, int]], exact_max: int) -> None:
    views, texts = Searched(), ["alpha beta", "beta gamma", "gamma", "delta alpha", "epsilon", "beta"]
    status: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mirror, "EXACT_MAX", exact_max)
        for number, (kind, which) in enumerate(changes):
            name, text = f"m{which}", texts[(number + which) % len(texts)]
            state = status.get(name)
            if kind == "put" and state is None:
                status[name] = "active"
                views.put(name, text)
            elif kind in {"edit", "late edit"} and state == "active":
                views.show(edited(name, text))
                if kind == "edit":
                    views.embed(name, text)
            elif kind == "hide" and state == "active":
                status[name] = "hidden"
                views.show(deleted(name))
            elif kind == "restore" and state == "hidden":
                status[name] = "active"
                views.show(restored(name))
            elif kind == "look":
                nearest(views, text)
        for text in texts:
            assert nearest(views, text) == pytest.approx(dict(brute_force(views, vector_of(text), 10)), abs=1e-6)
    views.connection.close()
