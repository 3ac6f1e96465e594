"""Which span of time a question names."""

from datetime import UTC, date, datetime, timedelta

import pytest

from omegad.queries.search import periods
from omegad.queries.search.periods import Period
from omegad.times import EPOCH, MICROSECOND

NOW = datetime(2026, 5, 20, 13, 30, tzinfo=UTC)  # a Wednesday
DAY = timedelta(days=1)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def period(text: str, now: datetime = NOW) -> Period | None:
    return periods.period(text, us(now))


def days(text: str, now: datetime = NOW) -> tuple[date, date]:
    """Return the first and the last day of the time that a question names."""
    found = period(text, now)
    assert found, text
    first, end = (EPOCH + moment * MICROSECOND for moment in (found.start_us, found.end_us))
    assert first < end
    assert (first, end) == (first.replace(hour=0, minute=0), end.replace(hour=0, minute=0)), "a period is of whole days"
    return first.date(), (end - DAY).date()


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what was said on 2026-03-04?", date(2026, 3, 4), date(2026, 3, 4)),
        ("on 8 May 2023", date(2023, 5, 8), date(2023, 5, 8)),
        ("on 8th May 2023", date(2023, 5, 8), date(2023, 5, 8)),
        ("May 8, 2023", date(2023, 5, 8), date(2023, 5, 8)),
        ("on Mar. 1 2024", date(2024, 3, 1), date(2024, 3, 1)),
        ("on 29 February 2024", date(2024, 2, 29), date(2024, 2, 29)),
        ("2024-02-29", date(2024, 2, 29), date(2024, 2, 29)),
        ("what happened yesterday", date(2026, 5, 19), date(2026, 5, 19)),
        ("what did we do today", date(2026, 5, 20), date(2026, 5, 20)),
        ("this morning's deploy", date(2026, 5, 20), date(2026, 5, 20)),
        ("on December 1,2023", date(2023, 12, 1), date(2023, 12, 1)),
        ("the 8th of May 2023", date(2023, 5, 8), date(2023, 5, 8)),
        ("by may 5", date(2026, 5, 5), date(2026, 5, 5)),
        ("last Tuesday", date(2026, 5, 19), date(2026, 5, 19)),
        ("on Wednesday", date(2026, 5, 13), date(2026, 5, 13)),
        ("the day before yesterday", date(2026, 5, 18), date(2026, 5, 18)),
        ("what is due tomorrow", date(2026, 5, 21), date(2026, 5, 21)),
        ("2026-02-30 or else 2026-03-01", date(2026, 3, 1), date(2026, 3, 1)),
        ("on 3 March", date(2026, 3, 3), date(2026, 3, 3)),
        ("on 3 November", date(2025, 11, 3), date(2025, 11, 3)),
        ("9999-12-31", date(9999, 12, 31), date(9999, 12, 31)),
    ],
)
def test_a_day_is_that_day(text: str, first: date, last: date) -> None:
    if last.year == date.max.year:
        assert period(text)
    else:
        assert days(text) == (first, last)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("in March 2026", [date(2026, 3, 1), date(2026, 3, 31)], [date(2026, 2, 28), date(2026, 4, 1)]),
        ("early february 2024", [date(2024, 2, 1), date(2024, 2, 29)], [date(2024, 1, 31), date(2024, 3, 5)]),
        ("in March", [date(2026, 3, 15)], [date(2025, 3, 15), date(2026, 4, 2)]),
        ("in May", [date(2026, 5, 1), date(2026, 5, 20)], [date(2025, 5, 20)]),
        ("last December", [date(2025, 12, 1), date(2025, 12, 31)], [date(2024, 12, 31), date(2026, 1, 2)]),
        ("during Sep", [date(2025, 9, 10)], [date(2026, 9, 10)]),
        ("in 2024", [date(2024, 1, 1), date(2024, 12, 31)], [date(2023, 12, 31), date(2025, 1, 2)]),
        ("last week", [date(2026, 5, 13), date(2026, 5, 10)], [date(2026, 4, 20), date(2026, 5, 30)]),
        ("two weeks ago", [date(2026, 5, 6), date(2026, 5, 5), date(2026, 5, 7)], [date(2026, 5, 19), date(2026, 4, 20)]),
        ("3 days ago", [date(2026, 5, 17)], [date(2026, 5, 20), date(2026, 5, 12)]),
        ("a couple of months ago", [date(2026, 3, 20)], [date(2026, 5, 19), date(2025, 12, 1)]),
        ("a year ago", [date(2025, 5, 20)], [date(2026, 5, 1), date(2023, 5, 1)]),
        ("this month", [date(2026, 5, 1), date(2026, 5, 20)], [date(2026, 3, 1), date(2026, 5, 21)]),
        ("this week", [date(2026, 5, 18), date(2026, 5, 20)], [date(2026, 5, 1)]),
        ("last year", [date(2025, 1, 1), date(2025, 12, 31)], [date(2024, 12, 31), date(2026, 1, 2)]),
        ("earlier this year", [date(2026, 1, 1), date(2026, 5, 20)], [date(2025, 12, 31)]),
        ("last quarter", [date(2026, 1, 15), date(2026, 3, 31)], [date(2025, 9, 1)]),
        ("2024-03", [date(2024, 3, 1), date(2024, 3, 31)], [date(2024, 2, 29), date(2024, 4, 1)]),
        ("between March and May", [date(2026, 3, 1), date(2026, 5, 20)], [date(2026, 2, 28), date(2026, 6, 20)]),
        ("from November to February", [date(2025, 11, 1), date(2026, 2, 28)], [date(2025, 10, 31), date(2026, 3, 20)]),
        ("between June 2024 and August 2024", [date(2024, 6, 1), date(2024, 8, 31)], [date(2024, 5, 31), date(2024, 9, 20)]),
        ("since March", [date(2026, 3, 1), date(2026, 5, 20)], [date(2026, 2, 28), date(2026, 5, 21)]),
        ("since 2024", [date(2024, 1, 1), date(2026, 5, 20)], [date(2023, 12, 31)]),
        ("since last summer", [date(2025, 6, 1), date(2026, 5, 20)], [date(2025, 5, 31)]),
        ("since Monday", [date(2026, 5, 18), date(2026, 5, 20)], [date(2026, 5, 17)]),
        ("Q3", [date(2025, 7, 1), date(2025, 9, 30)], [date(2025, 6, 30), date(2025, 10, 2)]),
        ("in Q1 of 2024", [date(2024, 1, 1), date(2024, 3, 31)], [date(2023, 12, 31), date(2024, 4, 3)]),
        ("2024 Q4", [date(2024, 10, 1), date(2024, 12, 31)], [date(2024, 9, 30), date(2025, 1, 2)]),
        ("last summer", [date(2025, 6, 1), date(2025, 8, 31)], [date(2025, 5, 31), date(2025, 9, 2)]),
        ("fall 2024", [date(2024, 9, 1), date(2024, 11, 30)], [date(2024, 8, 31), date(2024, 12, 3)]),
        ("in the last 3 days", [date(2026, 5, 17), date(2026, 5, 20)], [date(2026, 5, 13), date(2026, 5, 21)]),
        ("over the past few weeks", [date(2026, 4, 25), date(2026, 5, 20)], [date(2026, 3, 20)]),
        ("next week", [date(2026, 5, 25), date(2026, 5, 31)], [date(2026, 5, 20), date(2026, 6, 10)]),
    ],
)
def test_a_span_holds_its_days_and_not_those_far_from_it(text: str, inside: list[date], outside: list[date]) -> None:
    first, last = days(text)
    assert [one for one in inside if not first <= one <= last] == []
    assert [one for one in outside if first <= one <= last] == []


