"""The hash chain: nothing about the log can be changed without its showing."""

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.daemon import VOCABULARY
from omegad.log import chain, event_log, verifying
from omegad.log.event_log import EventLog
from omegad.log.verifying import ChainCheck, Erasures, LogReport
from omegad.runtime.errors import LogBroken
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection, sqlite
from tests.builders import (
    FakeClock,
    append,
    embedded,
    erased,
    everything,
    proof,
    queried,
    rows,
    running_log,
    stored,
    threads_ended,
    tool_called,
)

EVENTS = 8
ENVELOPE = (
    "event_id",
    "tag",
    "recorded_at",
    "occurred_at",
    "tz_offset",
    "origin",
    "hlc",
    "session_id",
    "project",
    "client",
    "cause",
    "trace",
)
COLUMNS = [("events", name) for name in (*ENVELOPE, "payload_hash", "chain")] + [
    ("payloads", "salt"),
    ("payloads", "body"),
]
TRIGGERS = (
    "events_are_not_updated",
    "events_are_not_deleted",
    "payloads_are_not_updated",
    "payloads_are_deleted_only_when_erased",
)


_samples: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def a_log(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("sample") / "log.db"
    asyncio.run(_write(path))
    _samples.append(path)


def sample() -> Path:
    """Return a log of `EVENTS` events, to be copied."""
    return _samples[-1]


async def _write(path: Path) -> None:
    async with running_log(path) as log:
        await append(log, stored(), embedded(), client="cli", trace="trace")
        await append(log, tool_called(), session_id=None)
        for number in range(EVENTS - 3):
            await append(log, queried(text=f"question {number}"))


@contextlib.contextmanager
def tampered_copy(*, triggers: bool = False) -> Iterator[Connection]:
    with TemporaryDirectory() as folder:
        shutil.copy(sample(), Path(folder) / "log.db")
        connection = open_writer(Path(folder) / "log.db", durable=False)
        connection.execute("PRAGMA foreign_keys=OFF")
        for name in () if triggers else TRIGGERS:
            connection.execute(f"DROP TRIGGER {name}")
        yield connection
        connection.close()


def verify(connection: Connection) -> LogReport:
    check = ChainCheck()
    while check.verify(connection, 3):
        pass
    return check.report


def test_an_untouched_log_verifies() -> None:
    with tampered_copy(triggers=True) as connection:
        report = verify(connection)
        head = connection.execute("SELECT chain FROM events ORDER BY position DESC LIMIT 1").fetchone()[0]
    assert report == LogReport(ok=True, events=EVENTS, head_hash=head.hex())


async def test_an_empty_log_verifies(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        assert proof(log) == LogReport(ok=True, events=0, head_hash=chain.GENESIS.hex())


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE events SET tag = 'other.done@1' WHERE position = 2",
        "UPDATE events SET position = position",
        "DELETE FROM events WHERE position = 3",
        "DELETE FROM events",
        "UPDATE payloads SET body = '{}' WHERE position = 2",
        "UPDATE payloads SET salt = x''",
        "DELETE FROM payloads WHERE position = 2",
        "REPLACE INTO payloads VALUES (2, x'00', '{}')",
        "REPLACE INTO events SELECT * FROM events WHERE position = 2",
    ],
)
async def test_the_log_refuses_updates_and_deletes(sql: str) -> None:
    with tampered_copy(triggers=True) as connection:
        connection.execute("PRAGMA recursive_triggers=ON")  # for REPLACE, which else deletes without asking
        with pytest.raises(sqlite.IntegrityError, match="append-only"):
            connection.execute(sql)
        assert verify(connection).ok


@pytest.mark.parametrize(
    "sql",
    [
        "REPLACE INTO payloads VALUES (2, x'00', '{}')",
        "REPLACE INTO events SELECT * FROM events WHERE position = 2",
    ],
)
async def test_the_logs_own_connection_refuses_to_replace_a_row(tmp_path: Path, sql: str) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, queried(), queried())
        with pytest.raises(sqlite.IntegrityError, match="append-only"):
            await log._writer.run(lambda connection: connection.execute(sql).fetchall())


