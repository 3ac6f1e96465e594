"""Views in tables that an earlier version made: they serve until they are built again."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omegad.agents.hooks import unbriefed
from omegad.log import checkpoint
from omegad.log.event import RecordedEvent
from omegad.log.projection import Projection, Statement
from omegad.runtime.config import Paths
from omegad.session.events import PromptSubmitted
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing
from omegad.views import generation
from projections import audit, vectors
from tests.builders import PATIENCE_S, FakeClock, events_of, rows, served, until
from tests.edge.hook.conftest import payload


class Earlier:
    """A projection of an earlier version, as far as its tables."""

    EVENTS: tuple[type, ...] = ()
    CANONICAL: tuple[str, ...] = ()

    def __init__(self, name: str, version: int, schema: str) -> None:
        self.NAME, self.VERSION, self.SCHEMA = name, version, schema

    def project(self, recorded: RecordedEvent) -> Iterator[Statement]:
        raise AssertionError(recorded)


VECTORS = """
CREATE TABLE memory_vectors (
    id          INTEGER PRIMARY KEY, -- position of memory.embedded * 1024 + chunk
    memory_id   TEXT NOT NULL,
    embedder_id TEXT NOT NULL,
    chunk       INTEGER NOT NULL,
    text_hash   TEXT NOT NULL,
    vector      BLOB,                -- float32, unit length; NULL until it is at hand
    UNIQUE (memory_id, embedder_id, chunk)
) STRICT;

-- Unit vectors: the order by L2 distance is the order by cosine, and L2 is the faster of the two.
CREATE VIRTUAL TABLE memories_vec USING vec0(embedding float[384], embedder_id text);
"""
AUDIT = """
CREATE TABLE coord_audit (
    id             INTEGER PRIMARY KEY, -- position of tool.called
    session_id     TEXT,
    call_index     INTEGER NOT NULL,
    tool_name      TEXT NOT NULL,
    status         TEXT NOT NULL,       -- ok, error or denied
    tool_use_id    TEXT,
    input_summary  TEXT,
    input_bytes    INTEGER,
    result_summary TEXT,
    result_bytes   INTEGER,
    duration_ms    REAL,
    project        TEXT,
    created_at     TEXT NOT NULL,
    file           TEXT,                -- that the input names
    given          TEXT NOT NULL,       -- JSON array: memories that the input names
    returned       TEXT NOT NULL,       -- JSON array: memories that the result names
    edited         TEXT NOT NULL        -- JSON array: files that it was to change
) STRICT;

