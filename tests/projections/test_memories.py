"""Memories: events in, rows out."""

import json
from typing import Any

import pytest

from omegad.log.event import Event
from projections import memories
from tests.builders import (
    START_US,
    contradicted,
    deleted,
    edited,
    embedded,
    evolved,
    expired,
    key_of,
    linked,
    promoted,
    queried,
    rated,
    recorded,
    related,
    repeated,
    restored,
    rows,
    show,
    stored,
    superseded,
    tool_called,
    unlinked,
)

SECOND = 1_000_000


def memory(*events: Event, node_id: str = "mem-1") -> dict[str, Any]:
    connection = show(memories, [recorded(event, position) for position, event in enumerate(events, 1)])
    cursor = connection.execute("SELECT * FROM memories WHERE node_id = ?", (node_id,))
    row = dict(zip([column[0] for column in cursor.description], cursor.fetchone(), strict=True))
    connection.close()
    return row


def test_a_stored_memory_is_a_row() -> None:
    changes = {
        "event_type": "decision",
        "entity_id": "shop",
        "tags": ("b", "a"),
        "priority": 5,
        "metadata": {"b": 1, "a": {"d": 2, "c": 3}},
        "referenced_at": START_US,
        "ttl_seconds": 60,
        "source": "cli",
        "confidence": 0.5,
        "redacted": ("jwt",),
        "auto_tags": ("python", "a/b.py"),
        "on_probation": True,
    }
    row = memory(stored("mem-1", "text", **changes))
    assert row == {
        "id": 1,
        "node_id": "mem-1",
        "content": "text",
        "metadata": '{"a":{"c":3,"d":2},"b":1}',
        "created_at": "2026-01-01T00:00:01.000000Z",
        "last_accessed": None,
        "access_count": 0,
        "surfaced": 0,
        "ttl_seconds": 60,
        "session_id": "session-1",
        "event_type": "decision",
        "project": "/src/omegad",
        "content_hash": stored("mem-1", "text", **changes).content_key,
        "priority": 5,
        "referenced_date": "2026-01-01T00:00:00.000000Z",
        "entity_id": "shop",
        "tags": '["b","a"]',
        "source": "cli",
        "confidence": 0.5,
        "status": "active",
        "superseded_by": None,
        "repeated": 0,
        "pending": 0,
        "redacted": '["jwt"]',
        "created_us": START_US + 1_000_000,
        "said_us": START_US + 1_000_000,
        "used_us": START_US + 1_000_000,
        "expires_us": START_US + 61_000_000,
        "referenced_us": START_US,
        "changed_position": 1,
        "on_probation": 1,
        "contradicted_by": None,
        "rating": 0,
        "auto_tags": '["python","a/b.py"]',
        "edited_at": None,
        "characters": 4,
        "author": None,
        "is_question": 0,
    }


def test_it_was_created_when_it_occurred() -> None:
    connection = show(memories, [recorded(stored(), occurred_at=START_US - 60_000_000)])
    assert rows(connection, "SELECT created_at, created_us FROM memories") == [
        ("2025-12-31T23:59:00.000000Z", START_US - 60_000_000)
    ]
    connection.close()


def test_repetitions_are_counted_and_keep_it_young() -> None:
    row = memory(stored(), repeated(), repeated())
    assert (row["repeated"], row["said_us"], row["created_us"], row["edited_at"]) == (
        2,
        START_US + 3 * SECOND,
        START_US + SECOND,
        None,
    )
    assert (row["content"], row["changed_position"], row["expires_us"]) == (stored().content, 3, None)


@pytest.mark.parametrize("event", [repeated(), edited(), evolved()], ids=["repeated", "edited", "evolved"])
def test_what_is_said_again_lives_on_from_then(event: Event) -> None:
    row = memory(stored(ttl_seconds=60), tool_called(), event)
    assert (row["expires_us"], row["ttl_seconds"], row["said_us"]) == (
        START_US + 63 * SECOND,
        60,
        START_US + 3 * SECOND,
    )


@pytest.mark.parametrize("event", [repeated(), edited(), evolved()], ids=["repeated", "edited", "evolved"])
def test_what_was_said_long_ago_makes_no_memory_older_or_shorter_lived(event: Event) -> None:
    """What is imported happened when it says, which may be before what is known."""
    connection = show(
        memories,
        [recorded(stored(ttl_seconds=60), 1), recorded(event, 2, occurred_at=START_US - 1_000 * SECOND)],
    )
    assert rows(connection, "SELECT said_us, expires_us FROM memories") == [
        (START_US + SECOND, START_US + 61 * SECOND)
    ]
    connection.close()


@pytest.mark.parametrize(
    "event", [edited("mem-1", "other words"), evolved("mem-1", "other words")], ids=["edited", "evolved"]
)
def test_a_memory_that_is_reworded_keeps_its_id_and_birth_and_says_when(event: Event) -> None:
    row = memory(stored(event_type="decision"), event)
    assert (row["id"], row["created_us"], row["event_type"], row["status"]) == (
        1,
        START_US + SECOND,
        "decision",
        "active",
    )
    assert (row["content"], row["content_hash"]) == ("other words", key_of("other words"))
    assert (row["edited_at"], row["changed_position"]) == ("2026-01-01T00:00:02.000000Z", 2)


