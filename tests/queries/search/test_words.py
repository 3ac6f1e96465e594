"""Which terms choose candidates, that all of them count in the scores, and that full text is asked once."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.queries.filters import where
from omegad.queries.search import QueryMemory, calibration, words
from omegad.queries.search.words import Best, Filtered, Words
from omegad.storage.driver import Connection
from tests.builders import START_US, contradicted, deleted, rows
from tests.queries.searching import Searched

COMMON = words.MATCHES_MAX + 200


@pytest.fixture(scope="module")
def large() -> Iterator[Searched]:
    """Many memories of a common word, of which one in eight has a rare one as well."""
    made = Searched()
    for number in range(1, COMMON + 1):
        made.store(f"m{number}", f"deploy number{number}" + (" canary" if number % 8 == 0 else ""), project="pq"[number % 2])
    yield made
    made.connection.close()


@pytest.fixture
def views() -> Iterator[Searched]:
    made = Searched()
    yield made
    made.connection.close()


def asked(text: str) -> Words:
    found = words.of_question(text)
    assert found
    return found


def best(connection: Connection, text: str, limit: int = 100) -> Best:
    wanted = asked(text)
    return words.best_of_all(connection, wanted, words.counts(connection, wanted), limit, START_US)


def filtered(connection: Connection, text: str, among: Filtered, limit: int) -> Best:
    wanted = asked(text)
    return words.best_of_filtered(connection, wanted, words.counts(connection, wanted), limit, among)


def scores(connection: Connection, text: str, found: Best) -> dict[int, float]:
    """Return the score of every row found, read where it is not known yet."""
    return found.scores | words.of_rows(connection, asked(text), [row for row in found.rows if row not in found.scores])


def test_a_term_of_thousands_chooses_nobody_where_rarer_ones_find_enough(large: Searched) -> None:
    wanted = asked("deploy canary")
    assert words._rarest(words.counts(large.connection, wanted), 100) == ['"canary"']
    found = best(large.connection, "deploy canary")
    assert len(found.rows) == 100
    assert all(row % 8 == 0 for row in found.rows)


def test_every_term_counts_in_the_scores(large: Searched) -> None:
    text = "deploy canary number16"
    found = best(large.connection, text)
    known = scores(large.connection, text, found)
    assert known == words.of_rows(large.connection, asked(text), found.rows)
    assert max(known, key=lambda row: known[row]) == 16


def test_scores_that_are_known_are_those_of_all_terms(views: Searched) -> None:
    for number in range(30):
        views.store(f"m{number}", f"alpha {'beta' if number % 2 else 'gamma'}")
    found = best(views.connection, "alpha beta")
    assert found.scores == words.of_rows(views.connection, asked("alpha beta"), found.rows)
    assert found.rows == sorted(found.rows, key=lambda row: (-found.scores[row], row))


def test_a_common_term_alone_still_finds(large: Searched) -> None:
    assert len(best(large.connection, "deploy").rows) == 100


def test_where_rare_terms_find_too_few_the_common_one_chooses_too(large: Searched) -> None:
    text = "deploy number7"
    assert words._rarest(words.counts(large.connection, asked(text)), 100) == ['"deploy"', '"number7"']
    found = best(large.connection, text, 10)
    assert len(found.rows) == 10
    assert found.rows[0] == 7


def test_a_small_store_is_asked_for_every_term(views: Searched) -> None:
    for number in range(30):
        views.store(f"m{number}", f"alpha {'beta' if number % 2 else 'gamma'}")
    assert len(best(views.connection, "alpha beta gamma").rows) == 30


def test_a_term_is_counted_up_to_a_bound(large: Searched) -> None:
    found = words.counts(large.connection, asked("deploy canary number5 zeppelin"))
    assert found == {'"deploy"': words.MATCHES_MAX + 1, '"canary"': COMMON // 8, '"number5"': 1, '"zeppelin"': 0}


def test_filters_say_among_which_the_best_are(large: Searched) -> None:
    condition, values = where(QueryMemory(text="x", project="p"), START_US)
    found = filtered(large.connection, "deploy canary", Filtered(condition, values), 20)
    assert len(found.rows) == 20
    assert all(row % 2 == 0 for row in found.rows)


def test_the_best_of_those_that_have_not_expired_are_found(views: Searched) -> None:
    for number in range(20):
        views.store(f"m{number}", "alpha", ttl_seconds=1 if number < 15 else None)
    condition, values = where(QueryMemory(text="x"), START_US + 10**9)
    assert filtered(views.connection, "alpha", Filtered(condition, values), 10).rows == [16, 17, 18, 19, 20]


def test_among_few_that_pass_a_filter_the_common_terms_choose_too(large: Searched) -> None:
    """The rare term finds one that does not pass; the best that pass hold the common one."""
    text = "deploy number7"
    assert filtered(large.connection, text, Filtered("m.id = 8", ()), 20).rows == [8]
    assert len(filtered(large.connection, text, Filtered("m.id % 2 = 0", ()), 20).rows) == 20


def test_rare_terms_alone_choose_where_they_find_enough_that_pass(large: Searched) -> None:
    wanted = asked("deploy canary")
    looked: list[str] = []
    large.connection.set_trace_callback(looked.append)
    words.best_of_filtered(large.connection, wanted, words.counts(large.connection, wanted), 20, Filtered("m.id % 2 = 0", ()))
    large.connection.set_trace_callback(None)
    (asking,) = [sql for sql in looked if "CROSS JOIN" in sql]
    assert "canary" in asking
    assert "deploy" not in asking


def test_where_the_rarest_terms_find_too_few_that_pass_more_terms_choose(views: Searched) -> None:
    for number in range(300):
        views.store(f"m{number}", f"alpha{' beta' if number % 2 else ''}{' gamma' if number % 10 == 1 else ''}")
    wanted, few = asked("alpha beta gamma"), Filtered("m.id <= 100", ())
    counts = {'"alpha"': 5_000, '"beta"': 2_000, '"gamma"': 30}
    found = words.best_of_filtered(views.connection, wanted, counts, 60, few)
    assert len(found.rows) == 60


def test_one_that_is_overdue_changes_nothing_for_the_others(large: Searched) -> None:
    wanted = asked("deploy canary")
    counts = words.counts(large.connection, wanted)
    before = words.best_of_all(large.connection, wanted, counts, 50, START_US)
    large.connection.execute("BEGIN")
    large.connection.execute("UPDATE memories SET expires_us = ? WHERE id = ?", (START_US - 1, before.rows[0]))
    after = words.best_of_all(large.connection, wanted, counts, 50, START_US)
    large.connection.execute("ROLLBACK")
    assert after.rows[:49] == before.rows[1:]


@pytest.mark.parametrize("text", ["", "?!", "\0"])
def test_what_has_no_word_asks_nothing(text: str) -> None:
    assert words.of_question(text) is None
    assert words.of_phrase(text) is None


# --- plans --------------------------------------------------------------------------------------------------------------------------------

EVERY_FILTER: dict[str, Any] = {
    "project": "p",
    "entity_id": "e",
    "session_id": "s",
    "event_types": ("memory",),
    "tags": ("t",),
    "since": "2026-01-01",
    "until": "2027-01-01",
}
OF_A_TABLE = re.compile(r"SCAN (?!CONSTANT|\(subquery|.* VIRTUAL TABLE)")
FILTERS: list[dict[str, Any]] = [{}, *({name: value} for name, value in EVERY_FILTER.items()), EVERY_FILTER]


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


@pytest.mark.parametrize("filters", FILTERS, ids=str)
@pytest.mark.parametrize("is_analysed", [False, True])
def test_full_text_drives_the_search_and_is_asked_once(views: Searched, filters: dict[str, Any], *, is_analysed: bool) -> None:
    for number in range(30):
        views.store(f"m{number}", f"alpha {number}")
    if is_analysed:
        views.connection.execute("ANALYZE")
    condition, values = where(QueryMemory(text="alpha", **filters), START_US)
    check_that_full_text_drives(views, words.AMONG_CURRENT, "alpha", 1, 10)
    check_that_full_text_drives(views, words.AMONG_ROWS, "alpha", "[1, 2]")
    check_that_full_text_drives(views, words.AMONG_FILTERED.format(condition=condition), "alpha", *values, 10)
    check_that_full_text_drives(views, words.FEW_AMONG_FILTERED.format(condition=condition), "alpha", *values, 10)


@pytest.mark.parametrize("question", ["which port is used now?", "why alpha.py and PaymentGateway?", "設定"])
@pytest.mark.parametrize("filters", [{}, {"project": "p"}], ids=str)
def test_no_statement_of_a_search_reads_a_table_from_end_to_end(
    views: Searched, question: str, filters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        views.put(f"m{number}", f"alpha.py {number} port 設定 payment gateway", session_id=f"s{number % 3}")
    views.show(contradicted("m3", "m4"))
    monkeypatch.setattr(calibration, "FLOOR", 0.0)
    views.find(question)
    looked: list[str] = []
    views.connection.set_trace_callback(looked.append)
    views.find(question, explain=True, **filters)
    views.connection.set_trace_callback(None)
    asked = [sql for sql in looked if sql.lstrip().startswith("SELECT")]
    for needed in ("session_memories", "announces_change", "m.metadata", "MATCH"):
        assert any(needed in sql for sql in asked), needed
    for sql in asked:
        scans = [row[3] for row in views.plans(sql) if OF_A_TABLE.match(row[3])]
        assert scans == [], sql


# --- rarity -------------------------------------------------------------------------------------------------------------------------------


def test_the_rarer_a_term_the_more_it_tells_and_one_of_no_memory_is_marked() -> None:
    found = words.rarities({"none": 0, "one": 1, "some": 10, "most": 90, "all": 100}, 100)
    assert found["one"] > found["some"] > found["most"] >= found["all"] > 0
    assert found["none"] < -found["one"]


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.integers(0, 2_000), max_size=8), st.integers(0, 3_000))
def test_rarities_are_never_nought_and_shares_are_shares(counts: dict[str, int], memories: int) -> None:
    found = words.rarities(counts, memories)
    assert found.keys() == counts.keys()
    assert all((rarity < 0) is (counts[term] == 0) and rarity != 0 for term, rarity in found.items())
    assert 0.0 <= words.unknown(found, anything) <= 1.0
    assert (words.unknown(found, anything) > 0) is any(count == 0 for count in counts.values())


def anything(_text: str) -> bool:
    return True


def test_only_what_is_among_those_asked_about_is_unknown() -> None:
    rarities = {'"zeppelin"': -2.0, '("HotAir" OR "hot air")': -1.0, '"alpha"': 1.0}
    assert words.unknown(rarities, {"zeppelin"}.__contains__) == 0.5
    assert words.unknown(rarities, {"hotair"}.__contains__) == 0.25


def test_what_no_memory_holds_is_unknown_by_its_rarity(views: Searched) -> None:
    for number in range(20):
        views.store(f"m{number}", f"alpha number{number}")
    known, half, nothing = (
        words.unknown(words.rarities(words.counts(views.connection, asked(text)), 20), anything)
        for text in ("number3", "number3 zeppelin", "zeppelin")
    )
    assert known == 0.0 < half < nothing == 1.0
    assert words.unknown({}, anything) == 0.0


def test_coverage_is_the_share_of_the_question_that_a_memory_holds_by_rarity(views: Searched) -> None:
    for number in range(20):
        views.store(f"m{number}", f"alpha number{number}")
    counts = words.counts(views.connection, asked("alpha number3 number4"))
    held = words.holders(views.connection, counts)
    holding, other = (words.coverage(views.connection, words.rarities(counts, 20), held, row) for row in (4, 10))
    assert holding == pytest.approx(0.5, abs=0.05)
    assert 0.0 < other < 0.05
    counts = words.counts(views.connection, asked("alpha number3"))
    held = words.holders(views.connection, counts)
    assert words.coverage(views.connection, words.rarities(counts, 20), held, 4) == pytest.approx(1.0)
    assert words.coverage(views.connection, {}, {}, 4) == 0.0


def test_a_term_that_most_hold_counts_in_coverage_as_any_other(large: Searched) -> None:
    held = words.holders(large.connection, words.counts(large.connection, asked("deploy number7")))
    rarities = {'"deploy"': 1.0, '"number7"': 1.0}
    assert [words.coverage(large.connection, rarities, held, row) for row in (7, COMMON - 1)] == [1.0, 0.5]
    assert words.rare_coverage(rarities, held, [7, COMMON - 1, 10**9]) == [0.5, 0.0, 0.0]


def test_a_name_is_completed_where_nothing_else_has_it(views: Searched) -> None:
    views.store("a", "the event evt_1PQrst failed")
    views.store("b", "the event evt_2 passed")
    for text, completed in (("evt_1PQ", '"evt_1pq" *'), ("evt_2", '"evt_2"'), ("evt_9", '"evt_9"')):
        wanted = asked(text)
        found, held = words.completed(views.connection, wanted, words.counts(views.connection, wanted), {text.lower()})
        assert (found.expression, found.terms, tuple(held)) == (completed, (completed,), (completed,))
        assert set(held.values()) == {0 if text == "evt_9" else 1}
    wanted = asked("evt_1PQ")
    assert words.completed(views.connection, wanted, words.counts(views.connection, wanted), set())[0] is wanted


def test_what_is_hidden_is_counted_and_covers_nothing(views: Searched) -> None:
    row = views.store("a", "alpha beta")
    views.store("b", "beta")
    views.show(deleted("a"))
    counts = words.counts(views.connection, asked("alpha beta"))
    assert counts == {'"alpha"': 0, '"beta"': 1}
    assert words.coverage(views.connection, words.rarities(counts, 2), words.holders(views.connection, counts), row) == 0.0
    assert rows(views.connection, "SELECT count(*) FROM memories_fts") == [(1,)]
