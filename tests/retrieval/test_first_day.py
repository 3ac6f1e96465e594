"""On the first day, in homes of one to twelve memories, the right answer comes first and hardly anything else
is shown, and what nothing answers is met with silence: each home is a project of a real daemon.
"""

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import pytest

from tests.acceptance.conftest import require_model
from tests.retrieval import asking
from tests.retrieval.dataset import FOLDER

pytestmark = pytest.mark.model

RIGHT_FIRST, SILENT = 0.84, 0.9  # at least, as shares
BESIDE = 1.0  # other results at most, in the mean
SOLE_SCORE = 0.7  # at least, in the mean, of a right answer that is all there is


class Told(NamedTuple):
    """A question of a home, the ids that answer it, and the answer."""

    memories: int
    golds: frozenset[str]
    answer: dict[str, Any]


@pytest.fixture(scope="module")
def told() -> Iterator[list[Told]]:
    """Every home's answers, by one daemon."""
    require_model()
    found = list[Told]()
    with asking.own_daemon() as client:
        for number, line in enumerate((FOLDER / "first_day.jsonl").read_text().splitlines()):
            said, project = json.loads(line), f"home-{number}"
            ids = [
                client.call("memory.store", content=text, event_type="decision", project=project)["memory_id"]
                for text in said["memories"]
            ]
            for text, golds in said["questions"]:
                answer = client.call("memory.query", text=text, project=project)
                found.append(Told(len(ids), frozenset(ids[gold] for gold in golds), answer))
        yield found


def test_the_right_answer_comes_first_with_hardly_anything_beside_it(told: list[Told]) -> None:
    answered = [one for one in told if one.golds]
    firsts = [one.answer["results"][:1] for one in answered]
    right = [
        bool(first) and first[0]["memory_id"] in one.golds
        for first, one in zip(firsts, answered, strict=True)
    ]
    assert fmean(right) >= RIGHT_FIRST, f"{sum(right)} of {len(right)}"
    assert fmean(len(one.answer["results"][1:]) for one in answered) <= BESIDE


def test_what_nothing_answers_is_met_with_silence(told: list[Told]) -> None:
    silent = [one.answer["abstained"] for one in told if not one.golds]
    assert fmean(silent) >= SILENT, f"{sum(silent)} of {len(silent)}"


def test_a_sole_right_answer_is_a_sure_one(told: list[Told]) -> None:
    scores = [
        one.answer["results"][0]["score"]
        for one in told
        if one.memories == 1 and one.golds and one.answer["results"]
    ]
    assert fmean(scores) >= SOLE_SCORE, scores