@given(
    place=st.sampled_from(COLUMNS),
    position=st.integers(1, EVENTS),
    byte=st.integers(0, 2_000),
    bit=st.integers(0, 7),
)
def test_any_flipped_bit_of_any_column_of_any_row_shows(
    place: tuple[str, str], position: int, byte: int, bit: int
) -> None:
    table, column = place
    with tampered_copy() as connection:
        ((value, kind),) = rows(
            connection,
            f"SELECT CAST({column} AS BLOB), typeof({column}) FROM {table} WHERE position = ?",
            position,
        )
        if kind == "integer":
            connection.execute(
                f"UPDATE {table} SET {column} = {column} + ? WHERE position = ?", (1 << bit, position)
            )
        else:
            data = bytearray(value or b"\0")
            data[byte % len(data)] ^= (1 << bit) if value else 0
            cast = (
                "TEXT"
                if kind in {"text", "null"} and column not in {"payload_hash", "chain", "salt"}
                else "BLOB"
            )
            if column == "cause":
                connection.execute(
                    "UPDATE events SET cause = 1 WHERE position = ? AND cause IS NULL", (position,)
                )
            else:
                connection.execute(
                    f"UPDATE {table} SET {column} = CAST(? AS {cast}) WHERE position = ?",
                    (bytes(data), position),
                )
        report = verify(connection)
    assert (report.ok, report.first_bad, report.events) == (False, position, position - 1)


@given(
    position=st.integers(1, EVENTS - 1),
    sql=st.sampled_from(
        [
            "DELETE FROM events WHERE position = :at",
            "DELETE FROM payloads WHERE position = :at",
            "UPDATE events SET position = 99 WHERE position = :at",
            "UPDATE payloads SET position = 99 WHERE position = :at",
            (
                "UPDATE payloads SET body = (SELECT body FROM payloads WHERE position = :at + 1) WHERE"
                " position = :at"
            ),
            (
                "UPDATE payloads SET (body, salt) = (SELECT body, salt FROM payloads WHERE position = :at +"
                " 1) WHERE position = :at"
            ),
        ]
    ),
)
def test_a_row_that_is_dropped_moved_or_copied_shows(position: int, sql: str) -> None:
    with tampered_copy() as connection:
        connection.execute(sql, {"at": position})
        report = verify(connection)
    assert (report.ok, report.first_bad) == (False, position)


@given(first=st.integers(1, EVENTS), second=st.integers(1, EVENTS))
def test_two_rows_that_changed_places_show(first: int, second: int) -> None:
    with tampered_copy() as connection:
        for table in ("events", "payloads"):
            for old, new in ((first, -1), (second, first), (-1, second)):
                connection.execute(f"UPDATE {table} SET position = ? WHERE position = ?", (new, old))
        report = verify(connection)
    assert (report.ok, report.first_bad) == ((True, None) if first == second else (False, min(first, second)))


def test_a_row_put_in_between_shows() -> None:
    with tampered_copy() as connection:
        for table in ("events", "payloads"):
            connection.execute(f"UPDATE {table} SET position = -position")
            connection.execute(f"UPDATE {table} SET position = 1 - position WHERE position < -3")
            connection.execute(f"UPDATE {table} SET position = -position WHERE position < 0")
        connection.execute(
            "INSERT INTO events SELECT 4, 'forged', tag, recorded_at, occurred_at, tz_offset, origin, hlc,"
            " session_id, project, client, cause, trace, payload_hash, chain FROM events WHERE position = 3"
        )
        connection.execute("INSERT INTO payloads SELECT 4, salt, body FROM payloads WHERE position = 3")
        assert verify(connection).first_bad == 4


