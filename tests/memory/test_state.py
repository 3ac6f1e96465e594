"""What decisions rely on: a fold of the events, the same whether it was written with them or made again
from them.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from omegad.catalog import decision_state as state
from omegad.catalog.events import CODEC
from omegad.log import chain, reading
from omegad.log.decision import DecisionState, RequestKey
from omegad.log.event import Event, RecordedEvent
from omegad.log.inline import Inline
from omegad.memory.events import MemoryStored
from omegad.memory.state import Memories, MemoryState
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script, writing
from tests.builders import (
    START_US,
    FakeClock,
    append,
    contradicted,
    deleted,
    edited,
    embedded,
    everything,
    evolved,
    expired,
    key_of,
    linked,
    open_in_memory,
    promoted,
    proof,
    queried,
    rated,
    recorded,
    related,
    repeated,
    restored,
    rows,
    running_log,
    stored,
    superseded,
    tool_called,
    unlinked,
)
from tests.histories import STEPS, Step, history
from tests.released import GOLDEN

SECOND = 1_000_000
TABLES = tuple(re.findall(r"CREATE TABLE (\w+)", "".join(projection.SCHEMA for projection in state.ALL)))


INLINE = Inline(state.ALL)


@contextlib.contextmanager
def folded(*events: RecordedEvent) -> Iterator[Connection]:
    connection = open_in_memory()
    INLINE.replica(connection)
    for event in events:
        INLINE.fold(connection, event)
    yield connection
    connection.close()


def guard_of(*events: Event) -> MemoryState:
    with folded(*(recorded(event, position) for position, event in enumerate(events, 1))) as connection:
        found = DecisionState(connection)[Memories].get("mem-1")
    assert found is not None
    return found


def the_change(*events: Event) -> dict[str, Any]:
    """Return what the last of some events changed of the first memory's guard."""
    before, after = (msgspec.structs.asdict(guard_of(*part)) for part in (events[:-1], events))
    return {name: value for name, value in after.items() if before[name] != value}


def test_a_memory_that_is_stored_is_known_with_its_scope_and_its_end() -> None:
    event = stored(event_type="decision", entity_id="e", ttl_seconds=60, on_probation=True, pending=True)
    assert guard_of(event) == MemoryState(
        memory_id="mem-1",
        content_key=event.content_key,
        stored_at=1,
        changed_at=1,
        state="active",
        pending=True,
        event_type="decision",
        project="/src/omegad",
        entity_id="e",
        session_id="session-1",
        denied_by=None,
        probation=True,
        rating=0,
        ttl_seconds=60,
        expires_at=START_US + 61 * SECOND,
        said_at=START_US + SECOND,
        home="origin",
    )
    plain = guard_of(stored())
    assert (plain.pending, plain.probation, plain.ttl_seconds, plain.expires_at) == (False, False, None, None)


SAID = {"said_at": START_US + 2 * SECOND}
REWORDED = {text: {"content_key": key_of(text), "changed_at": 2} for text in ("more", "other")}


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (embedded(), {"changed_at": 2}),
        (repeated(), {"expires_at": START_US + 62 * SECOND, **SAID}),
        (repeated(ttl_seconds=90), {"ttl_seconds": 90, "expires_at": START_US + 92 * SECOND, **SAID}),
        (repeated(ttl_seconds=30), {"expires_at": START_US + 62 * SECOND, **SAID}),
        (repeated(is_permanent=True), {"ttl_seconds": None, "expires_at": None, **SAID}),
        (
            evolved("mem-1", "more", is_permanent=True),
            {**REWORDED["more"], "ttl_seconds": None, "expires_at": None, **SAID},
        ),
        (evolved("mem-1", "more"), {**REWORDED["more"], "expires_at": START_US + 62 * SECOND, **SAID}),
        (edited("mem-1", "other"), {**REWORDED["other"], "expires_at": START_US + 62 * SECOND, **SAID}),
        (related("mem-1"), {"pending": False}),
        (contradicted("mem-1", "mem-2"), {"changed_at": 2, "denied_by": "mem-2"}),
        (superseded("mem-1", "mem-2"), {"state": "superseded", "changed_at": 2}),
        (deleted(), {"state": "deleted", "changed_at": 2}),
        (expired(), {"state": "expired", "changed_at": 2}),
        (rated(points=-2), {"rating": -2}),
        (promoted(), {"probation": False}),
        (linked("mem-1", "mem-2"), {}),
        (unlinked("mem-1", "mem-2", "related"), {}),
        (queried(("mem-1", 0.9)), {}),
        (tool_called(), {}),
        (contradicted("mem-2", "mem-1"), {}),
        (superseded("mem-2", "mem-1"), {}),
        (deleted("mem-2"), {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Event) else "",
)
def test_what_an_event_changes_of_what_is_known_of_a_memory(event: Event, change: dict[str, Any]) -> None:
    assert the_change(stored(pending=True, on_probation=True, ttl_seconds=60), event) == change


