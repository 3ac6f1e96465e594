"""Appending: what is acknowledged, in which order, and what becomes of the others when one goes wrong."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from omegad.daemon import VOCABULARY
from omegad.log import event_log, requests
from omegad.log.appending import Appender, Committed, Head
from omegad.log.decision import Cursor, Decision, DecisionState, Outcome, Proposal, RequestKey
from omegad.log.event import NewEvent, Position
from omegad.log.event_log import EventLog
from omegad.memory.state import Memories
from omegad.runtime.digests import DigestKey
from omegad.runtime.errors import Conflict, Overloaded, Refused, ShuttingDown, StorageFailed, StorageFull
from omegad.storage.checkpointer import Checkpointer
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection, sqlite
from tests.builders import (
    PATIENCE_S,
    START_US,
    FakeClock,
    Written,
    append,
    deleted,
    embedded,
    everything,
    proof,
    proposal,
    queried,
    running_log,
    stored,
    superseded,
    tool_called,
    until,
)


def request(request_id: str, digest: bytes = b"same", client: str = "cli") -> RequestKey:
    return RequestKey(client=client, request_id=request_id, params_digest=DigestKey(b"key").of(digest))


def answer(outcome: Outcome) -> Any:
    return msgspec.json.decode(msgspec.json.encode(outcome.answer))


def raising(error: Exception) -> Proposal:
    def decide(_guards: DecisionState, _now_us: int) -> Decision:
        raise error

    return Proposal(decide=decide)


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many proposals each transaction settled."""
    sizes: list[int] = []
    genuine = Appender.commit

    def counted(
        appender: Appender, connection: Connection, proposals: list[Proposal], head: Head
    ) -> Committed:
        sizes.append(len(proposals))
        return genuine(appender, connection, proposals, head)

    monkeypatch.setattr(Appender, "commit", counted)
    return sizes


