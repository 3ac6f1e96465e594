"""Which terms choose candidates, what the memories know of the words of a question, and that full text is
asked once.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from omegad.index import fulltext, words
from omegad.index.filters import Filtered, Filters, where
from omegad.index.fulltext import FullText
from omegad.index.scope import COUNTED_MAX, Scope
from omegad.index.words import Best, Vocabulary, Words
from omegad.search import QueryMemory
from omegad.text.periods import period
from tests.builders import START_US, deleted
from tests.searching import LATER_US, Searched

COMMON = words.MATCHES_MAX + 200
EVERYTHING = Filtered(
    "m.status = 'active' AND (m.expires_us IS NULL OR m.expires_us > ?)", (START_US,), is_everything=True
)


@pytest.fixture(scope="module")
def large() -> Iterator[Searched]:
    """Many memories of a common word, of which one in eight has a rare one as well."""
    made = Searched()
    for number in range(1, COMMON + 1):
        made.store(
            f"m{number}",
            f"deploy number{number}" + (" canary" if number % 8 == 0 else ""),
            project="pq"[number % 2],
        )
    yield made
    made.connection.close()


def asked(text: str) -> Words:
    found = words.of_question(text)
    assert found
    return found


def best(views: Searched, text: str, limit: int = 100, among: Filtered = EVERYTHING) -> Best:
    """Return the best, with the scores of all of them."""
    wanted, everything = asked(text), FullText(views.connection)
    found = words.best(everything, wanted, words.counts(everything, wanted), limit, among)
    return Best(found.rows, everything.scores(wanted.terms, found.rows))


def vocabulary(views: Searched, text: str, **filters: Any) -> Vocabulary:
    return words.vocabulary(
        asked(text),
        Scope(views.connection, Filters(**filters), LATER_US, None),
        period(text, LATER_US),
    )


def test_a_term_of_thousands_chooses_nobody_where_rarer_ones_find_enough_and_counts_all_the_same(
    large: Searched,
) -> None:
    found = best(large, "deploy canary number16")
    assert len(found.rows) == 100
    assert all(row % 8 == 0 for row in found.rows)
    assert found.rows[0] == 16
    assert found.scores[24] > FullText(large.connection).scores(asked("canary").terms, [24])[24]


@pytest.mark.parametrize("among", [EVERYTHING, Filtered("m.id % 2 = 1", ())], ids=["of all", "of some"])
def test_where_rare_terms_find_too_few_the_common_one_chooses_too(large: Searched, among: Filtered) -> None:
    for text in ("deploy", "deploy number7"):
        assert len(best(large, text, 20, among).rows) == 20
    assert best(large, "deploy number7", 20, among).rows[0] == 7
    assert best(large, "deploy number7", 20, Filtered("m.id = 8", ())).rows == [8]


@pytest.mark.parametrize(
    ("text", "completed"), [("evt_1PQ", '"evt_1pq" *'), ("evt_2", '"evt_2"'), ("evt_9", '"evt_9"')]
)
def test_a_name_is_completed_where_nothing_else_has_it(views: Searched, text: str, completed: str) -> None:
    views.store("a", "the event evt_1PQrst failed")
    views.store("b", "the event evt_2 passed")
    assert words.completed(FullText(views.connection), asked(text), {text.lower()}).terms == (completed,)
    assert words.completed(FullText(views.connection), asked(text), set()) == asked(text)


# --- what the memories know -----------------------------------------------------------------------


def test_a_term_is_counted_up_to_a_bound_and_the_rarer_it_is_the_more_it_tells(large: Searched) -> None:
    known = vocabulary(large, "deploy canary number5 zeppelin")
    assert known.counts == {
        '"deploy"': words.MATCHES_MAX + 1,
        '"canary"': COMMON // 8,
        '"number5"': 1,
        '"zeppelin"': 0,
    }
    rarity = [known.rarity[f'"{term}"'] for term in ("deploy", "canary", "number5")]
    assert 0 < rarity[0] < rarity[1] < rarity[2] < -known.rarity['"zeppelin"']
    assert known.holders.keys() == {'"canary"', '"number5"', '"zeppelin"'}


def test_a_word_of_another_project_is_unknown(views: Searched) -> None:
    for number in range(20):
        views.store(
            f"m{number}",
            f"alpha number{number} " + ("zeppelin" if number % 2 else "kite"),
            project="pq"[number % 2],
        )
    assert (
        vocabulary(views, "alpha zeppelin").unknown()
        == vocabulary(views, "alpha zeppelin", project="q").unknown()
        == 0.0
    )
    there, nowhere = (vocabulary(views, f"alpha {word}", project="p") for word in ("zeppelin", "dirigible"))
    assert there.unknown() == nowhere.unknown() > 0.5
    assert there.unknown({"zeppelin"}) == there.unknown()
    assert there.unknown({"alpha"}) == vocabulary(views, "alpha in September 1999").unknown() == 0.0, (
        "a time is no word that anybody knows"
    )
    assert there.holders['"zeppelin"'].tolist() == []


def test_a_memory_covers_the_share_of_the_question_that_it_holds_by_rarity(views: Searched) -> None:
    for number in range(20):
        views.store(f"m{number}", f"alpha number{number}")
    known = vocabulary(views, "alpha number3 number4")
    held = known.coverage([10, 999, 4], views.connection)
    assert held.tolist() == pytest.approx([0.0, 0.0, 0.5], abs=0.1)
    assert known.rare_coverage([10, 999, 4]).tolist() == pytest.approx(held.tolist())
    assert vocabulary(views, "alpha number3").coverage([4], views.connection) == pytest.approx([1.0])
    assert vocabulary(views, "alpha number3 zeppelin").coverage([4], views.connection)[0] < 0.6
    views.show(deleted("m3"))
    assert vocabulary(views, "number3").coverage([4], views.connection).tolist() == [0.0]


@pytest.mark.parametrize("has_vectors", [True, False])
def test_a_scope_is_what_can_be_found_and_passes_the_filters(views: Searched, *, has_vectors: bool) -> None:
    put = views.put if has_vectors else views.store
    rows = [
        put(
            f"m{number}",
            f"alpha {number}",
            project="pq"[number % 2],
            tags=("t",) * (number % 3),
            ttl_seconds=99,
        )
        for number in range(12)
    ]
    rows.append(views.store("waiting", "alpha", project="p", tags=("t",)))
    views.show(deleted("m4"))
    wanted: list[tuple[dict[str, Any], set[int]]] = [
        ({"tags": ("t",)}, {1, 2, 5, 7, 8, 10, 11, 12}),
        ({"project": "p"}, {0, 2, 6, 8, 10, 12}),
        ({}, {*range(13)} - {4}),
    ]
    for filters, left in wanted:
        scope = Scope(views.connection, Filters(**filters), START_US, views.index)
        assert scope.among([*rows, 999]) == {rows[number] for number in left}
        assert scope.count == len(left)
    assert Scope(views.connection, Filters(), START_US + 900_000_000, views.index).among(rows) == {rows[-1]}


# --- plans ----------------------------------------------------------------------------------------

EVERY_FILTER: dict[str, Any] = {
    "project": "p",
    "session_id": "s",
    "event_types": ("memory",),
    "tags": ("t",),
    "since": "2026-01-01",
}
OF_A_TABLE = re.compile(r"SCAN (?!CONSTANT|\(subquery|.* VIRTUAL TABLE)")


def check_that_full_text_drives(views: Searched, sql: str, *values: object) -> None:
    """From the other side, MATCH is run again for every memory, which takes seconds where there are many."""
    plan = views.plans(sql, values)
    (asking,) = [row for row in plan if "memories_fts" in row[3]]
    loops = [row for row in plan if row[1] == asking[1] and row[3].startswith(("SCAN", "SEARCH"))]
    assert loops[0] == asking, plan
    assert "=" not in asking[3].partition("VIRTUAL TABLE")[2], "FTS5's mark of one lookup for each row"
    # To look for a tag within a memory is no search for it.
    within = {row[0] for row in plan if "CORRELATED" in row[3] and row[1] == asking[1]}
    assert [row[3] for row in plan if row[1] in within and "VIRTUAL TABLE" not in row[3]] == []


@pytest.mark.parametrize(
    "filters", [{}, *({name: value} for name, value in EVERY_FILTER.items()), EVERY_FILTER], ids=str
)
@pytest.mark.parametrize("is_analysed", [False, True])
def test_full_text_drives_the_search_and_is_asked_once(
    views: Searched, filters: dict[str, Any], *, is_analysed: bool
) -> None:
    for number in range(30):
        views.store(f"m{number}", f"alpha {number}")
    if is_analysed:
        views.connection.execute("ANALYZE")
    condition, values = where(QueryMemory(text="alpha", **filters), START_US)
    check_that_full_text_drives(views, fulltext.AMONG_CURRENT, "alpha", 1, 10)
    check_that_full_text_drives(views, fulltext.AMONG_ROWS, "alpha", "[1, 2]")
    for sql in (fulltext.AMONG_FILTERED, fulltext.FEW_AMONG_FILTERED):
        check_that_full_text_drives(views, sql.format(condition=condition), "alpha", *values, 10)


@pytest.mark.parametrize(
    "question", ["which port is used?", "why alpha.py and PaymentGateway?", "設定 of last week"]
)
@pytest.mark.parametrize("filters", [{}, {"project": "p"}], ids=str)
def test_no_statement_of_a_search_reads_a_table_from_end_to_end(
    views: Searched, question: str, filters: dict[str, Any]
) -> None:
    for number in range(60):
        views.put(
            f"m{number}",
            f"alpha.py {number} port 設定 payment gateway",
            session_id=f"s{number % 3}",
            at=START_US,
        )
    views.find(question)
    looked: list[str] = []
    views.connection.set_trace_callback(looked.append)
    views.find(question, explain=True, widen=True, **filters)
    views.connection.set_trace_callback(None)
    statements = [sql for sql in looked if sql.lstrip().startswith("SELECT")]
    for needed in ("session_memories", "edges", "rating", "m.metadata", "MATCH"):
        assert any(needed in sql for sql in statements), needed
    # How many memories there are is counted up to a bound.
    for sql in statements:
        scans = [row[3] for row in views.plans(sql) if OF_A_TABLE.match(row[3])]
        assert scans == [] or str(COUNTED_MAX) in sql, sql
