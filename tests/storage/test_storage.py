"""SQLite as we use it: the driver, transactions that are over when the call is, readers that see one
moment, errors in our words.
"""

import asyncio
import ctypes
import importlib
import sqlite3 as standard
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from omegad.runtime import errors
from omegad.storage import checkpointer, driver, readers
from omegad.storage.checkpointer import Checkpointer
from omegad.storage.database import Database, let_go_of_pages, open_reader, open_writer, translated
from omegad.storage.driver import SAFE_VERSION, Connection, sqlite
from omegad.storage.readers import ReadersClosed
from omegad.storage.transaction import run_script, savepoint, snapshot, writing
from tests.builders import PATIENCE_S, threads_ended, until


@pytest.fixture
def file(tmp_path: Path) -> Path:
    connection = open_writer(tmp_path / "x.db", durable=False)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.close()
    return tmp_path / "x.db"


def put(count: int, first: int = 1) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        with writing(connection):
            for number in range(first, first + count):
                connection.execute("INSERT INTO t VALUES (?)", (number,))

    return work


def count(connection: Connection) -> int:
    found: int = connection.execute("SELECT count(*) FROM t").fetchone()[0]
    return found


def module(version: tuple[int, int, int], *, extensions: bool = True) -> Any:
    return SimpleNamespace(
        Connection=type("C", (), {"enable_load_extension": None} if extensions else {}),
        sqlite_version_info=version,
    )


@pytest.mark.parametrize(
    ("bundled", "own", "chosen"),
    [
        (module((3, 53, 0)), module((3, 53, 0)), "bundled"),
        (None, module((3, 51, 3)), "own"),
        (module((3, 51, 2)), module((3, 60, 0)), "own"),
        (None, module((3, 51, 2)), None),
        (None, module((3, 60, 0), extensions=False), None),
    ],
    ids=["both good", "no bundled one", "bundled too old", "own too old", "no extensions"],
)
def test_the_driver_is_one_that_loads_extensions_and_loses_no_commits(
    monkeypatch: pytest.MonkeyPatch, bundled: Any, own: Any, chosen: str | None
) -> None:
    def find(name: str) -> Any:
        found = {"pysqlite3.dbapi2": bundled, "sqlite3": own}[name]
        if found is None:
            raise ImportError(name)
        return found

    monkeypatch.setattr(importlib, "import_module", find)
    if chosen is None:
        with pytest.raises(errors.DriverMissing, match="extensions"):
            driver._plain()
    else:
        assert driver._plain() is (bundled if chosen == "bundled" else own)


def test_what_is_sealed_is_refused_without_the_library_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(errors.SealerMissing, match=r"^the package sqlcipher3 is not there") as refused:
        driver.sealing()
    assert refused.value.hint == "pip install 'omegad[sealed]'"


def test_the_driver_in_use_is_safe() -> None:
    assert sqlite.sqlite_version_info >= SAFE_VERSION
    assert hasattr(sqlite.Connection, "enable_load_extension")


def test_a_connection_knows_vectors_and_full_text_and_checkpoints_only_when_told(file: Path) -> None:
    connection = open_writer(file, durable=True)
    assert connection.execute("SELECT vec_version()").fetchone()
    connection.execute("CREATE VIRTUAL TABLE f USING fts5(a)")
    pragmas = [
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("wal_autocheckpoint", "synchronous", "journal_mode", "foreign_keys")
    ]
    assert pragmas == [0, 2, "wal", 1]
    connection.close()


def test_extensions_are_loaded_by_us_alone(file: Path) -> None:
    connection = open_writer(file, durable=False)
    with pytest.raises(sqlite.OperationalError, match="not authorized"):
        connection.execute("SELECT load_extension('x')")
    connection.close()


def test_a_reader_cannot_write(file: Path) -> None:
    connection = open_reader(file)
    with pytest.raises(sqlite.OperationalError, match="readonly"):
        connection.execute("INSERT INTO t VALUES (1)")
    connection.close()


def test_a_transaction_is_over_when_its_block_is(file: Path) -> None:
    connection = open_writer(file, durable=False)
    with writing(connection):
        connection.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(KeyboardInterrupt), writing(connection):  # noqa: PT012
        connection.execute("INSERT INTO t VALUES (2)")
        raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError), snapshot(connection):
        raise ZeroDivisionError
    assert not connection.in_transaction
    assert count(connection) == 1
    connection.close()


def test_a_savepoint_undoes_its_own_block_alone(file: Path) -> None:
    connection = open_writer(file, durable=False)
    with writing(connection):
        connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(ZeroDivisionError), savepoint(connection):  # noqa: PT012
            connection.execute("INSERT INTO t VALUES (2)")
            raise ZeroDivisionError
        with savepoint(connection):
            connection.execute("INSERT INTO t VALUES (3)")
    assert connection.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]
    connection.close()


