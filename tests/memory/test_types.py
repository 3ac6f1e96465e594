"""The types a memory can have."""

import pytest

from omegad.memory.types import BUILT_IN, DAY_SECONDS, MemoryType, MemoryTypes
from omegad.runtime.errors import Invalid

TYPES = MemoryTypes({"recipe": MemoryType(jaccard=0.6, ttl_seconds=5), "decision": MemoryType(jaccard=0.99)})


def test_every_built_in_type_and_those_of_the_configuration_are_known() -> None:
    assert set(BUILT_IN) == {
        *(
            "memory",
            "decision",
            "lesson_learned",
            "user_preference",
            "error_pattern",
            "task_completion",
            "session_summary",
            "checkpoint",
        ),
        *("handoff", "advisor_insight", "reminder", "constraint"),
    }
    for name in (*BUILT_IN, "recipe"):
        TYPES.check(name)


def test_an_unknown_type_is_answered_with_the_nearest_and_all_there_are() -> None:
    with pytest.raises(Invalid, match="unknown event_type 'decison'") as error:
        TYPES.check("decison")
    assert "did you mean 'decision'" in error.value.hint
    assert "recipe" in error.value.hint
    with pytest.raises(Invalid) as error:
        TYPES.check("x" * 10_000)
    assert "did you mean" not in error.value.hint
    assert len(str(error.value)) < 200


def test_a_configured_type_takes_the_place_of_a_built_in_one() -> None:
    assert TYPES.of("decision") == MemoryType(jaccard=0.99)
    assert MemoryTypes({}).of("decision") == BUILT_IN["decision"]
    assert TYPES.of("recipe").ttl_seconds == 5


def test_a_type_that_is_configured_no_more_is_a_plain_memory() -> None:
    assert MemoryTypes({}).of("recipe") == BUILT_IN["memory"]


def test_only_what_a_session_leaves_behind_is_forgotten_unasked() -> None:
    lasting = {name: kind.ttl_seconds for name, kind in BUILT_IN.items() if kind.ttl_seconds is not None}
    assert lasting == {"session_summary": DAY_SECONDS, "checkpoint": 7 * DAY_SECONDS}


def test_rules_and_preferences_and_errors_do_not_fade() -> None:
    assert {name for name, kind in BUILT_IN.items() if not kind.decays} == {
        "user_preference",
        "error_pattern",
        "constraint",
    }


@pytest.mark.parametrize(
    ("name", "jaccard"),
    [("memory", 0.90), ("error_pattern", 0.70), ("decision", 0.80), ("session_summary", 0.75)],
)
def test_how_alike_two_of_a_type_are_to_be_the_same(name: str, jaccard: float) -> None:
    assert BUILT_IN[name].jaccard == jaccard
