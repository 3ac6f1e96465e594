"""What is made of details whose time is over: what is counted stays true, and what is gone is said to be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omegad.log.event import Event, NewEvent
from omegad.memory.upkeep.consolidation import proven
from omegad.runtime.config import Config, Paths
from omegad.runtime.times import rfc3339
from omegad.session import habits
from tests.builders import (
    FakeClock,
    Served,
    append,
    excerpt,
    paths_in,
    queried,
    rated,
    served,
    session_ended,
    session_started,
    stored,
    surfaced,
    tool_called,
)
from tests.operations.test_erasing import check

SETTINGS = Config(model="none", upkeep=False, auto_capture=False, lint_days=0)
DAY_US = 86_400_000_000
DECIDED, CAPTURED, SHOWN = "mem-00000000000000d1", "mem-00000000000000c1", "mem-00000000000000b1"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return paths_in(tmp_path)


async def passed(it: Served, clock: FakeClock, days: int) -> None:
    clock.us += days * DAY_US
    await it.caught_up()
    it.daemon.services.steadiness.accept()


async def told(it: Served, *events: Event, session: str | None = None) -> None:
    await append(
        it.daemon.services.log, *(NewEvent(event=one, session_id=session, project="mill") for one in events)
    )
    await it.caught_up()


def long_ago(at: int) -> Iterator[tuple[str, Event]]:
    """Return what sessions stored, asked and were shown, each with the session."""
    yield "mine", stored(memory_id=DECIDED, content="the mill runs on water", event_type="decision")
    for memory_id, content in ((CAPTURED, "the wheel turns left"), (SHOWN, "the door is green")):
        yield "mine", stored(memory_id=memory_id, content=content, source="auto_capture", on_probation=True)
    for session in ("s-1", "s-2", "mine"):
        yield session, session_started()
        yield session, queried((CAPTURED, 0.9), (DECIDED, 0.4), query_id=f"of-{session}", at=at)
    yield "s-1", surfaced(SHOWN, how="prompt", query_id="shown", at=at)
    yield "s-1", rated(CAPTURED)
    yield "told-of-by-none", queried((DECIDED, 0.9), query_id="untold", at=at)


async def lived(it: Served, clock: FakeClock) -> None:
    for session, event in long_ago(clock.us):
        await told(it, event, session=session)


async def asked(it: Served, method: str, **parameters: Any) -> Any:
    return await it.caller.call(method, **parameters)


async def test_what_is_counted_stays_as_it_was(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, SETTINGS) as it:
        await lived(it, clock)
        await passed(it, clock, 200)

        async def counted() -> dict[str, Any]:
            sessions = (await asked(it, "session.list"))["sessions"]
            report = await asked(it, "lint.report", limit=100)
            junk = (await asked(it, "memory.junk"))["memories"]
            untold = await asked(it, "session.get", session_id="told-of-by-none")
            return {
                "shown": {one["session_id"]: one["shown"] for one in (*sessions, untold)},
                "stale": [one["ids"] for one in report["findings"] if one["rule"] == "stale_decision"],
                "junk": {one["memory_id"]: one["why"] for one in junk},
            }

        before = await counted()
        assert before == {
            "shown": {"s-1": 3, "s-2": 2, "mine": 2, "told-of-by-none": 1},
            "stale": [[DECIDED]],
            "junk": {SHOWN: "shown, never used"},
        }
        assert (await asked(it, "retention.apply"))["freed_bytes"]
        await it.caught_up()
        assert await counted() == before
        await check(it)
        await asked(it, "views.rebuild")
        assert await counted() == before


async def test_what_proves_a_memory_proves_it_after_its_details_went(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, SETTINGS) as it:
        await lived(it, clock)
        await told(it, queried((CAPTURED, 0.9), query_id="of-nobody", at=clock.us))  # counts for its day

        async def proved() -> list[tuple[str, str]]:
            found = await it.daemon.services.views.read(lambda connection: proven(connection, clock.us, 10))
            return [(memory_id, why) for memory_id, why in found if memory_id == CAPTURED]

        await told(it, rated(CAPTURED, -1))
        before = await proved()
        assert [why for _, why in before] == ["among the best answers in 3 other sessions"]
        await passed(it, clock, 200)
        for _ in range(2):  # in parts, of which the second says nothing
            await asked(it, "retention.apply")
            await passed(it, clock, 10)
        assert await proved() == before
        await told(it, queried((CAPTURED, 0.9), query_id="again", at=clock.us), session="s-2")
        assert await proved() == before  # which counted before
        await told(it, queried((CAPTURED, 0.9), query_id="new", at=clock.us), session="s-4")
        assert [why for _, why in await proved()] == ["among the best answers in 4 other sessions"]
        await check(it)
        await asked(it, "views.rebuild")
        assert [why for _, why in await proved()] == ["among the best answers in 4 other sessions"]


async def test_where_details_are_gone_the_answer_says_up_to_when(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, SETTINGS) as it:
        await lived(it, clock)
        questions: list[tuple[str, dict[str, Any]]] = [
            ("receipts.list", {"memory_id": DECIDED}),
            ("session.report", {"days": 366}),
            ("session.get", {"session_id": "s-1"}),
            ("thesis.calibration", {"of": "answers"}),
        ]
        for method, parameters in questions:
            assert (await asked(it, method, **parameters))["details_gone_until"] is None
        assert (await asked(it, "session.get", session_id="s-1"))["shown_tokens"]
        await passed(it, clock, 200)
        await asked(it, "retention.apply")
        until = rfc3339(clock.us - 180 * DAY_US)[:19]
        await it.caught_up()
        for method, parameters in questions:
            found = await asked(it, method, **parameters)
            assert found["details_gone_until"][:19] == until
        assert (await asked(it, "receipts.list", memory_id=DECIDED))["receipts"] == []
        assert (await asked(it, "session.get", session_id="s-1"))["shown_tokens"] is None
        for days, method in ((7, "session.report"), (0, "thesis.calibration")):
            parameters = {"days": days} if days else {"of": "theses"}
            assert (await asked(it, method, **parameters))["details_gone_until"] is None
        await told(it, session_started(), session="new")
        assert (await asked(it, "session.get", session_id="new"))["details_gone_until"] is None


async def test_no_habit_is_made_of_what_is_left_of_calls(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, SETTINGS) as it:
        sessions = ("s-1", "s-2", "s-3")

        async def run(number: int, *commands: str) -> None:
            for session in sessions:
                calls = [
                    tool_called(
                        number + place,
                        tool_use_id=f"{session}-{number + place}",
                        tool_input=excerpt(msgspec.json.encode({"command": command}).decode()),
                    )
                    for place, command in enumerate(commands, 1)
                ]
                await told(it, *calls, session=session)

        for session in sessions:
            edit = tool_called(
                1,
                tool_name="Edit",
                tool_use_id=f"{session}-1",
                tool_input=excerpt('{"file_path":"/src/a.py"}'),
            )
            await told(it, session_started(), edit, session=session)
        await run(1, "pytest")
        await passed(it, clock, 91)
        await asked(it, "retention.apply")
        await run(2, "make deploy")
        for session in sessions:
            await told(it, session_ended(), session=session)
        found = await it.daemon.services.views.read(
            lambda connection: habits.sessions(connection, "mill", it.daemon.services.log.head)
        )
        assert found == [set(), set(), set()]


async def test_questions_whose_words_are_gone_were_not_asked_in_vain(paths: Paths, clock: FakeClock) -> None:
    settings = msgspec.structs.replace(SETTINGS, retention_queries_days=10)
    async with served(paths, clock, settings) as it:
        await lived(it, clock)
        for number in range(3):
            one = queried(query_id=f"vain-{number}", text=f"which door {number}?", at=clock.us)
            await told(it, one)
        await passed(it, clock, 12)
        await asked(it, "retention.apply")
        await it.caught_up()
        report = await asked(it, "lint.report", limit=100)
        assert not [one for one in report["findings"] if one["rule"] == "asked_in_vain"]