CREATE INDEX coord_audit_by_session ON coord_audit (session_id, call_index);
CREATE INDEX coord_audit_by_file ON coord_audit (file) WHERE edited != '[]';
"""
EARLIER: tuple[Projection, ...] = (
    Earlier("vectors", 2, VECTORS),
    Earlier("audit", 5, AUDIT),
)
FILL = (
    "INSERT INTO memories_vec (rowid, embedding, embedder_id) SELECT id, vector, embedder_id FROM memory_vectors",
)


def test_schemas_that_serve_are_known_by_their_digests() -> None:
    digests = {frozenset({checkpoint.schema_digest(earlier)}) for earlier in EARLIER}
    assert digests == {vectors.READABLE, audit.READABLE}


def _made_earlier(file: Path) -> None:
    """Put the rows of a file of views into the tables of earlier versions."""
    with closing(open_writer(file, durable=False)) as connection, writing(connection):
        found = generation.load_checkpoints(connection)
        connection.execute("DROP VIEW memories_vec")
        for earlier in EARLIER:
            stands = found[earlier.NAME]
            (table,) = stands.tables
            columns = ", ".join(
                name for _, name, *_, hidden in rows(connection, f"PRAGMA table_xinfo({table})") if not hidden
            )
            kept = rows(connection, f"SELECT {columns} FROM {table}")
            checkpoint.drop(connection, stands)
            made = checkpoint.create(connection, earlier)
            places = ", ".join("?" for _ in columns.split(","))
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", kept)
            connection.execute(
                "UPDATE checkpoints SET version = ?, schema_digest = ?, tables = json(?) WHERE name = ?",
                (made.version, made.schema_digest, str([*made.tables]).replace("'", '"'), made.name),
            )
        for statement in FILL:
            connection.execute(statement)


@pytest.fixture
def may_build(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """What views that are built beside others wait for."""
    may_build, genuine = threading.Event(), generation.copy_to

    def copy_to(connection: Connection, target: Path) -> None:
        assert may_build.wait(PATIENCE_S)
        genuine(connection, target)

    monkeypatch.setattr(generation, "copy_to", copy_to)
    return may_build


@pytest.mark.usefixtures("model")
async def test_tables_of_an_earlier_version_serve_until_they_are_built_again(
    paths: Paths, clock: FakeClock, may_build: threading.Event
) -> None:
    async with served(paths, clock) as it:
        one = await it.caller.call("memory.store", content="alpha beta gamma")
        await it.caller.call(
            "tool.record", session_id="s-1", tool_name="Bash", status="error", result="exit 1"
        )
        await it.caught_up()
        file = it.daemon.services.views.file
    _made_earlier(file)
    async with served(paths, clock) as it:
        views = it.daemon.services.views

        async def found(**asked: Any) -> list[str]:
            results = (await it.caller.call("memory.query", **asked))["results"]
            return [result["memory_id"] for result in results]

        async def selected(sql: str) -> list[list[Any]]:
            answer: list[list[Any]] = (await it.caller.call("audit.sql", sql=sql))["rows"]
            return answer

        assert views.rebuilding == ("vectors", "audit")
        assert await found(text="gamma beta", mode="semantic") == [one["memory_id"]]
        other = await it.caller.call("memory.store", content="delta epsilon zeta")
        assert await found(text="epsilon", mode="semantic", limit=1) == [other["memory_id"]]
        alike = await it.caller.call("memory.similar", memory_id=one["memory_id"])
        assert [result["memory_id"] for result in alike["results"]] == [other["memory_id"]]
        assert await selected("SELECT tool_name, status FROM coord_audit") == [["Bash", "error"]]
        assert views.file == file
        may_build.set()
        await until(lambda: not views.rebuilding)
        assert views.file != file
        assert await found(text="gamma beta", mode="semantic", limit=1) == [one["memory_id"]]
        assert await selected("SELECT result_status FROM coord_audit") == [["error"]]
        joined = "SELECT m.node_id FROM memories_vec AS v JOIN memories AS m ON m.id = v.rowid ORDER BY m.id"
        assert await selected(joined) == [[one["memory_id"]], [other["memory_id"]]]
        assert (await it.caller.call("views.verify"))["ok"]


async def test_hooks_do_without_views_that_nobody_can_read_until_they_are_built_again(
    paths: Paths, clock: FakeClock, may_build: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unbriefed, "TELLING_US", 0)
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="Billing runs on PostgreSQL", event_type="decision")
        await it.caught_up()
        file = it.daemon.services.views.file
    with closing(open_writer(file, durable=False)) as connection, writing(connection):
        connection.execute(
            "UPDATE checkpoints SET schema_digest = '' WHERE name IN ('conversations', 'coord_claims')"
        )
    async with served(paths, clock) as it:

        async def hooked(event: str, session: str, **fields: Any) -> dict[str, Any]:
            said = payload(event, session, **fields)
            answer = await it.caller.call("hook.dispatch", event=event, payload=said)
            return dict(msgspec.json.decode(answer["stdout"] or "{}").get("hookSpecificOutput", {}))

        async def edited(session: str) -> dict[str, Any]:
            given = {"file_path": "/src/shop/ledger.py", "old_string": "a", "new_string": "b"}
            return await hooked(
                "PreToolUse", session, tool_name="Edit", tool_input=given, tool_use_id=session
            )

        assert {*it.daemon.services.views.rebuilding} == {"conversations", "coord_claims"}
        for session in ("u-1", "u-2"):
            assert await hooked("SessionStart", session, source="startup") == {}
        assert await edited("u-1") == {}
        assert "held by session u-1" in (await edited("u-2"))["permissionDecisionReason"]
        assert await hooked("UserPromptSubmit", "u-2", prompt="how does billing store data?") == {}
        may_build.set()
        await until(lambda: not it.daemon.services.views.rebuilding)
        await it.caught_up()
        briefed = await hooked("UserPromptSubmit", "u-2", prompt="and where?")
        assert "PostgreSQL" in briefed["additionalContext"]
        heard = await events_of(it, PromptSubmitted)
        assert [one.prompt.head for one in heard] == ["how does billing store data?", "and where?"]
