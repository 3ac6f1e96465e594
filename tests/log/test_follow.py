"""Reading and following: every event once and in order, whether it comes from memory or from the disk."""

from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from omegad.log import event_log, reading
from omegad.log.event import Event, Position, RecordedEvent
from omegad.log.event_log import EventLog
from tests.builders import (
    FakeClock,
    append,
    edited,
    everything,
    evolved,
    excerpt,
    queried,
    recorded,
    repeated,
    running_log,
    stored,
    tool_called,
    until,
)


async def follow(log: EventLog, after: Position, seen: list[RecordedEvent]) -> None:
    async for event in log.follow(after):
        seen.append(event)  # noqa: PERF401  the test looks at it meanwhile


@pytest.mark.parametrize("kept", [1, 3, 1_024])
async def test_a_follower_misses_nothing_and_sees_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(reading, "TAIL_EVENTS_MAX", kept)
    monkeypatch.setattr(event_log, "FOLLOW_CHUNK", 7)
    async with running_log(tmp_path / "log.db") as log, anyio.create_task_group() as tasks:
        await append(log, *[queried()] * 20)
        followers: dict[Position, list[RecordedEvent]] = {0: [], 5: [], 19: [], 20: [], 60: []}
        for after, seen in followers.items():
            tasks.start_soon(follow, log, after, seen)
        for number in range(40):
            tasks.start_soon(append, log, *[queried()] * (number % 5 + 1))
            await anyio.sleep(0.0005 * (number % 3))
        await until(lambda: all(seen and seen[-1].position == 140 for seen in followers.values()))
        tasks.cancel_scope.cancel()
    for after, seen in followers.items():
        assert [event.position for event in seen] == list(range(after + 1, 141))


async def test_what_is_read_from_memory_is_what_is_read_from_the_disk(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, stored(metadata={"a": [1, None, "é"]}), tool_called(), client="cli", trace="t")
        fresh = await log.read(0, 10)
    async with running_log(tmp_path / "log.db", clock) as log:
        assert await log.read(0, 10) == fresh
        assert await log.read(1, 10) == fresh[1:]
        assert await log.read(0, 1) == fresh[:1]
        assert await log.read(2, 10) == []
        assert await log.read(99, 10) == []


async def test_an_events_envelope_says_where_it_comes_from(tmp_path: Path, clock: FakeClock) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, queried(), client="cli", trace="trace-1", session_id="s1")
        (event,) = await everything(log)
        assert (event.tag, event.client, event.trace, event.session_id, event.tz_offset) == (
            "memory.queried@1",
            "cli",
            "trace-1",
            "s1",
            60,
        )
        assert event.origin == log.origin
        assert event.occurred_at == event.recorded_at
        assert await log.chain_at(1) == event.chain
        assert await log.chain_at(2) is None


async def test_the_origin_of_a_log_stays(tmp_path: Path, clock: FakeClock) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        origin = log.origin
    async with running_log(tmp_path / "log.db", clock) as log:
        assert log.origin == origin
    async with running_log(tmp_path / "other.db", clock) as log:
        assert log.origin != origin


async def test_a_read_is_bounded_in_bytes_and_never_empty(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        await append(log, *[queried(text="x" * 3_000)] * 10)
    monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 7_000)
    async with running_log(tmp_path / "log.db", clock) as log:
        assert [event.position for event in await log.read(0, 100)] == [1, 2, 3]
        monkeypatch.setattr(reading, "BATCH_BYTES_MAX", 1)
        assert [event.position for event in await log.read(4, 100)] == [5]


def test_the_tail_is_bounded_and_answers_only_what_it_holds_without_a_gap() -> None:
    kept = reading.Tail()
    assert kept.after(0, 10) == []
    kept.extend((recorded(queried(), position), 300) for position in range(1, 2_001))
    assert [event.position for event in kept.after(1_990, 3)] == [1_991, 1_992, 1_993]
    assert kept.after(900, 10) == []
    assert [event.position for event in kept.after(2_000 - reading.TAIL_EVENTS_MAX, 1)] == [
        2_000 - reading.TAIL_EVENTS_MAX + 1
    ]
    kept.clear()
    assert kept.after(1_990, 3) == []


_LARGE = "x" * 200_000
_LARGE_EVENTS: dict[str, Callable[[int], Event]] = {
    "stored": lambda number: stored(f"mem-{number}", _LARGE),
    "edited": lambda _: edited(content=_LARGE),
    "evolved": lambda _: evolved(content=_LARGE, wording="more"),
    "repeated": lambda _: repeated(content=_LARGE),
    "described": lambda number: stored(f"mem-{number}", str(number), metadata={"why": _LARGE}),
    "called": lambda number: tool_called(number, result=excerpt(_LARGE)),
    "queried": lambda _: queried(text=_LARGE),
}


@pytest.mark.parametrize("kind", _LARGE_EVENTS)
async def test_the_tail_is_bounded_in_bytes_whatever_the_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(reading, "TAIL_BYTES_MAX", 1_000_000)
    async with running_log(tmp_path / "log.db") as log:
        for number in range(1, 9):
            await append(log, _LARGE_EVENTS[kind](number))
        assert [event.position for event in log._tail.after(4, 8)] == [5, 6, 7, 8]
        assert log._tail.after(3, 8) == []


async def test_each_follower_gets_the_same_events(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log, anyio.create_task_group() as tasks:
        one: list[RecordedEvent] = []
        other: list[RecordedEvent] = []
        tasks.start_soon(follow, log, 0, one)
        await append(log, queried(), queried())
        await until(lambda: len(one) == 2)
        tasks.start_soon(follow, log, 0, other)
        await until(lambda: len(other) == 2)
        tasks.cancel_scope.cancel()
    assert msgspec.json.encode(one) == msgspec.json.encode(other)
