"""From what is known of candidates to their order: relations between scores, which hold whatever the weights are tuned to."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.queries.search import ranking
from omegad.queries.search.ranking import BY_ITSELF, DAY_US, NEGLECTED_DAYS, SUBSTANCE_CHARACTERS, Candidates, Details, Ranked, Weights
from omegad.queries.search.renewal import Compared, renewed

WEIGHTS = Weights()
PLAIN = Details()
LONG_AGO = 5 * 365.0


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate as the tests give it; in a session of its own where it has none."""

    id: int
    cosine: float = 0.0
    bm25: float = 0.0
    near_cosine: float = 0.0
    near_bm25: float = 0.0
    is_embedded: bool = True
    session: int | None = None


def candidates(*known: Given) -> Candidates:
    numbers: dict[object, int] = {}
    session = [numbers.setdefault(("of its own", one.id) if one.session is None else one.session, len(numbers)) for one in known]
    return Candidates(
        ids=np.array([one.id for one in known], np.int64),
        session=np.array(session, np.intp),
        is_embedded=np.array([one.is_embedded for one in known], np.bool_),
        **{name: np.array([getattr(one, name) for one in known], np.float64) for name in ("cosine", "bm25", "near_cosine")},
        words=np.array([one.bm25 for one in known], np.float64),
        near_words=np.array([one.near_bm25 for one in known], np.float64),
    )


def matched(*known: Given, count: int = 100, weights: Weights = WEIGHTS) -> list[Ranked]:
    return ranking.matched(candidates(*known), weights, count)


def ids(ranked: Sequence[Ranked]) -> list[int]:
    return [one.id for one in ranked]


def score_of(ranked: Sequence[Ranked], row: int) -> float:
    return next(one.score for one in ranked if one.id == row)


def alike(count: int) -> list[Ranked]:
    """Return candidates that match equally well."""
    return matched(*(Given(id=row, cosine=0.5, bm25=2.0) for row in range(1, count + 1)))


def refined(details: Mapping[int, Details], ranked: Sequence[Ranked] | None = None) -> list[Ranked]:
    return ranking.refined(ranked or alike(len(details)), details, WEIGHTS)


# --- how well a candidate matches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("better", [{"cosine": 0.9}, {"bm25": 9.0}, {"near_cosine": 0.9}, {"near_bm25": 9.0}])
def test_each_way_to_match_better_counts(better: dict[str, float]) -> None:
    plain = Given(id=1, cosine=0.4, bm25=2.0, near_cosine=0.3, near_bm25=1.0)
    assert ids(matched(plain, msgspec.structs.replace(plain, id=2, **better))) == [2, 1]


def test_both_scores_of_a_candidate_count_whichever_found_it() -> None:
    both, words, meaning = Given(id=3, cosine=0.7, bm25=7.0), Given(id=1, bm25=8.0), Given(id=2, cosine=0.8)
    assert ids(matched(words, meaning, both))[0] == 3


def test_a_scale_of_the_scores_says_nothing() -> None:
    one = matched(Given(id=1, cosine=0.8, bm25=2.0), Given(id=2, cosine=0.4, bm25=3.0))
    other = matched(Given(id=1, cosine=0.4, bm25=20.0), Given(id=2, cosine=0.2, bm25=30.0))
    assert {a.id: a.score for a in one} == pytest.approx({b.id: b.score for b in other})


@pytest.mark.parametrize("silent", [("cosine", "near_cosine"), ("bm25", "near_bm25")])
def test_what_says_nothing_of_anybody_leaves_its_weight_to_the_other(silent: tuple[str, str]) -> None:
    perfect = Given(id=1, cosine=0.9, bm25=9.0, near_cosine=0.9, near_bm25=9.0)
    poor = Given(id=2, cosine=0.1, bm25=1.0)
    quiet = [msgspec.structs.replace(one, **dict.fromkeys(silent, 0.0)) for one in (perfect, poor)]
    assert score_of(matched(*quiet), 1) == pytest.approx(score_of(matched(perfect, poor), 1))
    assert ids(matched(*quiet)) == [1, 2]


def test_what_is_not_embedded_has_no_cosine_of_its_own() -> None:
    known = candidates(Given(id=1, cosine=0.4), Given(id=2, cosine=0.3, is_embedded=False))
    assert [known.cosine_of(row) for row in (1, 2, 3)] == [0.4, None, 0.0]
    assert known.relevance_of(2) > known.relevance_of(3) == 0.0
    assert [row in known for row in (1, 2, 3)] == [True, True, False]


