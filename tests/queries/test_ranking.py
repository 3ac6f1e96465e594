"""The order of results: from scores alone, the same whoever asks, and never worse for what fits better."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.queries.ranking import Candidate, Ranked, Weights, rank

WEIGHTS = Weights()
COSINES = st.none() | st.floats(-1, 1)
BM25 = st.just(0.0) | st.floats(0, 30)
CANDIDATES = st.lists(st.tuples(COSINES, BM25), max_size=12).map(
    lambda pairs: [Candidate(id=number, cosine=cosine, bm25=bm25) for number, (cosine, bm25) in enumerate(pairs)]
)


def place(ranked: list[Ranked], wanted: int) -> int:
    return next((number for number, one in enumerate(ranked) if one.id == wanted), len(ranked))


def test_each_score_counts_by_its_weight_as_a_share_of_the_best() -> None:
    ranked = rank([Candidate(id=1, cosine=0.8, bm25=2.0), Candidate(id=2, cosine=0.4, bm25=8.0)], Weights(vector=0.7, text=0.3))
    assert [(one.id, one.score) for one in ranked] == [(1, 0.775), (2, 0.65)]


def test_where_one_score_is_lacking_altogether_the_other_counts_alone() -> None:
    assert [(one.id, one.score) for one in rank([Candidate(id=1, cosine=None, bm25=3.0), Candidate(id=2, cosine=None, bm25=6.0)], WEIGHTS)] == [
        (2, 1.0),
        (1, 0.5),
    ]
    assert [(one.id, one.score) for one in rank([Candidate(id=1, cosine=0.3, bm25=0.0), Candidate(id=2, cosine=-0.2, bm25=0.0)], WEIGHTS)] == [
        (1, 1.0)
    ]


@pytest.mark.parametrize("known", [[], [Candidate(id=1, cosine=None, bm25=0.0)], [Candidate(id=1, cosine=-0.5, bm25=0.0)]])
def test_what_fits_in_no_way_is_no_result(known: list[Candidate]) -> None:
    assert rank(known, WEIGHTS) == []


def test_equals_are_in_order_of_their_ids() -> None:
    assert [one.id for one in rank([Candidate(id=number, cosine=0.5, bm25=1.0) for number in (3, 1, 2)], WEIGHTS)] == [1, 2, 3]


@given(CANDIDATES)
def test_a_score_is_the_sum_of_its_parts_from_0_to_1_and_the_best_come_first(known: list[Candidate]) -> None:
    ranked = rank(known, WEIGHTS)
    assert [one for one in ranked if abs(one.score - one.vector - one.text) > 1e-8] == []
    assert all(0 < one.score <= 1 and one.vector >= 0 and one.text >= 0 for one in ranked)
    assert ranked == sorted(ranked, key=lambda one: (-one.score, one.id))
    assert len({one.id for one in ranked}) == len(ranked)


@given(CANDIDATES.flatmap(lambda known: st.tuples(st.just(known), st.permutations(known))))
def test_the_order_does_not_depend_on_who_was_found_first(both: tuple[list[Candidate], list[Candidate]]) -> None:
    assert rank(both[0], WEIGHTS) == rank(both[1], WEIGHTS)


@given(CANDIDATES.filter(bool), st.data())
def test_what_fits_better_never_ranks_lower_for_it(known: list[Candidate], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(known) - 1))
    before = known[chosen]
    better = Candidate(
        id=before.id,
        cosine=data.draw(st.floats(-1 if before.cosine is None else before.cosine, 1)),
        bm25=before.bm25 + data.draw(st.floats(0, 10)),
    )
    after = rank([*known[:chosen], better, *known[chosen + 1 :]], WEIGHTS)
    assert place(after, chosen) <= place(rank(known, WEIGHTS), chosen)