@pytest.mark.parametrize("event", [repeated(), evolved(), edited()], ids=lambda event: type(event).__name__)
def test_what_was_said_long_ago_shortens_no_life(event: Event) -> None:
    """What is imported happened when it says, which may be before what is known."""
    past = recorded(event, 2, occurred_at=START_US - 1_000 * SECOND)
    with folded(recorded(stored(ttl_seconds=60), 1), past) as connection:
        guard = DecisionState(connection)[Memories].get("mem-1")
    assert guard is not None
    assert guard.expires_at == START_US + 61 * SECOND


@pytest.mark.parametrize(
    "hidden", [superseded("mem-1", "mem-2"), deleted(), expired()], ids=lambda event: type(event).__name__
)
def test_a_memory_that_is_restored_is_active_with_the_time_it_had_or_for_ever(hidden: Event) -> None:
    born = stored(ttl_seconds=60)
    assert the_change(born, hidden, restored()) == {"state": "active", "changed_at": 3}
    assert the_change(born, hidden, restored(is_permanent=True)) == {
        "state": "active",
        "changed_at": 3,
        "ttl_seconds": None,
        "expires_at": None,
    }
    assert the_change(born, hidden, restored(is_permanent=True), repeated()) == {
        "said_at": START_US + 4 * SECOND
    }


def test_a_contradiction_that_is_taken_back_is_known_no_more() -> None:
    denied = (stored(), contradicted("mem-1", "mem-2"))
    assert the_change(*denied, deleted(), restored())["denied_by"] is None
    assert the_change(*denied, unlinked("mem-2", "mem-1", "contradicts")) == {"denied_by": None}
    assert the_change(*denied, unlinked("mem-2", "mem-1", "related")) == {}
    assert the_change(*denied, unlinked("mem-3", "mem-1", "contradicts")) == {}


def test_points_add_up() -> None:
    assert (
        guard_of(stored(), rated(points=1), rated(points=1), rated(points=-2), rated(points=-1)).rating == -1
    )


@pytest.mark.parametrize("reworded", [evolved(), edited()], ids=lambda event: type(event).__name__)
def test_a_memory_that_is_reworded_waits_to_be_embedded_again(reworded: Event) -> None:
    log = (
        stored(),
        embedded(),
        embedded(embedder_id="other"),
        stored("mem-2", "two"),
        embedded("mem-2"),
        reworded,
    )
    with folded(*(recorded(event, position) for position, event in enumerate(log, 1))) as connection:
        found = DecisionState(connection)
        assert [found[Memories].is_embedded("mem-1", name) for name in ("paper-1", "other")] == [False, False]
        assert found[Memories].is_embedded("mem-2", "paper-1")
        INLINE.fold(connection, recorded(embedded(), 7))
        assert [found[Memories].is_embedded("mem-1", name) for name in ("paper-1", "other")] == [True, False]


def test_the_holder_of_a_content_can_be_found_at_the_moment() -> None:
    key, end = stored().content_key, START_US + 61 * SECOND
    with folded(recorded(stored(ttl_seconds=60), 1)) as connection:
        found = DecisionState(connection)
        assert [found[Memories].holder(key, now) is not None for now in (0, end - 1, end, end + 1)] == [
            True,
            True,
            False,
            False,
        ]
        assert [
            guard.is_active(now) for now in (end - 1, end) if (guard := found[Memories].get("mem-1"))
        ] == [True, False]
        INLINE.fold(connection, recorded(edited("mem-1", "other"), 2))
        found = DecisionState(connection)
        assert found[Memories].holder(key, 0) is None
        assert found[Memories].holder(key_of("other"), 0) == found[Memories].get("mem-1")
        for position, hidden in enumerate((superseded("mem-1", "x"), deleted(), expired()), 3):
            INLINE.fold(connection, recorded(hidden, position))
            assert found[Memories].holder(key_of("other"), 0) is None
        INLINE.fold(connection, recorded(restored(), 6))
        assert found[Memories].holder(key_of("other"), 0) is not None


