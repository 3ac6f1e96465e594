"""Other people's SQL: what it shows of what happened, and that it can do nothing else."""

import re
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import projections
from omegad.log.projection import schema
from omegad.runtime import child
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, Overloaded
from omegad.session import sql
from omegad.storage import selecting, selection
from omegad.storage.database import open_writer
from omegad.storage.selecting import Limits, Selection
from omegad.storage.transaction import run_script
from tests.builders import PATIENCE_S, FakeClock, served, until

LIMITS = Limits(rows=20, bytes=10_000, seconds=PATIENCE_S, memory_bytes=64 * 2**20)
IMPATIENT = LIMITS._replace(seconds=0.3)
CONTENT = "x" * 9_000


def select(*asked: Any) -> Selection:
    return anyio.run(partial(selecting.select, *asked))


async def test_the_audit_log_says_what_happened_and_how_it_went(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none")) as it:

        async def hook(event: str, **payload: object) -> None:
            known = {"session_id": "s-1", "cwd": "/", "hook_event_name": event, **payload}
            await it.caller.call(
                "hook.dispatch", event=event, payload=known, delivery_id=f"{event} {payload}"
            )

        await hook("SessionStart", source="startup", model="opus")
        await hook("UserPromptSubmit", prompt="fix the importer")
        await it.caller.call(
            "tool.record",
            session_id="s-1",
            tool_name="Bash",
            status="error",
            duration_ms=12.5,
            result="exit 1",
        )
        await it.caller.call("memory.query", text="importer", session_id="s-1", asked_in="s-1")
        await hook("Stop", last_assistant_message="it is fixed")
        await hook("UserPromptSubmit", prompt="and the exporter?")
        asked = (
            "SELECT kind, session_id, model, name, status, duration_ms > 0, summary FROM audit_log ORDER"
            " BY id"
        )
        found = await it.caller.call("audit.sql", sql=asked)
        assert found["rows"] == [
            ["session", "s-1", "opus", "startup", "open", None, "/"],
            ["exchange", "s-1", "opus", "claude-code", "ok", 1, "fix the importer"],
            ["tool", "s-1", "opus", "Bash", "error", 1, "exit 1"],
            ["query", "s-1", "opus", "hybrid", "degraded", 1, "importer"],
            ["exchange", "s-1", "opus", "claude-code", "open", None, "and the exporter?"],
        ]
        assert (found["columns"][:2], found["truncated"], found["position"]) == (
            ["kind", "session_id"],
            False,
            it.daemon.services.log.head,
        )
        page = await it.caller.call("audit.sql", sql="SELECT role FROM conversations", limit=2)
        assert (page["rows"], page["truncated"]) == ([["user"], ["assistant"]], True)
        told = await it.caller.call(
            "tools.call",
            name="omega_stats",
            arguments={"action": "sql", "sql": "SELECT name FROM audit_log WHERE kind = 'tool'"},
        )
        assert told["structured"] == {"columns": ["name"], "rows": [["Bash"]], "truncated": False}
        wrong = await it.caller.call(
            "tools.call", name="omega_stats", arguments={"action": "sql", "sql": "DELETE FROM memories"}
        )
        assert wrong["is_error"]
        assert "conversations" in wrong["content"][0]["text"]
        await it.caller.call("views.rebuild")
        assert (await it.caller.call("audit.sql", sql=asked))["rows"][: len(found["rows"])] == found["rows"]


BY_OTHERS_NAMES = {
    "SELECT id, node_id, content, metadata, created_at, last_accessed, access_count, ttl_seconds, session_id,"
    " event_type, project, content_hash, priority, referenced_date, entity_id FROM memories": 3,
    "SELECT id, source_id, target_id, edge_type, weight, metadata, created_at FROM edges WHERE source_id ="
    " (SELECT node_id FROM memories WHERE id = (SELECT min(id) FROM memories))": 2,
    "SELECT m.id FROM edges AS e JOIN memories AS m ON m.node_id = e.source_id GROUP BY 1 LIMIT 1": 1,
    "SELECT tool_name, call_index, result_summary FROM coord_audit WHERE session_id = 's-1' AND"
    " result_status = 'error' ORDER BY created_at DESC": 1,
    "SELECT e.id FROM coord_audit AS e JOIN coord_audit AS o ON o.session_id = e.session_id AND o.tool_name ="
    " e.tool_name AND o.call_index BETWEEN e.call_index + 1 AND e.call_index + 10 WHERE e.result_status ="
    " 'error' AND o.result_status = 'ok'": 1,
    'SELECT id FROM coord_audit WHERE input_size = length(\'{"command":"make"}\')': 2,
    "SELECT version FROM schema_version LIMIT 1": 1,
    "SELECT max(version) FROM schema_version HAVING max(version) = 3": 1,
    "SELECT m.content FROM memories_vec AS v JOIN memories AS m ON m.id = v.rowid": 3,
    "SELECT rowid FROM memories_vec WHERE length(embedding) = 4 * 384": 3,
    "SELECT m.content FROM memories_fts AS f JOIN memories AS m ON m.id = f.rowid WHERE memories_fts MATCH"
    " 'exporting OR linting' ORDER BY rank": 3,
    "SELECT rowid, content, bm25(memories_fts) FROM memories_fts('\"nightly export\"')": 2,
    **{
        f"SELECT count(*) FROM coord_{table}": 1
        for table in (
            *("sessions", "file_claims", "branch_claims", "intents", "snapshots"),
            *("tasks", "task_deps", "audit", "git_events", "messages"),
        )
    },
}
"""SELECTs on tables and columns that another memory system has, and how many rows they find."""
TEXTS = (
    "the nightly export of invoices times out",
    "the nightly export of invoices is slow and times out often",
    "use ruff for linting",
)
FIRST = "SELECT embedding FROM memories_vec WHERE rowid = (SELECT min(id) FROM memories)"
NEAREST = f"""
SELECT m.node_id, 1 - vec_distance_cosine(v.embedding, ({FIRST})) AS cosine
FROM memories_vec AS v JOIN memories AS m ON m.id = v.rowid ORDER BY cosine DESC
"""


@pytest.mark.usefixtures("model")
async def test_what_is_asked_by_others_names_is_answered(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        ids = [(await it.caller.call("memory.store", content=text))["memory_id"] for text in TEXTS]
        for other in ids[1:]:
            await it.caller.call("memory.link", memory_id=ids[0], target_id=other)
        for status in ("error", "ok"):
            await it.caller.call(
                "tool.record",
                session_id="s-1",
                tool_name="Bash",
                status=status,
                tool_input={"command": "make"},
                result="exit 1",
            )
        for asked, count in BY_OTHERS_NAMES.items():
            found = await it.caller.call("audit.sql", sql=asked)
            assert len(found["rows"]) == count, asked
        nearest = (await it.caller.call("audit.sql", sql=NEAREST))["rows"]
        assert [row[0] for row in nearest] == ids
        alike = (await it.caller.call("memory.similar", memory_id=ids[0]))["results"]
        assert [(one["memory_id"], one["similarity"]) for one in alike] == [
            (memory_id, pytest.approx(cosine, abs=1e-6)) for memory_id, cosine in nearest[1:]
        ]
        hint = "audit_log, .*, memories, memories_fts, memories_vec, memory_"
        with pytest.raises(Invalid, match="no such table") as refused:
            await it.caller.call("audit.sql", sql="SELECT 1 FROM nowhere")
        assert re.search(hint, refused.value.hint)
        # A SELECT that goes wrong is refused, and only it.
        for wrong in (
            "vec_distance_cosine(embedding, x'00')",
            "vec_distance_cosine(embedding, '[1, 2]')",
            "vec_distance_cosine(embedding, 'nothing')",
            "vec_distance_cosine(embedding, NULL)",
            "vec_distance_cosine(embedding)",
            "vec_distance_L1(embedding, embedding)",
            "vec_quantize_int8(embedding, 'unit')",
            "vec_distance_cosine(embedding, 1) FROM memories_fts, memories_fts WHERE memories_fts MATCH '\"' --",
        ):
            with pytest.raises(Invalid):
                await it.caller.call("audit.sql", sql=f"SELECT {wrong} FROM memories_vec")
        pairs = ", ".join(f"memories_vec AS v{number}" for number in range(20))
        endless = f"SELECT max(vec_distance_cosine(v1.embedding, v2.embedding)) FROM {pairs}"
        with pytest.raises(Invalid, match="took longer than 1 s"):
            await it.caller.call("audit.sql", sql=endless)
        assert (await it.caller.call("audit.sql", sql=NEAREST, limit=1_000))["rows"] == nearest


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of views with 300 rows, one of them long."""
    path = tmp_path_factory.mktemp("sql") / "views ?#%-1.db"
    connection = open_writer(path, durable=False)
    for projection in projections.ALL:
        run_script(connection, schema(projection))
    for projection in projections.ALL:
        run_script(connection, getattr(projection, "SQL_VIEWS", ""))
    row = "INSERT INTO conversations VALUES (?, 's', 'user', ?, 1, 'p', '2026-01-01T00:00:00Z')"
    connection.executemany(row, [(number, CONTENT if number == 1 else "a") for number in range(1, 301)])
    connection.close()
    return path


TABLES = {
    "audit_log": 300,
    "agent_sessions": 1,
    "conversations": 1,
    "coord_audit": 1,
    "memories": 1,
    "retrieval_queries": 1,
    "skill_lessons": 1,
}
C = "conversations"


def chain(count: int, first: str, step: str) -> str:
    """Nest a SELECT in a SELECT in a SELECT."""
    for _ in range(count):
        first = step.format(first)
    return first


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        *((f"{sql} memories", "authorized") for sql in ("DELETE FROM", "DROP TABLE", "ANALYZE", "REINDEX")),
        ("INSERT INTO memories DEFAULT VALUES", "authorized"),
        ("UPDATE memories SET content = ''", "authorized"),
        ("WITH x AS (SELECT 1) DELETE FROM memories", "authorized"),
        ("CREATE TEMP TABLE t (a)", "authorized"),
        ("PRAGMA query_only = OFF", "authorized"),
        ("SELECT * FROM pragma_table_info('memories')", "prohibited"),
        ("ATTACH '{folder}/x.db' AS x", "authorized"),
        ("VACUUM INTO '{folder}/x.db'", "authorization denied"),
        ("BEGIN", "authorized"),
        ("SELECT load_extension('x')", "load_extension"),
        ("SELECT sql FROM sqlite_master", "sqlite_master"),
        ("SELECT source_id FROM edges", "edges.source_id"),  # not in the list that is given
        ("SELECT data FROM memories_fts", "memories_fts"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("-- nothing", "incomplete"),
        ("", "incomplete"),
        ("SELECT 1\0", "null character"),
        ("EXPLAIN SELECT 1", "syntax"),
        ("SELECT :a", "bindings"),
        ("SELECT nope FROM audit_log", "no such column"),
        ("SELECT zeroblob(1000000000)", "zeroblob"),
        ("SELECT randomblob(1000000000)", "randomblob"),
        ("SELECT printf('%.*c', 1000000000, 'x')", "printf"),
        (f"SELECT group_concat(content) FROM {C}, {C} AS d, {C} AS e", "group_concat"),
        ("WITH RECURSIVE c(x) AS (SELECT 'a' UNION ALL SELECT x || x FROM c) SELECT length(x) FROM c", "||"),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
            "longer than 0.3 s",
        ),
        (f"SELECT count(*) FROM {C}, {C} AS d, {C} AS e, {C} AS f", "longer than 0.3 s"),
        (f"SELECT d.content FROM {C} AS d, {C} AS e, {C} AS f WHERE d.id = 1 ORDER BY e.id + f.id", "64 MiB"),
        (chain(28, "SELECT 1 AS x", "SELECT x + x AS x FROM ({})"), "nested"),
        (chain(6, "SELECT id FROM audit_log", "SELECT a.id FROM ({0}) AS a, ({0}) AS b"), "nested"),
        (f"SELECT {'content, ' * 200} 1 FROM {C}", "100 columns"),
        (f"SELECT content, content FROM {C}", "one row"),
    ],
)
def test_whatever_is_not_a_small_select_is_refused_with_what_to_do(views: Path, sql: str, says: str) -> None:
    with pytest.raises(Invalid, match=says.replace("|", r"\|")) as refused:
        select(
            views,
            sql.replace("{folder}", str(views.parent)),
            TABLES,
            IMPATIENT if "longer" in says else LIMITS,
        )
    assert len(refused.value.hint) >= 20
    assert sorted(path.suffix for path in views.parent.iterdir()) == [".db", ".db-shm", ".db-wal"] or [
        *views.parent.iterdir()
    ] == [views]


@pytest.mark.parametrize(
    ("sql", "rows", "has_more"),
    [
        ("SELECT /* ; */ 1 -- x", [(1,)], False),
        ("SELECT 1; -- x", [(1,)], False),
        ("VALUES (1), ('two')", [(1,), ("two",)], False),
        ("SELECT x'00ff', NULL, 1.5, CAST(x'ff' AS TEXT)", [("x'00ff'", None, 1.5, "\ufffd")], False),
        (
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
            [(number,) for number in range(1, 21)],
            True,
        ),
        (f"SELECT content FROM {C} WHERE id < 4 ORDER BY id", [(CONTENT,), ("a",), ("a",)], False),
        (
            f"SELECT content FROM {C} AS a JOIN (SELECT 1 AS n UNION ALL SELECT 2) WHERE id = 1",
            [(CONTENT,)],
            True,
        ),
        ("WITH c AS (SELECT * FROM audit_log) SELECT count(*) FROM c WHERE kind LIKE 'EX%'", [(300,)], False),
        ("SELECT value ->> '$.a' FROM json_each('[{\"a\": 7}]')", [(7,)], False),
    ],
)
def test_a_select_is_answered_up_to_a_number_of_rows_and_of_bytes(
    views: Path, sql: str, rows: list[Any], *, has_more: bool
) -> None:
    found = select(views, sql, TABLES, LIMITS)
    assert (found.rows, found.has_more) == (rows, has_more)


WORDS = """
SELECT FROM WHERE ORDER GROUP BY LIMIT UNION ALL WITH RECURSIVE AS VALUES INSERT INTO DELETE UPDATE SET DROP
TABLE CREATE TEMP VIEW PRAGMA
ATTACH VACUUM BEGIN memories conversations audit_log sqlite_master pragma_table_info content id c x * ( ) , ;
-- /* 1 'a' = || + ' " zeroblob(
"""


@given(words=st.lists(st.sampled_from(WORDS.split()), max_size=14))
def test_no_words_in_any_order_change_anything(views: Path, words: list[str]) -> None:
    watching = open_writer(views, durable=False)

    def told() -> list[Any]:
        return [
            watching.execute(sql).fetchone()
            for sql in ("PRAGMA data_version", "SELECT sum(length(content)) FROM conversations")
        ]

    with closing(watching):
        before = told()
        with suppress(Invalid):
            assert len(select(views, " ".join(words), TABLES, IMPATIENT).rows) <= LIMITS.rows
        assert told() == before


HELD_UP = """
import runpy, sys, time
genuine, left = time.monotonic, iter(range(10**9))
time.monotonic = lambda: genuine() + next(left)
runpy.run_path(sys.argv[1], run_name="__main__")
"""
"""Runs a file as one that gets no turn for a second whenever it looks at the clock."""


def test_a_select_that_waits_for_a_busy_machine_has_not_taken_that_long(
    views: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up = (sys.executable, "-I", "-S", "-c", HELD_UP, selection.__file__)
    monkeypatch.setattr(selecting, "_COMMAND", held_up)
    found = select(views, f"SELECT count(*) FROM {C}, {C} AS d", TABLES, IMPATIENT)
    assert found.rows == [(90_000,)]


def test_a_third_at_a_time_is_told_to_wait(views: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selecting, "_places", threading.BoundedSemaphore(1))
    with selecting._places, pytest.raises(Overloaded):
        select(views, "SELECT 1", TABLES, LIMITS)
    assert select(views, "SELECT 1", TABLES, LIMITS).rows == [(1,)]


async def test_others_are_answered_meanwhile_and_it_ends_with_who_asked(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "SECONDS_MAX", PATIENCE_S)
    begun: list[child.Child] = []
    genuine = child.started

    @asynccontextmanager
    async def begin(*given: Any) -> AsyncIterator[child.Child]:
        async with genuine(*given) as running:
            begun.append(running)
            yield running

    monkeypatch.setattr(child, "started", begin)
    async with served(paths, clock, Config(model="none")) as it:
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(partial(it.caller.call, "audit.sql", sql=endless))
            await until(lambda: len(begun) == 2)
            with pytest.raises(Overloaded):
                await it.other().call("audit.sql", sql="SELECT 1")
            for number in range(5):
                await it.caller.call("memory.list", limit=number + 1)
            assert [one.process.returncode for one in begun] == [None, None]
            tasks.cancel_scope.cancel()
        assert [one.process.returncode for one in begun] == [-signal.SIGKILL] * 2
        assert (await it.caller.call("audit.sql", sql="SELECT 1"))["rows"] == [[1]]


def test_the_memory_that_others_take_meanwhile_is_not_its_own(views: Path) -> None:
    """As when a model is loaded, or views are built."""
    counting = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 2000000) SELECT count(*) FROM c"
    )
    taken: list[bytes] = []
    taking = threading.Timer(0.05, lambda: taken.append(b"x" * (4 * LIMITS.memory_bytes)))
    taking.start()
    assert select(views, counting, TABLES, LIMITS).rows == [(2_000_000,)]
    taking.join()