def test_what_is_opposite_in_meaning_counts_no_more_than_what_is_unrelated() -> None:
    opposite, unrelated, best = Given(id=1, cosine=-0.9, bm25=1.0), Given(id=2, bm25=1.0), Given(id=3, cosine=0.5, bm25=2.0)
    found = matched(opposite, unrelated, best)
    assert ids(found) == [3, 1, 2]
    assert score_of(found, 1) == score_of(found, 2)


def test_equals_are_in_order_of_their_ids() -> None:
    assert ids(matched(*(Given(id=row, cosine=0.5, bm25=1.0) for row in (3, 1, 2)))) == [1, 2, 3]


def test_the_best_of_a_session_lifts_the_others_of_it() -> None:
    best = Given(id=9, cosine=0.9, bm25=9.0, session=1)
    alone, beside = Given(id=1, cosine=0.3, bm25=1.0), Given(id=2, cosine=0.3, bm25=1.0, session=1)
    assert ids(matched(alone, beside, best)) == [9, 2, 1]
    worse = msgspec.structs.replace(best, cosine=0.31, bm25=1.1)
    assert score_of(matched(alone, beside, worse, Given(id=10, cosine=0.9, bm25=9.0)), 2) < score_of(matched(alone, beside, best), 2)


def test_being_lifted_by_ones_own_session_puts_nobody_above_its_best() -> None:
    found = matched(*(Given(id=row, cosine=row / 10, bm25=row, session=1) for row in range(1, 9)))
    assert ids(found) == list(range(8, 0, -1))


@pytest.mark.parametrize("known", [(), (Given(id=1),), (Given(id=1, cosine=-0.5), Given(id=2))])
def test_what_matches_in_no_way_is_no_result(known: tuple[Given, ...]) -> None:
    if known:
        assert matched(*known) == []
    assert ranking.refined([], {}, WEIGHTS) == []


def test_no_more_are_returned_than_wanted_and_the_best_by_one_sign_and_these_are_in_order() -> None:
    known = [Given(id=row, cosine=0.1 + row / 400, bm25=row % 7) for row in range(1, 300)]
    found = matched(*known, count=5)
    assert found[:5] == matched(*known, count=300)[:5]
    assert len(found) <= 5 + 2 * BY_ITSELF
    assert found == [one for one in matched(*known, count=300) if one in found]


@pytest.mark.parametrize("sign", ["cosine", "bm25"])
def test_the_best_by_one_sign_is_among_those_that_are_looked_at_closely(sign: str) -> None:
    lifted = [Given(id=row, cosine=0.3, bm25=3.0, near_cosine=0.9, near_bm25=9.0, session=1) for row in range(1, 50)]
    exact = msgspec.structs.replace(Given(id=99), **{sign: {"cosine": 0.31, "bm25": 3.1}[sign]})
    assert 99 not in ids(matched(*lifted, exact, count=100))[:5]
    assert 99 in ids(matched(*lifted, exact, count=5))


# --- what else is known of it -------------------------------------------------------------------------------------------------------------

LIFTING: list[dict[str, Any]] = [
    {"is_author_named": True},
    {"identifiers": 0.5},
    {"is_in_period": True},
    {"gives_reason": True},
    {"overlap": 0.5},
    {"kind_weight": 2.0},
    {"priority": 4},
    {"rating": 1},
    {"uses": 3},
]
LOWERING: list[dict[str, Any]] = [
    {"is_question": True},
    {"characters": 20},
    {"kind_weight": 0.8},
    {"priority": 2},
    {"rating": -1},
    {"age_days": 100},
    {"on_probation": True},
    {"denied_by": 99},
    {"is_permanent": False, "idle_days": NEGLECTED_DAYS + 1},
]


@pytest.mark.parametrize("change", LIFTING, ids=str)
def test_what_speaks_for_a_candidate_lifts_it(change: dict[str, Any]) -> None:
    assert ids(refined({1: PLAIN, 2: msgspec.structs.replace(PLAIN, **change)})) == [2, 1]


@pytest.mark.parametrize("change", LOWERING, ids=str)
def test_what_speaks_against_a_candidate_lowers_it(change: dict[str, Any]) -> None:
    assert ids(refined({1: msgspec.structs.replace(PLAIN, **change), 2: PLAIN})) == [2, 1]


@pytest.mark.parametrize("change", [*LIFTING, *LOWERING], ids=str)
def test_a_detail_changes_one_stage_and_tells_it(change: dict[str, Any]) -> None:
    found = refined({1: PLAIN, 2: msgspec.structs.replace(PLAIN, **change)})
    one, other = (dict(next(ranked for ranked in found if ranked.id == row).stages) for row in (1, 2))
    assert len({name for name in {*one, *other} if one.get(name, 0.0) != other.get(name, 0.0)}) == 1


