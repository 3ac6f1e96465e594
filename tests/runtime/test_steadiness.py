"""Whether the clock goes as time goes by; on a real daemon see acceptance/test_clock.py."""

import pytest

from omegad.runtime.steadiness import GAP_US, TOLD_US, Steadiness, in_words
from tests.builders import START_US, FakeClock

HOUR_US = 3_600_000_000


class World:
    """A clock and what counts the time, which go together until one is moved alone."""

    def __init__(self, latest_us: int = START_US, installed_us: int = 0) -> None:
        self.clock = FakeClock(step_us=0)
        self.elapsed_us = 0
        self.steadiness = Steadiness(self.clock, latest_us, installed_us, lambda: self.elapsed_us * 1_000)

    def step(self, clock_us: int, elapsed_us: int) -> str | None:
        self.clock.us += clock_us
        self.elapsed_us += elapsed_us
        self.steadiness.look()
        return self.steadiness.trouble()


def test_time_that_goes_by_asleep_or_awake_and_a_clock_that_is_set_right_bit_by_bit_are_no_jump() -> None:
    world = World()
    assert world.step(100 * HOUR_US, 100 * HOUR_US) is None
    assert [world.step(30_000_000, 0) for _ in range(10)] == [None] * 10


@pytest.mark.parametrize(
    ("jumped_us", "told"), [(3 * HOUR_US, "jumped 3.0 h ahead"), (-2 * HOUR_US, "jumped 2.0 h back")]
)
def test_a_jump_is_told_until_it_is_undone_accepted_or_a_day_old(jumped_us: int, told: str) -> None:
    world = World()
    assert told in (world.step(jumped_us, 0) or "")
    assert told in (world.step(HOUR_US, HOUR_US) or "")
    assert world.step(-jumped_us, 0) is None
    assert told in (world.step(jumped_us, 0) or "")
    world.steadiness.accept()
    assert world.steadiness.trouble() is None
    assert told in (world.step(jumped_us, 0) or "")
    assert world.step(TOLD_US, TOLD_US) is None
    assert world.steadiness.jumped_us == jumped_us


def test_a_start_long_after_the_latest_event_or_before_omegad_was_installed_is_told_until_accepted() -> None:
    assert World(START_US - GAP_US).steadiness.trouble() is None
    assert World(0).steadiness.trouble() is None
    for world, told in (
        (World(START_US - 2 * GAP_US), "after the latest event"),
        (World(0, START_US + 2 * GAP_US), "before omegad was installed"),
    ):
        assert told in (world.steadiness.trouble() or "")
        assert "omegad clock mend" in (world.steadiness.trouble() or "")
        world.steadiness.accept()
        assert world.steadiness.trouble() is None


def test_spans_are_written_in_one_unit() -> None:
    assert [
        in_words(us) for us in (5_000_000, 90_000_000, -3 * HOUR_US, 50 * HOUR_US, 10 * 365 * 24 * HOUR_US)
    ] == [*("5 s", "1.5 min", "3.0 h", "2.1 days", "10.0 years")]
