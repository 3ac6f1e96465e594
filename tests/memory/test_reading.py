"""Reading memories by filters, by id and by likeness to a new text, over views that real events have
filled.
"""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.index.filters import Filters, where
from omegad.index.neighbours import neighbours
from omegad.memory import reading as memory
from omegad.memory.reading import GetMemory, ListMemories
from omegad.memory.types import MemoryTypes
from omegad.requests.method import Moment
from omegad.runtime.errors import Invalid, NotFound
from tests.builders import EMBEDDER, START_US, deleted, related, relations, repeated, superseded, vector_of
from tests.searching import DAY_US, Searched, ids

TYPES = MemoryTypes({})
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
def test_a_filter_means_the_same_to_words_to_vectors_and_to_lists(
    views: Searched, filters: dict[str, Any]
) -> None:
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
        views.put(f"m{number}", f"alpha {number}", **one)

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
        assert set(views.found("alpha", now, mode=mode, limit=100, **filters)) == wanted, mode
    assert (
        set(
            ids(
                memory.list_memories(
                    views.connection, ListMemories(limit=100, **filters), at(0, now)
                ).memories
            )
        )
        == wanted
    )


def at(position: int, now_us: int = START_US) -> Moment:
    return Moment(position=position, stale_by=0, now_us=now_us)


def test_pages_of_a_list_are_all_of_it_newest_first(views: Searched) -> None:
    for number in range(23):
        views.put(f"m{number}", f"alpha {number}")
    views.show(deleted("m20"))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.list_memories(views.connection, ListMemories(limit=5, cursor=cursor), at(7, START_US))
        assert page.position == 7
        seen += ids(page.memories)
        if (cursor := page.next_cursor) is None:
            break
        views.put(f"late-{len(seen)}", "new ones do not move the pages")
    assert seen == [f"m{number}" for number in range(22, -1, -1) if number != 20]


def test_a_page_that_ends_with_the_list_has_no_next(views: Searched) -> None:
    for number in range(5):
        views.put(f"m{number}", "alpha")
    assert memory.list_memories(views.connection, ListMemories(limit=5), at(0, START_US)).next_cursor is None
    assert (
        memory.list_memories(views.connection, ListMemories(limit=4), at(0, START_US)).next_cursor is not None
    )


def test_a_page_of_long_memories_ends_early_and_the_next_goes_on(views: Searched) -> None:
    for number in range(6):
        views.put(f"m{number}", f"alpha {number} " + "long" * 62_500)
    first = memory.list_memories(views.connection, ListMemories(), at(0))
    assert ids(first.memories) == ["m5", "m4", "m3", "m2"]
    assert (
        ids(memory.list_memories(views.connection, ListMemories(cursor=first.next_cursor), at(0)).memories)[0]
        == "m1"
    )


@given(st.text() | st.sampled_from(["²", "٣", "-1", "1e3", " 1", "9" * 30, "9" * 5_000, ""]))
def test_any_text_is_a_cursor_or_refused_as_none(text: str) -> None:
    with suppress(Invalid):
        assert 0 <= Filters().before(text) <= 2**62


@pytest.mark.parametrize(
    "since",
    [
        "yesterday",
        "2026-13-01",
        "2026-01-01T00:00:00",
        "",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_a_time_that_is_none_is_refused(since: str) -> None:
    for name in ("since", "until"):
        with pytest.raises(Invalid, match=name):
            where(msgspec.convert({"method": "Filters", name: since}, Filters), START_US)


def test_a_memory_is_shown_with_its_edges_strongest_first(views: Searched) -> None:
    views.put("a", "alpha", metadata={"k": [1]}, tags=("t",), related=relations(("b", 0.5), ("c", 0.9)))
    views.show(related("d", ("a", 0.7)))
    views.show(repeated("a"))
    found = msgspec.json.decode(
        msgspec.json.encode(memory.get(views.connection, GetMemory(memory_id="a"), TYPES, at(9)))
    )
    assert [(edge["memory_id"], edge["direction"], edge["weight"]) for edge in found["edges"]] == [
        ("c", "out", 0.9),
        ("d", "in", 0.7),
        ("b", "out", 0.5),
    ]
    assert (found["position"], found["repeated"], found["status"], found["content"]) == (
        9,
        1,
        "active",
        "alpha",
    )


def test_a_hidden_memory_keeps_answering_to_its_id(views: Searched) -> None:
    views.put("a", "alpha")
    views.show(superseded("a", "b"))
    found = memory.get(views.connection, GetMemory(memory_id="a"), TYPES, at(0))
    assert (found.status, found.superseded_by) == ("superseded", "b")
    with pytest.raises(NotFound, match="no memory nobody"):
        memory.get(views.connection, GetMemory(memory_id="nobody"), TYPES, at(0))


def test_neighbours_are_the_nearest_active_memories_of_the_project(views: Searched) -> None:
    for number in range(15):
        views.put(f"m{number}", f"alpha beta {'gamma ' * number}".strip())
    views.put("elsewhere", "alpha beta", project="q")
    views.put("nowhere", "alpha beta", project=None)
    views.put("gone", "alpha beta")
    views.show(deleted("gone"))

    of_model = views.index.of(EMBEDDER)
    assert of_model is not None
    of_model.sync(views.connection)

    def look(project: str | None, leave_out: str = "", *, words: bool = False) -> list[str]:
        searched = None if words else (of_model, vector_of("alpha beta"))
        return ids(
            neighbours(
                views.connection, "alpha beta", project, searched, now_us=START_US, leave_out=leave_out
            )
        )

    assert look("p")[:3] == ["m0", "m1", "m2"]
    assert len(look("p")) == 10
    assert look("p", "m0")[0] == "m1"
    assert len(look("p", "m0")) == 10
    assert look("q") == ["elsewhere"]
    assert look(None) == ["nowhere"]
    assert look(None, words=True) == ["nowhere"]
    assert "gone" not in look("p", words=True)
    assert len(look("p", "m0", words=True)) == 10
