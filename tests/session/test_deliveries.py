"""What tells a hook or a tool call that comes again: kept for a window, let go of by events, and the same
when it is made again from them.
"""

from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from omegad.log import requests
from omegad.log.event import Event, Position
from omegad.log.event_log import EventLog
from omegad.runtime.config import Config
from omegad.session import deliveries
from omegad.session import hook_state as hooks
from omegad.session import tool_state as tool_calls
from omegad.session.events import DeliveriesExpired, PromptSubmitted, ToolCalled
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection
from tests.builders import (
    PATIENCE_S,
    START_US,
    FakeClock,
    Served,
    claims_contested,
    delivery,
    everything,
    intent_announced,
    message_delivered,
    open_in_memory,
    paths_in,
    prompt_submitted,
    proof,
    push_checked,
    recorded,
    rows,
    served,
    session_started,
    skill_failed,
    surfaced,
    tool_called,
)
from tests.memory.test_state import INLINE

DAY_US = 86_400_000_000
KEYWORDS = Config(model="none", auto_capture=False)
OLDEST = """
SELECT min((SELECT coalesce(min(position), ?1) FROM state_deliveries), (SELECT min(position)
  FROM state_tool_calls WHERE tool_use_id != ''))
"""


async def hook(it: Served, event: str, delivery_id: str, **fields: Any) -> None:
    said = {"session_id": "s-1", "cwd": "/src/shop", "hook_event_name": event} | fields
    await it.caller.call("hook.dispatch", event=event, payload=said, delivery_id=delivery_id)


async def prompt(it: Served, day: int) -> None:
    await hook(it, "UserPromptSubmit", f"prompt-{day}", prompt=f"what is to be done on day {day}")


async def call(it: Served, day: int) -> int:
    """Tell of a call of a tool; return as which of the session's calls it counts."""
    answer = await it.caller.call("tool.record", session_id="s-1", tool_name="Bash", tool_use_id=f"use-{day}")
    return int(answer["call_index"])


async def work(it: Served, clock: FakeClock, days: range) -> None:
    """Let a session be worked in on each of some days."""
    for day in days:
        clock.us += DAY_US
        await prompt(it, day)
        await call(it, day)


async def heard(log: EventLog) -> int:
    """Return how many prompts and calls are in the log."""
    return sum(isinstance(one.event, PromptSubmitted | ToolCalled) for one in await everything(log))


async def oldest(log: EventLog) -> Position:
    found: Position = await log.on_writer(lambda connection: rows(connection, OLDEST, log.head + 1)[0][0])
    return found


async def let_go(log: EventLog, before: Position) -> None:
    """Return when nothing is known again that came before a position."""
    with anyio.fail_after(PATIENCE_S):
        while await oldest(log) < before:  # noqa: ASYNC110  what is gone announces nothing
            await anyio.sleep(0.002)


async def test_a_hook_or_call_that_comes_again_is_known_for_thirty_days_and_no_longer(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "KEPT_EVENTS", 40)
    paths = paths_in(tmp_path)
    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call("memory.store", content="the ledger is in cents", event_type="decision")
        await it.caught_up()
        asked = await it.caller.call("memory.query", text="ledger")
        await work(it, clock, range(60))
    async with served(paths, clock, KEYWORDS) as it:
        log = it.daemon.services.log
        in_time = [one.position for one in await everything(log) if one.recorded_at >= clock.us - 30 * DAY_US]
        await let_go(log, in_time[0])
        assert await oldest(log) == in_time[0]
        assert proof(log).problems == ()
        await prompt(it, 59)
        assert (await call(it, 59), await heard(log)) == (60, 120)
        await prompt(it, 0)
        assert (await call(it, 0), await heard(log)) == (61, 122)
        assert (await it.caller.call("memory.query", text="ledger", as_of=asked["query_id"]))[
            "results"
        ] == asked["results"]
        await log.refold()
        assert proof(log).problems == ()
        await it.caught_up()
        assert (await it.caller.call("views.verify"))["ok"]


async def test_so_many_events_are_known_again_however_old_they_are(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "KEPT_EVENTS", 6)
    async with served(paths_in(tmp_path), clock, KEYWORDS) as it:
        await work(it, clock, range(5))
        clock.us += 90 * DAY_US
    async with served(paths_in(tmp_path), clock, KEYWORDS) as it:
        log = it.daemon.services.log
        await let_go(log, 4)
        assert 4 <= await oldest(log) <= log.head - 6


async def test_a_daemon_that_is_never_started_anew_lets_go_of_them_too(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "KEPT_EVENTS", 10)
    monkeypatch.setattr(deliveries, "EVERY", 8)
    async with served(paths_in(tmp_path), clock, KEYWORDS) as it:
        await work(it, clock, range(5))
        clock.us += 90 * DAY_US
        await work(it, clock, range(5, 15))
        await let_go(it.daemon.services.log, 11)


