"""What is kept only for so long: said before it goes, gone in every view and as of every moment, and nothing of
what memories are, or how often they were found, is otherwise.
"""

import io
import itertools
import random
import threading
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import msgspec
import pytest
from anyio import to_thread

from omegad.edge.cli import daemon
from omegad.edge.cli import retention as retention_verb
from omegad.edge.cli.instance import Instance
from omegad.edge.transfer import lines, log_file
from omegad.log import reading
from omegad.log.aging import PayloadsAged
from omegad.log.decision import Cursor
from omegad.log.event import Erased, Event, NewEvent
from omegad.log.inline import Inline
from omegad.log.mending import ClockMended
from omegad.memory.events import MemoryCountsCarried
from omegad.operations import aged_batches, retention
from omegad.operations.retention import RAN, SAID
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Refused
from omegad.runtime.times import rfc3339
from omegad.search.events import MemoryQueried, MemoryRead, QueryAged, Read
from omegad.session.events import HookNoted, How, MemorySurfaced, PromptSubmitted, ToolCallAged, ToolCalled
from omegad.storage import readers
from omegad.storage.database import open_reader
from omegad.storage.driver import Connection
from omegad.storage.transaction import snapshot
from omegad.views import erasing, past
from omegad.views.driver import Driver
from tests.builders import (
    EMBEDDER,
    PATIENCE_S,
    FakeClock,
    Served,
    append,
    delivery,
    edited,
    everything,
    excerpt,
    memory_erased,
    paths_in,
    prompt_submitted,
    proof,
    queried,
    served,
    session_ended,
    session_started,
    stored,
    surfaced,
    tool_called,
    turn_ended,
    until,
)
from tests.operations.test_erasing import check
from tests.seeds import SEED

KEYWORDS = Config(model="none")
EVERYTHING = msgspec.structs.replace(KEYWORDS, retention_prompts_days=30)
BY_ITSELF = msgspec.structs.replace(KEYWORDS, retention=True)
SECOND_US, DAY_US = 1_000_000, 86_400_000_000
READ_S = 1.5
LENGTHS = (100, 900, 2_000, 2_000, 2_000, 12_000)
TOLD = "the vault is behind the mill"
MEMORIES = ("mem-00000000000000a1", "mem-00000000000000a2", "mem-00000000000000a3")


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return paths_in(tmp_path)


def a_day(number: int, at: int) -> Iterator[NewEvent]:
    """Return what two sessions did on a day: prompts, tool calls, questions, and what was shown, a second apart."""
    for session in ("s-1", "s-2"):
        at += 60 * SECOND_US
        told = f"{number}-{session}"
        events = (
            session_started(delivery=delivery(f"start-{told}")),
            prompt_submitted(f"{TOLD}, {told}", delivery=delivery(f"prompt-{told}", "1" * 64)),
            surfaced(*MEMORIES[:2], how="briefing", query_id=f"briefing-{told}", at=at + 1 * SECOND_US),
            surfaced(
                MEMORIES[0], how="prompt", query_id=f"shown-{told}", at=at + 2 * SECOND_US, subject=TOLD
            ),
            surfaced(
                MEMORIES[1],
                how="file",
                query_id=f"file-{told}",
                at=at + 3 * SECOND_US,
                subject="src/the/mill.py",
            ),
            tool_called(
                4 * number + 1,
                tool_use_id=f"toolu-{told}",
                tool_input=excerpt(f'{{"command":"ls {TOLD}"}}'),
                result=excerpt(TOLD * 40),
                delivery=delivery(f"call-{told}", "2" * 64),
            ),
            tool_called(
                4 * number + 2,
                tool_name="Edit",
                tool_use_id=None,
                tool_input=excerpt(
                    f'{{"file_path":"/src/mill.py","old_string":"{TOLD} {MEMORIES[0]}","new_string":"b"}}'
                ),
                delivery=delivery(f"edit-{told}", "3" * 64),
            ),
            HookNoted(host="claude-code", fired="PreToolUse", tool_name="Edit", about=TOLD),
            queried(
                (MEMORIES[number % 2], 0.9),
                (MEMORIES[0], 0.5),
                query_id=f"query-{told}",
                at=at + 4 * SECOND_US,
                text=TOLD,
                filters={"project": "mill"},
            ),
            queried(query_id=f"vain-{told}", at=at + 5 * SECOND_US, text=TOLD),
            MemoryRead(reads=(Read(method="memory.get", at=at + 6 * SECOND_US, memory_ids=(MEMORIES[0],)),)),
            turn_ended(f"{TOLD}, said", delivery=delivery(f"turn-{told}")),
            session_ended(delivery=delivery(f"end-{told}")),
        )
        for event in events:
            yield NewEvent(event=event, session_id=session, project="mill")