def test_a_month_without_a_year_is_the_latest_there_was() -> None:
    for month in range(1, 13):
        now = datetime(2026, month, 1, tzinfo=UTC)
        first, _ = days("what happened in March?", now)
        assert first == date(2026 if month >= 3 else 2025, 3, 1)


def test_a_day_without_a_year_is_the_latest_there_was() -> None:
    assert days("on 8 May", datetime(2026, 5, 1, tzinfo=UTC))[0] == date(2025, 5, 8)


@pytest.mark.parametrize("text", ["on 31 February", "2026-02-30", "2026-13-01", "0000-01-01", "on 0 March", "on 99 May"])
def test_a_day_that_never_was_is_none(text: str) -> None:
    found = period(text)
    assert found is None or found.end_us - found.start_us > DAY // MICROSECOND, "at most the month is meant"


@pytest.mark.parametrize(
    "text",
    [
        "which may fail",
        "march on",
        "at last",
        "a week",
        "a day in the life",
        "port 2026",
        "v2026.1",
        "how many connections may 20 workers open?",
        "in Spring Boot",
        "since version 2.0",
        "fall back",
        "",
    ],
)
def test_a_text_without_a_time_names_none(text: str) -> None:
    assert period(text) is None


@pytest.mark.parametrize(
    ("text", "undated"),
    [("in the last 3 days", {"last", "days"}), ("on 8th May 2023", set()), ("last Friday", {"last", "friday"}), ("since March", {"since"})],
)
def test_what_no_date_has_is_told_from_what_one_has(text: str, undated: set[str]) -> None:
    found = period(text)
    assert found
    assert found.undated == undated


def test_a_part_of_the_name_of_a_time_is_known() -> None:
    found = period("what did Anna say on December 1,2023?")
    assert found
    assert [found.is_named_by(text) for text in ("1,2023", "december", "2023", "anna", "1.5", "December 2")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
