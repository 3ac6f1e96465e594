"""A memory's life, read back: which events are about it, in order, page by page."""

import pytest

from omegad.log.event import Erased
from omegad.memory import history
from omegad.memory.history import History, MemoryHistory
from omegad.runtime.errors import NotFound
from tests.builders import (
    contradicted,
    deleted,
    edited,
    evolved,
    linked,
    promoted,
    rated,
    recorded,
    repeated,
    restored,
    stored,
    superseded,
    unlinked,
)
from tests.shown import Shown


def places(views: Shown, memory_id: str, limit: int = 200, cursor: str | None = None) -> history.HistoryPage:
    return history.page(
        views.connection, MemoryHistory(memory_id=memory_id, limit=limit, cursor=cursor), views.moment()
    )


def test_every_event_about_a_memory_belongs_to_its_life_and_no_other(views: Shown) -> None:
    views.store("other")
    life = [
        views.store("a"),
        views.show(repeated("a", content="said anew")),
        views.show(evolved("a")),
        views.show(edited("a")),
        views.show(rated("a")),
        views.show(promoted("a")),
        views.show(linked("a", "other")),
        views.show(unlinked("a", "other", "related")),
        views.show(deleted("a")),
        views.show(restored("a")),
    ]
    views.show(edited("other"))
    assert places(views, "a").positions == life


def test_a_life_tells_of_memories_that_this_one_superseded_denied_or_was_linked_from(views: Shown) -> None:
    views.store("old")
    row = views.store("new")
    others = [
        views.show(superseded("old", "new")),
        views.show(contradicted("old", "new")),
        views.show(linked("old", "new")),
    ]
    assert places(views, "new").positions == [row, *others]
    assert places(views, "old").positions == [1, *others]


def test_a_life_is_told_a_page_at_a_time_and_every_event_once(views: Shown) -> None:
    positions = [views.store("a"), *(views.show(rated("a")) for _ in range(4))]
    seen, cursor = list[int](), None
    for size in (2, 2, 1):
        found = places(views, "a", limit=2, cursor=cursor)
        page = history.history(found, [recorded(rated("a"), position) for position in found.positions])
        assert len(page.events) == size
        seen += [event.position for event in page.events]
        cursor = page.next_cursor
    assert (seen, cursor) == (positions, None)


def test_a_page_that_the_log_cut_short_goes_on_where_it_was_cut(views: Shown) -> None:
    first = views.store("a")
    views.show(rated("a"))
    found = places(views, "a")
    page = history.history(found, [recorded(stored("a"), first)])
    assert page.next_cursor == str(first)


def test_what_was_erased_is_told_without_its_data(views: Shown) -> None:
    views.store("a")
    page: History = history.history(places(views, "a"), [recorded(Erased(tag="memory.stored@2"))])
    assert [(event.tag, event.data) for event in page.events] == [("memory.stored@2", None)]


def test_a_memory_that_was_never_stored_has_no_history(views: Shown) -> None:
    with pytest.raises(NotFound, match="there is no memory nobody"):
        places(views, "nobody")


def test_a_page_is_found_by_the_index(views: Shown) -> None:
    plan = views.plan(
        "SELECT position FROM memory_history WHERE memory_id = ? AND position > ? ORDER BY position LIMIT ?",
        ("a", 0, 10),
    )
    assert plan == "SEARCH memory_history USING PRIMARY KEY (memory_id=? AND position>?)"