def test_a_full_disk_in_a_transaction_is_told_as_such_and_leaves_none_open(file: Path) -> None:
    connection = open_writer(file, durable=False)
    connection.execute("PRAGMA max_page_count=4")
    with pytest.raises(errors.StorageFull), translated(), writing(connection):  # noqa: PT012
        for number in range(100_000):
            with savepoint(connection):
                connection.execute("INSERT INTO t VALUES (?)", (number,))
    assert not connection.in_transaction
    assert count(connection) == 0
    connection.execute("PRAGMA max_page_count=4000")
    put(10)(connection)
    assert count(connection) == 10
    connection.close()


def test_a_script_runs_inside_the_transaction_that_is_open(file: Path) -> None:
    connection = open_writer(file, durable=False)
    script = (
        "CREATE TABLE u (a); -- a comment; with a semicolon\n"
        "CREATE TRIGGER g AFTER INSERT ON u BEGIN\n  DELETE FROM t;\nEND;\nINSERT INTO u\nVALUES (1);"
    )
    with pytest.raises(ZeroDivisionError), writing(connection):  # noqa: PT012
        run_script(connection, script)
        raise ZeroDivisionError
    assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (1,)
    with writing(connection):
        run_script(connection, script)
    assert connection.execute("SELECT a FROM u").fetchall() == [(1,)]
    connection.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (5, errors.StorageBusy),
        (261, errors.StorageBusy),
        (6, errors.StorageBusy),
        (8, errors.StorageFailed),
        (10, errors.StorageFailed),
        (1034, errors.StorageFailed),
        (11, errors.StorageCorrupt),
        (779, errors.StorageCorrupt),
        (13, errors.StorageFull),
        (14, errors.StorageFailed),
        (26, errors.StorageCorrupt),
    ],
)
def test_what_the_environment_does_is_told_in_our_words(code: int, kind: type[Exception]) -> None:
    error = sqlite.OperationalError("as SQLite says")
    error.sqlite_errorcode = code
    with pytest.raises(kind, match="as SQLite says"), translated():
        raise error


def test_a_mistake_in_our_sql_stays_what_it_is(file: Path) -> None:
    connection = open_writer(file, durable=False)
    with pytest.raises(sqlite.OperationalError, match="no such table"), translated():
        connection.execute("SELECT * FROM nowhere")
    with pytest.raises(sqlite.IntegrityError), translated():
        connection.execute("INSERT INTO t VALUES (1), (1)")
    connection.close()


async def test_a_lock_of_another_program_is_told_as_busy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omegad.storage.database.BUSY_TIMEOUT_MS", 20)
    other = sqlite.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    database = await Database.writer(file, durable=False)
    with pytest.raises(errors.StorageBusy):
        await database.run(put(1))
    other.execute("ROLLBACK")
    other.close()
    await database.run(put(1))
    await database.close()


async def test_a_file_that_is_no_database_is_told_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"rubbish" * 1_000)
    async with threads_ended():
        with pytest.raises(errors.StorageCorrupt):
            await Database.writer(tmp_path / "x.db", durable=False)
        with pytest.raises(errors.StorageFailed):
            await Database.writer(tmp_path / "no" / "x.db", durable=False)


async def test_work_that_is_cancelled_at_any_moment_is_done_whole_or_not_at_all(file: Path) -> None:
    """Both kinds of cancelling, at delays that sweep over the time the work takes."""
    database = await Database.writer(file, durable=False)
    for attempt in range(120):
        work = put(200, first=attempt * 200 + 1)
        if attempt % 2:
            task = asyncio.create_task(database.run(work))
            await asyncio.sleep(attempt / 100_000)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            with anyio.move_on_after(attempt / 100_000):
                await database.run(work)
        is_open, found = await database.run(lambda connection: (connection.in_transaction, count(connection)))
        assert not is_open
        assert found % 200 == 0
    await database.close()


async def test_a_reader_sees_one_moment_while_others_write(file: Path) -> None:
    writer = await Database.writer(file, durable=False)
    async with readers.opened(file, 2) as reading:
        seen: list[tuple[int, int]] = []

        def twice(connection: Connection) -> None:
            first = count(connection)
            for _ in range(20_000):
                pass
            seen.append((first, connection.execute("SELECT count(*) FROM t").fetchone()[0]))

        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(writer.run, put(1, first=number + 1))
                tasks.start_soon(reading.read, twice)
        assert [pair for pair in seen if pair[0] != pair[1]] == []
        assert await reading.read(count) == 60
    await writer.close()


