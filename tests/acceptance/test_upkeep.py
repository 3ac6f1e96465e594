"""The daily upkeep of a real daemon that is killed at any moment of it: it is done once, all of it."""

import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.acceptance.conftest import until
from tests.seeds import SEED
from tests.week.run import MovedHome

DAY_S, LOOK_S = 86_400, 600
DAYS, KILL_WITHIN_S = 4, 0.15


class Moved:
    """A home whose clock is set."""

    def __init__(self, folder: Path) -> None:
        self._clock = folder / "clock"
        self._ahead_s = 0
        self.later(0)
        self.home = MovedHome(folder / "home", self._clock, "none")

    def later(self, seconds: int) -> int:
        """Let some time go by; return in which slot of ten minutes it is then."""
        self._ahead_s += seconds
        part = self._clock.with_name("part")
        part.write_text(f"0 {self._ahead_s}", encoding="ascii")
        part.rename(self._clock)
        return int(datetime.now(UTC).timestamp() + self._ahead_s) // LOOK_S

    def look(self) -> None:
        """Let ten minutes go by, and the schedule look."""
        slot = self.later(LOOK_S)
        until(lambda: self.home.call("system.status")["reactions"]["upkeep"]["position"] >= slot)

    def upkeeps(self) -> list[dict[str, object]]:
        return [one["data"] for one in self.home.events() if one["tag"].startswith("upkeep.completed")]


@pytest.fixture
def moved(tmp_path: Path) -> Iterator[Moved]:
    found = Moved(tmp_path)
    yield found
    found.home.kill()
    assert "Traceback" not in found.home.printed(), found.home.printed()


@pytest.mark.long
def test_an_upkeep_that_is_killed_at_any_moment_is_done_once_and_as_a_whole(moved: Moved) -> None:
    chance = random.Random(SEED)  # noqa: S311  the seed names the moments again
    home = moved.home.start()
    for day in range(1, DAYS + 1):
        captured = [
            home.call("memory.store", content=f"day {day}, rule {number}", source="auto_capture")["memory_id"]
            for number in range(20)
        ]
        for memory_id in captured:
            home.call("memory.rate", memory_id=memory_id, rating="outdated")
        moved.later(DAY_S)
        while len(moved.upkeeps()) < day:
            moved.look()
            moved.later(LOOK_S)
            time.sleep(chance.random() * KILL_WITHIN_S)  # any moment will do
            home.kill()
            home.start()
        for _ in range(3):
            moved.look()
        until(home.caught_up)
        *_, latest = done = moved.upkeeps()
        assert len(done) == day
        assert latest["by"] == "schedule"
        assert {one["memory_id"] for one in latest["stale"]} <= set(captured)  # type: ignore[attr-defined]
    home.check()
    assert home.call("system.status")["upkeep"]["undone"] is False
