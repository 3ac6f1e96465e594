"""A clock that was ahead, mended: times go on from the right one, and each moment has its place."""

from pathlib import Path

from omegad.log.event_log import EventLog
from omegad.log.mending import ClockMended
from tests.builders import START_US, FakeClock, append, everything, proof, rated, running_log

HOUR_US = 3_600_000_000
YEAR_US = 365 * 24 * HOUR_US


async def _at(log: EventLog, clock: FakeClock, *times_us: int) -> None:
    for time_us in times_us:
        clock.us = time_us
        await append(log, rated())


async def _mend(log: EventLog, clock: FakeClock) -> ClockMended:
    ahead = await log.stamped_ahead(clock.us)
    assert ahead is not None
    assert ahead.to_us == clock.us
    await append(log, ahead)
    return ahead


async def test_each_moment_has_its_place_also_after_the_clock_was_mended_twice(tmp_path: Path) -> None:
    clock = FakeClock(step_us=0)
    async with running_log(tmp_path / "log.db", clock) as log:
        await _at(log, clock, START_US, START_US + HOUR_US)  # 1, 2
        await _at(log, clock, START_US + YEAR_US, START_US + YEAR_US + HOUR_US)  # 3, 4: ahead, an hour long
        await _at(
            log, clock, START_US + 4 * HOUR_US, START_US + 5 * HOUR_US
        )  # 5, 6: right again, and not said
        clock.us = START_US + 6 * HOUR_US
        ahead = await _mend(log, clock)  # 7
        assert (ahead.first, ahead.last) == (3, 4)
        assert ahead.right_us == START_US + HOUR_US
        assert (
            ahead.from_us - ahead.ahead_us == START_US + 4 * HOUR_US
        )  # no later than what was right again came
        assert await log.stamped_ahead(clock.us) is None
        await _at(log, clock, START_US + 7 * HOUR_US)  # 8
        assert [recorded.recorded_at for recorded in await everything(log)][6:] == [
            START_US + 6 * HOUR_US,
            START_US + 7 * HOUR_US,
        ]
        await _at(log, clock, START_US + 20 * HOUR_US)  # 9: ahead, once more
        clock.us = START_US + 8 * HOUR_US
        await _mend(log, clock)  # 10
        places = [await log.position_at(START_US + hours * HOUR_US, clock.us) for hours in range(-1, 9)]
        assert places == [0, 1, 2, 2, 3, 5, 6, 7, 8, 10]
        events = await everything(log)
        assert [one.hlc for one in events] == sorted({one.hlc for one in events})
        assert proof(log).ok


async def test_a_clock_that_is_off_by_seconds_or_goes_ahead_alone_is_nothing_to_mend(tmp_path: Path) -> None:
    clock = FakeClock(step_us=0)
    async with running_log(tmp_path / "log.db", clock) as log:
        assert await log.stamped_ahead(clock.us) is None
        await _at(log, clock, START_US, START_US + 3 * HOUR_US)
        assert await log.stamped_ahead(clock.us) is None
        assert await log.stamped_ahead(clock.us - 30_000_000) is None
