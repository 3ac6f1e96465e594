"""Which memories were shown to whom, read back."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.runtime.errors import Invalid, NotFound
from omegad.search import receipts
from omegad.search.receipts import ListReceipts, ReceiptPage
from tests.builders import queried
from tests.shown import Shown


@pytest.fixture
def views() -> Iterator[Shown]:
    made = Shown()
    for memory_id in ("a", "b", "c"):
        made.store(memory_id)
    made.show(queried(("a", 0.9), ("b", 0.8), query_id="first"), session_id="s-1")
    made.show(queried(("b", 0.7), ("c", 0.6), ("a", 0.5), query_id="second"), session_id="s-2")
    made.show(queried(query_id="empty"), session_id="s-2")
    yield made
    made.connection.close()


def look(views: Shown, **changes: Any) -> ReceiptPage:
    return receipts.list_receipts(views.connection, ListReceipts(**changes), views.moment())


def seen(page: ReceiptPage) -> list[tuple[str, int, str]]:
    return [(one.query_id, one.rank, one.memory_id) for one in page.receipts]


def test_the_newest_query_comes_first_and_in_it_the_best_rank(views: Shown) -> None:
    views.show(queried(("c", 0.4), ("b", 0.3), query_id="third"), session_id="s-2")
    assert seen(look(views, session_id="s-2")) == [
        ("third", 1, "c"),
        ("third", 2, "b"),
        ("second", 1, "b"),
        ("second", 2, "c"),
        ("second", 3, "a"),
    ]
    assert seen(look(views, memory_id="a")) == [("second", 3, "a"), ("first", 1, "a")]
    assert seen(look(views, query_id="first")) == [("first", 1, "a"), ("first", 2, "b")]


def test_a_receipt_says_who_saw_what_with_which_score_and_how(views: Shown) -> None:
    (one,) = look(views, memory_id="c").receipts
    assert (one.session_id, one.score, one.how, one.at) == (
        "s-2",
        0.6,
        "query",
        "2026-01-01T00:00:00.000000Z",
    )


def test_what_is_named_together_must_hold_together(views: Shown) -> None:
    assert seen(look(views, memory_id="b", session_id="s-1")) == [("first", 2, "b")]
    assert seen(look(views, memory_id="c", query_id="first")) == []


def test_it_must_be_said_whose_receipts_are_meant(views: Shown) -> None:
    with pytest.raises(Invalid) as refused:
        look(views)
    assert "session_id, a memory_id or a query_id" in refused.value.hint


def test_unknown_memories_and_queries_are_not_found_and_an_unknown_session_saw_nothing(views: Shown) -> None:
    with pytest.raises(NotFound, match="no memory nobody"):
        look(views, memory_id="nobody")
    with pytest.raises(NotFound, match="no query nothing"):
        look(views, query_id="nothing")
    assert look(views, session_id="s-9").receipts == []
    assert look(views, query_id="empty").receipts == []


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("r.memory_id = 'a'", "retrievals_by_memory (memory_id=?"),
        ("r.session_id = 's'", "retrievals_by_session (session_id=?"),
    ],
)
def test_a_page_reads_no_more_of_an_index_than_it_needs(views: Shown, condition: str, index: str) -> None:
    plan = views.plan(receipts.RECEIPTS.format(condition=condition), (1, 1, 1, 10, 10))
    assert f"SEARCH r USING INDEX {index} AND rowid<?)" in plan
    assert plan.count("TEMP B-TREE") == 1  # of the page alone


@given(sizes=st.lists(st.integers(0, 4), max_size=6), limit=st.integers(1, 5))
def test_the_pages_together_are_the_whole_list(sizes: list[int], limit: int) -> None:
    views = Shown()
    for number, size in enumerate(sizes):
        views.show(
            queried(*((f"m{rank}", 1 / (rank + 1)) for rank in range(size)), query_id=f"q{number}"),
            session_id="s",
        )
    found, cursor, pages = list[tuple[str, int, str]](), None, 0
    while pages == 0 or cursor is not None:
        page = look(views, session_id="s", limit=limit, cursor=cursor)
        found += seen(page)
        cursor, pages = page.next_cursor, pages + 1
        assert pages <= 6 * 4 + 1
    views.connection.close()
    expected = [
        (f"q{number}", rank + 1, f"m{rank}")
        for number, size in reversed(list(enumerate(sizes)))
        for rank in range(size)
    ]
    assert found == expected
    assert pages == max(1, -(-len(expected) // limit))
