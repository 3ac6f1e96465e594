"""What a question tells about its answer beside its words."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omegad.queries.question import Window, identifiers, understood
from omegad.times import EPOCH, MICROSECOND
from tests.builders import at_most

NOW = datetime(2026, 5, 20, 13, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def window(text: str, now: datetime = NOW) -> Window | None:
    return understood(text, us(now)).window


def days(text: str, now: datetime = NOW) -> tuple[date, date]:
    """Return the first and the last day of the time that a question names."""
    found = window(text, now)
    assert found, text
    first, end = (EPOCH + moment * MICROSECOND for moment in (found.start_us, found.end_us))
    assert first < end
    assert (first, end) == (first.replace(hour=0, minute=0), end.replace(hour=0, minute=0)), "a window is of whole days"
    return first.date(), (end - DAY).date()


@pytest.mark.parametrize(
    ("text", "tense"),
    [
        ("which database do we use?", "now"),
        ("what is the current default timeout?", "now"),
        ("are we still on Postgres?", "now"),
        ("what did we decide about retries?", "now"),
        ("which linter did the team settle on?", "now"),
        ("which port does it listen on these days", "now"),
        ("what was the original port?", "then"),
        ("which port was it before the move?", "then"),
        ("what did the config previously say", "then"),
        ("which queue did we use to run at first?", "then"),
        ("when did we move to Postgres?", "then"),
        ("since when is the export slow", "then"),
        ("in which version was that added?", "then"),
        ("why do we use Postgres?", "then"),
        ("what is the reason for two queues?", "then"),
        ("what did we do in March 2024?", "then"),
        ("did the deploy fail?", "past"),
        ("what happened to the export?", "past"),
        ("", "now"),
    ],
)
def test_a_question_is_about_how_things_stand_or_stood(text: str, tense: str) -> None:
    assert understood(text, us(NOW)).tense == tense


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("why is the export slow?", True),
        ("  Why?", True),
        ("how come we pin numpy", True),
        ("what's the rationale for two queues", True),
        ("for what reason was it reverted", True),
        ("what is the reason for that pin", True),
        ("how do we deploy?", False),
        ("the reasoning engine is slow", False),
        ("tell me whyever not", False),
        ("", False),
    ],
)
def test_a_question_asks_for_a_reason_or_not(text: str, *, asks: bool) -> None:
    assert understood(text, us(NOW)).asks_why is asks


def test_names_are_capitalised_words_in_lower_case() -> None:
    assert understood("did Caroline tell bob about New York?", us(NOW)).names == {"caroline", "new", "york"}
    assert understood("nobody at all, i think", us(NOW)).names == frozenset()


@pytest.mark.parametrize(
    "name",
    [
        "exporter.py",
        "src/jobs/exporter.py",
        ".env",
        ".gitignore",
        "/etc/hosts",
        "C:\\temp\\log.txt",
        "~/.bashrc",
        "v1.2.3",
        "3.12",
        "1.5.20",
        "https://example.org/a/b?c=d",
        "user@example.org",
        "--dry-run",
        "-v",
        "$HOME",
        "OMEGAD_HOME",
        "MAX_RETRIES",
        "E1101",
        "ENOENT",
        "SQLITE_BUSY",
        "TS2345",
        "HTTPServerError",
        "parseConfig",
        "load_users",
        "std::vector",
        "#4711",
        "utf8",
        "a1b2c3d",
    ],
)
@pytest.mark.parametrize("around", ["{}", "what does {} do?", "is it `{}`, or what", "see ({}).", '"{}"'])
def test_what_names_a_thing_exactly_is_an_identifier_as_it_is_written(name: str, around: str) -> None:
    assert identifiers(around.format(name)) == (name,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "which database do we use, and why?",
        "Caroline and I met in Paris",
        "the well-known two-phase commit",
        "12 of 7 in 2026 or in 1999",
        "don't, can't; it's Anna's",
        "... -- / . _ !?",
        "どのデータベース v",
        "wait... what?",
        "(parenthesised) [bracketed] {braced} <angled> *starred* `quoted`",
    ],
)
def test_words_years_and_small_numbers_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()


@pytest.mark.parametrize("text", ["use one tool, e.g. a linter", "we met, i.e. on a call", "tabs and/or spaces", "the 3rd try", "on 2026-03-04"])
def test_abbreviations_ordinals_and_dates_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()


def test_an_identifier_is_told_once_and_in_order() -> None:
    assert identifiers("app.py calls db.py, and app.py's loader calls app.py") == ("app.py", "db.py")


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
        ("on 3 March", date(2026, 3, 3), date(2026, 3, 3)),
        ("on 3 November", date(2025, 11, 3), date(2025, 11, 3)),
        ("9999-12-31", date(9999, 12, 31), date(9999, 12, 31)),
    ],
)
def test_a_day_is_that_day(text: str, first: date, last: date) -> None:
    if last.year == date.max.year:
        assert window(text)
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
        ("this month", [date(2026, 5, 1), date(2026, 5, 20)], [date(2026, 3, 1)]),
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
    found = window(text)
    assert found is None or found.end_us - found.start_us > DAY // MICROSECOND, "at most the month is meant"


@pytest.mark.parametrize("text", ["which may fail", "march on", "at last", "a week", "a day in the life", "port 2026", "v2026.1", ""])
def test_a_question_without_a_time_has_no_window(text: str) -> None:
    assert window(text) is None


@example("\u017fix days ago")
@example("in \u017feptember")
@example("f\u0130ve day\u017f ago")
@example("999 years ago")
@example("on ٣ March ٢٠٢٦")
@example("٢٠٢٦-٠٣-٠٤")
@example("0001-01-01")
@example("9999-12-31")
@example("January 9999")
@given(st.text(max_size=200) | st.text(st.sampled_from("in on 0123456789-may March ago last week day\u017f\u0130\u212a.,/\\'"), max_size=60))
def test_any_text_is_understood(text: str) -> None:
    for now in (NOW, EPOCH, datetime(9999, 1, 1, tzinfo=UTC)):
        found = understood(text, us(now))
        assert found.window is None or found.window.start_us < found.window.end_us
        assert found.tense == "then" or found.window is None


@given(
    st.lists(st.sampled_from(["in", "March", "2026", "last", "week", "2", "days", "ago", "why", "x.py", "on", "8", "May", "yesterday"]), max_size=12)
)
def test_a_sentence_of_times_is_understood(words: list[str]) -> None:
    assert understood(" ".join(words), us(NOW)).identifiers == (("x.py",) if "x.py" in words else ())


@pytest.mark.parametrize("unit", ["in ", "may ", "a", "A", "1", "1 ", "last ", "2026-", "-", "_", " ", "why ", "in what ", "a.b ", "(", "\u017f"])
def test_no_question_takes_long(unit: str) -> None:
    with at_most(3):
        understood(unit * (400_000 // len(unit)), us(NOW))


def test_a_short_word_in_capitals_is_a_word_and_a_long_one_a_code() -> None:
    assert identifiers("does DNS or the API send SIGTERM?") == ("SIGTERM",)
