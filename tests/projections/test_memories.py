"""Memories: events in, rows out."""

import json
from typing import Any

import pytest

from omegad.events.fact import Fact
from projections import memories
from tests.builders import START_US, deleted, queried, recorded, related, repeated, rows, show, stored, superseded, tool_called


def memory(*events: Fact, node_id: str = "mem-1") -> dict[str, Any]:
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
        "changed_position": 1,
    }


def test_it_was_created_when_it_occurred() -> None:
    connection = show(memories, [recorded(stored(), occurred_at=START_US - 60_000_000)])
    assert rows(connection, "SELECT created_at, created_us FROM memories") == [("2025-12-31T23:59:00.000000Z", START_US - 60_000_000)]
    connection.close()


def test_repetitions_are_counted() -> None:
    assert memory(stored(), repeated(), repeated())["repeated"] == 2


def test_a_pending_memory_is_pending_until_its_relations_are_decided() -> None:
    assert memory(stored(pending=True))["pending"] == 1
    row = memory(stored(pending=True), related("mem-1"))
    assert (row["pending"], row["changed_position"]) == (0, 1)


@pytest.mark.parametrize(
    ("event", "status", "by"),
    [(superseded("mem-1", "mem-2"), "superseded", "mem-2"), (deleted("mem-1"), "deleted", None)],
    ids=["superseded", "deleted"],
)
def test_a_memory_that_is_hidden_keeps_its_row_and_says_when_it_changed(event: Fact, status: str, by: str | None) -> None:
    row = memory(stored(), tool_called(), event)
    assert (row["status"], row["superseded_by"], row["changed_position"], row["content"]) == (status, by, 3, stored().content)


def test_being_returned_is_counted_with_the_moment_the_query_took_for_now() -> None:
    row = memory(stored(), queried(("mem-1", 0.9), at=START_US), queried(("mem-1", 0.1), ("mem-2", 0.05), at=START_US + 5_000_000), queried())
    assert (row["access_count"], row["last_accessed"], row["changed_position"]) == (2, "2026-01-01T00:00:05.000000Z", 1)


def test_an_event_about_a_memory_that_is_not_there_changes_nothing() -> None:
    events = [repeated("x"), related("x"), superseded("x", "y"), deleted("x"), queried(("x", 1.0))]
    connection = show(memories, [recorded(event, position) for position, event in enumerate(events, 1)])
    assert rows(connection, "SELECT * FROM memories") == []
    connection.close()


def test_metadata_and_tags_are_json() -> None:
    row = memory(stored(metadata={"é": ["\n", None]}, tags=('"', "é")))
    assert (json.loads(row["metadata"]), json.loads(row["tags"])) == ({"é": ["\n", None]}, ['"', "é"])
