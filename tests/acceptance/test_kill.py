"""What is left of builds, starts and files that are broken off: the next start goes on. What was acknowledged
is tortured in `tests/torture`.
"""

import asyncio
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from omegad.client import AsyncClient
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, Raw, homes_in, refusal, until


def _fill(home: Home, memories: int, calls: int) -> None:
    async def fill() -> None:
        async with AsyncClient(home.socket, name="filler", timeout_s=PATIENCE_S) as client:
            texts = [
                f"Event number {number} is kept in file_{number}.py, by itself" for number in range(memories)
            ]
            for start in range(0, memories, 50):
                await asyncio.gather(
                    *(client.call("memory.store", content=text) for text in texts[start : start + 50])
                )
            for start in range(0, calls, 50):
                await asyncio.gather(
                    *(
                        client.call("tool.record", session_id="s", tool_name="Read")
                        for _ in range(start, min(calls, start + 50))
                    )
                )

    asyncio.run(fill())


def _answers(home: Home) -> list[list[tuple[str, float]]]:
    with home.client() as client:
        found = [
            client.call("memory.query", text=f"file_{number}.py fact", mode="keyword")["results"]
            for number in range(0, 100, 9)
        ]
    return [[(result["memory_id"], result["score"]) for result in results] for results in found]


def _generations(home: Home) -> list[Path]:
    return [path for path in home.path.glob("views-*.db") if path.stem.removeprefix("views-").isdigit()]