async def lived(it: Served, clock: FakeClock, days: int) -> None:
    """Let so many days pass, ten at a time."""
    log = it.daemon.services.log
    if not log.head:
        at = clock.us
        await append(
            log,
            *(stored(memory_id=one, content=f"{one} is kept") for one in MEMORIES),
            queried((MEMORIES[2], 0.9), query_id="first", at=at),
            surfaced(MEMORIES[2], query_id="told", at=at + SECOND_US),  # which stays, and was the last of it
        )
    for _ in range(0, days, 10):
        await append(log, *a_day(clock.us // (10 * DAY_US), clock.us))  # a number that no other day has
        clock.us += 10 * DAY_US
    await slept(it)


async def slept(it: Served) -> None:
    """Let the time that passed have been right."""
    await it.caught_up()
    it.daemon.services.steadiness.accept()


def counts(connection: Connection) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT node_id, access_count, surfaced, last_accessed, used_us FROM memories ORDER BY 1"
    ).fetchall()


async def test_what_is_over_goes_and_nothing_else(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, EVERYTHING) as it:
        await lived(it, clock, 300)
        views = it.daemon.services.views
        before, known = await views.read(counts), await everything(it.daemon.services.log)
        would = await it.caller.call("retention.apply", dry_run=True)
        assert [one.event for one in await everything(it.daemon.services.log)] == [one.event for one in known]
        done = await it.caller.call("retention.apply")
        assert done["aged"] == [
            one | {"until": done["aged"][at]["until"]} for at, one in enumerate(would["aged"])
        ]
        assert done["freed_bytes"] > 10_000
        await it.caught_up()
        assert await views.read(counts) == before
        for was, now in zip(known, await everything(it.daemon.services.log), strict=False):
            age_us = clock.us - was.recorded_at
            match was.event:
                case ToolCalled(call_index=index) if age_us > 90 * DAY_US:
                    assert isinstance(now.event, ToolCallAged)
                    assert now.event.call_index == index
                    assert now.event.file == ("/src/mill.py" if was.event.tool_name == "Edit" else None)
                case HookNoted() if age_us > 90 * DAY_US:
                    assert isinstance(now.event, Erased)
                case MemoryQueried(results=results) if age_us > 180 * DAY_US:
                    assert isinstance(now.event, QueryAged)
                    assert now.event.returned == len(results)
                case PromptSubmitted(prompt=prompt) if age_us > 30 * DAY_US:
                    assert isinstance(now.event, PromptSubmitted)
                    assert (now.event.prompt.head, now.event.prompt.bytes) == ("", prompt.bytes)
                case MemorySurfaced(how="briefing"):
                    assert now.event == was.event
                case _ if age_us < 30 * DAY_US:
                    assert now.event == was.event
            assert msgspec.structs.replace(now, event=was.event) == was
        await check(it)
        assert not (await it.caller.call("retention.apply", dry_run=True))["freed_bytes"]
        await it.caller.call("views.rebuild")
        assert await views.read(counts) == before
        shown = await views.read(
            lambda connection: connection.execute(
                "SELECT count(*), sum(input_summary IS NULL), sum(file = '/src/mill.py') FROM coord_audit"
            ).fetchone()
        )
        assert shown == (
            120,
            sum(isinstance(one.event, ToolCalled) for one in known[: done["aged"][0]["through"]]),
            60,
        )


async def test_a_disk_that_is_busy_for_longer_than_a_question_may_take_does_not_end_it(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagged, slow = reading.tagged, iter([True])

    def busy(*given: Any, limit: int) -> list[int]:
        if next(slow, False):
            time.sleep(1.2 * READ_S)
        readers.check()
        return tagged(*given, limit=limit)

    async with served(paths, clock, msgspec.structs.replace(KEYWORDS, read_timeout_s=READ_S)) as it:
        await lived(it, clock, 120)
        monkeypatch.setattr(reading, "tagged", busy)
        assert (await it.caller.call("retention.apply"))["freed_bytes"] > 10_000


async def test_a_check_that_begins_in_the_middle_is_waited_for(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, has_begun = retention.Retention._batches, anyio.Event()
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 7)
    monkeypatch.setattr(erasing, "WAIT_S", 0.01)
    async with served(paths, clock, KEYWORDS) as it, anyio.create_task_group() as tasks:
        await lived(it, clock, 120)
        views = it.daemon.services.views

        async def proved() -> None:
            async with views.proving:
                has_begun.set()
                await anyio.sleep(0.1)

        async def proved_meanwhile(*args: Any) -> AsyncIterator[aged_batches.Batch]:
            async for batch in found(*args):
                yield batch
                if not has_begun.is_set():
                    tasks.start_soon(proved)
                    await has_begun.wait()

        monkeypatch.setattr(retention.Retention, "_batches", proved_meanwhile)
        assert (await it.caller.call("retention.apply"))["freed_bytes"] > 10_000
        assert has_begun.is_set()
        assert not (await it.caller.call("retention.apply", dry_run=True))["freed_bytes"]


async def test_views_are_proved_against_a_log_whose_last_loss_they_show(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 120)
        step, may_follow = Driver.step, anyio.Event()

        async def held(driver: Driver) -> None:
            await may_follow.wait()
            await step(driver)

        monkeypatch.setattr(Driver, "step", held)
        log, views = it.daemon.services.log, it.daemon.services.views
        head = log.head
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(it.caller.call, "retention.apply"))
            await until(lambda: log.head > head)

            async def follow() -> None:
                await anyio.sleep(0.1)
                may_follow.set()

            tasks.start_soon(follow)
            reports = await views.verify((), lambda _done, _total: None)
        assert [name for name, report in reports.items() if not report.equal] == []


async def test_no_file_of_the_home_holds_what_is_over(paths: Paths, clock: FakeClock) -> None:
    def holding() -> set[str]:
        files = [path for path in paths.home.rglob("*") if path.is_file()]
        return {path.name for path in files if b"the heron" in path.read_bytes()}

    async with served(paths, clock, KEYWORDS) as it:
        log = it.daemon.services.log
        calls = [tool_called(number, tool_input=excerpt("heron"), result=None) for number in range(1_300)]
        calls[300] = tool_called(300, tool_input=excerpt("the heron"), result=excerpt("the heron " * 400))
        for at in range(0, 600, 10):  # each goes ahead of the log, and the first of them again in its place
            await append(log, *calls[at : at + 10])
        await append(log, *calls[600:])
        await it.caught_up()
        await it.caller.call("views.rebuild")
        clock.us += 100 * DAY_US
        await append(log, stored(memory_id=MEMORIES[0], content="kept"))
        await slept(it)
        assert holding() >= {"log.db", "log.db-wal", "views-1.db", "views-2.db"}
        await it.caller.call("retention.apply")
        assert holding() == set()


async def test_it_is_as_it_was_whatever_counts_otherwise_in_between(paths: Paths, clock: FakeClock) -> None:
    """A clock that was mended, counts that were carried over, and a memory that is erased stand between
    queries that age together.
    """
    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 10)
        log, ahead = it.daemon.services.log, clock.us + 9 * DAY_US
        await append(log, queried((MEMORIES[0], 1.0), query_id="ahead", at=ahead))
        await append(
            log,
            ClockMended(
                first=log.head,
                last=log.head,
                from_us=ahead,
                to_us=clock.us,
                ahead_us=9 * DAY_US,
                right_us=clock.us,
            ),
            MemoryCountsCarried(
                memory_id=MEMORIES[1], origin="old", retrievals=7, last_retrieved_at=clock.us + DAY_US // 2
            ),
        )
        await append(log, *a_day(3, clock.us))
        await append(log, memory_erased(MEMORIES[0]))
        await append(log, *a_day(4, clock.us - DAY_US))
        await it.caught_up()
        before = await it.daemon.services.views.read(counts)
        clock.us += 200 * DAY_US
        await slept(it)
        assert (await it.caller.call("retention.apply"))["freed_bytes"]
        await check(it)
        assert await it.daemon.services.views.read(counts) == before


