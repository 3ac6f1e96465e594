"""The smaller views: events in, rows out."""

import json
from typing import Any

import numpy as np
import pytest

from omegad.log.event import Event, Excerpt, RecordedEvent
from omegad.log.projection import Embedding
from omegad.session.events import CheckedRef
from omegad.storage.driver import Connection
from projections import (
    audit,
    conversations,
    edges,
    fulltext,
    git_events,
    histories,
    retrievals,
    sessions,
    vectors,
)
from tests.builders import (
    START_US,
    contradicted,
    deleted,
    edited,
    embedded,
    evolved,
    excerpt,
    expired,
    linked,
    look_up,
    promoted,
    prompt_submitted,
    push_checked,
    queried,
    rated,
    recorded,
    related,
    relations,
    repeated,
    restored,
    rows,
    session_ended,
    session_started,
    show,
    stored,
    superseded,
    surfaced,
    tool_called,
    turn_ended,
    unlinked,
    vector_of,
)


def in_order(*events: Event) -> list[RecordedEvent]:
    return [recorded(event, position) for position, event in enumerate(events, 1)]


def test_edges_come_with_a_memory_after_it_and_with_its_successor() -> None:
    log = [
        recorded(stored("a", related=relations(("x", 0.9), ("y", 0.5))), 1),
        recorded(related("b", ("a", 0.7)), 2),
        recorded(superseded("a", "b"), 3),
    ]
    connection = show(edges, log)
    assert rows(
        connection, "SELECT id, source_id, target_id, edge_type, weight, created_at FROM edges ORDER BY id"
    ) == [
        (1024, "a", "x", "related", 0.9, "2026-01-01T00:00:01.000000Z"),
        (1025, "a", "y", "related", 0.5, "2026-01-01T00:00:01.000000Z"),
        (2048, "b", "a", "related", 0.7, "2026-01-01T00:00:02.000000Z"),
        (3072, "a", "b", "superseded_by", 1.0, "2026-01-01T00:00:03.000000Z"),
    ]
    connection.close()


def test_an_edge_has_a_weight_from_0_to_1_and_is_there_once_with_the_latest() -> None:
    log = [recorded(related("a", ("b", -0.3), ("c", 1.000001)), 1), recorded(related("a", ("b", 0.6)), 2)]
    connection = show(edges, log)
    assert rows(connection, "SELECT id, target_id, weight FROM edges ORDER BY id") == [
        (1024, "b", 0.6),
        (1025, "c", 1.0),
    ]
    connection.close()


def edges_of(*events: Event) -> list[tuple[Any, ...]]:
    connection = show(edges, in_order(*events))
    found = rows(
        connection, "SELECT source_id, target_id, edge_type, weight, metadata FROM edges ORDER BY id"
    )
    connection.close()
    return found


def test_a_contradiction_is_an_edge_from_the_newer_with_its_reason() -> None:
    event = contradicted("old", "new", 0.75, 'the "port" is 9090')
    assert edges_of(event) == [("new", "old", "contradicts", 0.75, '{"reason":"the \\"port\\" is 9090"}')]
    assert edges_of(event, contradicted("old", "new", 0.5, "b")) == [
        ("new", "old", "contradicts", 0.5, '{"reason":"b"}')
    ]


def test_an_edge_that_was_drawn_has_its_weight_and_drawn_again_the_new_one() -> None:
    assert edges_of(linked("a", "b", "evolves", 0.5)) == [("a", "b", "evolves", 0.5, None)]
    assert edges_of(
        linked("a", "b", "evolves", 0.5), linked("a", "b", "evolves", 0.25), linked("b", "a", "evolves", 1.0)
    ) == [("a", "b", "evolves", 0.25, None), ("b", "a", "evolves", 1.0, None)]


def test_the_edges_that_are_named_are_taken_away_and_can_be_drawn_again() -> None:
    drawn = (
        linked("a", "b", "evolves"),
        linked("a", "b", "related"),
        linked("b", "a", "related"),
        linked("a", "c", "related"),
    )
    left = edges_of(*drawn, unlinked("a", "b", "related"))
    assert [edge[:3] for edge in left] == [
        ("a", "b", "evolves"),
        ("b", "a", "related"),
        ("a", "c", "related"),
    ]
    assert [edge[:3] for edge in edges_of(*drawn, unlinked("a", "b", "related", "evolves"))] == [
        ("b", "a", "related"),
        ("a", "c", "related"),
    ]
    assert edges_of(linked("a", "b"), unlinked("a", "b", "related"), linked("a", "b", "related", 0.5)) == [
        ("a", "b", "related", 0.5, None)
    ]


