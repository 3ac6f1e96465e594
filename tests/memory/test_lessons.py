"""What was learned, by the evidence that there is for it."""

from typing import Any

from omegad.memory import reading
from omegad.memory.reading import Lessons
from tests.builders import deleted, expired, queried, rated, repeated, superseded
from tests.shown import Shown


def learn(views: Shown, *memory_ids: str, event_type: str = "lesson_learned", **changes: Any) -> None:
    for memory_id in memory_ids:
        views.store(memory_id, event_type=event_type, **changes)


def ids(views: Shown, **changes: Any) -> list[str]:
    found = reading.lessons(views.connection, Lessons(**changes), views.moment())
    return [memory.memory_id for memory in found.lessons]


def test_ratings_count_before_repetition_before_use_before_age(views: Shown) -> None:
    learn(views, "rated", "repeated", "found", "older", "newer", "outdated")
    views.show(
        rated("rated"),
        rated("outdated", points=-2),
        repeated("repeated"),
        repeated("outdated"),
        repeated("outdated"),
    )
    views.show(queried(("found", 0.9), ("repeated", 0.8)), queried(("found", 0.9), query_id="query-2"))
    assert ids(views) == ["rated", "repeated", "found", "newer", "older", "outdated"]
    assert ids(views, limit=2) == ["rated", "repeated"]


def test_of_one_rating_those_on_probation_come_last(views: Shown) -> None:
    learn(views, "asked-for")
    learn(views, "unasked", on_probation=True)
    learn(views, "disliked")
    views.show(repeated("unasked"), rated("disliked", points=-1))
    assert ids(views) == ["asked-for", "unasked", "disliked"]


def test_lessons_are_of_two_types_unless_others_are_named(views: Shown) -> None:
    learn(views, "lesson")
    learn(views, "error", event_type="error_pattern")
    learn(views, "decision", event_type="decision")
    assert ids(views) == ids(views, event_types=()) == ["error", "lesson"]
    assert ids(views, event_types=("decision",)) == ["decision"]


def test_lessons_that_hold_no_more_are_left_out(views: Shown) -> None:
    learn(views, "holds", "superseded", "deleted", "expired")
    learn(views, "over", ttl_seconds=60)
    views.show(superseded("superseded", "holds"), deleted("deleted"), expired("expired"))
    assert ids(views) == ["holds"]


def test_lessons_of_one_project_are_asked_for_alone(views: Shown) -> None:
    learn(views, "here")
    learn(views, "there", project="q")
    assert ids(views, project="q") == ["there"]
