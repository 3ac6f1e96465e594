"""What the set finds in a real daemon with the real model is no worse than the floors."""

from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import require_model
from tests.retrieval import asking, report
from tests.retrieval.asking import Run
from tests.retrieval.scoring import CEILINGS, FLOORS, shortfalls

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def scored() -> Iterator[Run]:
    """One run for all tests."""
    require_model()
    with asking.own_daemon() as client:
        yield asking.run(client)


@pytest.mark.parametrize("name", [*FLOORS, *CEILINGS])
def test_the_answers_are_as_good_as_the_floor(scored: Run, name: str) -> None:
    floors = {bound: value for bound, value in FLOORS.items() if bound == name}
    ceilings = {bound: value for bound, value in CEILINGS.items() if bound == name}
    found = shortfalls(scored.card, floors, ceilings)
    assert found == [], "\n".join(report.lines(scored, is_verbose=False))


def test_every_memory_is_kept_as_one_of_its_own(scored: Run) -> None:
    assert scored.merged() == []
    assert len({one.memory_id for one in scored.kept}) == len(scored.kept)


def test_nothing_is_taken_for_a_secret(scored: Run) -> None:
    assert scored.altered() == []


def test_every_question_is_answered_with_the_model(scored: Run) -> None:
    assert scored.degraded == 0