def test_a_memory_that_is_restored_has_no_successor_and_keeps_its_other_edges() -> None:
    drawn = (related("a", ("b", 0.7)), contradicted("a", "b"), contradicted("d", "a"), superseded("c", "b"))
    left = [
        ("a", "b", "related"),
        ("b", "a", "contradicts"),
        ("a", "d", "contradicts"),
        ("c", "b", "superseded_by"),
    ]
    assert [edge[:3] for edge in edges_of(*drawn, superseded("a", "b"), restored("a"))] == left


@pytest.mark.parametrize("reworded", [edited("a"), evolved("a")], ids=["edited", "evolved"])
def test_a_memory_that_is_reworded_has_no_vectors_until_they_are_of_what_it_says(reworded: Event) -> None:
    log = (
        embedded("a", "one", "two"),
        embedded("a", "one", embedder_id="other"),
        embedded("b", "three"),
        reworded,
    )
    connection = show(vectors, in_order(*log))
    assert rows(connection, "SELECT id, memory_id FROM memory_vectors") == [(3072, "b")]
    connection.close()
    connection = show(vectors, in_order(*log, embedded("a", "four")))
    assert rows(connection, "SELECT id, memory_id, chunk FROM memory_vectors ORDER BY id") == [
        (3072, "b", 0),
        (5120, "a", 0),
    ]
    connection.close()


def test_every_passage_has_a_row() -> None:
    connection = show(
        vectors,
        [recorded(embedded("a", "one", "two"), 1), recorded(embedded("a", "one", embedder_id="other"), 2)],
    )
    found = rows(connection, "SELECT id, memory_id, embedder_id, chunk FROM memory_vectors ORDER BY id")
    assert found == [(1024, "a", "paper-1", 0), (1025, "a", "paper-1", 1), (2048, "a", "other", 0)]
    wanted = look_up(Embedding("paper-1", embedded("a", "two").text_hashes[0]))
    sql = "SELECT id, vec_distance_cosine(vector, ?) AS away FROM memory_vectors ORDER BY away LIMIT 1"
    ((nearest, distance),) = rows(connection, sql, wanted)
    assert nearest == 1025
    assert distance < 1e-3
    connection.close()


def test_the_words_of_a_memory_are_found_with_what_is_known_of_it() -> None:
    changes = {
        "entity_id": "shop",
        "event_type": "decision",
        "tags": ("blue", "green"),
        "referenced_at": START_US,
    }
    connection = show(fulltext, [recorded(stored("a", "We deployed Crème brûlée", **changes), 7)])
    assert rows(connection, "SELECT rowid, content, context, tags FROM memories_fts") == [
        (7, "We deployed Crème brûlée", "/src/omegad shop decision", "blue green 1 January 2026")
    ]
    for words in ("deploy", "creme", "brulee", '"green"', "january", "decision", '"src omegad"'):
        assert rows(connection, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", words) == [
            (7,)
        ], words
    connection.close()