async def test_what_is_let_go_of_goes_bit_by_bit(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "KEPT_EVENTS", 10)
    monkeypatch.setattr(deliveries, "POSITIONS_AT_ONCE", 8)
    async with served(paths_in(tmp_path), clock, KEYWORDS) as it:
        await work(it, clock, range(20))
        clock.us += 90 * DAY_US
    async with served(paths_in(tmp_path), clock, KEYWORDS) as it:
        log = it.daemon.services.log
        await let_go(log, 30)
        logged = await everything(log)
    limits = [one.event.before for one in logged if isinstance(one.event, DeliveriesExpired)]
    heard_at = [one.position for one in logged if isinstance(one.event, PromptSubmitted | ToolCalled)]
    assert len(limits) >= 3
    for after, before in pairwise((1, *limits)):
        gone = [position for position in heard_at if after <= position < before]
        assert gone
        assert gone[-1] - gone[0] < 8


KNOWN: tuple[Event, ...] = (
    session_started(delivery=delivery("a", "a")),
    tool_called(1, tool_use_id="t-1"),
    prompt_submitted(delivery=delivery("b", "b")),
    push_checked(delivery=delivery("c", "c")),
    surfaced("m", how="edit", subject="a.py"),
    skill_failed(),
    claims_contested("b.py"),
    intent_announced("split the ledger", expires_at=START_US),
    message_delivered(intents_of=("session-2",)),
    tool_called(2, tool_use_id="t-2"),
)
HELD = (
    *(
        "state_deliveries",
        "state_payloads",
        "state_surfaced_files",
        "state_untold_skills",
        "state_claim_news",
    ),
    *("state_intents", "state_intents_shown"),
)


def test_what_came_before_goes_and_what_says_how_a_session_stands_stays() -> None:
    with closing(open_in_memory()) as connection:
        INLINE.replica(connection)
        for position, event in enumerate(KNOWN, 1):
            INLINE.fold(connection, recorded(event, position))
        stands = rows(connection, "SELECT * FROM state_agent_sessions")
        assert [name for name in HELD if not rows(connection, f"SELECT * FROM {name}")] == []
        INLINE.fold(
            connection, recorded(DeliveriesExpired(before=10), 11, occurred_at=START_US + 31 * DAY_US)
        )
        assert [name for name in HELD if rows(connection, f"SELECT * FROM {name}")] == []
        assert rows(connection, "SELECT tool_use_id, call_index FROM state_tool_calls ORDER BY 1") == [
            ("", 2),
            ("t-2", 2),
        ]
        assert rows(connection, "SELECT * FROM state_agent_sessions") == stands != []


FORMER = """
CREATE TABLE state_deliveries (delivery_id TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE state_surfaced_files (session_id TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (session_id, file)) STRICT, WITHOUT ROWID;
CREATE TABLE state_tool_calls (
    session_id TEXT NOT NULL, tool_use_id TEXT NOT NULL, position INTEGER NOT NULL, call_index INTEGER NOT NULL, PRIMARY KEY (session_id, tool_use_id)
) STRICT, WITHOUT ROWID;
"""


async def test_a_home_of_before_there_were_such_events_is_brought_to_the_same(
    tmp_path: Path, clock: FakeClock
) -> None:
    paths = paths_in(tmp_path)
    async with served(paths, clock, KEYWORDS) as it:
        await work(it, clock, range(3))
    with closing(open_writer(paths.log, durable=False)) as connection:
        _make_former(connection)
    async with served(paths, clock, KEYWORDS) as it:
        await prompt(it, 0)
        assert (await call(it, 0), await heard(it.daemon.services.log)) == (1, 6)
        assert proof(it.daemon.services.log).ok


def _make_former(connection: Connection) -> None:
    """Put the tables that the versions before had in place of today's."""
    for name in ("state_deliveries", "state_surfaced_files", "state_tool_calls"):
        connection.execute(f"ALTER TABLE {name} RENAME TO former")
        connection.execute(next(line for line in FORMER.split(";\n") if name in line))
        columns = ", ".join(
            name for _, name, *_ in connection.execute(f"PRAGMA table_info({name})").fetchall()
        )
        connection.execute(f"INSERT INTO {name} SELECT {columns} FROM former")
        connection.execute("DROP TABLE former")
    former = [(hooks.VERSION - 1, hooks.NAME), (tool_calls.VERSION - 1, tool_calls.NAME)]
    connection.executemany(
        "UPDATE inline_projections SET version = ?, schema_digest = 'former' WHERE name = ?", former
    )