def test_of_two_holders_the_older_is_named() -> None:
    events = [stored("b"), deleted("b"), stored("a"), restored("b")]
    with folded(*(recorded(event, position) for position, event in enumerate(events, 1))) as connection:
        holder = DecisionState(connection)[Memories].holder(stored().content_key, 0)
    assert holder is not None
    assert holder.memory_id == "b"


def test_an_event_about_a_memory_that_is_not_there_is_known_of_nothing() -> None:
    with folded(recorded(rated("x"), 1), recorded(restored("x"), 2), recorded(edited("x"), 3)) as connection:
        assert rows(connection, "SELECT * FROM state_memories") == []


def snapshot(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {table: sorted(rows(connection, f"SELECT * FROM {table}"), key=repr) for table in TABLES}


@given(STEPS)
def test_state_made_again_from_the_log_is_that_which_was_written_with_it(steps: list[Step]) -> None:
    connection = open_in_memory()
    run_script(connection, resources.files("omegad.log").joinpath("schema.sql").read_text(encoding="utf-8"))
    assert INLINE.prepare(connection) is None
    for position, event in enumerate(history(steps), 1):
        _write(connection, recorded(event, position))
        INLINE.fold(connection, recorded(event, position))
    before = INLINE.digests(connection)
    assert set(before) == {projection.NAME for projection in state.ALL}
    with writing(connection):
        INLINE.reset(connection)
    while INLINE.catch_up(connection, CODEC, 3) is not None:
        assert not steps or INLINE.digests(connection) == {}
    assert INLINE.digests(connection) == before
    connection.close()


def _write(connection: Connection, event: RecordedEvent) -> None:
    assert isinstance(event.event, Event)
    envelope = tuple(getattr(event, name) for name in RecordedEvent.__struct_fields__[:13])
    connection.execute(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*envelope, b"", event.chain),
    )
    connection.execute(
        "INSERT INTO payloads VALUES (?, ?, ?)", (event.position, b"", CODEC.encode(event.event).decode())
    )


OLD_GUARDS = """
CREATE TABLE memory_guards (
    memory_id TEXT PRIMARY KEY, content_key TEXT NOT NULL, stored_at INTEGER NOT NULL, changed_at INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'superseded', 'deleted')), pending INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_guards_by_content ON memory_guards (content_key) WHERE state = 'active';
CREATE TABLE embedding_guards (
    memory_id TEXT NOT NULL, embedder_id TEXT NOT NULL, PRIMARY KEY (memory_id, embedder_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE tool_guards (
    session_id TEXT NOT NULL, tool_use_id TEXT NOT NULL, position INTEGER NOT NULL, call_index INTEGER NOT NULL,
    PRIMARY KEY (session_id, tool_use_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE session_guards (session_id TEXT PRIMARY KEY, calls INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO memory_guards VALUES ('mem-1', 'key', 1, 1, 'active', 1);
INSERT INTO session_guards VALUES ('session-1', 9);
"""


def downgrade(path: Path) -> None:
    """Make a log what format 1 had of it: `memory.stored@1` in its events, its guards without what format
    2 added.
    """
    connection = open_writer(path, durable=False)
    for name in ("events_are_not_updated", "payloads_are_not_updated"):
        connection.execute(f"DROP TRIGGER {name}")
    link = chain.GENESIS
    for row in rows(
        connection,
        "SELECT e.*, p.salt, p.body FROM events AS e JOIN payloads AS p USING (position) ORDER BY position",
    ):
        envelope, salt, payload = list(row[:13]), row[15], json.loads(row[16])
        if payload["type"] == "memory.stored@2":
            envelope[2] = payload["type"] = "memory.stored@1"
            del payload["auto_tags"], payload["on_probation"]
        body = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
        digest = chain.payload_hash(salt, body.encode())
        link = chain.link(link, (*envelope, digest))
        changed = {"at": row[0], "tag": envelope[2], "digest": digest, "link": link, "body": body}
        connection.execute(
            "UPDATE events SET tag = :tag, payload_hash = :digest, chain = :link WHERE position = :at",
            changed,
        )
        connection.execute("UPDATE payloads SET body = :body WHERE position = :at", changed)
    for table in TABLES:
        connection.execute(f"DROP TABLE {table}")
    connection.execute("DROP TABLE inline_projections")
    run_script(connection, OLD_GUARDS)
    connection.execute("UPDATE identity SET format = 1")
    connection.execute(
        "PRAGMA user_version=77"
    )  # by which the first releases knew who had filled their tables
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


