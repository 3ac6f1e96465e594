"""Which of several memories tells how things are: the newest of those that speak of the same matter, and nobody for age alone."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.queries.search import ranking, renewal
from omegad.queries.search.ranking import DAY_US, EPSILON, Details, Ranked, Weights
from omegad.queries.search.renewal import COMPARED, SHORT, Compared, sameness

WEIGHTS = Weights()
ALIKE, UNLIKE = 0.95, 0.1


def compared(
    likeness: npt.NDArray[np.float64], relevance: npt.NDArray[np.float64] | None = None, same: npt.NDArray[np.float64] | None = None
) -> Compared:
    """Return how candidates are to each other: each entirely relevant, and none a statement, unless something else is given."""
    return Compared(
        relevance=np.ones(len(likeness)) if relevance is None else relevance,
        likeness=likeness,
        sameness=np.zeros_like(likeness) if same is None else same,
    )


def ids(ranked: Sequence[Ranked]) -> list[int]:
    return [one.id for one in ranked]


def score_of(ranked: Sequence[Ranked], row: int) -> float:
    return next(one.score for one in ranked if one.id == row)


def renewed(
    dated_days: Sequence[float],
    likeness: float = ALIKE,
    *,
    relevance: Sequence[float] = (),
    announces: Sequence[bool] = (),
) -> list[Ranked]:
    """Renew candidates 1, 2, … that match almost equally well, an earlier one a little better; all alike."""
    count = len(dated_days)
    ranked = [Ranked(id=row, score=1.0 - row / 1_000, stages={"meaning": 1.0 - row / 1_000}) for row in range(1, count + 1)]
    details = {
        row: Details(dated_us=int(day * DAY_US), announces_change=bool(announces) and announces[row - 1]) for row, day in enumerate(dated_days, 1)
    }
    matrix = np.full((count, count), likeness)
    np.fill_diagonal(matrix, 1.0)
    return renewal.renewed(ranked, details, compared(matrix[:COMPARED, :COMPARED], np.array(relevance or [1.0] * count)[:COMPARED]), WEIGHTS)


def test_the_newest_of_two_that_are_alike_stands_above_the_older() -> None:
    assert ids(renewed([0.0, 300.0])) == [2, 1]
    assert ids(renewed([300.0, 0.0])) == [1, 2]


def test_the_older_stands_right_below_and_not_further() -> None:
    older = next(one for one in renewed([0.0, 3_000.0]) if one.id == 1)
    newer = next(one for one in renewed([0.0, 3_000.0]) if one.id == 2)
    assert newer.score - older.score == pytest.approx(EPSILON * 0.999)


def test_what_is_about_something_else_makes_nothing_outdated() -> None:
    assert ids(renewed([0.0, 300.0], UNLIKE)) == [1, 2]


def test_what_matches_far_worse_makes_nothing_outdated() -> None:
    assert ids(renewed([0.0, 300.0], relevance=[1.0, 0.1])) == [1, 2]


def test_the_same_moment_makes_nothing_outdated() -> None:
    assert all("newer" not in one.stages for one in renewed([50.0, 50.0, 50.0]))


def test_one_that_announces_a_change_counts_for_more() -> None:
    def lost(*, announces: bool) -> float:
        scores = [1.0, 0.9]
        ranked = [Ranked(id=row, score=score, stages={}) for row, score in enumerate(scores, 1)]
        details = {1: Details(dated_us=0), 2: Details(dated_us=5 * DAY_US, announces_change=announces)}
        found = renewal.renewed(ranked, details, compared(np.full((2, 2), ALIKE)), WEIGHTS)
        return 1.0 - score_of(found, 1)

    assert lost(announces=True) > lost(announces=False) > 0


def test_a_chain_of_versions_is_told_from_the_newest_to_the_oldest() -> None:
    assert ids(renewed([0.0, 400.0, 800.0, 1_200.0])) == [4, 3, 2, 1]


def test_what_comes_after_those_compared_keeps_its_score() -> None:
    before = [Ranked(id=row, score=1.0 / row, stages={"meaning": 1.0 / row}) for row in range(1, COMPARED + 6)]
    details = {one.id: Details(dated_us=one.id * 30 * DAY_US) for one in before}
    found = renewal.renewed(before, details, compared(np.full((COMPARED, COMPARED), ALIKE)), WEIGHTS)
    assert sorted(ids(found)) == ids(before)
    assert [one for one in found if one.id > COMPARED] == before[COMPARED:]


def test_nobody_stands_above_another_with_a_better_score() -> None:
    """Not even right after those that are compared."""
    found = renewed([0.0] * (COMPARED - 1) + [900.0] + [0.0] * 10)
    assert [(one, other) for one, other in pairwise(found) if one.score < other.score - 1e-9] == []


def test_among_none_there_is_none() -> None:
    assert renewal.renewed([], {}, compared(np.empty((0, 0))), WEIGHTS) == []


def test_what_nothing_newer_speaks_of_loses_nothing_for_its_age() -> None:
    assert all("newer" not in one.stages for one in renewed([0.0, 3_000.0], UNLIKE))


# --- short statements of one thing --------------------------------------------------------------------------------------------------------


def restated(
    *,
    newer: float = 0.6,
    likeness: float = 0.7,
    same: float = 0.4,
    days: float = 100,
    relevance: float = 0.6,
    characters: int = 80,
) -> list[Ranked]:
    """Renew 1, which is older and answers better, and 2, which says the same in other words."""
    ranked = [Ranked(id=row, score=score, stages={"meaning": score}) for row, score in ((1, 1.0), (2, newer))]
    details = {1: Details(characters=80), 2: Details(characters=characters, dated_us=int(days * DAY_US))}
    likenesses, same_words = (np.array([[1.0, value], [value, 1.0]]) for value in (likeness, same))
    return renewal.renewed(ranked, details, compared(likenesses, np.array([1.0, relevance]), same_words), WEIGHTS)


def test_the_newer_of_two_statements_of_one_thing_comes_first_though_it_matches_worse() -> None:
    assert ids(restated()) == [2, 1]


@pytest.mark.parametrize(
    "changes", [{"same": 0.05}, {"likeness": 0.3}, {"relevance": 0.2}, {"days": -100.0}, {"characters": SHORT}, {"newer": 0.1}], ids=str
)
def test_what_is_no_newer_statement_of_it_takes_nobodys_place(changes: dict[str, Any]) -> None:
    assert ids(restated(**changes))[0] == 1


def test_statements_have_the_more_in_common_the_rarer_their_common_words() -> None:
    others = ["the deploy runs at night", "the deploy takes an hour", "the deploy needs a key"]
    same = sameness(["the deploy runs on Zephyr", "we moved Zephyr to another rack", *others])
    assert same[0, 1] > same[2, 3] > 0


def test_inflection_and_parts_of_names_do_not_hide_what_is_the_same() -> None:
    same = sameness(["pages are indexed nightly", "index the page", "class PageIndexer", "unrelated words here"])
    assert min(same[0, 1], same[1, 2]) > 0
    assert same[0, 3] == 0.0


def test_what_is_no_statement_has_nothing_in_common_with_any() -> None:
    same = sameness(["alpha beta", None, "alpha beta", "", "alpha gamma"])
    assert not same[1].any()
    assert not same[3].any()
    assert same[0, 2] == pytest.approx(1.0)
    assert sameness([]).shape == (0, 0)


@given(st.lists(st.none() | st.text(st.sampled_from("ab cÄ設定A1_-"), max_size=30), max_size=8))
def test_what_statements_have_in_common_is_a_share_and_mutual(statements: list[str | None]) -> None:
    same = sameness(statements)
    assert np.allclose(same, same.T)
    assert not same.diagonal().any()
    assert ((same >= 0) & (same <= 1 + 1e-9)).all()


@given(st.lists(st.tuples(st.floats(0.1, 1), st.integers(0, 900)), min_size=1, max_size=COMPARED))
def test_an_older_one_never_falls_further_than_right_below_what_is_newer(known: list[tuple[float, int]]) -> None:
    ranked = ranking.ordered(Ranked(id=row, score=score, stages={"meaning": score}) for row, (score, _) in enumerate(known))
    details = {row: Details(dated_us=day * DAY_US) for row, (_, day) in enumerate(known)}
    found = renewal.renewed(ranked, details, compared(np.full((len(ranked), len(ranked)), ALIKE)), WEIGHTS)
    least = EPSILON * ranked[0].score
    for one in found:
        newer = [other.score for other in found if details[other.id].dated_us > details[one.id].dated_us]
        assert one.score <= score_of(ranked, one.id) + 1e-12
        assert one.score >= min([score_of(ranked, one.id), *(score - least for score in newer)]) - 1e-9