@pytest.mark.parametrize(
    ("field", "less", "more"),
    [("identifiers", 0.5, 1.0), ("overlap", 0.5, 1.0), ("rating", 1, 3), ("rating", -3, -1), ("uses", 1, 9), ("characters", 50, 150)],
)
def test_more_of_what_speaks_for_it_lifts_it_more(field: str, less: float, more: float) -> None:
    details = {row: msgspec.structs.replace(PLAIN, **{field: value}) for row, value in ((1, less), (2, more))}
    assert ids(refined(details)) == [2, 1]


@pytest.mark.parametrize(
    ("field", "enough", "more"), [("rating", 1_000, 100_000), ("rating", -1_000, -100_000), ("characters", SUBSTANCE_CHARACTERS, 10**7)]
)
def test_beyond_enough_more_changes_nothing(field: str, enough: int, more: int) -> None:
    details = {row: msgspec.structs.replace(PLAIN, **{field: value}) for row, value in ((1, enough), (2, more))}
    found = refined(details)
    assert score_of(found, 1) == score_of(found, 2)


def test_a_type_that_is_exempt_does_not_fade() -> None:
    lasting = Details(decays=False, is_permanent=False)
    old = msgspec.structs.replace(lasting, age_days=LONG_AGO, idle_days=LONG_AGO)
    found = refined({1: lasting, 2: old})
    assert score_of(found, 1) == score_of(found, 2)


def test_neglect_touches_only_what_is_not_meant_to_stay_and_nobody_asks_for() -> None:
    def loss(**changes: Any) -> float:
        one, other = (Details(**{"idle_days": idle, **changes}) for idle in (0.0, LONG_AGO))
        found = refined({1: one, 2: other})
        return score_of(found, 1) - score_of(found, 2)

    assert loss(is_permanent=False) > 0
    assert loss(is_permanent=True) == 0
    assert loss(is_permanent=False, uses=1) == 0
    assert loss(is_permanent=False, decays=False) == 0
    assert loss(is_permanent=False, idle_days=NEGLECTED_DAYS - 1) == 0


def test_details_are_weighed_against_the_best_match_whatever_its_score() -> None:
    details = {1: PLAIN, 2: Details(rating=1)}
    strong = refined(details)
    faint = refined(details, [msgspec.structs.replace(one, score=one.score / 100) for one in alike(2)])
    assert strong[0].stages["feedback"] == pytest.approx(100 * faint[0].stages["feedback"])


# --- what denies an older one ----------------------------------------------------------------------------------------------------------------


def denied(*by: int | None, ranked: Sequence[Ranked] | None = None, relevance: Mapping[int, float] | None = None) -> list[Ranked]:
    """Return candidates 1, 2, … of ever later days after those that deny others have taken their places; each entirely relevant."""
    details = {row: Details(denied_by=denying, dated_us=row * DAY_US) for row, denying in enumerate(by, 1)}
    return ranking.succeeded(refined(details) if ranked is None else ranked, details, dict.fromkeys(details, 1.0) | dict(relevance or {}))


def test_what_denies_an_older_one_stands_where_that_would_without_it() -> None:
    found = denied(3, None, None)
    assert ids(found)[-1] == 1
    without = denied(None, None, None)
    assert score_of(found, 3) == pytest.approx(score_of(without, 1))
    assert score_of(found, 2) == score_of(without, 2)


def test_what_was_not_found_by_itself_is_found_for_what_it_denies() -> None:
    alone = [one for one in refined({1: Details(denied_by=2)}, alike(1)) if one.id == 1]
    found = denied(2, None, ranked=alone)
    assert ids(found) == [2, 1]
    assert found[0].stages == {"succeeds": found[0].score}
    assert found[1] == alone[0]


def test_the_last_of_several_that_deny_each_other_stands_for_all() -> None:
    alone = refined({1: Details(denied_by=2)}, alike(1))
    found = denied(2, 3, None, ranked=alone)
    assert ids(found)[0] == 3
    assert sorted(ids(found)) == [1, 2, 3]


def test_what_stands_higher_already_gains_nothing() -> None:
    ranked = [Ranked(id=2, score=1.0, stages={"meaning": 1.0}), Ranked(id=1, score=0.2, stages={"meaning": 0.3, "contradicted": -0.1})]
    assert denied(2, None, ranked=ranked) == ranked


def test_what_has_nothing_to_do_with_the_question_takes_nobodys_place() -> None:
    alone = refined({1: Details(denied_by=2)}, alike(1))
    assert ids(denied(2, None, ranked=alone, relevance={2: 0.0})) == [1]
    assert ids(denied(2, None, ranked=alone, relevance={2: 0.5})) == [2, 1]


