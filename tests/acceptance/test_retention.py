"""`kill -9` in the middle of letting go of what is over loses nothing else, and the next run goes on."""

import os
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from omegad.log.event import NewEvent
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import Home, until
from tests.builders import FakeClock, append, excerpt, queried, running_log, stored, surfaced, tool_called
from tests.seeds import SEED

KILLS = int(os.environ.get("KILLS", "10"))
DAYS_BEFORE = 300
AT_ONCE = 500
MEMORIES = [f"mem-{number:016x}" for number in range(20)]


def a_year(count: int, at: int) -> Iterator[NewEvent]:
    """Return so many events: memories, then tool calls, with a question and something shown after each four."""
    for memory_id in MEMORIES:
        yield NewEvent(event=stored(memory_id=memory_id, content=f"{memory_id} is kept"), session_id="s-0")
    for number in range(count):
        found = [(MEMORIES[(number + place) % len(MEMORIES)], 0.5) for place in range(10)]
        for event in (
            tool_called(
                number + 1,
                tool_input=excerpt(f"input {number}" * 20),
                result=excerpt(f"result {number}" * 60),
            ),
            *([queried(*found, query_id=f"q-{number}", at=at + number)] if number % 5 == 0 else []),
            *(
                [surfaced(found[0][0], how="prompt", query_id=f"p-{number}", at=at)]
                if number % 9 == 0
                else []
            ),
        ):
            yield NewEvent(event=event, session_id=f"s-{number % 7}", project="shop")


async def fill(home: Path, count: int) -> None:
    at = int(time.time() * 1e6) - DAYS_BEFORE * 86_400_000_000
    async with running_log(home / "log.db", FakeClock(at)) as log:
        events = list(a_year(count, at))
        for first in range(0, len(events), AT_ONCE):
            await append(log, *events[first : first + AT_ONCE])


def counted(home: Home) -> list[tuple[Any, ...]]:
    """Return how often each memory was found and shown, and when it was last."""
    with closing(sqlite3.connect(home.path / "views.db")) as views:
        return views.execute(
            "SELECT node_id, access_count, surfaced, last_accessed, used_us FROM memories WHERE id <= ?"
            " ORDER BY id",
            (len(MEMORIES),),
        ).fetchall()


def let_go(home: Home) -> int:
    """Return how many events tell of details that were let go of."""
    with closing(sqlite3.connect(f"file:{home.path / 'log.db'}?mode=ro", uri=True)) as log:
        (count,) = log.execute("SELECT count(*) FROM events WHERE tag = 'payloads.aged@1'").fetchone()
    return int(count)


def killed_in_the_middle(home: Home, kills: int, seed: str) -> int:
    """Have it let go of what is over, and kill it once some of that went, so often; return how often it was
    at work.
    """
    choose, interrupted = random.Random(seed), 0  # noqa: S311  any moment will do
    for _ in range(kills):
        answers: list[object] = []

        def ask(answers: list[object] = answers) -> None:
            with suppress(OmegadError, OSError):
                answers.append(home.call("retention.apply"))

        def is_enough(
            answers: list[object] = answers, enough: int = let_go(home) + choose.randint(1, 3)
        ) -> bool:
            return bool(answers) or let_go(home) >= enough

        asking = threading.Thread(target=ask)
        asking.start()
        until(is_enough)
        home.kill()
        asking.join()
        interrupted += not answers
        home.start()
    return interrupted


def lived_through(homes: Callable[..., Home], folder: Path, count: int, kills: int, seed: str) -> None:
    home = homes(folder / "home")
    anyio.run(fill, home.path, count)
    home.start()
    until(home.caught_up)
    before, events = counted(home), home.events()
    assert before[0][1]
    due = home.call("retention.apply", dry_run=True)
    assert killed_in_the_middle(home, kills, seed)
    done = home.call("retention.apply")
    assert sum(one["freed_bytes"] for one in done["aged"]) <= due["freed_bytes"]
    until(home.caught_up)
    assert counted(home) == before
    after = home.events()
    for was, now in zip(events, after, strict=False):
        assert {**now, "data": None} == {**was, "data": None}
        if was["tag"] == "memory.stored@1":
            assert now == was
    told = [one["data"] for one in after if one["tag"] == "payloads.aged@1"]
    for kind in due["aged"]:
        ranges = [(one["after"], one["through"]) for one in told if one["kind"] == kind["kind"]]
        assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
        went = Counter[str]()
        for one in told:
            went.update(one["counts"] if one["kind"] == kind["kind"] else {})
        assert went == kind["counts"]
    assert sum(one["freed"] for one in told) == due["freed_bytes"]
    home.check()
    home.call("views.rebuild")
    until(home.caught_up)
    assert counted(home) == before


def test_a_kill_while_it_goes_loses_nothing_else(homes: Callable[..., Home], tmp_path: Path) -> None:
    lived_through(homes, tmp_path, 3_000, 1, "7")


@pytest.mark.long
def test_kills_while_it_goes_lose_nothing_else(homes: Callable[..., Home], tmp_path: Path) -> None:
    lived_through(homes, tmp_path, 8_000, KILLS, SEED)
