"""From what each candidate shows to its place, by whatever weights: scores are sums, and what is lifted
lowers nobody.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.search import ranking
from omegad.search.confidence import features
from omegad.search.features import FEATURES
from omegad.search.model import Array, Newness, fitted
from omegad.search.pipeline import QueryMemory, observed
from omegad.search.ranking import EPSILON, Ranked, Statements
from tests.searching import LATER_US, Searched

NEWNESS = Newness(reach=1.0, same=(0.2327, 0.6327), blind=1.1)
HALF, NOT_AT_ALL = 0.65, 0.48  # the cosine of two memories that are so much of the same matter
SCORES = st.lists(st.floats(-5, 5).map(lambda score: round(score, 3)), min_size=1, max_size=9)


def found_with(scores: Sequence[float]) -> list[Ranked]:
    """Return candidates 0, 1, … with some scores, best first."""
    return ranking.ranked(range(len(scores)), np.array(scores).reshape(-1, 1), ["meaning"])


def among(
    said: Sequence[float], cosine: float | Array = 1.0, *, may_follow: bool = True, text: str = "the port"
) -> Statements:
    """Return how candidates are to each other that were said in this order; all alike, unless something
    else is given.
    """
    count = len(said)
    return Statements(
        said=np.array(said),
        cosine=np.ones((count, count)) * cosine,
        near=np.ones(count),
        may_follow=np.full((count, count), may_follow),
        denies=np.zeros((count, count), np.bool_),
        texts=[text] * count,
    )


def ids(found: Sequence[Ranked]) -> list[int]:
    return [one.id for one in found]


def check(found: Sequence[Ranked], rows: set[int]) -> None:
    assert sorted(ids(found)) == sorted(rows)
    assert all(math.isclose(sum(one.stages.values()), one.score, abs_tol=1e-9) for one in found)
    assert found == sorted(found, key=lambda one: (-round(one.score, 9), one.id))


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9), st.just(0.0)), max_size=9))
def test_a_score_is_the_sum_of_its_stages_and_the_best_come_first(
    contributions: list[tuple[float, ...]],
) -> None:
    rows = range(len(contributions))
    found = ranking.ranked(rows, np.array(contributions).reshape(-1, 3), ["meaning", "words", "author"])
    check(found, set(rows))


@given(SCORES)
def test_all_are_raised_alike_until_the_best_has_something_to_tell_the_others_by(scores: list[float]) -> None:
    before = found_with(scores)
    found = ranking.raised(before)
    check(found, set(range(len(scores))))
    assert ids(found) == ids(before)
    assert found[0].score == pytest.approx(max(ranking.BEST_MIN, before[0].score))


@given(SCORES, st.data())
def test_what_is_newer_is_lifted_above_what_it_follows_and_nobody_is_lowered(
    scores: list[float], data: st.DataObject
) -> None:
    before = found_with(scores)
    count = data.draw(st.integers(1, len(scores)))
    said = data.draw(st.permutations(range(count)))
    drawn = np.array(data.draw(st.lists(st.floats(0, 1), min_size=count**2, max_size=count**2))).reshape(
        count, count
    )
    statements = among(said, np.maximum(drawn, drawn.T))
    found = ranking.renewed(before, statements, NEWNESS)
    check(found, set(range(len(scores))))
    after = {one.id: one.score for one in found}
    assert all(after[one.id] >= one.score - 1e-12 for one in before)
    assert all(one in found for one in before[count:]), "what is not compared keeps its score"
    best = max(one.score for one in before[:count])
    assert all(after[one.id] <= max(one.score, best + count * EPSILON) for one in before[:count])


@pytest.mark.parametrize(
    ("scores", "statements", "order"),
    [
        ([1.0, 0.9], among([0, 1]), [1, 0]),
        ([1.0, 0.9], among([1, 0]), [0, 1]),
        ([1.0, 0.9, 0.8, 0.7], among([0, 1, 2, 3]), [3, 2, 1, 0]),
        ([2.0, 0.9], among([0, 1]), [0, 1]),
        ([1.0, 0.9], among([0, 1], NOT_AT_ALL), [0, 1]),
        ([1.0, 0.4], among([0, 1], HALF), [0, 1]),
        ([1.0, 0.6], among([0, 1], HALF), [1, 0]),
        ([1.0, 0.9], among([0, 1], may_follow=False), [0, 1]),
        ([1.0, 0.9, 0.8], among([0, 1]), [1, 0, 2]),
    ],
    ids=[
        "newer",
        "older",
        "a chain",
        "far behind",
        "another matter",
        "half the same",
        "half, nearer",
        "must not follow",
        "uncompared",
    ],
)
def test_the_newest_of_the_same_matter_stands_right_above(
    scores: list[float], statements: Statements, order: list[int]
) -> None:
    found = ranking.renewed(found_with(scores), statements, NEWNESS)
    assert ids(found) == order
    blind = msgspec.structs.replace(NEWNESS, blind=0.0)
    assert len(scores) < ranking.MANY
    assert ids(ranking.renewed(found_with(scores), statements, blind)) == order, (
        "few may all be of one matter"
    )
    assert found[0].score == pytest.approx(scores[0], abs=len(scores) * EPSILON)


@pytest.mark.parametrize(
    ("near", "order"),
    [([1.0, 0.7, 0.7], [2, 1, 0]), ([1.0, 0.8, 0.6], [1, 0, 2]), ([1.0, 0.6, 0.4], [0, 2, 1])],
    ids=["near", "too far from the first", "far"],
)
def test_what_stands_in_the_place_of_another_is_nearly_as_near_to_the_question(
    near: list[float], order: list[int]
) -> None:
    statements = msgspec.structs.replace(among([0, 1, 2]), near=np.array(near))
    found = found_with([1.0, 0.9, 0.8])
    assert ids(ranking.renewed(found, statements, NEWNESS)) == order
    denied = msgspec.structs.replace(statements, denies=np.tri(3, k=-1, dtype=np.bool_))
    assert ids(ranking.renewed(found, denied, NEWNESS)) == [2, 1, 0]


@pytest.mark.parametrize(
    ("alike", "cosine", "best"),
    [(2, HALF, 1), (5, HALF, 0), (5, 1.0, 4)],
    ids=["two", "many", "many wordings"],
)
def test_of_many_that_are_half_the_same_each_says_something_of_its_own(
    alike: int, cosine: float, best: int
) -> None:
    cosines = np.zeros((9, 9))
    cosines[:alike, :alike] = cosine
    statements = among(range(9), np.maximum(cosines, np.eye(9)))
    found = ranking.renewed(found_with([1 - place / 10 for place in range(9)]), statements, NEWNESS)
    assert found[0].id == best


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("the parser now keeps the order of options", 8),
        ("\u6211\u7684\u4e0a\u53f8\u559c\u6b22\u8fd0\u52a8", 0),
    ],
    ids=["English", "Chinese"],
)
def test_among_texts_that_are_all_alike_the_newest_is_lifted_in_english_alone(text: str, best: int) -> None:
    cosines = np.full((9, 9), 0.6) + 0.4 * np.eye(9)
    cosines[0, 8] = cosines[8, 0] = 0.95
    statements = among(range(9), cosines, text=text)
    newness = msgspec.structs.replace(NEWNESS, blind=0.54)
    found = ranking.renewed(found_with([1 - place / 10 for place in range(9)]), statements, newness)
    assert found[0].id == best


@given(SCORES, st.lists(st.tuples(st.integers(0, 8), st.integers(0, 20), st.floats(0, 1)), max_size=9))
def test_what_an_edge_leads_to_has_a_share_of_a_score_and_keeps_its_own_if_that_is_better(
    scores: list[float], links: list[tuple[int, int, float]]
) -> None:
    before = found_with(scores)
    known = {one.id: one.score for one in before}
    links = [link for link in links if link[0] in known]
    found = ranking.widened(before, links)
    check(found, known.keys() | {row for origin, row, _ in links if known[origin] > 0})
    assert all(one.score >= known.get(one.id, 0.0) - 1e-12 for one in found)
    assert max(one.score for one in found) <= max(known.values()) + 1e-9


# --- the fitted weights ---------------------------------------------------------------------------


def test_the_model_in_force_weighs_every_feature_and_every_sign(views: Searched) -> None:
    model = fitted()
    assert model.ranking.keys() == {*FEATURES}
    assert 0.0 < model.floor < 1.0
    views.put("a", "alpha")
    query = QueryMemory(text="alpha")
    seen = observed(views.connection, query, views.sources(query), LATER_US)
    told = features(views.connection, [1], seen, lead=1.0)
    assert model.confidence.keys() == told.keys()
    assert model.confidence_by_words.keys() == told.keys() - {"log_cosine", "lead"}


def test_what_the_fit_did_not_see_counts_as_what_it_saw() -> None:
    model, names = fitted(), ("meaning", "long", "brief")
    bounds = np.array([(model.ranking[name].least, model.ranking[name].most) for name in names]).T
    for beyond, bound in ((bounds[0] - 9.0, bounds[0]), (bounds[1] + 9.0, bounds[1])):
        for length in (-1.0, 0.5, 2.0):
            nearest = min(max(length, model.lengths[0]), model.lengths[1])
            assert model.contributions(beyond[None], names, length, 0.5) == pytest.approx(
                model.contributions(bound[None], names, nearest, 0.5)
            )