async def test_as_of_earlier_moments_it_is_gone_too(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 1)
    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 200)
        middle = it.daemon.services.log.head // 2
        await it.daemon.services.past.copies.take()
        ((_, copy),) = it.daemon.services.past.copies.all()
        assert TOLD.encode() in copy.read_bytes()
        old = await it.caller.call("memory.list", as_of=middle)
        assert old["as_of"]["aged"] == {}
        await it.caller.call("retention.apply")
        through = (await it.caller.call("system.status"))["retention"]["through"]
        found = await it.caller.call("memory.list", as_of=middle)
        assert found["as_of"]["aged"] == {"tools": through["tools"], "queries": through["queries"]}
        assert found["memories"] == old["memories"]
        assert found["as_of"]["counted"] is None
        within = await it.caller.call("memory.list", as_of=through["queries"] // 2)
        assert 0 < within["as_of"]["counted"] < through["queries"] // 2
        at_its_end = await it.caller.call("memory.list", as_of=through["queries"])
        assert at_its_end["as_of"]["counted"] is None
        asked = await it.daemon.services.views.read(
            lambda connection: connection.execute(
                "SELECT query_id FROM retrieval_queries WHERE text = '' AND mode = 'hybrid'"
            ).fetchone()
        )
        again = await it.caller.call("memory.list", as_of=asked[0])
        assert again["as_of"]["changed"]["embedder"] == [EMBEDDER, None]  # which is not there
        session = await it.caller.call("session.get", session_id="s-1", as_of=middle)
        texts = [one["text"] for one in session["steps"] if one["what"] == "ran"]
        assert texts
        assert not any(TOLD in (text or "") for text in texts)
        assert [path for _, path in it.daemon.services.past.copies.all()] == [copy]


async def status(it: Served) -> Any:
    return (await it.caller.call("system.status"))["retention"]


async def passed(it: Served, clock: FakeClock, days: int) -> None:
    """Let days pass, and it look: not at a moment before, which it may still be at. The clock goes on with
    each look at it.
    """
    clock.us += days * DAY_US
    now = rfc3339(clock.us // SECOND_US * SECOND_US)
    await slept(it)
    with anyio.fail_after(30):
        while ((await status(it))["ran_at"] or "") < now:  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.02)


async def aged_kinds(it: Served) -> set[str]:
    events = [one.event for one in await everything(it.daemon.services.log)]
    return {one.kind for one in events if isinstance(one, PayloadsAged)}


async def test_it_is_said_before_the_first_of_it_goes_and_then_goes_by_itself(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, BY_ITSELF) as it:
        await lived(it, clock, 100)

        await passed(it, clock, 1)
        said = await status(it)
        assert said["days"] == {"tools": 90, "queries": 180}
        assert said["begins_at"] is not None
        assert said["waiting"]["tools"]
        assert said["waiting_bytes"]
        assert not any(
            isinstance(one.event, PayloadsAged) for one in await everything(it.daemon.services.log)
        )
        await passed(it, clock, 8)
        await passed(it, clock, 8)
        assert (await status(it))["begins_at"] is None
        events = [one.event for one in await everything(it.daemon.services.log)]
        (first,) = [one for one in events if isinstance(one, PayloadsAged)]
        assert (first.kind, first.days) == ("tools", 90)
        assert first.counts.keys() == {"tool.called", "hook.noted"}
        await check(it)


async def test_that_details_are_about_to_go_is_said_while_the_log_is_busy(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read, may_read = reading.cursors, threading.Event()

    def busy(connection: Connection) -> dict[str, Cursor]:
        may_read.wait(READ_S)
        return read(connection)

    async def said(it: Served, *, is_busy: bool) -> tuple[Any, str]:
        if is_busy:
            may_read.clear()
        answer = await it.caller.call("system.status")
        may_read.set()
        monkeypatch.setattr(daemon, "ask", lambda *_given: answer)
        daemon.status(Namespace(growth=False, watch=False, json=False), Instance(paths=paths, environ={}))
        lines = capsys.readouterr().out.splitlines()
        return answer["retention"], next(line for line in lines if line.startswith("retention"))

    may_read.set()
    monkeypatch.setattr(reading, "cursors", busy)
    with monkeypatch.context() as no_sweep:
        no_sweep.setattr(retention.Retention, "is_due", lambda _: False)
        async with served(paths, clock, BY_ITSELF) as it:
            kept, told = await said(it, is_busy=True)
            assert (kept["is_known"], kept["days"]) == (False, {"tools": 90, "queries": 180})
            assert "not known yet: ask again in a moment" in told
    async with served(paths, clock, BY_ITSELF) as it:
        await lived(it, clock, 100)
        await passed(it, clock, 1)
        kept, told = await said(it, is_busy=False)
        assert (kept["is_known"], kept["known_at"], bool(kept["begins_at"])) == (True, None, True)
        busy_kept, busy_told = await said(it, is_busy=True)
        assert busy_kept == kept | {"known_at": busy_kept["known_at"]}
        assert busy_kept["known_at"] > busy_kept["ran_at"]
        assert busy_told == f"{told} (busy: as of {busy_kept['known_at'][:16].replace('T', ' ')})"


async def summarised(it: Served) -> set[str]:
    """Return the summaries that quote what was said."""
    found = await it.caller.call("memory.list", event_types=["session_summary"], limit=100)
    return {one["memory_id"] for one in found["memories"] if TOLD in one["content"]}


async def test_memories_that_quote_what_was_said_are_named_as_it_goes_and_stay(
    paths: Paths, clock: FakeClock, capsys: pytest.CaptureFixture[str]
) -> None:
    async with served(paths, clock, EVERYTHING) as it:
        await lived(it, clock, 10)
        with anyio.fail_after(PATIENCE_S):
            while not (summaries := await summarised(it)):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        await lived(it, clock, 50)
        would = await it.caller.call("retention.apply", dry_run=True)
        assert summaries.intersection(would["quoted_in"])
        done = await it.caller.call("retention.apply")
        assert done["quoted_in"] == would["quoted_in"]
        retention_verb._show(done, Namespace(json=False))
        assert f"{len(done['quoted_in'])} memories that omegad made of sessions" in capsys.readouterr().out
        for memory_id in done["quoted_in"]:
            await it.caller.call("memory.erase", memory_id=memory_id)
        await it.caught_up()
        assert not (await it.caller.call("retention.apply", dry_run=True))["quoted_in"]
    async with served(paths, clock, KEYWORDS) as it:
        assert not (await it.caller.call("retention.apply", dry_run=True))["quoted_in"]


async def test_what_would_be_free_is_what_is_free_afterwards(paths: Paths, clock: FakeClock) -> None:
    """Of long rows fewer fit into a page than of short ones, and some that are kept stand between them."""
    async with served(paths, clock, KEYWORDS) as it:
        log, choose = it.daemon.services.log, random.Random(SEED)  # noqa: S311  any lengths will do
        for first in range(0, 2_000, 100):
            events = [
                tool_called(number, tool_input=excerpt("i"), result=excerpt("r" * choose.choice(LENGTHS)))
                if number % 3
                else stored(memory_id=f"mem-{number:016x}", content="kept " * choose.randrange(100))
                for number in range(first, first + 100)
            ]
            await append(log, *events)
        clock.us += 100 * DAY_US
        await append(log, stored(memory_id=MEMORIES[0], content="kept"))
        await slept(it)
        would = await it.caller.call("retention.apply", dry_run=True)
        done = await it.caller.call("retention.apply")
        assert would["free_bytes"] == pytest.approx(done["free_bytes"], rel=0.1)
        assert abs(would["freed_bytes"] / done["free_bytes"] - 1) > 0.1  # the bytes of payloads do not say it


async def test_nothing_goes_where_all_is_kept_or_the_clock_is_in_doubt(
    paths: Paths, clock: FakeClock
) -> None:
    kept = msgspec.structs.replace(KEYWORDS, retention_tools_days=0, retention_queries_days=0)
    async with served(paths, clock, kept) as it:
        await lived(it, clock, 200)
        assert (await it.caller.call("retention.apply"))["aged"] == []
        assert (await it.caller.call("system.status"))["retention"] is None
    async with served(paths, clock, KEYWORDS) as it:
        clock.us -= 50 * DAY_US
        with pytest.raises(Refused, match="clock"):
            await it.caller.call("retention.apply")
        assert not any(
            isinstance(one.event, PayloadsAged) for one in await everything(it.daemon.services.log)
        )


async def test_a_log_that_lost_it_is_exported_and_imported_and_what_nobody_said_is_noticed(
    paths: Paths, clock: FakeClock, tmp_path: Path
) -> None:
    async with served(paths, clock, EVERYTHING) as it:
        await lived(it, clock, 200)
        await it.caller.call("memory.erase", text=TOLD)
        await it.caller.call("retention.apply")
        await lived(it, clock, 100)
        await it.caller.call("retention.apply")
        assert (await it.caller.call("memory.erase", text="/src/mill.py"))["copy_count"]  # which remained
        await check(it)
        out = io.BytesIO()
        lines.export(paths.log, out, lambda *_: None)
    exported = out.getvalue()
    lines.make_log(io.BytesIO(exported), tmp_path / "made.db", lambda *_: None)
    before = b'"tool_name":"Bash","status":"ok"'
    assert exported.count(b'"type":"tool.call_aged@1","tool_name":"Bash"')
    other = exported.replace(
        b'"type":"tool.call_aged@1","tool_name":"Bash"', b'"type":"tool.call_aged@1","tool_name":"Dash"', 1
    )
    assert before in exported
    with pytest.raises(Exception, match="hash chain breaks"):
        lines.make_log(io.BytesIO(other), tmp_path / "other.db", lambda *_: None)


def a_step(choose: random.Random, number: int, at: int) -> Event:  # noqa: PLR0911  one for each kind
    """Return anything that counts memories, or changes what is counted."""
    found = [(choose.choice(MEMORIES), 0.5) for _ in range(choose.randrange(4))]
    ids, near = [one for one, _ in found], at + choose.randrange(-3, 4) * SECOND_US
    hows: tuple[How, ...] = ("briefing", "review", "reminder", "prompt", "edit", "file", "error", "warning")
    match choose.randrange(12):
        case 0:
            return MemoryCountsCarried(
                memory_id=choose.choice(MEMORIES), origin="old", retrievals=3, last_retrieved_at=near
            )
        case 1:
            return ClockMended(
                first=1,
                last=1,
                from_us=near,
                to_us=near,
                ahead_us=2 * SECOND_US,
                right_us=near - 9 * SECOND_US,
            )
        case 2 if number % 7 == 0:
            return memory_erased(choose.choice(MEMORIES))
        case 3:
            return edited(choose.choice(MEMORIES), f"said otherwise {number}")
        case 4 | 5:
            return tool_called(number, tool_use_id=f"toolu-{number}", tool_input=excerpt(f"input {number}"))
        case 6 | 7 | 8:
            return surfaced(
                *ids, how=choose.choice(hows), query_id=f"shown-{number}", at=near, subject=f"of {number}"
            )
        case _:
            return queried(*found, query_id=f"query-{number}", at=near)


@pytest.mark.parametrize(
    "seed", [SEED, *(pytest.param(f"{SEED}-{n}", marks=pytest.mark.long) for n in range(8))]
)
async def test_whatever_happened_views_that_are_built_again_are_those_that_are_served(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    choose = random.Random(seed)  # noqa: S311  any history will do
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 7)
    monkeypatch.setattr(retention, "PAUSE_S", 0.0)
    async with served(paths, clock, KEYWORDS) as it:
        log, number = it.daemon.services.log, 0
        for days in (0, 120, 100):
            clock.us += days * DAY_US
            await append(log, *(stored(memory_id=one, content=one) for one in MEMORIES[: 3 * (not number)]))
            for _ in range(60):
                number += 1
                clock.us += SECOND_US
                await append(log, a_step(choose, number, clock.us), session_id=choose.choice(("s-1", "s-2")))
        clock.us += 100 * DAY_US
        await slept(it)
        before = await it.daemon.services.views.read(counts)
        for _ in range(2):
            await it.caller.call("retention.apply")
            await check(it)
            assert await it.daemon.services.views.read(counts) == before
            clock.us += 50 * DAY_US
            await slept(it)
        assert sum(isinstance(one.event, QueryAged) for one in await everything(log))


async def test_what_is_erased_while_it_goes_stays_erased(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = retention.Retention._batches
    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 200)

        async def erased_meanwhile(*args: Any) -> AsyncIterator[aged_batches.Batch]:
            async for batch in found(*args):
                if batch.counts["tool.called"]:
                    await it.other("b").call("memory.erase", text="/src/mill.py")
                yield batch

        monkeypatch.setattr(retention.Retention, "_batches", erased_meanwhile)
        assert (await it.caller.call("retention.apply"))["freed_bytes"]
        assert not any("/src/mill.py" in str(one.event) for one in await everything(it.daemon.services.log))
        await check(it)


async def test_what_a_clock_ahead_stamped_ages_in_decisions_as_in_a_replay(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await append(it.daemon.services.log, stored(memory_id=MEMORIES[0], content="it is kept"))
        real = clock.us
        clock.us += 100 * DAY_US
        await slept(it)
        await append(
            it.daemon.services.log, tool_called(1, delivery=delivery("d-1", "a" * 64)), session_id="s-1"
        )
        clock.us = real + 60 * SECOND_US
        await it.caught_up()
        await it.caller.call("clock.mend")
        clock.us = real + 92 * DAY_US
        await slept(it)
        assert (await it.caller.call("retention.apply"))["freed_bytes"]
        await check(it)


async def test_a_log_that_loses_details_all_the_while_it_is_verified_is_as_it_was_written(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, replica = retention.Retention._batches, Inline.replica
    may_go, went, all_went = threading.Semaphore(0), threading.Semaphore(0), threading.Event()
    moments = itertools.count()
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 3)

    async def one_by_one(*args: Any) -> AsyncIterator[aged_batches.Batch]:
        async for batch in found(*args):
            await to_thread.run_sync(may_go.acquire)
            yield batch
            went.release()

    def a_batch_goes() -> None:
        if not all_went.is_set():
            may_go.release()
            went.acquire()

    def a_moment(connection: Connection) -> Any:
        if next(moments) < 3:
            a_batch_goes()
        return snapshot(connection)

    def a_pass(inline: Inline, connection: Connection) -> Any:
        nonlocal moments
        moments = itertools.count()
        a_batch_goes()
        return replica(inline, connection)

    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 200)
        monkeypatch.setattr(retention.Retention, "_batches", one_by_one)
        monkeypatch.setattr("omegad.log.verifying.snapshot", a_moment)
        monkeypatch.setattr(Inline, "replica", a_pass)
        reports: list[Any] = []

        async def verified() -> None:
            reports.append(await to_thread.run_sync(proof, it.daemon.services.log))
            may_go.release(1_000)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(verified)
            assert (await it.caller.call("retention.apply"))["freed_bytes"]
            all_went.set()
            went.release()
        assert (reports[0].ok, reports[0].problems) == (True, ())


async def test_earlier_moments_are_those_of_the_log_that_was_restored(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 1)

    def kept(name: str) -> Path:
        log_file.copy(paths.log, paths.home / name, lambda _done, _total, _what: None)
        return paths.home / name

    async def told(position: int) -> tuple[dict[str, int], bool]:
        """Copy the views; say what is gone as of a position, and whether what was said first is shown."""
        async with served(paths, clock, KEYWORDS) as it:
            await it.caught_up()
            session = await it.caller.call("session.get", session_id="s-1", as_of=position)
            await it.daemon.services.past.copies.take()
        first = next(one["text"] for one in session["steps"] if one["what"] == "ran")
        return session["as_of"]["aged"], TOLD in first

    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 110)
        position = it.daemon.services.log.head
        await it.daemon.services.past.copies.take()
        before = kept("before")
        await it.caller.call("retention.apply")
        through = {"tools": (await status(it))["through"]["tools"]}
        after = kept("after")
    assert await told(position) == (through, False)
    log_file.put_in_place(before, paths.log, datetime.now(UTC))
    assert await told(position) == ({}, True)
    log_file.put_in_place(after, paths.log, datetime.now(UTC))
    assert await told(position) == (through, False)


async def test_by_itself_nothing_goes_unless_that_is_set(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 200)
        looking = retention.Retention(it.daemon.services, KEYWORDS, cast("Any", None))
        for _ in range(3):
            clock.us += 8 * DAY_US
            await slept(it)
            await looking.sweep()
        found = await status(it)
        assert (found["is_on"], found["ran_at"], found["begins_at"]) == (False, None, None)
        assert RAN not in await it.daemon.services.log.cursors()
        assert not await aged_kinds(it)


async def test_what_is_kept_for_less_than_was_said_and_what_nobody_looked_at_is_said_again(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, BY_ITSELF) as it:
        await lived(it, clock, 110)
        for days in (1, 8, 8):
            await passed(it, clock, days)
        assert await aged_kinds(it) == {"tools"}
        assert (await status(it))["begins_at"] is None
    clock.us += 2 * DAY_US
    async with served(paths, clock, msgspec.structs.replace(BY_ITSELF, retention_prompts_days=30)) as it:
        await passed(it, clock, 1)
        assert (await status(it))["begins_at"] is not None
        assert await aged_kinds(it) == {"tools"}
    clock.us += 300 * DAY_US
    async with served(paths, clock, msgspec.structs.replace(BY_ITSELF, retention_prompts_days=30)) as it:
        await passed(it, clock, 1)
        assert (await status(it))["waiting"].keys() == {"tools", "queries", "prompts"}
        assert await aged_kinds(it) == {"tools"}


def test_a_notice_that_lies_ahead_is_none() -> None:
    tools = retention.kinds(KEYWORDS)[0]
    said = {f"{SAID}tools": Cursor(f"{SAID}tools", 1_000, 90)}
    assert tools.said_us(said, 1_000 * SECOND_US) == 1_000 * SECOND_US
    assert tools.said_us(said, 999 * SECOND_US) is None
    assert tools._replace(days=30).said_us(said, 1_000 * SECOND_US) is None


async def test_a_run_that_is_broken_off_leaves_nothing_in_copies(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 1)
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 20)
    found, asked = retention.Retention._check_shown, itertools.count()

    def check_shown(self: retention.Retention, through: int) -> None:
        if next(asked) == 2:
            raise Refused("a view is behind")
        found(self, through)

    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 200)
        await it.daemon.services.past.copies.take()
        monkeypatch.setattr(retention.Retention, "_check_shown", check_shown)
        with pytest.raises(Refused, match="behind"):
            await it.caller.call("retention.apply")
        through = (await status(it))["through"]["tools"]
        assert through
        ((_, copy),) = it.daemon.services.past.copies.all()
        with closing(open_reader(copy)) as connection:
            sql = "SELECT count(*) FROM coord_audit WHERE id <= ? AND input_summary IS NOT NULL"
            assert connection.execute(sql, (through,)).fetchone() == (0,)


async def test_what_a_run_that_was_killed_left_in_copies_goes_with_the_next(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 1)
    async with served(paths, clock, KEYWORDS) as it:
        await lived(it, clock, 110)
        await it.daemon.services.past.copies.take()
        with monkeypatch.context() as killed:
            killed.setattr(past.Copies, "age", lambda *_: anyio.lowlevel.checkpoint())
            assert (await it.caller.call("retention.apply"))["freed_bytes"]
        through = (await status(it))["through"]["tools"]
        ((_, copy),) = it.daemon.services.past.copies.all()
    async with served(paths, clock, KEYWORDS) as it:
        await it.caught_up()
        assert not (await it.caller.call("retention.apply"))["freed_bytes"]
    with closing(open_reader(copy)) as connection:
        sql = "SELECT count(*) FROM coord_audit WHERE id <= ? AND input_summary IS NOT NULL"
        assert connection.execute(sql, (through,)).fetchone() == (0,)
