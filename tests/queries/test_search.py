"""Reading memories from the views: search, filters, neighbours, lists; over views that real events have filled."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import projections
from omegad.embedding.cache import text_hash
from omegad.errors import Invalid, NotFound
from omegad.events.fact import Fact, Recorded
from omegad.queries import memory, mirror, search, words
from omegad.queries.columns import Selection
from omegad.queries.filters import Filters, where
from omegad.queries.memory import GetMemory, ListMemories
from omegad.queries.mirror import Mirror
from omegad.queries.neighbours import neighbours
from omegad.queries.search import QueryMemory, Result
from omegad.storage.transaction import run_script
from omegad.views.contract import Embedding
from tests.builders import (
    EMBEDDER,
    START_US,
    deleted,
    embedded,
    open_in_memory,
    recorded,
    related,
    relations,
    repeated,
    rows,
    stored,
    superseded,
    vector_of,
)

DAY_US = 86_400_000_000
ANY = Selection(named={}, now_us=START_US)


class Views:
    """The views as a file of them has them, filled with events."""

    def __init__(self) -> None:
        self.connection = open_in_memory()
        self._vectors: dict[str, bytes] = {}
        self.position = 0
        for projection in projections.ALL:
            run_script(self.connection, projection.SCHEMA)

    def show(self, event: Fact, **changes: Any) -> int:
        self.position += 1
        one = recorded(event, self.position, **changes)
        for projection in projections.ALL:
            if isinstance(event, projection.EVENTS):
                for sql, values in projection.project(one):
                    self.connection.execute(sql, [self._vectors[v.text_hash] if isinstance(v, Embedding) else v for v in values])
        return self.position

    def store(
        self, memory_id: str, *texts: str, project: str | None = "p", at: int | None = None, session_id: str | None = "s", **changes: Any
    ) -> int:
        """Store a memory with one passage for each text; return its row."""
        self._vectors |= {text_hash(text): vector_of(text) for text in texts}
        where_from: dict[str, Any] = {"project": project, "session_id": session_id}
        where_from |= {} if at is None else {"occurred_at": at}
        row = self.show(stored(memory_id, " ".join(texts), **changes), **where_from)
        self.show(embedded(memory_id, *texts), **where_from)
        return row


@pytest.fixture
def views() -> Iterator[Views]:
    made = Views()
    yield made
    made.connection.close()


def find(views: Views, text: str, now_us: int = START_US + DAY_US, **changes: Any) -> list[Result]:
    query = QueryMemory(text=text, **changes)
    vector = None if query.mode in {"keyword", "phrase"} else vector_of(text)
    return search.search(views.connection, query, vector, Mirror(EMBEDDER), now_us)


def ids(found: Sequence[Any]) -> list[str]:
    return [one.memory_id for one in found]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_what_shares_more_with_the_question_comes_first(views: Views, mode: str) -> None:
    views.store("far", "bread is baked at night")
    views.store("near", "the build needs python")
    views.store("nearest", "which python does the build need: the build needs python 3.12")
    found = find(views, "which python does the build need", mode=mode)
    assert ids(found)[:2] == ["nearest", "near"]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_words_alone_find_what_meaning_misses_and_the_other_way_round(views: Views) -> None:
    views.store("a", "alpha beta gamma")
    views.store("b", "delta epsilon")
    assert ids(find(views, "delta", mode="keyword")) == ["b"]
    assert ids(find(views, "zeta", mode="keyword")) == []
    assert set(ids(find(views, "zeta", mode="semantic"))) <= {"a", "b"}


def test_a_phrase_is_found_only_in_a_row(views: Views) -> None:
    views.store("a", "the quick brown fox")
    views.store("b", "brown is the quick fox")
    assert ids(find(views, "quick brown", mode="phrase")) == ["a"]


def test_explanations_add_up(views: Views) -> None:
    views.store("a", "alpha beta")
    views.store("b", "alpha gamma")
    for one in find(views, "alpha beta", explain=True):
        assert one.explanation
        assert one.score == pytest.approx(one.explanation.vector + one.explanation.text)
        assert one.explanation.cosine is not None
    assert all(one.explanation is None for one in find(views, "alpha beta"))


def test_what_was_hidden_or_has_expired_is_not_found(views: Views) -> None:
    for name in ("kept", "deleted", "superseded", "expired", "lasting"):
        views.store(name, f"alpha {name}", at=START_US, ttl_seconds={"expired": 10, "lasting": 11}.get(name))
    views.show(deleted("deleted"))
    views.show(superseded("superseded", "kept"))
    for mode in ("hybrid", "semantic", "keyword"):
        assert set(ids(find(views, "alpha", mode=mode, now_us=START_US + 10_000_000))) == {"kept", "lasting"}, mode
    assert set(ids(find(views, "alpha", now_us=START_US + 9_999_999))) == {"kept", "lasting", "expired"}


def test_what_is_hidden_later_is_not_found_by_a_mirror_that_knew_it(views: Views) -> None:
    known = Mirror(EMBEDDER)
    row = views.store("a", "alpha")
    assert [found for found, _ in known.nearest(views.connection, vector_of("alpha"), ANY, 5)] == [row]
    views.show(deleted("a"))
    assert known.nearest(views.connection, vector_of("alpha"), ANY, 5) == []


def test_a_very_long_time_to_live_is_for_ever(views: Views) -> None:
    views.store("a", "alpha", ttl_seconds=10**13)
    assert ids(find(views, "alpha", mode="keyword")) == ["a"]
    assert ids(find(views, "alpha")) == ["a"]


FILTERS: list[dict[str, Any]] = [
    {},
    {"project": "p"},
    {"project": "nowhere"},
    {"entity_id": "e"},
    {"session_id": "s2"},
    {"event_types": ("decision",)},
    {"event_types": ("decision", "memory")},
    {"event_types": ("never used",)},
    {"tags": ("a",)},
    {"tags": ("a", "c")},
    {"tags": ("none",)},
    {"since": "2026-01-02"},
    {"until": "2026-01-02"},
    {"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"},
    {"project": "p", "event_types": ("memory",), "tags": ("b",)},
]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_a_filter_means_the_same_to_words_to_vectors_and_to_lists(views: Views, filters: dict[str, Any]) -> None:
    known: dict[str, dict[str, Any]] = {}
    for number in range(24):
        one: dict[str, Any] = {
            "project": (None, "p", "q")[number % 3],
            "entity_id": ("e", None)[number % 2],
            "session_id": ("s1", "s2", None)[number % 3],
            "event_type": ("memory", "decision", "lesson_learned")[number // 3 % 3],
            "tags": (("a", "b"), ("b",), ("c",), ())[number % 4],
            "at": START_US + (number % 3) * DAY_US,
        }
        known[f"m{number}"] = one
        views.store(f"m{number}", f"alpha {number}", **one)

    def passes(one: dict[str, Any]) -> bool:
        day = f"2026-01-0{1 + (one['at'] - START_US) // DAY_US}"
        return (
            all(filters.get(name) in {None, one[name]} for name in ("project", "entity_id", "session_id"))
            and one["event_type"] in filters.get("event_types", (one["event_type"],))
            and (not filters.get("tags") or bool(set(filters["tags"]) & set(one["tags"])))
            and filters.get("since", "")[:10] <= day <= filters.get("until", "9999")[:10]
        )

    wanted = {name for name, one in known.items() if passes(one)}
    now = START_US + 9 * DAY_US
    for mode in ("hybrid", "semantic", "keyword"):
        assert set(ids(find(views, "alpha", now, mode=mode, limit=100, **filters))) == wanted, mode
    assert set(ids(memory.list_memories(views.connection, ListMemories(limit=100, **filters), 0, now).memories)) == wanted


def test_pages_of_a_list_are_all_of_it_newest_first(views: Views) -> None:
    for number in range(23):
        views.store(f"m{number}", f"alpha {number}")
    views.show(deleted("m20"))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.list_memories(views.connection, ListMemories(limit=5, cursor=cursor), 7, START_US)
        assert page.position == 7
        seen += ids(page.memories)
        if (cursor := page.next_cursor) is None:
            break
        views.store(f"late-{len(seen)}", "new ones do not move the pages")
    assert seen == [f"m{number}" for number in range(22, -1, -1) if number != 20]


def test_a_page_that_ends_with_the_list_has_no_next(views: Views) -> None:
    for number in range(5):
        views.store(f"m{number}", "alpha")
    assert memory.list_memories(views.connection, ListMemories(limit=5), 0, START_US).next_cursor is None
    assert memory.list_memories(views.connection, ListMemories(limit=4), 0, START_US).next_cursor is not None


@given(st.text() | st.sampled_from(["²", "٣", "-1", "1e3", " 1", "9" * 30, "9" * 5_000, ""]))
def test_any_text_is_a_cursor_or_refused_as_none(text: str) -> None:
    with suppress(Invalid):
        assert 0 <= Filters().before(text) <= 2**62


@pytest.mark.parametrize("since", ["yesterday", "2026-13-01", "2026-01-01T00:00:00", "", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_is_none_is_refused(since: str) -> None:
    for name in ("since", "until"):
        with pytest.raises(Invalid, match=name):
            where(msgspec.convert({"method": "Filters", name: since}, Filters), START_US)


def test_a_memory_is_shown_with_its_edges_strongest_first(views: Views) -> None:
    views.store("a", "alpha", metadata={"k": [1]}, tags=("t",), related=relations(("b", 0.5), ("c", 0.9)))
    views.show(related("d", ("a", 0.7)))
    views.show(repeated("a"))
    found = msgspec.json.decode(msgspec.json.encode(memory.get(views.connection, GetMemory(memory_id="a"), 9)))
    assert [(edge["memory_id"], edge["direction"], edge["weight"]) for edge in found["edges"]] == [
        ("c", "out", 0.9),
        ("d", "in", 0.7),
        ("b", "out", 0.5),
    ]
    assert (found["position"], found["repeated"], found["status"], found["content"]) == (9, 1, "active", "alpha")


def test_a_hidden_memory_keeps_answering_to_its_id(views: Views) -> None:
    views.store("a", "alpha")
    views.show(superseded("a", "b"))
    found = memory.get(views.connection, GetMemory(memory_id="a"), 0)
    assert (found.status, found.superseded_by) == ("superseded", "b")
    with pytest.raises(NotFound, match="no memory nobody"):
        memory.get(views.connection, GetMemory(memory_id="nobody"), 0)


def test_neighbours_are_the_nearest_active_memories_of_the_project(views: Views) -> None:
    for number in range(15):
        views.store(f"m{number}", f"alpha beta {'gamma ' * number}".strip())
    views.store("elsewhere", "alpha beta", project="q")
    views.store("nowhere", "alpha beta", project=None)
    views.store("gone", "alpha beta")
    views.show(deleted("gone"))

    def look(project: str | None, leave_out: str = "", *, words: bool = False) -> list[str]:
        searched = None if words else (Mirror(EMBEDDER), vector_of("alpha beta"))
        return ids(neighbours(views.connection, "alpha beta", project, searched, now_us=START_US, leave_out=leave_out))

    assert look("p")[:3] == ["m0", "m1", "m2"]
    assert len(look("p")) == 10
    assert look("p", "m0")[0] == "m1"
    assert len(look("p", "m0")) == 10
    assert look("q") == ["elsewhere"]
    assert look(None) == ["nowhere"]
    assert look(None, words=True) == ["nowhere"]
    assert "gone" not in look("p", words=True)
    assert len(look("p", "m0", words=True)) == 10


def brute_force(views: Views, vector: bytes, limit: int) -> list[tuple[int, float]]:
    sql = "SELECT m.id, v.vector FROM memory_vectors AS v JOIN memories AS m ON m.node_id = v.memory_id WHERE m.status = 'active'"
    best: dict[int, float] = {}
    for row, other in rows(views.connection, sql):
        cosine = float(np.frombuffer(other, "<f4").astype(float) @ np.frombuffer(vector, "<f4").astype(float))
        best[row] = max(cosine, best.get(row, -1.0))
    return sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


def test_the_mirror_equals_brute_force_while_memories_come_and_go(views: Views, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "CHUNK", 16)
    random = np.random.default_rng(5)
    words = [f"word{number}" for number in range(60)]
    known = Mirror(EMBEDDER)
    alive: list[str] = []
    for round_number in range(6):
        for number in range(30):
            name = f"m{round_number}-{number}"
            passages = [" ".join(random.choice(words, 6)) for _ in range(1 + number % 3)]
            views.store(name, *passages)
            alive.append(name)
        for name in random.choice(alive, 8, replace=False):
            views.show(deleted(str(name)))
        for _ in range(3):
            vector = vector_of(" ".join(random.choice(words, 6)))
            found = known.nearest(views.connection, vector, ANY, 10)
            wanted = brute_force(views, vector, 10)
            assert [row for row, _ in found] == [row for row, _ in wanted]
            assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in wanted])
    assert len(known) == rows(views.connection, "SELECT count(*) FROM memory_vectors")[0][0]
    assert known.size_bytes > 48 * len(known)


def test_beyond_what_is_rescored_the_nearest_are_still_found(views: Views) -> None:
    random = np.random.default_rng(6)
    words = [f"word{number}" for number in range(400)]
    for number in range(1_200):
        views.store(f"m{number}", " ".join(random.choice(words, 8)))
    known = Mirror(EMBEDDER)
    hits = 0
    for _ in range(10):
        vector = vector_of(" ".join(random.choice(words, 8)))
        found = known.nearest(views.connection, vector, ANY, 5)
        hits += len({row for row, _ in found} & {row for row, _ in brute_force(views, vector, 5)})
    assert hits >= 48


def test_equal_distances_are_in_order_of_their_rows(views: Views) -> None:
    in_order = [views.store(f"m{number}", "alpha") for number in range(5)]
    assert [row for row, _ in Mirror(EMBEDDER).nearest(views.connection, vector_of("alpha"), ANY, 5)] == in_order


def test_the_mirror_holds_one_models_vectors(views: Views) -> None:
    views.store("a", "alpha")
    assert Mirror("another").nearest(views.connection, vector_of("alpha"), ANY, 5) == []


def test_a_memory_whose_row_comes_after_a_later_vector_is_found_too(views: Views) -> None:
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


def _show(views: Views, projection: Any, *events: Recorded) -> None:
    for one in events:
        for sql, values in projection.project(one):
            views.connection.execute(sql, [vector_of("alpha") if isinstance(value, Embedding) else value for value in values])


def test_full_text_drives_the_search_and_is_asked_once(views: Views) -> None:
    """From the other side, MATCH is run again for every memory, which takes seconds where there are many."""
    condition, values = where(QueryMemory(text="alpha", project="p", tags=("t",)), START_US)
    statements = [
        (words.AMONG_ALL, ("alpha", 10)),
        (words.AMONG_ROWS, ("alpha", "[1, 2]")),
        (words.AMONG_FILTERED.format(condition=condition), ("alpha", *values, 10)),
    ]
    for number in range(30):
        views.store(f"m{number}", f"alpha {number}")
    for sql, bound in statements:
        plan = rows(views.connection, "EXPLAIN QUERY PLAN " + sql, *bound)
        (asked,) = [row for row in plan if "memories_fts" in row[3]]
        loops = [row for row in plan if row[1] == asked[1] and row[3].startswith(("SCAN", "SEARCH"))]
        assert loops[0] == asked
        assert "=" not in asked[3].partition("VIRTUAL TABLE")[2]  # FTS5's mark of one lookup for each row
        assert [row[3] for row in plan if "CORRELATED" in row[3] and row[1] == asked[1]] == []


def test_expired_memories_crowd_nobody_out(views: Views) -> None:
    for number in range(search.CANDIDATES + 20):
        views.store(f"expired{number}", f"alpha {number}", at=START_US, ttl_seconds=1)
    views.store("kept", "some longer text with many other words in which alpha is but one of them")
    for mode in ("keyword", "hybrid", "phrase"):
        assert ids(find(views, "alpha", mode=mode)) == ["kept"], mode


def test_the_position_of_an_answer_is_that_of_the_view_that_is_furthest_behind(views: Views) -> None:
    views.connection.execute("CREATE TABLE checkpoints (name TEXT, position INTEGER)")
    views.connection.execute("INSERT INTO checkpoints VALUES ('memories', 9), ('vectors', 7), ('fulltext', 8), ('audit', 1)")
    assert search.position(views.connection) == 7
    assert search.position(views.connection, ("memories",)) == 9


def test_pairs_of_scores_never_rise(views: Views) -> None:
    for number in range(40):
        views.store(f"m{number}", f"alpha beta{number % 7} gamma{number % 3}")
    found = find(views, "alpha beta1 gamma2", limit=40)
    assert all(one.score >= other.score for one, other in pairwise(found))
    assert len(found) == len(set(ids(found))) == 40


def test_the_limit_is_kept(views: Views) -> None:
    for number in range(40):
        views.store(f"m{number}", f"alpha {number}")
    assert len(find(views, "alpha", limit=7)) == 7
