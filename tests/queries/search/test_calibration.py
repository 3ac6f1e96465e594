"""How sure an answer is: the direction of every sign, and what follows from being unsure."""

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.queries.search import calibration
from omegad.queries.search.calibration import Calibration, Signs, Store
from tests.queries.searching import Searched

FITTED = Calibration()
MIDDLING = Signs(cosine=0.3, coverage=0.5)
SIGNS = st.builds(Signs, cosine=st.none() | st.floats(-1, 1), coverage=st.floats(0, 1), is_in_period=st.booleans())
NAMING = st.builds(Signs, cosine=st.none() | st.floats(-1, 1), coverage=st.floats(0, 1), identifiers=st.sampled_from([0.0, 0.5, 1.0]))
SOME = st.lists(SIGNS, min_size=1, max_size=4) | st.lists(NAMING, min_size=1, max_size=4)


def confidence(*best: Signs, unknown: float | None = 0.2, names: float = 0.0, memories: int = 1_000) -> float:
    store = Store(memories=memories, unknown_words=unknown or 0.0, unknown_names=names, has_words=unknown is not None)
    return calibration.confidence(best, store, FITTED)


@pytest.mark.parametrize(
    ("field", "rising"),
    [("cosine", [-1.0, 0.0, 0.3, 0.6, 1.0]), ("coverage", [0.0, 0.3, 0.7, 1.0]), ("is_in_period", [False, True]), ("identifiers", [0.0, 0.5])],
)
def test_every_sign_of_a_candidate_has_one_direction(field: str, rising: list[Any]) -> None:
    sure = [confidence(msgspec.structs.replace(MIDDLING, **{field: value})) for value in rising]
    assert all(one < other for one, other in pairwise(sure))


def test_the_more_of_the_question_nobody_has_heard_of_the_less_sure() -> None:
    sure = [confidence(MIDDLING, unknown=unknown) for unknown in (0.0, 0.4, 1.0)]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] > sure[-1]


def test_a_name_that_nobody_has_heard_of_tells_more_than_a_word() -> None:
    assert confidence(MIDDLING, unknown=0.0, names=0.3) < confidence(MIDDLING, unknown=0.3) < confidence(MIDDLING, unknown=0.0)


def test_the_more_memories_there_are_the_more_it_tells_that_none_has_heard_of_it() -> None:
    sure = [confidence(MIDDLING, unknown=0.5, memories=memories) for memories in (1, 10, 1_000, 100_000)]
    assert all(one > other for one, other in pairwise(sure))
    assert confidence(MIDDLING, unknown=0.0, memories=1) == confidence(MIDDLING, unknown=0.0, memories=100_000)


def test_without_words_neither_coverage_nor_what_is_unknown_counts() -> None:
    other = msgspec.structs.replace(MIDDLING, coverage=1.0)
    assert confidence(MIDDLING, unknown=None, memories=1) == confidence(other, unknown=None)
    near = msgspec.structs.replace(MIDDLING, cosine=0.9)
    assert confidence(near, unknown=None) > confidence(MIDDLING, unknown=None)


def test_no_candidate_is_no_answer() -> None:
    assert confidence() == 0.0


@pytest.mark.parametrize("better", [{"cosine": 0.6}, {"coverage": 0.9}])
def test_the_best_of_each_sign_counts_whoever_has_it(better: dict[str, float]) -> None:
    other = msgspec.structs.replace(MIDDLING, **better)
    assert confidence(MIDDLING, other) == confidence(other, MIDDLING) == confidence(other) > confidence(MIDDLING, MIDDLING)


def test_one_of_the_best_suffices_to_hold_what_the_question_names() -> None:
    lacking, holding = (msgspec.structs.replace(MIDDLING, identifiers=share) for share in (0.0, 0.5))
    assert confidence(lacking, holding) == confidence(holding) > confidence(lacking, lacking)


def test_to_hold_all_that_the_question_names_tells_more_where_nothing_else_is_unknown() -> None:
    part, whole = (msgspec.structs.replace(MIDDLING, identifiers=share) for share in (0.5, 1.0))
    assert confidence(part, whole, unknown=0.0) > confidence(part, unknown=0.0)
    assert confidence(part, whole, unknown=0.1) == confidence(part, unknown=0.1)