def test_the_words_of_a_hidden_memory_are_not_found() -> None:
    log = [
        recorded(stored("a", "alpha"), 1),
        recorded(stored("b", "beta"), 2),
        recorded(stored("c", "gamma"), 3),
    ]
    connection = show(
        fulltext,
        [*log, recorded(deleted("a"), 4), recorded(superseded("b", "c"), 5), recorded(deleted("nobody"), 6)],
    )
    assert rows(connection, "SELECT rowid, content FROM memories_fts") == [(3, "gamma")]
    assert rows(connection, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'alpha OR beta'") == []
    assert is_sound(connection)
    connection.close()


def found_by(connection: Connection, *words: str) -> dict[str, list[int]]:
    sql = "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ? ORDER BY rowid"
    return {word: [row[0] for row in rows(connection, sql, word)] for word in words}


def is_sound(connection: Connection) -> bool:
    return [row for statement in fulltext.INTEGRITY for row in rows(connection, statement)] == []


def test_parts_of_names_and_characters_of_unspaced_scripts_are_words() -> None:
    connection = show(
        fulltext,
        in_order(stored("a", "see PaymentGateway"), stored("b", "記憶を保つ", auto_tags=("python",))),
    )
    assert found_by(connection, "payment", "gateway", "paymentgateway", "記憶", "python") == {
        "payment": [1],
        "gateway": [1],
        "paymentgateway": [1],
        "記憶": [2],
        "python": [2],
    }
    connection.close()


@pytest.mark.parametrize(
    "reworded", [edited("a", "gamma HttpServer"), evolved("a", "gamma HttpServer")], ids=["edited", "evolved"]
)
def test_a_memory_that_is_reworded_is_found_by_what_it_says_now_alone(reworded: Event) -> None:
    log = (stored("a", "alpha PaymentGateway", tags=("blue",)), stored("b", "alpha"))
    connection = show(fulltext, in_order(*log, reworded))
    assert found_by(connection, "alpha", "payment", "gamma", "server", "blue") == {
        "alpha": [2],
        "payment": [],
        "gamma": [1],
        "server": [1],
        "blue": [1],
    }
    assert is_sound(connection)
    connection.close()


@pytest.mark.parametrize(
    "hidden", [superseded("a", "b"), deleted("a"), expired("a")], ids=["superseded", "deleted", "expired"]
)
def test_a_memory_that_is_restored_is_found_by_all_it_was_found_by(hidden: Event) -> None:
    log = (
        stored("a", "alpha PaymentGateway", tags=("blue",)),
        stored("b", "beta"),
        edited("a", "gamma HttpServer"),
    )
    whole = show(fulltext, in_order(*log))
    before = rows(whole, "SELECT rowid, * FROM memories_fts"), rows(whole, "SELECT * FROM fulltext_rows")
    while_hidden = show(fulltext, in_order(*log, hidden))
    assert found_by(while_hidden, "alpha", "gamma", "server", "blue") == {
        "alpha": [],
        "gamma": [],
        "server": [],
        "blue": [],
    }
    after = show(fulltext, in_order(*log, hidden, restored("a")))
    assert (
        rows(after, "SELECT rowid, * FROM memories_fts"),
        rows(after, "SELECT * FROM fulltext_rows"),
    ) == before
    again = show(
        fulltext, in_order(*log, hidden, restored("a"), edited("a", "delta"), deleted("a"), restored("a"))
    )
    assert found_by(again, "gamma", "delta", "blue") == {"gamma": [], "delta": [1], "blue": [1]}
    for connection in (whole, while_hidden, after, again):
        assert is_sound(connection)
        connection.close()


def test_a_memory_may_be_hidden_twice_over_and_found_again() -> None:
    connection = show(
        fulltext, in_order(stored("a", "alpha"), superseded("a", "b"), deleted("a"), restored("a"))
    )
    assert found_by(connection, "alpha") == {"alpha": [1]}
    assert is_sound(connection)
    connection.close()


def test_the_check_of_the_full_text_finds_a_ghost() -> None:
    connection = show(fulltext, in_order(stored("a", "alpha")))
    connection.execute("UPDATE memories_fts_content SET c0 = 'beta'")
    assert not is_sound(connection)
    connection.close()


def test_memories_stand_in_their_sessions_between_their_neighbours() -> None:
    log = [
        recorded(stored("a"), 1),
        recorded(stored("b"), 2, session_id="other"),
        recorded(stored("c"), 3, session_id=None),
        recorded(stored("d"), 4),
        recorded(stored("e"), 5),
        recorded(deleted("d"), 6),
    ]
    connection = show(sessions, log)
    assert rows(
        connection, "SELECT id, session_id, memory_id, previous_id, next_id FROM session_memories ORDER BY id"
    ) == [
        (1, "session-1", "a", None, 4),
        (2, "other", "b", None, None),
        (4, "session-1", "d", 1, 5),
        (5, "session-1", "e", 4, None),
    ]
    connection.close()


def test_a_life_is_made_of_the_events_about_a_memory_and_those_that_name_it() -> None:
    about = (
        repeated("a"),
        embedded("a"),
        edited("a"),
        evolved("a"),
        rated("a"),
        promoted("a"),
        related("a"),
        deleted("a"),
        restored("a"),
        expired("a"),
    )
    two = (
        superseded("a", "b"),
        contradicted("a", "b"),
        linked("a", "b"),
        unlinked("a", "b", "related"),
        linked("a", "a"),
    )
    connection = show(
        histories, in_order(stored("a"), *about, *two, stored("b"), queried(("a", 1.0)), tool_called())
    )
    found = rows(connection, "SELECT memory_id, position FROM memory_history ORDER BY memory_id, position")
    assert [position for name, position in found if name == "a"] == list(range(1, 17))
    assert [position for name, position in found if name == "b"] == [12, 13, 14, 15, 17]
    connection.close()


def test_a_tool_call_is_a_row_with_the_beginning_of_what_went_in_and_out() -> None:
    call = tool_called(
        4,
        tool_input=excerpt("x" * 300),
        result=excerpt("ok", "end mem-00ff00ff00ff00ff"),
        duration_ms=1.5,
        status="error",
    )
    connection = show(audit, [recorded(call, 9), recorded(tool_called(5), 10)])
    assert rows(connection, "SELECT * FROM coord_audit ORDER BY id") == [
        (
            *(9, "session-1", 4, "Bash", "error", "toolu-4", "x" * 200, 300, "ok", 26, 1.5),
            *("/src/omegad", "2026-01-01T00:00:09.000000Z", None, "[]", '["mem-00ff00ff00ff00ff"]', "[]"),
            *("error", 300),
        ),
        (
            10,
            "session-1",
            5,
            "Bash",
            "ok",
            "toolu-5",
            None,
            None,
            None,
            None,
            None,
            "/src/omegad",
            "2026-01-01T00:00:10.000000Z",
            None,
            "[]",
            "[]",
            "[]",
            "ok",
            None,
        ),
    ]
    connection.close()


@pytest.mark.parametrize(
    ("tool", "given", "edited"),
    [
        ("Edit", excerpt('{"file_path":"/src/a.py","new_string":"x"}'), ["/src/a.py"]),
        ("Write", excerpt('{"file_path":"/src/a.py","content":"', "end"), ["/src/a.py"]),
        ("str_replace_editor", excerpt('{"command":"view","path":"/src/a.py"}'), []),
        ("str_replace_editor", excerpt('{"command":"create","path":"/src/a.py"}'), ["/src/a.py"]),
        ("Read", excerpt('{"file_path":"/src/a.py"}'), []),
        (
            "shell",
            excerpt(
                '{"command":["apply_patch","*** Begin Patch\\n*** Update File: a.py\\n*** Add File: b.py\\n"]}'
            ),
            ["a.py", "b.py"],
        ),
        ("apply_patch", excerpt('{"input":"*** Begin Patch\\n*** Update File: a.py\\n', "…"), ["a.py"]),
        ("Bash", excerpt('{"command":"cat a.py"}'), []),
    ],
)
def test_the_files_that_a_call_was_to_change_stand_in_its_row(
    tool: str, given: Excerpt, edited: list[str]
) -> None:
    connection = show(audit, [recorded(tool_called(1, tool_name=tool, tool_input=given), 1)])
    ((found,),) = rows(connection, "SELECT edited FROM coord_audit")
    assert json.loads(found) == edited
    connection.close()


@pytest.mark.parametrize(
    ("given", "file"),
    [
        ('{"file_path":"/src/a \\"b\\".py","content":"\\"path\\": 1"}', '/src/a "b".py'),
        ('{"notebook_path":"n.ipynb"}', "n.ipynb"),
        ('{"explanation":"x","filePath":"/src/a.py"}', "/src/a.py"),
        ('{"TargetFile":"/src/a.py"}', "/src/a.py"),
        ('{"relative_path":"src/a.py"}', "src/a.py"),
        ("*** Begin Patch\n*** Update File: src/a.py\n@@", "src/a.py"),
        ('{"command":"ls"}', None),
    ],
)
def test_the_file_that_a_tool_was_given_is_known(given: str, file: str | None) -> None:
    connection = show(audit, [recorded(tool_called(1, tool_input=excerpt(given)), 1)])
    assert rows(connection, "SELECT file FROM coord_audit") == [(file,)]
    connection.close()


def test_a_session_and_what_was_said_in_it_are_rows() -> None:
    events = [
        session_started(),
        prompt_submitted("faster"),
        tool_called(1),
        turn_ended("done"),
        turn_ended(None),
        session_ended(),
    ]
    connection = show(conversations, [recorded(event, position) for position, event in enumerate(events, 1)])
    assert rows(connection, "SELECT id, role, content, bytes FROM conversations") == [
        (2, "user", "faster", 6),
        (4, "assistant", "done", 4),
    ]
    counted = (
        "SELECT host, source, folder, started_position, prompts, turns, tool_calls, ended_at, end_reason FROM"
        " agent_sessions"
    )
    assert rows(connection, counted) == [
        ("claude-code", "startup", "/src/omegad", 1, 1, 2, 1, "2026-01-01T00:00:06.000000Z", "logout")
    ]
    for statement in conversations.project(recorded(session_started("compact"), 7)):
        connection.execute(statement.sql, statement.values)
    assert rows(connection, counted) == [("claude-code", "compact", "/src/omegad", 7, 1, 2, 1, None, None)]
    connection.close()


def test_each_branch_of_a_push_is_a_row_and_so_is_a_push_of_none_that_is_known() -> None:
    refs = (
        CheckedRef(
            ref="refs/heads/main",
            local_sha="a",
            remote_sha="b",
            found="stale",
            is_forced=True,
            lacks=1,
            commits=("b Ann: x",),
        ),
        CheckedRef(ref="refs/heads/new", local_sha="a", remote_sha=None, found="new"),
    )
    connection = show(
        git_events, [recorded(push_checked(*refs), 1), recorded(push_checked(verdict="allowed"), 2)]
    )
    assert rows(
        connection,
        "SELECT id, ref, local_sha, remote_sha, found, is_forced, lacks, commits, verdict FROM"
        " coord_git_events ORDER BY id",
    ) == [
        (1024, "refs/heads/main", "a", "b", "stale", 1, 1, '["b Ann: x"]', "denied"),
        (1025, "refs/heads/new", "a", None, "new", 0, 0, "[]", "denied"),
        (2048, None, None, None, None, None, None, None, "allowed"),
    ]
    connection.close()


def test_what_was_shown_unasked_is_a_row_as_well() -> None:
    connection = show(retrievals, [recorded(surfaced("a", "b", how="edit", subject="x.py"), 4)])
    at = "2026-01-01T00:00:00.000000Z"
    assert rows(
        connection, "SELECT query_id, text, mode, ranking_version, returned FROM retrieval_queries"
    ) == [("surfaced-1", "x.py", "edit", None, 2)]
    assert rows(connection, "SELECT * FROM retrievals ORDER BY id") == [
        (4097, "surfaced-1", "session-1", "a", 1, 0.5, at, "edit"),
        (4098, "surfaced-1", "session-1", "b", 2, 0.5, at, "edit"),
    ]
    connection.close()


def test_a_query_is_a_row_and_so_is_each_of_its_results() -> None:
    asked = queried(
        ("a", 0.9),
        ("b", 0.25),
        filters={"b": 1, "a": 2},
        read_position=3,
        degraded="keyword",
        embedder_id=None,
    )
    connection = show(retrievals, [recorded(asked, 4), recorded(queried(query_id="query-2"), 5)])
    at = "2026-01-01T00:00:00.000000Z"
    assert rows(connection, "SELECT * FROM retrieval_queries ORDER BY id") == [
        (
            4,
            "query-1",
            "session-1",
            "/src/omegad",
            "which Python?",
            "hybrid",
            '{"a":2,"b":1}',
            3,
            1,
            None,
            2,
            0,
            "keyword",
            at,
            900,
        ),
        (
            5,
            "query-2",
            "session-1",
            "/src/omegad",
            "which Python?",
            "hybrid",
            "{}",
            1,
            1,
            "paper-1",
            0,
            1,
            None,
            at,
            900,
        ),
    ]
    assert rows(connection, "SELECT * FROM retrievals ORDER BY id") == [
        (4097, "query-1", "session-1", "a", 1, 0.9, at, "query"),
        (4098, "query-1", "session-1", "b", 2, 0.25, at, "query"),
    ]
    connection.close()


def test_texts_that_share_words_have_near_vectors() -> None:
    """What the paper model is relied on for."""
    one, near, far = (np.frombuffer(vector_of(text), "<f4") for text in ("a b c d", "a b c e", "w x y z"))
    assert one @ near > 0.6
    assert one @ far < 0.3
