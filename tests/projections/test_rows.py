"""The smaller views: events in, rows out."""

import numpy as np

from omegad.views.contract import Embedding
from projections import audit, edges, fulltext, retrievals, vectors
from tests.builders import (
    START_US,
    deleted,
    embedded,
    excerpt,
    look_up,
    queried,
    recorded,
    related,
    relations,
    rows,
    show,
    stored,
    superseded,
    tool_called,
    vector_of,
)


def test_edges_come_with_a_memory_after_it_and_with_its_successor() -> None:
    log = [
        recorded(stored("a", related=relations(("x", 0.9), ("y", 0.5))), 1),
        recorded(related("b", ("a", 0.7)), 2),
        recorded(superseded("a", "b"), 3),
    ]
    connection = show(edges, log)
    assert rows(connection, "SELECT id, source_id, target_id, edge_type, weight, created_at FROM edges ORDER BY id") == [
        (1024, "a", "x", "related", 0.9, "2026-01-01T00:00:01.000000Z"),
        (1025, "a", "y", "related", 0.5, "2026-01-01T00:00:01.000000Z"),
        (2048, "b", "a", "related", 0.7, "2026-01-01T00:00:02.000000Z"),
        (3072, "a", "b", "superseded_by", 1.0, "2026-01-01T00:00:03.000000Z"),
    ]
    connection.close()


def test_an_edge_has_a_weight_from_0_to_1_and_is_there_once_with_the_latest() -> None:
    log = [recorded(related("a", ("b", -0.3), ("c", 1.000001)), 1), recorded(related("a", ("b", 0.6)), 2)]
    connection = show(edges, log)
    assert rows(connection, "SELECT id, target_id, weight FROM edges ORDER BY id") == [(1024, "b", 0.6), (1025, "c", 1.0)]
    connection.close()


def test_every_passage_has_a_row_and_a_place_in_the_index() -> None:
    connection = show(vectors, [recorded(embedded("a", "one", "two"), 1), recorded(embedded("a", "one", embedder_id="other"), 2)])
    found = rows(connection, "SELECT id, memory_id, embedder_id, chunk FROM memory_vectors ORDER BY id")
    assert found == [(1024, "a", "paper-1", 0), (1025, "a", "paper-1", 1), (2048, "a", "other", 0)]
    wanted = look_up(Embedding("paper-1", embedded("a", "two").text_hashes[0]))
    sql = "SELECT rowid, distance FROM memories_vec WHERE embedding MATCH ? AND k = 1 AND embedder_id = 'paper-1'"
    ((nearest, distance),) = rows(connection, sql, wanted)
    assert nearest == 1025
    assert distance < 1e-3
    connection.close()


def test_the_index_and_the_table_hold_the_same_vectors() -> None:
    connection = show(vectors, [recorded(embedded("a", *[f"text {n}" for n in range(20)]), 1)])
    both = rows(connection, "SELECT v.vector, i.embedding FROM memory_vectors AS v JOIN memories_vec AS i ON i.rowid = v.id")
    assert len(both) == 20
    assert all(np.allclose(np.frombuffer(one, "<f4"), np.frombuffer(other, "<f4")) for one, other in both)
    connection.close()


def test_the_words_of_a_memory_are_found_with_what_is_known_of_it() -> None:
    changes = {"entity_id": "shop", "event_type": "decision", "tags": ("blue", "green"), "referenced_at": START_US}
    connection = show(fulltext, [recorded(stored("a", "We deployed Crème brûlée", **changes), 7)])
    assert rows(connection, "SELECT rowid, content, context FROM memories_fts") == [
        (7, "We deployed Crème brûlée", "/src/omegad shop decision blue green 1 January 2026")
    ]
    for words in ("deploy", "creme", "brulee", '"green"', "january", "decision", '"src omegad"'):
        assert rows(connection, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH ?", words) == [(7,)], words
    connection.close()


def test_the_words_of_a_hidden_memory_are_not_found() -> None:
    log = [recorded(stored("a", "alpha"), 1), recorded(stored("b", "beta"), 2), recorded(stored("c", "gamma"), 3)]
    connection = show(fulltext, [*log, recorded(deleted("a"), 4), recorded(superseded("b", "c"), 5), recorded(deleted("nobody"), 6)])
    assert rows(connection, "SELECT rowid, content FROM memories_fts") == [(3, "gamma")]
    assert rows(connection, "SELECT rowid FROM memories_fts WHERE memories_fts MATCH 'alpha OR beta'") == []
    for statement in fulltext.INTEGRITY:
        connection.execute(statement)
    connection.close()


def test_a_tool_call_is_a_row_with_the_beginning_of_what_went_in_and_out() -> None:
    call = tool_called(4, tool_input=excerpt("x" * 300), result=excerpt("ok", "end"), duration_ms=1.5, status="error")
    connection = show(audit, [recorded(call, 9), recorded(tool_called(5), 10)])
    assert rows(connection, "SELECT * FROM coord_audit ORDER BY id") == [
        (
            *(9, "session-1", 4, "Bash", "error", "toolu-4", "x" * 200, 300, "ok", 5, 1.5),
            *("/src/omegad", "2026-01-01T00:00:09.000000Z"),
        ),
        (10, "session-1", 5, "Bash", "ok", "toolu-5", None, None, None, None, None, "/src/omegad", "2026-01-01T00:00:10.000000Z"),
    ]
    connection.close()


def test_a_query_is_a_row_and_so_is_each_of_its_results() -> None:
    asked = queried(("a", 0.9), ("b", 0.25), filters={"b": 1, "a": 2}, read_position=3, degraded="keyword", embedder_id=None)
    connection = show(retrievals, [recorded(asked, 4), recorded(queried(query_id="query-2"), 5)])
    at = "2026-01-01T00:00:00.000000Z"
    assert rows(connection, "SELECT * FROM retrieval_queries ORDER BY id") == [
        (4, "query-1", "session-1", "/src/omegad", "which Python?", "hybrid", '{"a":2,"b":1}', 3, 1, None, 2, 0, "keyword", at),
        (5, "query-2", "session-1", "/src/omegad", "which Python?", "hybrid", "{}", 1, 1, "paper-1", 0, 1, None, at),
    ]
    assert rows(connection, "SELECT * FROM retrievals ORDER BY id") == [
        (4097, "query-1", "session-1", "a", 1, 0.9, at),
        (4098, "query-1", "session-1", "b", 2, 0.25, at),
    ]
    connection.close()


def test_texts_that_share_words_have_near_vectors() -> None:
    """What the paper model is relied on for."""
    one, near, far = (np.frombuffer(vector_of(text), "<f4") for text in ("a b c d", "a b c e", "w x y z"))
    assert one @ near > 0.6
    assert one @ far < 0.3