async def old_log(path: Path) -> None:
    """Write a log of format 1 with a little of everything that could happen then."""
    request = RequestKey(client="cli", request_id="r1", params_digest=b"digest")
    async with running_log(path) as log:
        await append(
            log,
            stored("mem-1", "one", tags=("é",), ttl_seconds=60, pending=True),
            embedded("mem-1"),
            related("mem-1"),
            request=request,
        )
        await append(
            log,
            stored("mem-2", "two"),
            repeated("mem-2"),
            superseded("mem-2", "mem-1"),
            stored("mem-3", "three"),
            deleted("mem-3"),
        )
        await append(log, tool_called(1), tool_called(2), queried(("mem-1", 0.9)))
    downgrade(path)


def contents(path: Path, *tables: str, columns: str = "*") -> dict[str, list[tuple[Any, ...]]]:
    connection = open_writer(path, durable=False)
    found = {table: rows(connection, f"SELECT {columns} FROM {table} ORDER BY 1") for table in tables}
    connection.close()
    return found


KEPT = ("events", "payloads", "requests", "erasures")


async def test_a_log_of_the_first_format_opens_with_every_byte_of_its_events_and_with_the_guards_of_today(
    tmp_path: Path,
) -> None:
    await old_log(tmp_path / "log.db")
    before = contents(tmp_path / "log.db", *KEPT)
    assert len(before["events"]) == 11
    assert len(before["requests"]) == 1
    async with running_log(tmp_path / "log.db", FakeClock(seed=2)) as log:
        assert log.head == 11
        events = await everything(log)
        await log.settled()
        assert proof(log).ok
        found = await log._writer.run(
            lambda connection: [DecisionState(connection)[Memories].get(f"mem-{n}") for n in (1, 2, 3)]
        )
        tables = await log._writer.run(snapshot)
        assert (await append(log, stored("mem-4", "four"))).position == 12
    assert contents(tmp_path / "log.db", *KEPT)["events"][:11] == before["events"]
    assert contents(tmp_path / "log.db", *KEPT)["payloads"][:11] == before["payloads"]
    assert contents(tmp_path / "log.db", "requests", "erasures", "identity")["requests"] == before["requests"]
    assert contents(tmp_path / "log.db", "identity")["identity"][0][2] == reading.FORMAT
    assert not [
        name
        for (name,) in contents(tmp_path / "log.db", "sqlite_schema", columns="name")["sqlite_schema"]
        if "guards" in name
    ]
    one, two, three = found
    assert isinstance(events[0].event, MemoryStored)
    assert (events[0].tag, events[0].event.content, events[0].event.on_probation) == (
        "memory.stored@1",
        "one",
        False,
    )
    assert one
    assert two
    assert three
    assert (one.state, one.pending, one.ttl_seconds, one.expires_at) == (
        "active",
        False,
        60,
        events[0].occurred_at + 60 * SECOND,
    )
    assert (one.event_type, one.session_id, one.changed_at, two.state, three.state) == (
        "memory",
        "session-1",
        2,
        "superseded",
        "deleted",
    )
    assert tables["state_embeddings"] == [("mem-1", "paper-1")]
    assert [row[:2] for row in tables["state_tool_calls"]] == [
        ("session-1", ""),
        ("session-1", "toolu-1"),
        ("session-1", "toolu-2"),
    ]


def test_a_memory_of_the_first_version_has_no_automatic_tags_and_was_asked_for() -> None:
    body = (GOLDEN / "memory.stored@1.json").read_bytes()
    event = CODEC.decode("memory.stored@1", body)
    assert isinstance(event, MemoryStored)
    assert (event.auto_tags, event.on_probation, event.made_of) == ((), False, None)
    kept = {
        name: value
        for name, value in json.loads(CODEC.encode(event)).items()
        if name not in {"type", "auto_tags", "on_probation", "made_of", "also_near"}
    }
    assert kept == {name: value for name, value in json.loads(body).items() if name != "type"}


async def test_reading_tells_the_tag_that_was_written_and_the_event_of_today(tmp_path: Path) -> None:
    await old_log(tmp_path / "log.db")
    connection = open_writer(tmp_path / "log.db", durable=False)
    first = reading.read(connection, CODEC, 0, 1)[0]
    connection.close()
    assert (first.tag, type(first.event)) == ("memory.stored@1", MemoryStored)
