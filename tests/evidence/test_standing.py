"""Which newer notes supersede an older one: those that tell of a change, and none that only speaks of one."""

import time
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.evidence.contradiction import CHARACTERS_MAX, contradiction
from omegad.evidence.scope import is_case, narrowing
from omegad.evidence.standing import doubts, is_added, is_bygone, is_change_denied, is_real, is_told, undone
from tests.evidence.hedges import FLAGGED, HEDGED, REPLACED

SIMILARITIES = (None, 0.6, 0.95)
FLAGGED_MAX = 0.06
"""The share of notes that deny nothing and may be taken for doubtful all the same."""

SECONDS_MAX = 2.0


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    """Return the pairs of a table, the newer first."""
    return [(new, old) for old, newer in table.items() for new in newer]


@pytest.mark.parametrize(("new", "old"), pairs(HEDGED))
def test_what_is_denied_supposed_planned_rejected_narrower_or_of_others_supersedes_nothing(new: str, old: str) -> None:
    for similarity in SIMILARITIES:
        found = contradiction(new, old, similarity)
        assert found is None or not found.is_explicit, found


def test_few_of_them_are_doubtful() -> None:
    flagged = [pair for pair in pairs(HEDGED) if any(contradiction(*pair, similarity) for similarity in SIMILARITIES)]
    assert len(flagged) <= FLAGGED_MAX * len(pairs(HEDGED)), flagged


@pytest.mark.parametrize(("new", "old"), pairs(REPLACED))
def test_what_tells_of_a_change_supersedes(new: str, old: str) -> None:
    found = contradiction(new, old, 0.6)
    assert found is not None
    assert found.is_explicit


@pytest.mark.parametrize(("new", "old"), pairs(FLAGGED))
def test_what_denies_without_replacing_is_doubtful_at_least(new: str, old: str) -> None:
    assert contradiction(new, old, 0.6) is not None


def test_saying_again_what_was_replaced_is_doubtful_and_no_more() -> None:
    old = "We moved orders from MySQL to Postgres"
    found = contradiction("we use MySQL for orders!", old, 0.7)
    assert found is not None
    assert not found.is_explicit
    assert contradiction("We use MySQL for the wiki", old, 0.7) is None
    assert contradiction("We use Postgres for orders", old, 0.7) is None


@pytest.mark.parametrize(
    "after", ["We rolled back the same day.", "The change was reverted.", "It was rejected.", "The branch was never merged.", "It is on hold."]
)
def test_a_change_that_the_note_itself_takes_back_supersedes_nothing(after: str) -> None:
    changed = "We switched from Redis to Memcached for caching."
    for text, is_explicit in ((changed, True), (f"{changed} {after}", False), (f"Proposal\n{changed}", False)):
        found = contradiction(text, "We use Redis for caching", 0.8)
        assert found is not None
        assert found.is_explicit == is_explicit


def test_a_doubt_that_the_older_note_has_as_well_is_none() -> None:
    assert not is_real("failed builds are retried twice")
    assert is_real("failed builds are retried twice", known={"fail"})
    found = contradiction("Failed builds are now retried 5 times", "Failed builds are retried 3 times", 0.8)
    assert found is not None


def test_the_reason_of_a_change_and_the_name_of_a_month_put_nothing_in_doubt() -> None:
    assert not doubts("we moved to x because y might be dropped")
    assert not doubts("in may we moved to x")
    assert doubts("we may move to x")


@pytest.mark.parametrize(
    ("clause", "sentence"),
    [
        ("use x instead of y", "if load grows, use x instead of y"),
        ("migrate from x to y", "ticket ops-12: migrate from x to y"),
        ("moving from x to y would help", ""),
        ("we are moving from x to y", ""),
        ("x was replaced in the old repo", ""),
        ("x was replaced", "x was replaced, and that was rejected"),
    ],
)
def test_a_condition_a_label_or_a_verdict_around_a_clause_puts_it_in_doubt(clause: str, sentence: str) -> None:
    assert not is_real(clause, sentence)


def test_how_a_clause_is_meant() -> None:
    assert is_change_denied("we did not switch from x to y")
    assert is_change_denied("never use x instead of y")
    assert not is_change_denied("we no longer use x")
    assert not is_change_denied("use x, not y")
    assert is_told("the bug wrote x instead of y")
    assert is_told("they were stored as x instead of y")
    assert not is_told("they are stored as x instead of y")
    assert not is_told("use the shared cache instead of y")
    assert not is_told("we switched to x instead of y")
    assert is_added("it also listens on 80")
    assert is_added("we use it for docs too")
    assert not is_added("it is too slow")
    assert is_bygone("we used to use x")
    assert not is_bygone("we use x")
    assert undone("we moved to x and then rolled back")
    assert not undone("we rolled back to x")


def test_what_the_user_wants_holds() -> None:
    assert is_real("the user wants tabs")
    assert not is_real("sam wants tabs")


def test_a_case_is_narrower_and_stands_beside_the_whole() -> None:
    assert narrowing({"cach", "stag"}, {"cach"}) == {"stag"}
    assert not narrowing({"cach"}, {"cach", "stag"})
    assert is_case({"stag"})
    assert not is_case({"cach"})


@pytest.mark.parametrize(
    "piece", ["not ", "we switched from x to ", "was ", "a: ", "instead of ", "used ", " ", "and back ", "(", "is ", "no longer "]
)
def test_reading_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (CHARACTERS_MAX // len(piece))
    started = time.perf_counter()
    contradiction(text, f"{text}we use x for caching", None)
    undone(text)
    doubts(text, text)
    assert time.perf_counter() - started < SECONDS_MAX


@given(st.lists(st.sampled_from(list(chain(HEDGED, REPLACED, *HEDGED.values()))), min_size=1, max_size=3).map(". ".join))
def test_no_note_is_denied_by_itself(text: str) -> None:
    assert contradiction(text, text, 0.9) is None


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_asked(clause: str, sentence: str) -> None:
    assert is_real(clause, sentence) == (not doubts(clause, sentence))
    assert is_real(clause, sentence, known=doubts(clause, sentence))
    for ask in (is_added, is_bygone, is_change_denied, is_told):
        assert ask(clause) in {True, False}