def _workers(home: Home, work: str = "") -> list[int]:
    """Return the processes that go through the log of a home, or those whose work it is to build, or to
    compare.
    """
    listed = subprocess.run(
        ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [
        int(line.split()[0])
        for line in listed
        if f'omegad.catalog.log_worker {home.paths.embeddings} {{"type":"{work}' in line
    ]


def _worker(home: Home, work: str) -> int:
    """Wait for the one whose work that is."""
    until(lambda: bool(_workers(home, work)))
    return _workers(home, work)[0]


def _filled(folder: Path, memories: int, calls: int) -> Path:
    with homes_in(folder) as make:
        home = make().start()
        _fill(home, memories, calls)
        assert home.stop() == 0
        return home.path


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of memories alone."""
    return _filled(tmp_path_factory.mktemp("few"), memories=200, calls=0)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose views take a while to be built."""
    return _filled(tmp_path_factory.mktemp("many"), memories=300, calls=6_000)


@pytest.fixture
def long(many: Path, homes: Callable[..., Home], tmp_path: Path) -> Home:
    """A daemon that serves a copy of it, and whose workers can be seen and killed."""
    home = homes(Path(shutil.copytree(many, tmp_path / "long", symlinks=True)))
    home.has_own_workers = True
    return home.start()


@pytest.mark.long
def test_a_rebuild_whose_daemon_is_killed_leaves_one_current_generation(long: Home) -> None:
    before = _answers(long)
    assert all(before)
    moments = [
        lambda: bool(_workers(long)),
        lambda: _unfinished_bytes(long) >= 0,
        lambda: _unfinished_bytes(long) > 500_000,
    ]
    for is_far_enough in moments:
        served = (long.path / "views.db").readlink()
        with long.raw() as asking:
            asking.send(b'{"jsonrpc":"2.0","id":1,"method":"views.rebuild"}')
            until(is_far_enough)
            long.kill()
        until(lambda: not _workers(long))
        assert (long.path / "views.db").readlink() == served
        long.start()
        assert not _unfinished(long)
        assert _answers(long) == before
    assert long.call("views.rebuild")["ok"]
    assert len(_generations(long)) == 2
    long.check()


def _made_earlier(home: Home) -> None:
    """Have views, of which nobody can read one, and decision state be of an earlier version."""
    for file, statement in (
        (home.path / "views.db", "UPDATE checkpoints SET version = 0 WHERE name IN ('memories', 'audit')"),
        (home.path / "views.db", "UPDATE checkpoints SET schema_digest = '' WHERE name = 'conversations'"),
        (home.paths.log, "UPDATE inline_projections SET version = 0 WHERE name IN ('hooks', 'memories')"),
    ):
        with closing(sqlite3.connect(file.resolve())) as connection, connection:
            connection.execute(statement)


@pytest.mark.long
def test_an_upgrade_whose_daemon_is_killed_is_finished_by_the_next_start(long: Home) -> None:
    stored = list[str]()
    moments: list[Callable[[Path], bool]] = [
        lambda _: bool(_workers(long)),
        lambda _: _unfinished_bytes(long) >= 0,
        lambda _: _unfinished_bytes(long) > 500_000,
        lambda served: (long.path / "views.db").readlink() != served,
    ]
    for is_far_enough in moments:
        long.kill()
        until(lambda: not _workers(long))
        _made_earlier(long)
        served = (long.path / "views.db").readlink()
        long.start()
        if not stored:  # while the decision state is made, for which a store waits
            long.kill()
            long.start()
        until(partial(is_far_enough, served))
        stored.append(long.call("memory.store", content=f"Acknowledged at {len(stored)}")["memory_id"])
    long.kill()
    long.start()
    until(lambda: not long.call("system.status")["degraded"] and long.caught_up())
    assert not _unfinished(long)
    assert all(long.call("memory.get", memory_id=one) for one in stored)
    long.check()


@pytest.mark.long
def test_a_rebuild_that_is_broken_off_leaves_the_live_views_and_says_why(long: Home) -> None:
    before = _answers(long)

    def begun(asking: Raw, work: str = "build") -> int:
        asking.send(b'{"jsonrpc":"2.0","id":1,"method":"views.rebuild"}')
        until(lambda: bool(_workers(long, work)) and (work == "compare" or _unfinished_bytes(long) >= 0))
        return _workers(long, work)[0]

    with long.raw() as asking:
        for work in ("build", "compare"):
            worker = begun(asking, work)
            os.kill(worker, signal.SIGKILL)
            assert "ended with status -9" in asking.receive()["error"]["message"]
            assert not _workers(long)
            assert not _unfinished(long)
        begun(asking)
        asking.send(b'{"jsonrpc":"2.0","method":"rpc.cancel","params":{"id":1}}')
        assert "error" in asking.receive()
        until(lambda: not _workers(long) and not _unfinished(long))
        assert _answers(long) == before
        begun(asking)
        assert long.stop() == 0
    assert not _workers(long)
    assert not _unfinished(long)
    long.limits = {resource.RLIMIT_FSIZE: long.paths.log.stat().st_size // 10}
    long.start()
    refused = refusal(lambda: long.call("views.rebuild"))
    assert (refused.kind, "refused to read or write" in str(refused)) == ("unavailable", True), str(refused)
    assert not _unfinished(long)
    assert _answers(long) == before
    long.limits = {}
    long.restart().check()


@pytest.mark.long
def test_a_proof_that_is_broken_off_says_so_and_the_next_one_is_whole(long: Home) -> None:
    with long.raw() as asking:
        for method, work in (("log.verify", "prove"), ("views.verify", "verify")):
            asking.send(b'{"jsonrpc":"2.0","id":1,"method":"%s"}' % method.encode())
            os.kill(_worker(long, work), signal.SIGKILL)
            assert "ended with status -9" in asking.receive()["error"]["message"]
            assert not _workers(long)
    long.check()


def _unfinished(home: Home) -> list[Path]:
    return list(home.path.glob("views-*.unfinished*"))


def _unfinished_bytes(home: Home) -> int:
    """Return the size of the views being built, -1 while there are none."""
    return max((path.stat().st_size for path in _unfinished(home)), default=-1)


def test_a_daemon_killed_while_it_starts_starts_the_next_time(home: Home) -> None:
    home.start()
    stored = home.call("memory.store", content="The first start was whole")
    assert home.stop() == 0
    for awaited in (home.path / "omegad.lock", home.path / "log.db-wal", home.path / "views.db", home.socket):
        for path in home.path.glob("views*"):
            path.unlink()
        (home.path / "omegad.lock").unlink(missing_ok=True)  # of one that was killed before it made it
        home.launch()
        until(awaited.exists)
        home.kill()
    home.start()
    until(home.caught_up)
    assert home.call("memory.get", memory_id=stored["memory_id"])["content"] == "The first start was whole"
    home.check()


def test_a_home_whose_very_first_start_was_killed_is_made_by_the_next(homes: Callable[..., Home]) -> None:
    for awaited in ("omegad.lock", "log.db", "log.db-wal", "views.db"):
        home = homes().launch()
        until((home.path / awaited).exists)
        home.kill()
        home.start()
        assert home.call("memory.store", content="Started after all")["position"] == 1
        home.check()
        home.kill()


def _cut_in_half(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _scribbled_over(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        for offset in range(4096, size, 2 * 4096):
            file.seek(offset)
            file.write(os.urandom(min(4096, size - offset)))


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"this is not SQLite's " * 1_000)


def _where_one_memory_is_scribbled_over(path: Path) -> None:
    """Damage pages that nothing reads before a query does."""
    data = path.read_bytes()
    text = b"Event number 99 is kept in file_99.py"
    pages = [page for page in range(0, len(data), 4096) if text in data[page : page + 4096]]
    assert pages
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page)
            file.write(os.urandom(4096))


@pytest.mark.parametrize(
    "tear", [_cut_in_half, _emptied, _scribbled_over, _not_a_database, _where_one_memory_is_scribbled_over]
)
def test_torn_views_are_built_again_from_the_log(
    few: Path, homes: Callable[..., Home], tmp_path: Path, tear: Callable[[Path], None]
) -> None:
    daemon = homes(Path(shutil.copytree(few, tmp_path / "few", symlinks=True))).start()
    before = _answers(daemon)
    assert daemon.stop() == 0
    (views,) = _generations(daemon)
    tear(views)
    daemon.start()
    until(
        lambda: _answers_at_last(daemon) == before,
        lambda: f"the views stay torn: {daemon.call('system.status')['degraded']}",
    )
    daemon.check()


def _answers_at_last(home: Home) -> list[list[tuple[str, float]]] | None:
    try:
        return _answers(home)
    except OmegadError:
        return None


def test_a_write_ahead_log_that_is_torn_costs_nothing_that_was_checkpointed(daemon: Home) -> None:
    kept = daemon.call("memory.store", content="Kept in the database itself")
    assert daemon.stop() == 0
    daemon.start()
    daemon.call("memory.store", content="Only in the write-ahead log, and torn")
    daemon.kill()
    wal = daemon.path / "log.db-wal"
    with wal.open("r+b") as file:
        file.truncate(1_000)  # in its first page: what is at its end may be of something that came after
    for path in daemon.path.glob("views*"):  # else they say that the log has lost what they have seen
        path.unlink()
    daemon.start()
    assert [event["data"]["memory_id"] for event in daemon.events()] == [kept["memory_id"]]
    assert daemon.call("memory.query", text="torn")["abstained"]
    daemon.check()


def test_the_log_itself_refuses_to_be_changed(daemon: Home) -> None:
    daemon.call("memory.store", content="Written once")
    assert daemon.stop() == 0
    connection = sqlite3.connect(daemon.paths.log)
    try:
        for statement in (
            "UPDATE events SET tag = 'x'",
            "DELETE FROM events",
            "UPDATE payloads SET body = '{}'",
            "DELETE FROM payloads",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
    finally:
        connection.close()


def test_a_log_that_was_changed_all_the_same_is_found_out(daemon: Home) -> None:
    for number in range(10):
        daemon.call("memory.store", content=f"Event {number}")
    assert daemon.stop() == 0
    connection = sqlite3.connect(daemon.paths.log)
    with connection:
        connection.execute("DROP TRIGGER payloads_are_not_updated")
        connection.execute(
            "UPDATE payloads SET body = replace(body, 'Event 4', 'Event 5') WHERE position = 5"
        )
    connection.close()
    daemon.launch()
    assert daemon.process.wait(PATIENCE_S) != 0
    assert "the hash chain breaks at position 5" in daemon.printed()
