"""`post`: facts pushed to a real PostgreSQL that keeps them on the disk, and pulled by another home.

The floors are the same bytes written with COPY into a table without index, check or function, as many a
transaction, and read from there.
"""

import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial

import anyio
import msgspec
import psycopg

from omegad.log.chain import payload_hash
from omegad.log.codec import tag_of
from omegad.memory.events import MemoryStored
from omegad.runtime.clock import Clock, uuid7
from omegad.sharing.fact import Fact, envelope
from omegad.sharing.post import administration
from omegad.sharing.post.post import NO_HEAD, Post
from tests.bench.figures import Effort, Report, Timer, of_calls, of_rounds
from tests.bench.texts import notes
from tests.sharing.posts import TEAM, Posted
from tests.sharing.server import Server

AT_ONCE = 500
ORIGIN = "home-00000000000000a1"
ROUNDS = 4
TEXTS = 5_000
PLACE = b"mem-0000000000000000"  # where the id of the memory stands
WAKES = 200


def run(effort: Effort, report: Report) -> None:
    """Measure pushing, pulling, proving, and how soon another home has what was pushed."""
    count = 1_000_000 if effort.large else effort.pick(200_000, 10_000)
    server = Server({"shared_buffers": "256MB", "max_wal_size": "4GB"}, place=tempfile.gettempdir())
    try:
        posted = Posted(server, "postgres")
        administration.install(posted.admin)
        administration.create_team(posted.admin, TEAM)
        with psycopg.connect(**posted.admin.parameters(), autocommit=True) as plain:  # type: ignore[arg-type]
            anyio.run(partial(_measure, posted, plain, count, report), backend="asyncio")
        ((size,),) = posted.sql("SELECT pg_total_relation_size('omegad.facts_1')")
        report(of_rounds("size of the facts, with indexes", "MB", [size / 1e6]))
    finally:
        server.remove()


async def _measure(posted: Posted, plain: psycopg.Connection, count: int, report: Report) -> None:
    ann, bob = posted.member("Ann"), posted.member("Bob")
    async with posted.at(ann) as hers, posted.at(bob) as his:
        await hers.enrol(ORIGIN, "desk")
        await his.enrol("bob-1", "laptop")
        pushed, floor = await _pushed(hers, plain, count)
        note = f"{AT_ONCE} a transaction, of {count:,}"
        report(of_rounds("pushed", "facts/s", pushed, goal=">= 20,000", floors={"COPY": floor}, note=note))
        pulled = [await _pulled(his, count) for _ in range(ROUNDS)]
        read = _read(plain)
        report(of_rounds("pulled", "facts/s", pulled, goal=">= 10,000", floors={"SELECT": read}, note=note))
        started = time.perf_counter()
        assert all(one.bad_seq is None for one in await hers.prove(lambda _: None))
        report(of_rounds("proved", "facts/s", [count / (time.perf_counter() - started)]))
        await _wakes(hers, his, report)


async def _pushed(post: Post, plain: psycopg.Connection, count: int) -> tuple[list[float], float]:
    rates, head, floor = list[float](), NO_HEAD, Timer()
    plain.execute("CREATE TABLE plain (envelope bytea, salt bytea, body bytea)")
    for part in range(ROUNDS):
        took = 0.0
        for batch in batches(part * count // ROUNDS, (part + 1) * count // ROUNDS):
            started = time.perf_counter()
            head = await post.push(ORIGIN, batch, head)
            took += time.perf_counter() - started
            with floor.lap():
                _copied(plain, batch)
        rates.append(count / ROUNDS / took)
    return rates, count / sum(floor.ms) * 1000


async def _pulled(post: Post, count: int) -> float:
    cursors, found, started = {ORIGIN: 0}, 0, time.perf_counter()
    while facts := (await post.pull(cursors, but="bob-1", limit=AT_ONCE)).facts:
        found += len(facts)
        cursors[ORIGIN] = facts[-1].seq
    assert found == count
    return count / (time.perf_counter() - started)


async def _wakes(hers: Post, his: Post, report: Report) -> None:
    """Measure from before a push to when another home, which waited, has the fact."""
    head = await hers.head(ORIGIN)
    assert head is not None
    cursors, timer = {ORIGIN: head.seq}, Timer()
    for (fact,) in (_facts(seq, seq) for seq in range(head.seq + 1, head.seq + WAKES + 1)):
        with timer.lap():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(his.woken, 10.0)
                head = await hers.push(ORIGIN, [fact], head)
            pulled = await his.pull(cursors, but="bob-1")
        assert [one.seq for one in pulled.facts] == [fact.seq]
        cursors[ORIGIN] = fact.seq
    report(of_calls("from a push to another home", timer.ms, goal="p95 <= 1000 ms"))


def batches(start: int, end: int) -> Iterator[list[Fact]]:
    for after in range(start, end, AT_ONCE):
        yield _facts(after + 1, min(after + AT_ONCE, end))


def _facts(first: int, last: int) -> list[Fact]:
    clock, texts, made = Clock(), _texts(), list[Fact]()
    for seq in range(first, last + 1):
        salt = secrets.token_bytes(16)
        subject = f"mem-{secrets.token_hex(8)}"
        body = texts[seq % len(texts)].replace(PLACE, subject.encode())
        made.append(
            Fact(
                origin=ORIGIN,
                seq=seq,
                hlc=(clock.now_us() // 1000) << 16,
                event_id=uuid7(clock),
                tag=tag_of(MemoryStored),
                subject=subject,
                occurred_at=clock.now_us(),
                tz_offset=60,
                project="shop",
                agent="claude-code",
                position=seq * 3,
                payload_hash=payload_hash(salt, body),
                salt=salt,
                body=body,
            )
        )
    return made


_BODIES: list[bytes] = []


def _texts() -> list[bytes]:
    if not _BODIES:
        _BODIES.extend(
            msgspec.json.encode(
                MemoryStored(
                    memory_id=PLACE.decode(),
                    content=note.content,
                    content_key=secrets.token_hex(32),
                    event_type=note.event_type,
                    tags=("atlas", "database"),
                )
            )
            for note in notes(TEXTS, "post")
        )
    return _BODIES


def _copied(connection: psycopg.Connection, batch: Sequence[Fact]) -> None:
    with connection.cursor().copy("COPY plain FROM STDIN (FORMAT binary)") as copy:
        for fact in batch:
            copy.write_row((envelope(fact), fact.salt, fact.body))


def _read(connection: psycopg.Connection) -> float:
    with connection.cursor(binary=True) as cursor:
        started, found = time.perf_counter(), 0
        cursor.execute("SELECT envelope, salt, body FROM plain")
        while rows := cursor.fetchmany(AT_ONCE):
            found += len(rows)
        return found / (time.perf_counter() - started)
