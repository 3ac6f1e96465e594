"""Which span of time a question names."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.runtime.times import EPOCH, LAST_US, MICROSECOND
from omegad.text import periods
from omegad.text.periods import Period

NOW = datetime(2026, 5, 20, 13, 30, tzinfo=UTC)  # a Wednesday
SPANS = """
what was said on 2026-03-04? = 2026-03-04;      on 8th May 2023 = 2023-05-08
the 8th of May 2023 = 2023-05-08
by 2026-03-04T10:00 = 2026-03-04;               May 8, 2023 = 2023-05-08
who met on 08.05.2023? = 2023-05-08;            from 05.05.2023 to 09.05.2023 = 2023-05-05 2023-05-09
on Mar. 1 2024 = 2024-03-01
2026-02-30 or else 2026-03-01 = 2026-03-01;     on December 1,2023 = 2023-12-01
on 29 February = 2024-02-29
on 3 November = 2025-11-03;                     by may 5 = 2026-05-05
on 8 May last year = 2025-05-08
yesterday's deploy = 2026-05-19;                what is due tomorrow = 2026-05-21
this morning = 2026-05-20
the day before yesterday = 2026-05-18;          last Tuesday = 2026-05-19
on Wednesday = 2026-05-13
this Friday = 2026-05-22;                       next Friday = 2026-05-22
last weekend = 2026-05-16 2026-05-17
early february 2025 = 2025-02-01 2025-02-28;    in March = 2026-03-01 2026-03-31
in June = 2025-06-01 2025-06-30
last May = 2025-05-01 2025-05-31;               in March last year = 2025-03-01 2025-03-31
2024-02 = 2024-02-01 2024-02-29
in 2025 = 2025-01-01 2025-12-31;                in mid-2025 = 2025-01-01 2025-12-31
this year = 2026-01-01 2026-12-31
in Q3 = 2025-07-01 2025-09-30;                  Q1 of 2024 = 2024-01-01 2024-03-31
2024 Q4 = 2024-10-01 2024-12-31
last summer = 2025-06-01 2025-08-31;            this summer = 2026-06-01 2026-08-31
winter 2023 = 2023-12-01 2024-02-29
last week = 2026-05-10 2026-05-17;              this week = 2026-05-17 2026-05-24
next week = 2026-05-24 2026-05-31
last month = 2026-04-01 2026-04-30;             last quarter = 2026-01-01 2026-03-31
next year = 2027-01-01 2027-12-31
3 days ago = 2026-05-16 2026-05-18;             two weeks ago = 2026-05-03 2026-05-09
a couple of months ago = 2026-03-05 2026-04-04
in the last 3 days = 2026-05-17 2026-05-20;     the past month = 2026-04-20 2026-05-20
past few weeks = 2026-04-22 2026-05-20
between March and May = 2026-03-01 2026-05-31;  from November to February = 2025-11-01 2026-02-28
from Monday to yesterday = 2026-05-18 2026-05-19
between 5 and 9 May 2023 = 2023-05-05 2023-05-09; from the 10th to the 12th of March = 2026-03-10 2026-03-12
5-9 May = 2026-05-05 2026-05-09
between June and August 2024 = 2024-06-01 2024-08-31; from May 5 to May 9 = 2026-05-05 2026-05-09
from 2023 to 2025 = 2023-01-01 2025-12-31
since March = 2026-03-01 2026-05-20;            after 2024 = 2024-01-01 2026-05-20
since last summer = 2025-06-01 2026-05-20
before March = 0001-01-01 2026-02-28;           until 8 May 2023 = 0001-01-01 2023-05-08
last night = 2026-05-19 2026-05-20
the week before 9 May 2026 = 2026-05-02 2026-05-09; two days after May 5 = 2026-05-05 2026-05-07
in the last 12 months = 2025-05-20 2026-05-20
"""
NO_TIMES = """
which may fail; march on; at last; a week; a day in the life; port 2026; v2026.1
how many connections may 20 workers open?; in Spring Boot
which of the 20 may fail; May 2 processes share a socket?; this may fail; the plugin it depends on may break
why does this fall back
in spring-boot; fall back; since version 2.0; in version 1.2.2024; from dec to oct; in march.py
from 2000 to 4000 tokens; after 2000 requests
the ratio 2024:2025; CVE-2024-12; gpt-4-2024-05-13; a 10.12 March; does it last two days
the last week of school; 2026-13-01; 0000-01-01; 31.02.2024; in version 10.12.2024.1; v10.12.2024
migrated from spring; "9999-12-31"; Q4 quantization; in 2024.1
"""
YEARS, MONTHS = st.integers(1901, 2098), [date(2000, month, 1).strftime("%B") for month in range(1, 13)]
NAMES = [*MONTHS, "Q1", "Q2", "Q3", "Q4", "spring", "summer", "autumn", "winter"]
PARTS = (
    "in,from,between,and,since,before,the,last,this,next,May,may,31 feb,Q4,9999-12-31,2024,999"
    " years,ago,fall,week,Sunday,tomorrow,2024-02-30"
)


def span(text: str, now: datetime = NOW) -> list[date]:
    """Return the first and the last day of the time that a question names, of whole days."""
    found = named(text, now)
    first, end = (EPOCH + moment * MICROSECOND for moment in (found.start_us, found.end_us))
    assert first.time() == end.time() == datetime.min.time()
    return [first.date(), end.date() - timedelta(days=1)]


def named(text: str, now: datetime = NOW) -> Period:
    found = periods.period(text, (now - EPOCH) // MICROSECOND)
    assert found, text
    return found


@pytest.mark.parametrize("row", SPANS.strip().replace("\n", ";").split(";"))
def test_a_time_has_its_first_and_its_last_day(row: str) -> None:
    text, _, expected = row.partition(" = ")
    days = [date.fromisoformat(day) for day in expected.split()]
    assert span(text.strip()) == [days[0], days[-1]]


@pytest.mark.parametrize("text", ["", *NO_TIMES.strip().replace("\n", ";").split(";")])
def test_a_text_without_a_time_names_none(text: str) -> None:
    assert periods.period(text.strip(), (NOW - EPOCH) // MICROSECOND) is None


@given(YEARS, st.sampled_from(NAMES))
def test_what_is_named_with_its_year_ends_where_the_next_begins(year: int, name: str) -> None:
    group = next(group for group in (NAMES[:12], NAMES[12:16], NAMES[16:]) if name in group)
    following = group[(group.index(name) + 1) % len(group)]
    ends = named(f"in {name} {year}").end_us
    assert ends == named(f"in {following} {year + (following == group[0])}").start_us
    assert named(f"in {year}").end_us == named(f"in {year + 1}").start_us


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.sampled_from(["month", "quarter", "year"]),
)
def test_the_last_unit_ends_where_this_one_begins_and_that_before_the_next(now: datetime, unit: str) -> None:
    last, this, following = (named(f"{which} {unit}", now) for which in ("last", "this", "next"))
    assert (last.end_us, this.end_us) == (this.start_us, following.start_us)
    assert this.start_us <= (now - EPOCH) // MICROSECOND < this.end_us


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.sampled_from(NAMES[:16]),
)
def test_without_a_year_the_latest_that_has_begun_is_meant(now: datetime, name: str) -> None:
    assert timedelta() <= now.date() - span(f"in {name}", now)[0] < timedelta(days=366)


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PARTS.split(","))).map(" ".join)),
    st.one_of(st.integers(0, LAST_US), st.sampled_from([-62135596800000000, LAST_US])),
    st.integers(1, 400),
)
def test_no_text_and_no_moment_is_an_error(text: str, now_us: int, times: int) -> None:
    found = periods.period(" ".join([text] * times)[:8192], now_us)
    assert found is None or found.start_us < found.end_us


@pytest.mark.parametrize(
    ("text", "undated"),
    [("on 8th May 2023", set()), ("last Friday", {"last", "friday"}), ("since March", {"since"})],
)
def test_what_no_date_has_is_told_from_what_one_has(text: str, undated: set[str]) -> None:
    assert named(text).undated == undated


def test_a_part_of_the_name_of_a_time_is_known() -> None:
    found = named("what did Anna say on December 1,2023?")
    parts = ("1,2023", "december", "2023", "anna", "1.5", "December 2")
    assert [found.is_named_by(text) for text in parts] == [True, True, True, False, False, False]


def test_a_text_of_nothing_but_days_names_no_time_however_many_it_tries() -> None:
    assert periods.period("friday " * 1_000 + "last friday", (NOW - EPOCH) // MICROSECOND) is None
    assert periods.period("friday " * 10 + "last friday", (NOW - EPOCH) // MICROSECOND) is not None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("what did we do last week?", "last week"),
        ("who broke it 3 days ago, and why?", "3 days ago"),
        ("what was decided since last Friday", "since last Friday"),
        ("what happened yesterday?", "yesterday"),
        ("who met last March", None),
        ("where did she move from 4 years ago?", None),
        ("what is due next week?", None),
        ("who cleans on Monday?", None),
    ],
)
def test_what_means_another_time_whenever_it_is_said_is_told_apart(text: str, told: str | None) -> None:
    found = named(text)
    assert found.told_from_now == ((told,) if told else ())
    assert not told or found.undated == found.words


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("in March 2024", "2024-03-01 to 2024-03-31"),
        ("on 8 May 2023", "2023-05-08"),
        ("before 2024", "until 2023-12-31"),
    ],
)
def test_a_time_is_said_in_days(text: str, days: str) -> None:
    assert named(text).days == days