def test_what_has_no_vector_is_judged_by_its_words() -> None:
    sure = [confidence(Signs(cosine=None, coverage=coverage)) for coverage in (0.0, 0.3, 0.7, 1.0)]
    assert all(one < other for one, other in pairwise(sure))
    far, near = (confidence(Signs(cosine=cosine, coverage=0.0), Signs(cosine=None, coverage=0.5)) for cosine in (-1.0, 0.9))
    assert far == confidence(Signs(cosine=None, coverage=0.5)) < near


def test_all_is_answered_and_nothing_is_abstained_from() -> None:
    perfect = confidence(Signs(cosine=1.0, coverage=1.0), unknown=0.0)
    hopeless = confidence(Signs(cosine=0.0, coverage=0.0, identifiers=0.0), unknown=1.0)
    assert hopeless < calibration.FLOOR < perfect


@given(SOME, st.none() | st.floats(0, 1), st.integers(0, 10**9))
def test_it_is_a_probability(best: list[Signs], unknown: float | None, memories: int) -> None:
    assert 0.0 <= confidence(*best, unknown=unknown, memories=memories) < 1.0


@given(SOME, st.floats(0, 1))
def test_another_candidate_never_makes_it_less_sure(best: list[Signs], unknown: float) -> None:
    assert confidence(*best, unknown=unknown) >= confidence(*best[1:], unknown=unknown)


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1), st.data())
def test_better_in_every_sign_is_never_less_sure(cosine: float, other: float, coverage: float, another: float, data: st.DataObject) -> None:
    held = sorted(data.draw(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0]))))
    unknown = sorted(data.draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
    better = Signs(cosine=max(cosine, other), coverage=max(coverage, another), identifiers=held[1])
    worse = Signs(cosine=min(cosine, other), coverage=min(coverage, another), identifiers=held[0])
    assert confidence(better, unknown=unknown[0]) >= confidence(worse, unknown=unknown[1])


def test_below_the_floor_nothing_is_answered_and_the_answer_says_how_likely_the_best_was(monkeypatch: pytest.MonkeyPatch) -> None:
    views = Searched()
    views.put("a", "the deploy runs from the pipeline alone")
    sure = views.matches("deploy pipeline")
    assert len(sure.results) == 1
    monkeypatch.setattr(calibration, "floor", lambda _memories: sure.confidence + 1e-3)
    unsure = views.matches("deploy pipeline")
    assert unsure.results == []
    assert unsure.confidence == sure.confidence
    monkeypatch.setattr(calibration, "floor", lambda _memories: sure.confidence - 1e-3)
    assert len(views.matches("deploy pipeline").results) == 1


def test_the_confidence_is_the_score_of_the_first_result() -> None:
    views = Searched()
    for number in range(5):
        views.put(f"m{number}", f"deploy number {number} runs from the pipeline")
    for mode in ("hybrid", "semantic", "keyword"):
        found = views.matches("deploy number 3 pipeline", mode=mode)
        assert found.results[0].score == pytest.approx(found.confidence, abs=1e-6), mode


@pytest.mark.parametrize("question", ["deploy", "deploy of something that nobody has ever heard of before", "E4711 deploy"])
@pytest.mark.parametrize("mode", ["keyword", "phrase"])
def test_by_words_alone_what_has_a_word_is_an_answer(question: str, mode: str) -> None:
    views = Searched()
    views.put("a", "the deploy runs from the pipeline alone; deploy of something that nobody has ever heard of before; E4711 deploy")
    assert views.found(question, mode=mode) == ["a"]
    assert views.matches("bicycle", mode=mode).results == []


def test_a_small_store_asks_for_less_than_a_large_one() -> None:
    floors = [calibration.floor(memories) for memories in (0, 1, 10, 100, 1_000, 1_000_000)]
    assert floors == sorted(floors)
    assert floors[0] == pytest.approx(calibration.FLOOR / 2)
    assert floors[-1] == pytest.approx(calibration.FLOOR, rel=1e-3)