def test_a_memory_has_the_traits_of_what_it_says_now() -> None:
    def traits_of(*events: Event) -> tuple[object, ...]:
        row = memory(*events)
        return row["characters"], row["author"], row["is_question"]

    asked = "Ada: why was the retry removed?"
    assert traits_of(stored(content=asked)) == (len(asked), "ada", 1)
    assert traits_of(stored(content=asked), edited(content="plain")) == (5, None, 0)
    assert traits_of(stored(content="plain"), evolved(content=asked)) == (len(asked), "ada", 1)


def test_points_add_up() -> None:
    row = memory(stored(), rated(points=1), rated(points=-2), rated(points=-2))
    assert (row["rating"], row["changed_position"]) == (-3, 1)


def test_probation_ends_with_a_promotion() -> None:
    assert memory(stored(on_probation=True))["on_probation"] == 1
    assert memory(stored(on_probation=True), promoted())["on_probation"] == 0


def test_a_memory_names_the_latest_that_denies_it() -> None:
    denied = (
        *(stored(name) for name in ("mem-1", "mem-2", "mem-3")),
        *(contradicted("mem-1", by) for by in ("mem-2", "mem-3")),
    )
    assert (memory(*denied)["contradicted_by"], memory(*denied)["status"]) == ("mem-3", "active")
    assert memory(*denied, deleted("mem-3"))["contradicted_by"] == "mem-2"
    assert memory(*denied, deleted("mem-3"), expired("mem-2"))["contradicted_by"] is None
    assert memory(*denied, deleted("mem-3"), restored("mem-3"))["contradicted_by"] == "mem-3"
    assert (
        memory(*denied, deleted("mem-3"), unlinked("mem-2", "mem-1", "contradicts"))["contradicted_by"]
        is None
    )
    assert memory(*denied, deleted("mem-3"), repeated("mem-1"), restored("mem-3"))["contradicted_by"] is None


@pytest.mark.parametrize(
    "hidden", [superseded("mem-1", "mem-2"), deleted(), expired()], ids=["superseded", "deleted", "expired"]
)
def test_a_memory_that_is_restored_is_as_it_was_before_it_was_hidden(hidden: Event) -> None:
    before = memory(stored(ttl_seconds=60), rated())
    assert memory(stored(ttl_seconds=60), rated(), hidden, restored()) == before | {"changed_position": 4}
    kept = memory(stored(ttl_seconds=60), rated(), hidden, restored(is_permanent=True))
    assert kept == before | {"changed_position": 4, "ttl_seconds": None, "expires_us": None}


def test_a_memory_may_be_hidden_twice_over_and_restored_once() -> None:
    row = memory(stored(), superseded("mem-1", "mem-2"), deleted(), restored())
    assert (row["status"], row["superseded_by"]) == ("active", None)


def test_a_pending_memory_is_pending_until_its_relations_are_decided() -> None:
    assert memory(stored(pending=True))["pending"] == 1
    row = memory(stored(pending=True), related("mem-1"))
    assert (row["pending"], row["changed_position"]) == (0, 1)


@pytest.mark.parametrize(
    ("event", "status", "by"),
    [
        (superseded("mem-1", "mem-2"), "superseded", "mem-2"),
        (deleted("mem-1"), "deleted", None),
        (expired("mem-1"), "expired", None),
    ],
    ids=["superseded", "deleted", "expired"],
)
def test_a_memory_that_is_hidden_keeps_its_row_and_says_when_it_changed(
    event: Event, status: str, by: str | None
) -> None:
    row = memory(stored(), tool_called(), event)
    assert (row["status"], row["superseded_by"], row["changed_position"], row["content"]) == (
        status,
        by,
        3,
        stored().content,
    )


def test_being_returned_is_counted_with_the_moment_the_query_took_for_now() -> None:
    row = memory(
        stored(),
        queried(("mem-1", 0.9), at=START_US),
        queried(("mem-1", 0.1), ("mem-2", 0.05), at=START_US + 5_000_000),
        queried(),
    )
    assert (row["access_count"], row["last_accessed"], row["changed_position"]) == (
        2,
        "2026-01-01T00:00:05.000000Z",
        1,
    )


def test_an_event_about_a_memory_that_is_not_there_changes_nothing() -> None:
    changes = [
        repeated("x"),
        related("x"),
        evolved("x"),
        edited("x"),
        contradicted("x", "y"),
        rated("x"),
        promoted("x"),
        embedded("x"),
    ]
    states = [
        superseded("x", "y"),
        deleted("x"),
        expired("x"),
        restored("x"),
        linked("x", "y"),
        unlinked("x", "y", "related"),
    ]
    events: list[Event] = [*changes, *states, queried(("x", 1.0))]
    connection = show(memories, [recorded(event, position) for position, event in enumerate(events, 1)])
    assert rows(connection, "SELECT * FROM memories") == []
    connection.close()


def test_metadata_and_tags_are_json() -> None:
    row = memory(stored(metadata={"é": ["\n", None]}, tags=('"', "é")))
    assert (json.loads(row["metadata"]), json.loads(row["tags"])) == ({"é": ["\n", None]}, ['"', "é"])
