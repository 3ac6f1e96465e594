"""How a thesis stands, and how predictions are scored, by hand-computed examples."""

from typing import Any

import pytest

from omegad.knowledge.calibration import Calibration, calibration
from omegad.knowledge.events import ThesisPredicted, ThesisResolved
from omegad.knowledge.theses import GetThesis, ListTheses, band, get_thesis, list_theses
from omegad.log.event import Event
from omegad.requests.method import Moment
from omegad.storage.driver import Connection
from projections import aged, feedback, memories, retrievals, theses
from tests.builders import (
    START_US,
    evidenced,
    open_in_memory,
    queried,
    rated,
    recorded,
    stored,
    superseded,
    thesis_stated,
)

MOMENT = Moment(position=1, stale_by=0, now_us=START_US)


def shown(*events: Event) -> Connection:
    connection = open_in_memory()
    for projection in (theses, memories, retrievals, aged, feedback):
        connection.executescript(projection.SCHEMA)
        for position, event in enumerate(events, 1):
            if isinstance(event, projection.EVENTS):
                for sql, values in projection.project(recorded(event, position)):
                    connection.execute(sql, values)
    return connection


def weighed(for_count: int, against_count: int, **changes: Any) -> Any:
    given = [
        evidenced("th-1", f"ev-{number}", "for" if number < for_count else "against", **changes)
        for number in range(for_count + against_count)
    ]
    connection = shown(thesis_stated(), *given)
    found = get_thesis(connection, GetThesis(thesis_id="th-1"), MOMENT)
    connection.close()
    return found


@pytest.mark.parametrize(
    ("for_count", "against_count", "confidence", "mean", "deviation", "standing"),
    [
        (0, 0, 0.00, 0.50, 0.29, "open"),
        (1, 0, 0.50, 0.67, 0.24, "open"),
        (0, 1, 0.00, 0.33, 0.24, "open"),
        (2, 1, 0.50, 0.60, 0.20, "open"),
        (5, 1, 0.71, 0.75, 0.14, "supported"),
        (5, 5, 0.45, 0.50, 0.14, "disputed"),
        (10, 0, 0.91, 0.92, 0.08, "supported"),
        (50, 50, 0.495, 0.50, 0.05, "disputed"),
        (0, 3, 0.00, 0.20, 0.16, "weak"),
    ],
)
def test_confidence_and_band_are_those_of_the_formulas(
    for_count: int, against_count: int, confidence: float, mean: float, deviation: float, standing: str
) -> None:
    found = weighed(for_count, against_count)
    assert (found.confidence, found.standing) == (pytest.approx(confidence, abs=0.005), standing)
    low, high = band(for_count, against_count)
    assert (low + high) / 2 == pytest.approx(mean, abs=0.03)
    assert (high - low) / 2 == pytest.approx(deviation, abs=0.03)
    assert list(found.band) == [low, high]


def test_one_origin_however_often_supports_nothing() -> None:
    assert weighed(9, 0, origin="one session").standing == "open"


def test_theses_are_listed_for_a_project_with_those_of_none() -> None:
    connection = shown(thesis_stated("th-1"), thesis_stated("th-2", domain="search"))
    found = list_theses(connection, ListTheses(domain="search"), MOMENT)
    assert ([one.thesis_id for one in found.theses], found.total) == (["th-2"], 1)
    assert [one.thesis_id for one in list_theses(connection, ListTheses(limit=1), MOMENT).theses] == ["th-2"]
    connection.close()


def test_forty_predictions_are_scored_as_by_hand() -> None:
    """0.9 twenty times, of which 18 came true; 0.3 twenty times, of which 8 did; one that cannot be judged
    and one without a probability.
    """
    events = list[Event]()
    for number in range(40):
        p, is_true = (0.9, number < 18) if number < 20 else (0.3, number < 28)
        thesis_id = f"th-{number}"
        events += [
            thesis_stated(thesis_id, domain="likely" if number < 20 else "unlikely", prior=0.5),
            ThesisPredicted(thesis_id=thesis_id, version=1, probability=p, due_at=None, criterion=None),
            ThesisResolved(thesis_id=thesis_id, version=1, outcome="yes" if is_true else "no", source="seen"),
        ]
    events += [
        thesis_stated("x", prior=0.1),
        ThesisResolved(thesis_id="x", version=1, outcome="n/a", source="moot"),
    ]
    events += [thesis_stated("y"), ThesisResolved(thesis_id="y", version=1, outcome="yes", source="seen")]
    connection = shown(*events)
    answer = calibration(connection, Calibration(), MOMENT)
    assert answer.overall is not None
    brier = (18 * 0.01 + 2 * 0.81 + 8 * 0.49 + 12 * 0.09) / 40
    assert (answer.overall.n, answer.overall.is_enough) == (40, True)
    assert answer.overall.brier == pytest.approx(brier)
    assert (answer.overall.base_rate, answer.overall.brier_of_base_rate) == (0.65, 0.2275)
    assert [(one.low, one.n, one.said, one.came_true) for one in answer.overall.curve] == [
        (0.3, 20, 0.3, 0.4),
        (0.9, 20, 0.9, 0.9),
    ]
    assert [(one.domain, one.n, one.is_enough) for one in answer.domains] == [
        ("likely", 20, False),
        ("unlikely", 20, False),
    ]
    assert calibration(connection, Calibration(domain="likely"), MOMENT).domains == answer.domains[:1]
    connection.close()


def test_memories_and_answers_are_scored_by_ratings_and_successors() -> None:
    connection = shown(
        stored("a", confidence=0.9, source="agent"),
        stored("b", confidence=0.8, source="agent"),
        stored("c", confidence=0.5, source="agent"),
        queried(("a", 0.7), ("b", 0.6)),
        rated("a"),
        superseded("b", "a"),
    )
    held = calibration(connection, Calibration(of="memories"), MOMENT).overall
    assert held is not None
    assert held.n == 2
    assert held.brier == pytest.approx((0.01 + 0.64) / 2)
    answered = calibration(connection, Calibration(of="answers"), MOMENT).overall
    assert answered is not None
    assert answered.n == 1
    assert answered.brier == pytest.approx(0.09)
    connection.close()
