"""Which memories stand beside which in their sessions."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from omegad.queries.filters import where
from omegad.queries.search import QueryMemory, gathering
from omegad.queries.search.surroundings import Surroundings, selected, surroundings
from omegad.queries.search.words import Filtered
from tests.builders import START_US, deleted, expired, rows
from tests.queries.searching import LATER_US, Searched


@pytest.fixture
def views() -> Iterator[Searched]:
    made = Searched()
    yield made
    made.connection.close()


def around(views: Searched, *rows: int, **filters: object) -> Surroundings:
    query = msgspec.convert({"method": "memory.query", "text": "x", **filters}, QueryMemory)
    return surroundings(views.connection, rows, partial(selected, views.connection, Filtered(*where(query, START_US))))


def test_a_memory_stands_between_the_one_before_and_the_one_after_it(views: Searched) -> None:
    first, second, third, fourth = (views.put(f"m{number}", f"alpha {number}", session_id="s") for number in range(4))
    found = around(views, second)
    assert found.pairs == {(first, second), (second, first), (second, third), (third, second)}
    assert found.rows == {first, second, third}
    assert found.session == {first: "s", second: "s", third: "s"}
    assert fourth in around(views, third).rows


def test_sessions_that_take_turns_are_not_mixed(views: Searched) -> None:
    a1, b1, a2, b2 = (views.put(f"m{number}", f"alpha {number}", session_id="ab"[number % 2]) for number in range(4))
    assert around(views, a2).pairs == {(a1, a2), (a2, a1)}
    assert around(views, a2, b1).pairs == {(a1, a2), (a2, a1), (b1, b2), (b2, b1)}


def test_what_is_in_no_session_stands_beside_nothing(views: Searched) -> None:
    row = views.put("a", "alpha")
    views.put("b", "beta")
    assert around(views, row) == Surroundings({}, set())
    assert around(views) == Surroundings({}, set())


def test_a_neighbour_that_the_filters_leave_out_is_left_out(views: Searched) -> None:
    kept, middle, gone = (views.put(f"m{number}", "alpha", session_id="s", project="pq"[number // 2]) for number in range(3))
    assert around(views, middle, project="p").rows == {kept, middle}
    views.show(deleted("m0"))
    assert around(views, middle, project="p").rows == set()
    assert around(views, middle).rows == {middle, gone}


def test_only_neighbours_are_asked_about(views: Searched) -> None:
    first, second, third = (views.put(f"m{number}", "alpha", session_id="s") for number in range(3))
    asked: list[int] = []

    def among(rows: Sequence[int]) -> set[int]:
        asked.extend(rows)
        return {third}

    assert surroundings(views.connection, [second], among).rows == {second, third}
    assert sorted(asked) == [first, third]


@pytest.mark.parametrize("filters", [{}, {"project": "p"}, {"session_id": "s"}, {"event_types": ("memory",)}, {"tags": ("a",)}], ids=str)
def test_by_meaning_the_neighbours_are_those_that_the_filters_select_too(views: Searched, filters: dict[str, Any]) -> None:
    for number in range(12):
        views.put(
            f"m{number}",
            "the zeppelin flies at noon" if number in {4, 7} else f"and so on, {number}",
            session_id="st"[number % 2],
            project="pq"[number % 3 % 2],
            tags=("a",) if number % 4 else (),
            event_type=("memory", "decision")[number % 5 % 2],
        )
    views.show(deleted("m5"), expired("m2"))
    by_words, by_meaning = (set(views.found("zeppelin", mode=mode, limit=50, **filters)) for mode in ("keyword", "semantic"))
    allowed = {row[0] for row in rows(views.connection, "SELECT node_id FROM memories AS m WHERE " + _condition(filters), *_values(filters))}
    assert by_words <= allowed
    assert by_meaning <= allowed


def _condition(filters: dict[str, Any]) -> str:
    return where(QueryMemory(text="x", **filters), LATER_US)[0]


def _values(filters: dict[str, Any]) -> tuple[object, ...]:
    return where(QueryMemory(text="x", **filters), LATER_US)[1]


def test_the_neighbours_of_a_memory_are_answers_too(views: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "CANDIDATES", 1)
    views.put("before", "and then she told us about it", session_id="s")
    views.put("found", "the zeppelin flies at noon", session_id="s")
    views.put("after", "that is all there was", session_id="s")
    views.put("elsewhere", "nobody said a thing", session_id="t")
    assert set(views.found("zeppelin", mode="keyword")) == {"found", "before", "after"}
    assert views.found("zeppelin", mode="keyword")[0] == "found"
    assert views.found("zeppelin flies", mode="phrase") == ["found"]


def test_a_neighbour_that_is_hidden_or_filtered_out_is_no_answer(views: Searched) -> None:
    views.put("before", "and then she told us about it", session_id="s", event_type="decision")
    views.put("found", "the zeppelin flies at noon", session_id="s")
    views.put("after", "that is all there was", session_id="s")
    views.show(deleted("after"))
    assert views.found("zeppelin", mode="keyword", event_types=("memory",)) == ["found"]


def test_both_are_found_by_their_index(views: Searched) -> None:
    for number in range(20):
        views.put(f"m{number}", "alpha", session_id="s")
    looked: list[str] = []
    views.connection.set_trace_callback(looked.append)
    around(views, 3, 4)
    views.connection.set_trace_callback(None)
    plans = [plan for sql in looked if sql.startswith("SELECT") for plan in views.plans(sql)]
    assert plans
    assert [plan[3] for plan in plans if plan[3].startswith("SCAN") and "json_each" not in plan[3]] == []