def test_two_that_deny_each_other_are_both_there() -> None:
    assert sorted(ids(denied(2, 1))) == [1, 2]


def test_what_the_question_does_not_ask_for_succeeds_nobody() -> None:
    details = {1: Details(denied_by=2)}
    ranked = refined(details, alike(1))
    assert ranking.succeeded(ranked, details, {1: 1.0}) == ranked


# --- any candidates whatever --------------------------------------------------------------------------------------------------------------

SHARE = st.floats(0, 1, allow_nan=False)
ROWS = st.lists(st.integers(1, 12) | st.integers(1, 10**6), min_size=1, max_size=12, unique=True)


@st.composite
def any_candidates(draw: st.DrawFn) -> list[Given]:
    cosine, bm25 = st.floats(-1, 1), st.just(0.0) | st.floats(0, 40)
    return [
        Given(
            id=row, cosine=draw(cosine), bm25=draw(bm25), near_cosine=draw(cosine), near_bm25=draw(bm25), session=draw(st.none() | st.integers(0, 3))
        )
        for row in sorted(draw(ROWS))
    ]


@st.composite
def any_details(draw: st.DrawFn) -> Details:
    days = st.integers(0, 40_000)
    return Details(
        is_author_named=draw(st.booleans()),
        is_question=draw(st.booleans()),
        characters=draw(st.integers(0, 10**7)),
        identifiers=draw(SHARE),
        is_in_period=draw(st.booleans()),
        gives_reason=draw(st.booleans()),
        announces_change=draw(st.booleans()),
        overlap=draw(SHARE),
        kind_weight=draw(st.floats(1e-3, 4)),
        decays=draw(st.booleans()),
        is_permanent=draw(st.booleans()),
        priority=draw(st.integers(1, 5)),
        rating=draw(st.integers(-(10**6), 10**6)),
        uses=draw(st.integers(0, 10**9)),
        age_days=draw(days),
        idle_days=draw(days),
        on_probation=draw(st.booleans()),
        denied_by=draw(st.none() | st.integers(1, 12)),
        dated_us=draw(st.integers(-(10**17), 10**17)),
    )


def check(ranked: Sequence[Ranked], rows: set[int]) -> None:
    assert {one.id for one in ranked} == rows
    assert len(ranked) == len(rows)
    assert all(math.isfinite(one.score) for one in ranked)
    assert all(abs(sum(one.stages.values()) - one.score) < 1e-9 for one in ranked)
    assert ranked == sorted(ranked, key=lambda one: (-round(one.score, 9), one.id))


@given(any_candidates(), st.data())
def test_a_score_is_the_sum_of_its_stages_the_best_come_first_and_nobody_is_lost_or_made(known: list[Given], data: st.DataObject) -> None:
    best = matched(*known)
    check(best, {one.id for one in best})
    assert {one.id for one in known if one.cosine > 1e-6 or one.bm25 > 1e-6} <= set(ids(best)) <= {one.id for one in known}
    details = {one.id: data.draw(any_details()) for one in best}
    found = ranking.refined(best, details, WEIGHTS)
    check(found, set(ids(best)))
    check(ranking.succeeded(found, details, {row: data.draw(SHARE) for row in details}), set(ids(best)))
    vectors = np.random.default_rng(data.draw(st.integers(0, 9))).standard_normal((len(found), 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    compared = Compared(
        relevance=np.array([data.draw(SHARE) for _ in found]), likeness=vectors @ vectors.T, sameness=np.abs(vectors @ vectors.T) * data.draw(SHARE)
    )
    check(renewed(found, details, compared, WEIGHTS), set(ids(best)))


@given(any_candidates().flatmap(lambda known: st.tuples(st.just(known), st.permutations(known))))
def test_the_order_in_which_candidates_are_given_does_not_matter(both: tuple[list[Given], list[Given]]) -> None:
    assert matched(*both[0]) == matched(*both[1])


@given(any_candidates(), st.data())
def test_what_matches_better_never_ranks_lower_for_it(known: list[Given], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(known) - 1))
    field = data.draw(st.sampled_from(["cosine", "bm25", "near_cosine", "near_bm25"]))
    better = msgspec.structs.replace(known[chosen], **{field: getattr(known[chosen], field) + data.draw(st.floats(0, 1))})
    before, after = matched(*known), matched(*known[:chosen], better, *known[chosen + 1 :])

    def above(ranked: list[Ranked]) -> set[int]:
        rows = ids(ranked)
        return set(rows[: rows.index(better.id)]) if better.id in rows else set(rows)

    others_of_its_session = {one.id for one in known if one.session is not None and one.session == better.session}
    assert above(after) - others_of_its_session <= above(before)
