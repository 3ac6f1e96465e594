"""What was remembered lately, day by day."""

from typing import Any

import pytest

from omegad.memory import reading
from omegad.memory.reading import Timeline, TimelinePage
from omegad.runtime.errors import Invalid
from tests.builders import START_US, deleted
from tests.shown import DAY_US, NOW_US, Shown


def look(views: Shown, now_us: int = NOW_US, **changes: Any) -> TimelinePage:
    return reading.timeline(views.connection, Timeline(**changes), views.moment(now_us))


def days(page: TimelinePage) -> list[tuple[str, list[str]]]:
    return [(day.day, [memory.memory_id for memory in day.memories]) for day in page.days]


def test_memories_are_told_by_day_the_newest_first(views: Shown) -> None:
    views.store("early", at=START_US)
    views.store("late", at=START_US + 1_000_000)
    views.store("before-midnight", at=START_US - 1)
    views.store("first-of-seven", at=START_US - 6 * DAY_US)
    views.store("too-old", at=START_US - 6 * DAY_US - 1)
    assert days(look(views)) == [
        ("2026-01-01", ["late", "early"]),
        ("2025-12-31", ["before-midnight"]),
        ("2025-12-26", ["first-of-seven"]),
    ]
    assert days(look(views, days=1)) == [("2026-01-01", ["late", "early"])]
    assert days(look(views, days=8))[-1] == ("2025-12-25", ["too-old"])


def test_days_end_where_they_are_asked_to(views: Shown) -> None:
    views.store("now", at=START_US)
    views.store("then", at=START_US - 10 * DAY_US)
    assert days(look(views, days=1, until="2025-12-22T12:00:00Z")) == [("2025-12-22", ["then"])]
    assert days(look(views, days=30, since="2025-12-23")) == [("2026-01-01", ["now"])]
    with pytest.raises(Invalid, match="until is not a time"):
        look(views, until="tomorrow")


def test_what_is_as_old_as_it_says_is_in_its_own_day_whenever_it_was_stored(views: Shown) -> None:
    views.store("new", at=START_US)
    views.store("imported", at=START_US - DAY_US)
    views.store("older", at=START_US - 2 * DAY_US)
    assert days(look(views)) == [
        ("2026-01-01", ["new"]),
        ("2025-12-31", ["imported"]),
        ("2025-12-30", ["older"]),
    ]
    assert days(look(views, limit=1)) == [("2026-01-01", ["new"])]


def test_probation_is_shown_and_what_is_hidden_or_over_is_not(views: Shown) -> None:
    views.store("unasked", on_probation=True)
    views.store("gone")
    views.store("brief", ttl_seconds=60)
    views.show(deleted("gone"))
    (day,) = look(views).days
    assert [(memory.memory_id, memory.status) for memory in day.memories] == [("unasked", "probation")]


def test_a_timeline_is_filtered_and_bounded_and_says_when_it_was_cut(views: Shown) -> None:
    for number in range(3):
        views.store(
            f"m{number}", project="p" if number else "q", event_type="decision" if number == 2 else "memory"
        )
    page = look(views, limit=2)
    assert (days(page), page.truncated) == ([("2026-01-01", ["m2", "m1"])], True)
    assert look(views, limit=3).truncated is False
    assert days(look(views, project="q")) == [("2026-01-01", ["m0"])]
    assert days(look(views, event_types=("decision",))) == [("2026-01-01", ["m2"])]
    assert look(views, project="nowhere").days == []
