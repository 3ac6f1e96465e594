"""Time and identity, and how times are written."""

import contextlib
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.runtime.clock import Clock, next_hlc, uuid7
from omegad.runtime.errors import Invalid
from omegad.runtime.times import parse_time, rfc3339
from tests.builders import START_US, FakeClock

YEAR_1_US, YEAR_9999_US = -62_135_596_800_000_000, 253_402_300_799_000_000


def test_an_identifier_is_a_uuid_of_version_7_that_carries_its_time() -> None:
    found = uuid.UUID(uuid7(FakeClock(step_us=0)))
    assert (found.version, found.variant) == (7, uuid.RFC_4122)
    assert found.int >> 80 == START_US // 1_000


def test_identifiers_are_in_the_order_of_their_time_and_never_the_same() -> None:
    clock = FakeClock()
    found = [uuid7(clock) for _ in range(500)]
    assert found == sorted(found)
    assert len({uuid7(Clock()) for _ in range(5_000)}) == 5_000


@given(st.lists(st.integers(0, 2**50), min_size=1))
def test_the_hybrid_clock_never_stands_still_and_follows_the_wall_clock(times: list[int]) -> None:
    last = 0
    for now_us in times:
        following = next_hlc(last, now_us)
        assert following > last
        assert following >= (now_us // 1_000) << 16
        last = following
    assert last >> 16 <= max(times) // 1_000 + len(times)


def test_the_machines_clock_is_in_microseconds() -> None:
    clock = Clock()
    assert abs(clock.now_us() - time.time() * 1e6) < 5e6
    assert -14 * 60 <= clock.tz_offset_minutes() <= 14 * 60
    assert 0 <= clock.random_bits(3) < 8


@given(st.integers(0, 4_102_444_800_000_000))
def test_a_time_that_is_written_is_read_as_it_was(time_us: int) -> None:
    assert parse_time(rfc3339(time_us), "x") == time_us


@given(st.integers(YEAR_1_US, YEAR_9999_US), st.integers(YEAR_1_US, YEAR_9999_US))
def test_times_are_written_in_the_order_of_time(one: int, other: int) -> None:
    assert (rfc3339(one) < rfc3339(other)) is (one < other) or abs(one - other) < 100


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("2026-01-01", START_US),
        ("2026-01-01T00:00:00Z", START_US),
        ("2026-01-01T01:00:00+01:00", START_US),
        ("2026-01-01T00:00:00.000001Z", START_US + 1),
        ("2025-12-31T19:00:00-05:00", START_US),
        ("1969-12-31T23:59:59Z", -1_000_000),
        ("1969-12-31", -86_400_000_000),
    ],
)
def test_a_time_or_a_date_is_read(text: str, time_us: int) -> None:
    assert parse_time(text, "since") == time_us


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-01T00:00:00",
        "2026-02-30",
        "2026-1-1",
        "01/02/2026",
        "1767225600",
        "2026-01-01T25:00:00Z",
        "x" * 900,
    ],
)
def test_anything_else_is_refused_by_its_parameters_name(text: str) -> None:
    with pytest.raises(Invalid, match="since is not a time") as error:
        parse_time(text, "since")
    assert len(str(error.value)) < 100


@given(st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()) | st.text())
def test_whatever_is_read_can_be_written(text: str) -> None:
    try:
        time_us = parse_time(text, "since")
    except Invalid:
        return
    assert parse_time(rfc3339(time_us), "since") == pytest.approx(time_us, abs=100)


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59.999999Z"]
)
def test_a_time_at_the_ends_of_the_calendar_can_be_written_or_is_refused(text: str) -> None:
    with contextlib.suppress(Invalid):
        rfc3339(parse_time(text, "since"))