async def test_positions_are_dense_and_in_commit_order_under_concurrency(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        outcomes = await asyncio.gather(
            *(append(log, queried(text=str(number)), queried(text=str(number))) for number in range(150))
        )
        events = await everything(log)
    assert [event.position for event in events] == list(range(1, 301))
    assert sorted(outcome.position for outcome in outcomes) == list(range(2, 301, 2))
    texts = [event.event.text for event in events]  # type: ignore[union-attr]
    assert texts[::2] == texts[1::2]
    assert texts[::2] == [str(number) for number in range(150)]


async def test_an_answer_without_position_is_given_that_of_its_last_event(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        outcome = await append(log, queried(), queried(), word="done")
        assert answer(outcome) == {"position": 2, "word": "done"}
        assert outcome.position == 2


async def test_an_event_may_name_the_one_before_it_as_its_cause(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, queried())
        await append(
            log,
            NewEvent(event=stored()),
            NewEvent(event=embedded(), follows=True),
            NewEvent(event=deleted(), cause=1),
        )
        assert [event.cause for event in await everything(log)] == [None, None, 2, 1]


async def test_what_was_acknowledged_is_read_by_another_connection_at_once(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        for number in range(1, 20):
            outcome = await append(log, queried())
            other = sqlite.connect(tmp_path / "log.db")
            assert (
                other.execute("SELECT max(position) FROM events").fetchone()
                == (outcome.position,)
                == (number,)
            )
            other.close()


async def test_the_log_waits_for_the_disk_at_every_commit(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        pragmas = await log._writer.run(
            lambda c: [c.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")]
        )
    assert pragmas == [2, "wal"]


async def test_proposals_that_wait_together_share_one_commit(tmp_path: Path, commits: list[int]) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await asyncio.gather(*(append(log, queried()) for _ in range(700)))
    assert sum(commits) == 700
    assert max(commits) <= event_log.BATCH_MAX
    assert len(commits) <= 4


@pytest.mark.parametrize(
    "error", [Refused("not now"), ZeroDivisionError("a mistake")], ids=["refused", "mistaken"]
)
async def test_a_decision_that_raises_harms_nobody_else_in_its_batch(
    tmp_path: Path, commits: list[int], error: Exception
) -> None:
    async with running_log(tmp_path / "log.db") as log:
        outcomes = await asyncio.gather(
            append(log, queried()), log.append(raising(error)), append(log, queried()), return_exceptions=True
        )
        assert outcomes[1] is error
        assert [outcome.position for outcome in outcomes if isinstance(outcome, Outcome)] == [1, 2]
        assert len(await everything(log)) == 2
    assert commits == [3]


@pytest.mark.parametrize(
    "bad",
    [
        proposal(stored("taken")),
        proposal(tool_called(1), tool_called(1)),
        proposal(NewEvent(event=queried(), occurred_at=2**70)),
        proposal(NewEvent(event=queried(), session_id="\ud800")),
    ],
    ids=["guard refuses", "half refused", "time too large", "not encodable"],
)
async def test_events_that_cannot_be_written_harm_nobody_else_in_their_batch(
    tmp_path: Path, commits: list[int], bad: Proposal
) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored("taken"))
        before, broken, after = await asyncio.gather(
            append(log, queried()), log.append(bad), append(log, queried()), return_exceptions=True
        )
        assert isinstance(broken, Exception)
        assert [getattr(before, "position", before), getattr(after, "position", after)] == [2, 3]
        assert len(await everything(log)) == 3
        assert proof(log).ok
    assert commits[:2] == [1, 3]


async def test_an_event_too_large_is_refused_alone(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        outcomes = await asyncio.gather(
            append(log, queried()), append(log, queried(text="x" * 1_100_000)), return_exceptions=True
        )
        assert [type(outcome).__name__ for outcome in outcomes] == ["Outcome", "Invalid"]


async def test_a_decision_sees_what_earlier_ones_of_its_batch_have_decided(
    tmp_path: Path, commits: list[int]
) -> None:
    seen: list[tuple[str | None, Position | None]] = []

    def look(guards: DecisionState, _now_us: int) -> Decision:
        found = guards[Memories].get("mem-1")
        seen.append((found.state if found else None, guards.head))
        return Decision(answer=Written())

    async with running_log(tmp_path / "log.db") as log:
        steps = [
            Proposal(decide=look),
            proposal(stored()),
            Proposal(decide=look),
            proposal(deleted()),
            Proposal(decide=look),
        ]
        await asyncio.gather(*(log.append(step) for step in steps))
    assert seen == [(None, 0), ("active", 1), ("deleted", 2)]
    assert commits == [5]


async def test_what_cannot_be_folded_spoils_nothing_for_whoever_reads_it_next(
    tmp_path: Path, commits: list[int]
) -> None:
    def look(guards: DecisionState, _now_us: int) -> Decision:
        assert guards[Memories].get("mem-1") is None
        return Decision(answer=Written(word="looked"))

    async with running_log(tmp_path / "log.db") as log:
        steps = [proposal(queried()), proposal(tool_called(1), tool_called(1)), Proposal(decide=look)]
        came_to = await asyncio.gather(*(log.append(step) for step in steps), return_exceptions=True)
        assert isinstance(came_to[1], sqlite.IntegrityError)
        assert [one.answer for one in came_to if isinstance(one, Outcome)] == [
            Written(position=1),
            Written(word="looked"),
        ]
        assert len(await everything(log)) == 1
        assert proof(log).ok
    assert commits == [3, 1, 1, 1]


async def test_guards_follow_the_events(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored("mem-1", "one"), stored("mem-2", "two", pending=True), embedded("mem-1"))
        await append(log, superseded("mem-1", "mem-2"))

        def look(connection: Connection) -> list[Any]:
            guards = DecisionState(connection)
            one, two = guards[Memories].get("mem-1"), guards[Memories].get("mem-2")
            assert one
            assert two
            holders = guards[Memories].holder(one.content_key, 0), guards[Memories].holder(two.content_key, 0)
            embeddings = (
                guards[Memories].is_embedded("mem-1", "paper-1"),
                guards[Memories].is_embedded("mem-1", "other"),
                guards[Memories].is_embedded("mem-2", "paper-1"),
            )
            return [
                (one.state, one.stored_at, one.changed_at, one.pending),
                (two.state, two.pending),
                holders == (None, two),
                embeddings,
            ]

        assert await log._writer.run(look) == [
            ("superseded", 1, 4, False),
            ("active", True),
            True,
            (True, False, False),
        ]


async def test_the_same_request_gives_the_first_answer_and_appends_once(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        first = await append(log, queried(), queried(), word="first", request=request("r1"))
        again = await append(log, queried(), word="again", request=request("r1"))
        assert answer(again) == answer(first) == {"position": 2, "word": "first"}
        assert log.head == 2


async def test_a_request_that_is_answered_again_has_the_position_it_had(tmp_path: Path) -> None:
    """Who sends it again must see what the first answer promised, the last of its events among it."""
    async with running_log(tmp_path / "log.db") as log:
        first = await append(log, stored(), embedded(), request=request("r1"))
        again = await append(log, queried(), request=request("r1"))
        assert again.position == first.position == 2


async def test_a_request_that_appended_nothing_is_answered_again_with_its_position(tmp_path: Path) -> None:
    nothing = Proposal(
        decide=lambda _guards, _now_us: Decision(answer=Written(position=1)), request=request("r1")
    )
    async with running_log(tmp_path / "log.db") as log:
        await append(log, queried())
        assert [(await log.append(nothing)).position, (await log.append(nothing)).position] == [1, 1]


async def test_a_request_sent_twice_at_once_appends_once(tmp_path: Path, commits: list[int]) -> None:
    async with running_log(tmp_path / "log.db") as log:
        outcomes = await asyncio.gather(
            *(append(log, queried(), word=str(n), request=request("r1")) for n in range(5))
        )
        assert [answer(outcome) for outcome in outcomes] == [{"position": 1, "word": "0"}] * 5
        assert log.head == 1
    assert commits == [5]


async def test_the_same_request_id_with_other_parameters_conflicts(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, queried(), request=request("r1"))
        with pytest.raises(Conflict):
            await append(log, queried(), request=request("r1", b"other"))
        await append(log, queried(), request=request("r1", b"other", client="another"))
        assert log.head == 2


async def test_requests_are_remembered_across_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, queried(), word="first", request=request("r1"))
    async with running_log(tmp_path / "log.db", clock) as log:
        assert answer(await append(log, queried(), word="again", request=request("r1"))) == {
            "position": 1,
            "word": "first",
        }
        with pytest.raises(Conflict):
            await append(log, queried(), request=request("r1", b"other"))
        assert log.head == 1


async def test_answers_in_a_table_of_earlier_versions_are_given_again_out_of_one_with_rowids(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        first = [
            answer(await log.append(proposal(stored(f"a{n}"), request=request(f"r{n}")))) for n in range(3)
        ]
        await log.on_writer(_with_the_table_of_before)
    for _ in range(2):
        async with running_log(tmp_path / "log.db", clock) as log:
            again = [proposal(stored("b"), request=request(f"r{n}")) for n in range(3)]
            assert [answer(await log.append(one)) for one in again] == first
            assert log.head == 3
            found = await log.on_writer(
                lambda connection: connection.execute(
                    "SELECT name, instr(sql, 'WITHOUT ROWID') FROM sqlite_schema WHERE tbl_name LIKE 'requests%'"
                    " AND sql IS NOT NULL ORDER BY name"
                ).fetchall()
            )
            assert found == [("requests", 0), ("requests_of_imports", 0), ("requests_unkeyed", 0)]


async def test_a_disk_that_is_nearly_full_is_not_filled_by_that(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        first = answer(await log.append(proposal(stored("a"), request=request("r"))))
        await log.on_writer(_with_the_table_of_before)
    monkeypatch.setattr(requests, "ROOM_BYTES", 1 << 60)
    async with running_log(tmp_path / "log.db", clock) as log:
        assert answer(await log.append(proposal(stored("b"), request=request("r")))) == first
        found = await log.on_writer(
            lambda connection: connection.execute(
                "SELECT instr(sql, 'WITHOUT ROWID') > 0 FROM sqlite_schema WHERE name = 'requests'"
            ).fetchone()
        )
        assert found == (1,)


async def test_a_log_without_room_for_that_keeps_its_table_of_earlier_versions(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        for number in range(50):
            await log.append(proposal(stored(f"{number}"), request=request(f"{number:0600}")))
        await log.on_writer(_with_the_table_of_before)

    def lay_out(connection: Connection) -> tuple[object, ...]:
        connection.execute("VACUUM")  # what is free is room
        connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
        requests.lay_out_anew(connection, "CREATE TABLE requests (a, b, c, d, e, f);")
        sql = "SELECT instr(sql, 'WITHOUT ROWID') > 0 FROM sqlite_schema WHERE name = 'requests'"
        return (
            *connection.execute(sql).fetchone(),
            *connection.execute("SELECT count(*) FROM requests").fetchone(),
        )

    connection = open_writer(tmp_path / "log.db", durable=True)
    try:
        assert lay_out(connection) == (1, 50)
    finally:
        connection.close()


def _with_the_table_of_before(connection: Connection) -> None:
    """Give a log a table of requests that is its own index, as earlier versions made it."""
    rows = connection.execute("SELECT * FROM requests").fetchall()
    connection.execute("DROP TABLE requests")
    connection.execute(
        "CREATE TABLE requests (client TEXT NOT NULL, request_id TEXT NOT NULL, params_digest BLOB NOT NULL,"
        " first_position INTEGER, position INTEGER NOT NULL, answer TEXT NOT NULL,"
        " PRIMARY KEY (client, request_id)) STRICT, WITHOUT ROWID"
    )
    connection.execute(
        "CREATE INDEX requests_unkeyed ON requests (client, request_id) WHERE length(params_digest) = 16"
    )
    connection.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?)", rows)


async def test_a_refused_request_may_be_tried_again(tmp_path: Path) -> None:
    refused = msgspec.structs.replace(raising(Refused()), request=request("r1"))
    async with running_log(tmp_path / "log.db") as log:
        with pytest.raises(Refused):
            await log.append(refused)
        assert (await append(log, queried(), request=request("r1"))).position == 1


async def test_the_time_of_recording_never_runs_backwards(tmp_path: Path, clock: FakeClock) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        for now in (
            START_US,
            START_US + 50_000_000,
            START_US - 900_000_000,
            START_US + 10,
            START_US + 60_000_000,
        ):
            clock.us = now
            await append(log, queried(), queried())
    clock.us = START_US - 3_000_000_000
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, queried())
        events = await everything(log)
    times = [event.recorded_at for event in events]
    assert times == sorted(times)
    hlcs = [event.hlc for event in events]
    assert all(one < other for one, other in pairwise(hlcs))
    assert len({event.event_id for event in events}) == len(events)
    assert len({event.origin for event in events}) == 1


async def test_one_moment_of_a_wrong_clock_dates_nothing_that_comes_after_it(
    tmp_path: Path, clock: FakeClock
) -> None:
    seen: list[int] = []

    def look(_guards: DecisionState, now_us: int) -> Decision:
        seen.append(now_us)
        return Decision(events=(NewEvent(event=stored("mem-2", "two", ttl_seconds=60)),), answer=Written())

    async with running_log(tmp_path / "log.db", clock) as log:
        clock.us = wrong = START_US + 70 * 365 * 86_400_000_000
        await append(log, stored("mem-1"))
        clock.us = START_US
        await log.append(Proposal(decide=look))
        before, after = await everything(log)
        guard = await log._writer.run(lambda connection: DecisionState(connection)[Memories].get("mem-2"))
    assert guard is not None
    assert START_US < seen[0] == after.occurred_at < START_US + 1_000_000
    assert guard.expires_at == after.occurred_at + 60_000_000
    assert wrong < before.recorded_at <= after.recorded_at
    assert before.hlc < after.hlc


async def test_a_caller_that_is_cancelled_stops_waiting_and_its_proposal_is_settled(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        for delay in range(30):
            task = asyncio.create_task(append(log, queried(text=str(delay))))
            await asyncio.sleep(delay / 20_000)
            task.cancel()
        await append(log, queried())
        assert [event.position for event in await everything(log)] == list(range(1, log.head + 1))
        assert proof(log).ok


async def test_too_many_waiting_are_refused_at_once(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "WAITING_MAX", 20)
    async with event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log:
        for _ in range(20):
            log.append_later(proposal(queried()))
        with pytest.raises(Overloaded):
            log.append_later(proposal(queried()))
        with pytest.raises(Overloaded):
            await append(log, queried())
        assert log.waiting == 20


async def test_draining_settles_what_waits_and_refuses_the_rest(tmp_path: Path, clock: FakeClock) -> None:
    async with (
        event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(30):
            log.append_later(proposal(queried()))
        tasks.start_soon(log.run)
        await log.drain()
        with pytest.raises(ShuttingDown):
            await append(log, queried())
        with pytest.raises(ShuttingDown):
            log.append_later(proposal(queried()))
        assert log.head == 30


async def test_what_still_waits_when_the_log_closes_is_told_so(tmp_path: Path, clock: FakeClock) -> None:
    async with event_log.opened(tmp_path / "log.db", clock, VOCABULARY) as log:
        waiting = asyncio.create_task(append(log, queried()))
        await asyncio.sleep(0)
    with pytest.raises(ShuttingDown):
        await waiting


async def test_a_full_disk_fails_the_whole_batch_loses_nothing_and_passes(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, queried())
        await log._writer.run(
            lambda c: c.execute(
                f"PRAGMA max_page_count={c.execute('PRAGMA page_count').fetchone()[0]}"
            ).fetchall()
        )
        batch = [append(log, queried(text="x" * 900)) for _ in range(60)]
        outcomes = await asyncio.gather(*batch, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {StorageFull}
        assert "disk is full" in (_trouble(log) or "")
        assert [event.position for event in await everything(log)] == [1]
        await log._writer.run(lambda c: c.execute("PRAGMA max_page_count=1000000").fetchall())
        assert (await append(log, queried())).position == 2
        assert _trouble(log) is None
        assert proof(log).ok
    async with running_log(tmp_path / "log.db", clock) as log:
        assert log.head == 2


@pytest.mark.parametrize("error", [StorageFull, StorageFailed])
async def test_a_checkpoint_that_fails_takes_no_commit_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The events are on the disk by then: they are acknowledged, and followers miss none."""
    async with running_log(tmp_path / "log.db") as log, anyio.create_task_group() as tasks:
        seen: list[Position] = []
        tasks.start_soon(_follow, log, seen)
        await append(log, queried())
        await until(lambda: seen == [1])
        with monkeypatch.context() as patch:
            patch.setattr(Checkpointer, "after_commit", _failing(error()))
            outcomes = await asyncio.gather(append(log, queried(text="on the disk")), return_exceptions=True)
        await append(log, queried())
        await until(lambda: len(seen) >= 2)
        assert (await append(log, queried())).position == 4
        await until(lambda: seen[-1] == 4)
        tasks.cancel_scope.cancel()
    assert seen == [1, 2, 3, 4]
    assert [type(outcome) for outcome in outcomes] == [Outcome]


def _failing(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


def _trouble(log: EventLog) -> str | None:
    return log.trouble


async def _follow(log: EventLog, seen: list[Position]) -> None:
    async for event in log.follow(len(seen)):
        seen.append(event.position)  # noqa: PERF401  the test looks at it meanwhile


async def test_after_a_failed_write_the_log_goes_on_with_a_new_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = Appender.commit
    async with running_log(tmp_path / "log.db") as log:
        await append(log, queried())

        def half_done(*arguments: Any) -> Committed:
            genuine(*arguments)
            raise StorageFailed("fsync")

        monkeypatch.setattr(Appender, "commit", half_done)
        with pytest.raises(StorageFailed):
            await append(log, queried(text="perhaps"))
        assert _trouble(log) == "fsync"
        monkeypatch.setattr(Appender, "commit", genuine)
        async with asyncio.timeout(PATIENCE_S):
            await log.wait_beyond(1)  # it was written after all, and whoever follows is woken
        assert (await append(log, queried())).position == 3
        assert _trouble(log) is None
        assert [event.position for event in await everything(log)] == [1, 2, 3]


async def test_who_appended_is_answered_before_those_who_follow_go_on(tmp_path: Path) -> None:
    went_on = list[str]()
    async with running_log(tmp_path / "log.db") as log, anyio.create_task_group() as tasks:

        async def follow() -> None:
            await log.wait_beyond(0)
            went_on.append("a follower")

        for _ in range(3):
            tasks.start_soon(follow)
        await anyio.lowlevel.checkpoint()
        await append(log, queried())
        went_on.append("who appended")
    assert went_on == ["who appended", *["a follower"] * 3]


async def test_checkpoints_go_on_on_a_new_connection(tmp_path: Path) -> None:
    """A connection counts its changes from 0, whatever the one before it had counted."""
    checkpointer = Checkpointer(tmp_path / "x.db")
    first = open_writer(tmp_path / "x.db", durable=False)
    first.execute("CREATE TABLE t (a)")
    _insert(first, 30_000)
    checkpointer.after_commit(first)
    first.close()
    second = open_writer(tmp_path / "x.db", durable=False)
    _insert(second, 10_000)
    size = checkpointer.wal_bytes()
    checkpointer.after_commit(second)
    _insert(second, 10)
    assert checkpointer.wal_bytes() == size  # what was checkpointed is written over
    second.close()


def _insert(connection: Connection, count: int) -> None:
    connection.execute(_SERIES, (count,))


_SERIES = (
    "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO t SELECT i"
    " FROM n"
)


async def test_a_cursor_moves_with_what_it_led_to_or_not_at_all(tmp_path: Path, clock: FakeClock) -> None:
    def at(position: Position, version: int = 1) -> Cursor:
        return Cursor("expiry", position, version)

    async with running_log(tmp_path / "log.db", clock) as log:
        assert await log.cursors() == {}
        await append(log, queried(), cursor=at(5), request=request("r1"))
        with pytest.raises(Refused):
            await log.append(msgspec.structs.replace(raising(Refused()), cursor=at(6)))
        with pytest.raises(Exception, match="UNIQUE"):
            await append(log, stored("mem-1"), stored("mem-1"), cursor=at(6))
        assert await log.cursors() == {"expiry": at(5)}
        await append(log, queried(), cursor=at(7), request=request("r1"))
        assert await log.cursors() == {"expiry": at(7)}
        await log.advance(at(8, 2))
        await log.advance(Cursor("other", 1))
        assert log.head == 1
    async with running_log(tmp_path / "log.db", clock) as log:
        assert await log.cursors() == {"expiry": at(8, 2), "other": Cursor("other", 1)}


async def test_requests_of_long_ago_are_forgotten_bit_by_bit(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "KEPT_EVENTS", 3)
    monkeypatch.setattr(requests, "FORGOTTEN_AT_ONCE", 2)
    nothing = Proposal(decide=lambda _guards, _now_us: Decision(answer=Written()))
    async with running_log(tmp_path / "log.db", clock) as log:
        for number in range(6):
            await append(log, queried(), request=request(f"old-{number}"))
        await log.append(msgspec.structs.replace(nothing, request=request("old and empty")))
        clock.us += requests.KEPT_US
        await append(log, queried(), request=request("new"))
        await append(log, queried())
    async with running_log(tmp_path / "log.db", clock) as log:
        for _ in range(4):
            await log.settled()
        again = [
            await append(log, queried(), request=request(f"old-{number}", b"other")) for number in range(4)
        ]
        assert [outcome.position for outcome in again] == [9, 10, 11, 12]
        for name in ("old-4", "old-5", "old and empty", "new"):
            with pytest.raises(Conflict):
                await append(log, queried(), request=request(name, b"other"))
