"""Which memories are over, proven, rated badly, or to be compacted."""

from typing import Any

import pytest

from omegad.memory.upkeep import compaction, consolidation, expiry
from omegad.memory.upkeep.clusters import CHARACTERS_MAX
from omegad.memory.upkeep.clusters import Member as Compactable
from omegad.memory.upkeep.compaction import CompactMemories
from tests.builders import (
    START_US,
    contradicted,
    deleted,
    promoted,
    queried,
    rated,
    repeated,
    restored,
    superseded,
)
from tests.shown import DAY_US, NOW_US, Shown

MINUTE_US = 60_000_000


def test_what_is_over_is_found_from_its_moment_on_the_longest_over_first(views: Shown) -> None:
    views.store("long", at=START_US, ttl_seconds=120)
    views.store("short", at=START_US, ttl_seconds=60)
    views.store("permanent", at=START_US)
    at = START_US + MINUTE_US
    assert expiry.over(views.connection, at - 1, 10) == ()
    assert expiry.over(views.connection, at, 10) == ("short",)
    assert expiry.over(views.connection, at + DAY_US, 10) == ("short", "long")
    assert expiry.over(views.connection, at + DAY_US, 1) == ("short",)
    views.show(deleted("short"), restored("long", is_permanent=True))
    assert expiry.over(views.connection, at + DAY_US, 10) == ()


def test_what_is_over_is_found_by_an_index(views: Shown) -> None:
    plan = views.plan(expiry._DUE, (NOW_US, 10))
    assert "USING INDEX memories_by_expiry (expires_us<?)" in plan
    assert "TEMP B-TREE" not in plan


def test_what_is_rated_badly_is_found_until_it_is_hidden(views: Shown) -> None:
    for memory_id in ("bad", "worse", "doubtful"):
        views.store(memory_id)
    views.show(rated("bad", -2), rated("bad", -1), rated("worse", -4), rated("doubtful", -2))
    assert consolidation.flagged(views.connection, -3, NOW_US, 10) == ("bad", "worse")
    views.show(deleted("worse"))
    assert consolidation.flagged(views.connection, -3, NOW_US, 10) == ("bad",)


def proven(views: Shown) -> tuple[str, ...]:
    return tuple(memory_id for memory_id, _ in consolidation.proven(views.connection, NOW_US, 10))


def test_what_was_rated_helpful_is_proven(views: Shown) -> None:
    views.store("captured", on_probation=True)
    assert proven(views) == ()
    views.show(rated("captured", 1))
    assert proven(views) == ("captured",)
    views.show(promoted("captured"))
    assert proven(views) == ()


def test_what_one_source_says_over_and_over_is_not_proven_by_that(views: Shown) -> None:
    """Whether a repetition corroborates is decided when it is stored, where it is known who said it."""
    views.store("captured", on_probation=True)
    views.show(*(repeated("captured") for _ in range(5)))
    assert proven(views) == ()


def ask(views: Shown, session_id: str | None, rank: int = 1, day: int = 0) -> None:
    others = [(f"other{place}", 1.0) for place in range(rank - 1)]
    name = f"q{views.position}"
    views.show(
        queried(*others, ("captured", 0.5), query_id=name, at=START_US + day * DAY_US), session_id=session_id
    )


def test_what_three_sessions_found_among_the_best_is_proven(views: Shown) -> None:
    views.store("captured", on_probation=True)
    views.store("ordinary")
    for session_id in ("s-1", "s-2", "s-1"):
        ask(views, session_id, rank=3)
    ask(views, "s-4", rank=4)
    ask(views, "session-1")  # where it comes from
    assert proven(views) == ()
    ask(views, "s-3", rank=3)
    assert proven(views) == ("captured",)
    views.show(deleted("captured"))
    assert proven(views) == ()


def test_what_unsure_answers_brought_is_not_proven(views: Shown) -> None:
    """An answer that is likely none shows the best of what there is, which says nothing of its use."""
    views.store("captured", on_probation=True)
    for session_id in ("s-1", "s-2", "s-3"):
        unsure = queried(("other", 0.27), ("captured", 0.2), query_id=f"q{views.position}", at=START_US)
        views.show(unsure, session_id=session_id)
    assert proven(views) == ()


def test_queries_that_name_no_session_count_once_a_day(views: Shown) -> None:
    views.store("captured", on_probation=True)
    for day in (0, 0, 0, 1, 1):
        ask(views, None, day=day)
    assert proven(views) == ()
    ask(views, None, day=2)
    assert proven(views) == ("captured",)


def compactable(
    views: Shown, *event_types: str, project: str | None = None, limit: int = 10, now_us: int = NOW_US
) -> list[Compactable]:
    asked = CompactMemories(event_types=event_types or ("memory",), project=project)
    return compaction.compactable(views.connection, asked, now_us, limit)


def ids(found: list[Compactable]) -> list[str]:
    return [one.memory_id for one in found]


def test_memories_of_the_types_and_project_asked_for_are_compactable(views: Shown) -> None:
    views.store("a")
    views.store("b", event_type="decision")
    views.store("c", project=None)
    views.store("d", project="other")
    assert ids(compactable(views)) == ["a", "c", "d"]
    assert ids(compactable(views, "memory", "decision")) == ["a", "b", "c", "d"]
    assert ids(compactable(views, project="p")) == ["a"]
    assert ids(compactable(views, limit=2)) == ["c", "d"]


@pytest.mark.parametrize(
    "changes",
    [{"priority": 5}, {"content": "x" * (CHARACTERS_MAX + 1)}, {"ttl_seconds": 60}],
    ids=["important", "a document", "expired"],
)
def test_some_memories_are_left_as_they_are(views: Shown, changes: dict[str, Any]) -> None:
    views.store("a", at=START_US)
    views.store("b", at=START_US, **changes)
    assert ids(compactable(views)) == ["a"]


def test_what_is_hidden_disputed_or_found_helpful_is_left_as_it_is(views: Shown) -> None:
    for memory_id in ("kept", "deleted", "superseded", "disputed", "helpful", "unhelpful"):
        views.store(memory_id)
    views.show(
        deleted("deleted"),
        superseded("superseded", "kept"),
        contradicted("disputed", "kept"),
        rated("helpful", 1),
        rated("unhelpful", -1),
    )
    assert ids(compactable(views)) == ["kept", "unhelpful"]


def test_what_was_restored_from_a_compaction_is_not_compacted_again(views: Shown) -> None:
    views.store("a")
    views.store("b")
    views.store("sum", source="compaction", metadata={"compacted": ["a"]})
    views.store("foreign", source="somebody", metadata={"compacted": ["b"]})
    views.store("odd", source="compaction", metadata={"compacted": None})
    views.show(superseded("a", "sum"), restored("a"))
    assert ids(compactable(views)) == ["b", "sum", "foreign", "odd"]


def test_a_memory_comes_with_what_its_summary_keeps(views: Shown) -> None:
    facts: dict[str, Any] = {
        "tags": ("t",),
        "auto_tags": ("u",),
        "priority": 4,
        "confidence": 0.5,
        "referenced_at": START_US,
        "entity_id": "e",
    }
    views.store("a", "what it says", **facts)
    (one,) = compactable(views)
    assert {name: getattr(one, name) for name in facts} == facts
    assert (one.content, one.event_type, one.project, one.session_id) == (
        "what it says",
        "memory",
        "p",
        "session-1",
    )