async def test_an_erased_payload_verifies_when_an_event_names_it(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored(), queried())
        await append(log, erased(1))
        await log._writer.run(
            lambda connection: connection.execute("DELETE FROM payloads WHERE position = 1").fetchall()
        )
        await log.refold()  # what decisions know of it is to go with it
        report = proof(log)
        assert (report.ok, report.events) == (True, 3)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After which position each search for erasures began."""
    found: list[int] = []
    genuine = Erasures._search

    def counted(erasures: Erasures, connection: Connection) -> None:
        found.append(erasures._searched_to)
        genuine(erasures, connection)

    monkeypatch.setattr(Erasures, "_search", counted)
    return found


async def test_what_is_erased_while_the_log_is_being_verified_is_not_taken_for_damage(
    tmp_path: Path, searches: list[int]
) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, *[queried()] * 6)
        await append(log, erased(1))
        await _wipe(log, 1)
        check = ChainCheck()
        await log._writer.run(lambda connection: check.verify(connection, 2))
        await append(log, erased(5))
        await _wipe(log, 5)
        await log._writer.run(lambda connection: check.verify(connection, 20))
        assert (check.report.ok, check.report.events) == (True, 8)
        assert searches == [0, 7]


async def _wipe(log: EventLog, position: int) -> None:
    await log._writer.run(
        lambda connection: connection.execute(
            "DELETE FROM payloads WHERE position = ?", (position,)
        ).fetchall()
    )


async def test_erasures_are_searched_for_only_once_a_payload_is_missing_and_found_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, searches: list[int]
) -> None:
    monkeypatch.setattr(verifying, "VERIFY_CHUNK", 2)
    async with running_log(tmp_path / "log.db") as log:
        await append(log, *[queried()] * 20)
        proof(log)
        assert searches == []
        await append(log, erased(*range(3, 18)))
        for position in range(3, 18):
            await _wipe(log, position)
        assert proof(log).ok
        assert searches == [0]


def test_an_absent_payload_that_no_event_names_shows() -> None:
    with tampered_copy() as connection:
        connection.execute("DELETE FROM payloads WHERE position = 3")
        assert verify(connection).first_bad == 3


def test_a_row_among_the_erasures_excuses_nothing_by_itself() -> None:
    """The table is a fold of the events; what counts is that an event names the position."""
    with tampered_copy(triggers=True) as connection:
        connection.execute("INSERT INTO erasures VALUES (3)")
        connection.execute("DELETE FROM payloads WHERE position = 3")
        assert verify(connection).first_bad == 3


async def test_a_log_that_does_not_verify_is_not_opened(tmp_path: Path) -> None:
    shutil.copy(sample(), tmp_path / "log.db")
    connection = open_writer(tmp_path / "log.db", durable=False)
    connection.execute("DROP TRIGGER payloads_are_not_updated")
    connection.execute("UPDATE payloads SET body = replace(body, 'question 3', 'question 4')")
    connection.close()
    with pytest.raises(LogBroken, match="position 7"):
        async with event_log.opened(tmp_path / "log.db", FakeClock(), VOCABULARY):
            pass


async def test_a_payload_that_is_not_utf8_is_found_when_the_log_is_opened(tmp_path: Path) -> None:
    shutil.copy(sample(), tmp_path / "log.db")
    connection = open_writer(tmp_path / "log.db", durable=False)
    connection.execute("DROP TRIGGER payloads_are_not_updated")
    connection.execute("UPDATE payloads SET body = CAST(x'ff' AS TEXT) WHERE position = 7")
    connection.close()
    with pytest.raises(LogBroken, match="position 7"):
        async with event_log.opened(tmp_path / "log.db", FakeClock(), VOCABULARY):
            pass


async def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"not a database" * 1_000)
    async with threads_ended():
        with pytest.raises(Exception, match="damaged"):
            async with event_log.opened(tmp_path / "log.db", FakeClock(), VOCABULARY):
                pass
    assert (tmp_path / "log.db").read_bytes().startswith(b"not a database")


async def test_a_log_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    shutil.copy(sample(), tmp_path / "log.db")
    connection = open_writer(tmp_path / "log.db", durable=False)
    connection.execute("UPDATE identity SET format = 99")
    connection.close()
    with pytest.raises(LogBroken, match="format 99"):
        async with event_log.opened(tmp_path / "log.db", FakeClock(), VOCABULARY):
            pass


async def test_verifying_goes_part_by_part_and_tells_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "VERIFY_CHUNK", 2)
    told: list[tuple[int, int]] = []
    async with running_log(tmp_path / "log.db") as log:
        await append(log, *[queried()] * 5)
        assert proof(log, lambda done, total: told.append((done, total))).events == 5
        assert len(await everything(log)) == 5
    assert told == [(2, 5), (4, 5), (5, 5)]


def test_no_two_different_rows_read_alike() -> None:
    previous = chain.GENESIS
    envelopes: list[tuple[object, ...]] = [
        ("a", "b"),
        ("ab", ""),
        ("", "ab"),
        ("a", None),
        ("a", ""),
        ("a",),
        (None, "a"),
        ("+1:a", ""),
        (1, "b"),
    ]
    assert len({chain.link(previous, one) for one in envelopes}) == len(envelopes)
    assert chain.link(b"x" * 32, ("a",)) != chain.link(previous, ("a",))


def test_a_payloads_hash_depends_on_salt_and_body() -> None:
    hashes = {chain.payload_hash(salt, body) for salt in (b"1" * 16, b"2" * 16) for body in (b"{}", b"[]")}
    assert len(hashes) == 4