async def test_a_cancelled_reader_gives_its_connection_back(file: Path) -> None:
    async with readers.opened(file, 2) as reading:
        for attempt in range(60):
            task = asyncio.create_task(reading.read(count))
            await asyncio.sleep(attempt / 50_000)
            task.cancel()
            with anyio.move_on_after(attempt / 50_000):
                await reading.read(count)
        with anyio.fail_after(PATIENCE_S):
            assert await asyncio.gather(*(reading.read(count) for _ in range(8))) == [0] * 8


async def test_a_reader_whose_work_fails_is_used_again(file: Path) -> None:
    async with readers.opened(file, 1) as reading:
        for _ in range(5):
            with pytest.raises(sqlite.OperationalError):
                await reading.read(lambda connection: connection.execute("SELECT * FROM nowhere"))
        assert await reading.read(count) == 0


async def test_draining_waits_for_the_reads_under_way_and_lets_none_begin(file: Path) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slowly(connection: Connection) -> int:
        begun.set()
        assert may_end.wait(PATIENCE_S)
        return count(connection)

    async with readers.opened(file, 1) as reading, asyncio.timeout(PATIENCE_S):
        under_way, queued = (
            asyncio.create_task(reading.read(slowly)),
            asyncio.create_task(reading.read(count)),
        )
        await until(begun.is_set)
        draining = asyncio.create_task(reading.drain())
        await asyncio.sleep(0.02)
        assert not draining.done()
        may_end.set()
        assert await under_way == 0
        await draining
        assert (await asyncio.gather(queued, return_exceptions=True))[0] == 0 or isinstance(
            queued.exception(), ReadersClosed
        )
        with pytest.raises(ReadersClosed):
            await reading.read(count)


async def test_the_wal_stays_bounded_under_a_long_load(file: Path) -> None:
    writer, checkpoints = await Database.writer(file, durable=False), Checkpointer(file)
    largest = 0
    async with readers.opened(file, 1) as reading:
        for number in range(200):
            await writer.run(put(500, first=number * 500 + 1))
            await writer.run(checkpoints.after_commit)
            await reading.read(count)
            largest = max(largest, checkpoints.wal_bytes())
    assert largest < 2_000_000
    await writer.run(checkpoints.truncate)
    assert checkpoints.wal_bytes() == 0
    await writer.close()


def test_a_reader_that_holds_the_wal_back_is_not_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpointer, "WAL_BYTES_TRUNCATE", 100_000)
    writer, reader, checkpoints = open_writer(file, durable=False), open_reader(file), Checkpointer(file)
    with snapshot(reader):
        assert count(reader) == 0
        for number in range(10):
            put(3_000, first=number * 3_000 + 1)(writer)
            checkpoints.after_commit(writer)
        assert checkpoints.wal_bytes() > 100_000
    assert writer.execute("PRAGMA busy_timeout").fetchone() == (5_000,)
    put(3_000, first=90_001)(writer)
    checkpoints.after_commit(writer)
    assert checkpoints.wal_bytes() == 0
    writer.close()
    reader.close()


SQLITE = ctypes.CDLL(importlib.import_module(f"{driver.sqlite.__name__.split('.')[0]}._sqlite3").__file__)


@pytest.mark.skipif(not hasattr(SQLITE, "sqlite3_memory_used"), reason="it does not say what it occupies")
async def test_pages_that_are_at_hand_are_let_go_of_when_asked_to(file: Path) -> None:
    SQLITE.sqlite3_memory_used.restype = ctypes.c_int64
    writer, gone = await Database.writer(file, durable=False), await Database.reader(file)
    await gone.close()
    reader = await Database.reader(file)
    try:
        await writer.run(put(50_000))
        await reader.run(lambda connection: connection.execute("SELECT sum(a) FROM t").fetchone())
        before = SQLITE.sqlite3_memory_used()
        await let_go_of_pages()
        assert before - SQLITE.sqlite3_memory_used() > 500_000
        assert await reader.run(count) == 50_000
    finally:
        await writer.close()
        await reader.close()


def test_a_file_without_wal_has_none(tmp_path: Path) -> None:
    assert Checkpointer(tmp_path / "nowhere.db").wal_bytes() == 0


def test_the_type_checkers_connection_is_the_standard_one() -> None:
    assert Connection is standard.Connection


async def test_who_interrupts_a_connection_that_was_just_closed_harms_nothing(file: Path) -> None:
    database = await Database.reader(file)
    await database.run(lambda connection: connection.close())
    database.interrupt_now()
    await database.close()
