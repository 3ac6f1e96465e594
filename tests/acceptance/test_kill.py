"""What was acknowledged survives `kill -9`, once, in order, and the views come to show it."""

import asyncio
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from omegad.client import AsyncClient
from omegad.runtime.errors import NoDaemon, OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, Raw, homes_in, refusal, until
from tests.forking import ROOT
from tests.seeds import SEED

CHANCE = random.Random(SEED)  # noqa: S311  any moment will do
ROUNDS = int(os.environ.get("KILLS", "6"))
ROUNDS_MAX = 200  # of which each writes a number of its own
ACKNOWLEDGED_MIN = int(os.environ.get("KILLED_WRITES", "500"))
WRITERS = 4
AT_ONCE = 4  # requests that each writer has under way
KILLED_AFTER = (1, 200)  # acknowledgements
SENT_AGAIN = 300


class Write(NamedTuple):
    """One request of a writer, which is the same request however often it is sent."""

    writer: str
    method: str
    params: dict[str, Any]

    @property
    def content(self) -> str:
        return str(self.params["content"] if self.method == "memory.store" else self.params["tool_input"])


class Book:
    """What the writers have asked for, and what they were told."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, tuple[Write, dict[str, Any]]] = {}
        self.unanswered: dict[str, Write] = {}
        self._numbers = count(1)

    def next(self, writer: str) -> Write:
        number = next(self._numbers)
        if number % 3:
            params = {
                "session_id": writer,
                "tool_name": "Bash",
                "tool_input": f"make target-{number}",
                "tool_use_id": f"use-{number}",
            }
            return Write(writer, "tool.record", {**params, "request_id": f"r{number}"})
        ack = "durable" if number % 2 else "related"
        content = f"Build number {number} of the {writer} needs target_{number} before anything else"
        return Write(
            writer,
            "memory.store",
            {"content": content, "ack": ack, "tags": ["build"], "request_id": f"r{number}"},
        )

    async def send(self, client: AsyncClient, write: Write) -> None:
        request_id = write.params["request_id"]
        self.unanswered[request_id] = write
        self.acknowledged[request_id] = write, await client.call(write.method, **write.params)
        del self.unanswered[request_id]


async def _keep_writing(home: Home, book: Book, writer: str) -> None:
    """Write until the daemon is gone."""

    async def one_after_another(client: AsyncClient) -> None:
        while True:
            await book.send(client, book.next(writer))

    with suppress(NoDaemon):
        async with AsyncClient(home.socket, name=writer) as client:
            await asyncio.gather(*(one_after_another(client) for _ in range(AT_ONCE)))


class Tally:
    """What went on beside the writers: rebuilds that were whole, kills while one was under way, and
    backups.
    """

    def __init__(self, home: Home) -> None:
        self.rebuilt = 0
        self.killed_while_building = 0
        self.backups: list[subprocess.Popen[bytes]] = []
        self._home = home

    async def rebuild(self) -> None:
        """Have the views built again and again, until the daemon is gone."""
        with suppress(NoDaemon):
            async with AsyncClient(self._home.socket, name="rebuilder", timeout_s=PATIENCE_S) as client:
                while True:
                    await client.call("views.rebuild")
                    self.rebuilt += 1

    def back_up(self) -> None:
        """Begin a backup, unless one is under way; it goes on when the daemon is killed."""
        if not self.backups or self.backups[-1].poll() is not None:
            command = [
                sys.executable,
                "-m",
                "omegad",
                "backup",
                str(self._home.path.with_name(f"backup-{len(self.backups)}.db")),
            ]
            self.backups.append(
                subprocess.Popen(command, env=self._home.environ, cwd=ROOT, stdout=subprocess.DEVNULL)
            )


async def _write_until_killed(home: Home, book: Book, beside: Tally, *, waits_for_a_rebuild: bool) -> None:
    enough = len(book.acknowledged) + CHANCE.randint(*KILLED_AFTER)
    beside.back_up()
    tasks = [asyncio.create_task(_keep_writing(home, book, f"writer-{number}")) for number in range(WRITERS)]
    tasks.append(asyncio.create_task(beside.rebuild()))
    async with asyncio.timeout(PATIENCE_S):
        # Nothing tells of it
        while len(book.acknowledged) < enough or (waits_for_a_rebuild and not _unfinished(home)):  # noqa: ASYNC110
            await asyncio.sleep(CHANCE.uniform(0, 0.005))
        beside.killed_while_building += bool(_unfinished(home))
        await asyncio.to_thread(home.kill)
        await asyncio.gather(*tasks)


async def _say_again(home: Home, writes: list[Write]) -> list[dict[str, Any]]:
    clients = {writer: AsyncClient(home.socket, name=writer) for writer in {write.writer for write in writes}}
    answers = []
    try:
        for client in clients.values():
            await client.__aenter__()
        for write in writes:
            # One after another
            answers.append(await clients[write.writer].call(write.method, **write.params))  # noqa: PERF401
    finally:
        for client in clients.values():
            await client.close()
    return answers


def _content(event: dict[str, Any]) -> str:
    data = event["data"]
    return str(data["content"] if event["tag"].startswith("memory.stored") else data["tool_input"]["head"])


@pytest.mark.long
async def test_what_was_acknowledged_survives_being_killed_at_any_moment(home: Home) -> None:
    book, beside = Book(), Tally(home)
    for number in range(ROUNDS_MAX):
        home.start()
        await _write_until_killed(home, book, beside, waits_for_a_rebuild=bool(number % 2))
        if number + 1 >= ROUNDS and len(book.acknowledged) > ACKNOWLEDGED_MIN:
            break
    assert len(book.acknowledged) > ACKNOWLEDGED_MIN
    assert book.unanswered, "no kill ever came while anything was under way"
    assert beside.killed_while_building
    assert [backup.wait(PATIENCE_S) for backup in beside.backups] == [0] * len(beside.backups)

    home.start()
    assert not _unfinished(home)
    events = home.events()
    kills = f"{number + 1} kills, {beside.killed_while_building} while views were built"
    print(  # noqa: T201
        f"{len(book.acknowledged)} writes, {kills}; {beside.rebuilt} rebuilds, {len(beside.backups)} backups"
    )
    _everything_acknowledged_is_there(book, events)
    home.check()
    await _nothing_is_appended_twice(home, book, events)
    home.check()


def _everything_acknowledged_is_there(book: Book, events: list[dict[str, Any]]) -> None:
    assert [event["position"] for event in events] == list(range(1, len(events) + 1))
    recorded = [event["recorded_at"] for event in events]
    assert recorded == sorted(recorded)
    for write, answer in book.acknowledged.values():
        event = events[answer["position"] - 1]
        assert (event["client"], _content(event)) == (write.writer, write.content)
        if write.method == "memory.store":
            assert (answer["outcome"], event["data"]["memory_id"]) == ("stored", answer["memory_id"])
    assert max(Counter(_content(event) for event in events).values()) == 1
    asked = {write.content for write, _ in book.acknowledged.values()} | {
        write.content for write in book.unanswered.values()
    }
    assert {_content(event) for event in events} <= asked


async def _nothing_is_appended_twice(home: Home, book: Book, events: list[dict[str, Any]]) -> None:
    known = {_content(event): event["position"] for event in events}
    answered = CHANCE.sample(sorted(book.acknowledged), SENT_AGAIN)
    again = await _say_again(home, [book.acknowledged[request_id][0] for request_id in answered])
    assert again == [book.acknowledged[request_id][1] for request_id in answered]
    assert len(home.events()) == len(events)

    unanswered = list(book.unanswered.values())
    first = await _say_again(home, unanswered)
    for write, answer in zip(unanswered, first, strict=True):
        assert answer["position"] == known.get(write.content, answer["position"])
    assert len(home.events()) == len(events) + sum(write.content not in known for write in unanswered)
    assert await _say_again(home, unanswered) == first
    assert len(home.events()) == len(events) + sum(write.content not in known for write in unanswered)


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
