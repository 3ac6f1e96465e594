"""What a question tells about its answer beside its words."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omegad.queries.search.question import identifiers, understood
from omegad.times import EPOCH, MICROSECOND
from tests.builders import at_most

NOW = datetime(2026, 5, 20, 13, 30, tzinfo=UTC)


def us(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


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
        ("which tests are still failing today?", "now"),
        ("what is new this week?", "then"),
        ("is it still as it was in March 2024?", "then"),
        ("how many replicas does ingest have?", "now"),
        ("do we have a rate limit?", "now"),
        ("does the service have nested retries?", "now"),
        ("how long does a session last?", "now"),
        ("who has access to the vault?", "now"),
        ("who made the last release?", "now"),
        ("has the export ever failed?", "past"),
        ("which queues have we tried?", "past"),
        ("have you seen the new logs", "past"),
        ("who broke it last time", "past"),
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
        assert found.period is None or found.period.start_us < found.period.end_us
        assert found.tense == "then" or found.period is None or (found.tense == "now" and found.period.end_us > us(now))


@given(
    st.lists(st.sampled_from(["in", "March", "2026", "last", "week", "2", "days", "ago", "why", "x.py", "on", "8", "May", "yesterday"]), max_size=12)
)
def test_a_sentence_of_times_is_understood(words: list[str]) -> None:
    assert understood(" ".join(words), us(NOW)).identifiers == (("x.py",) if "x.py" in words else ())


@pytest.mark.parametrize("unit", ["in ", "may ", "a", "A", "1", "1 ", "last ", "2026-", "-", "_", " ", "why ", "in what ", "a.b ", "(", "\u017f"])
def test_no_question_takes_long(unit: str) -> None:
    with at_most(3):
        understood(unit * (400_000 // len(unit)), us(NOW))


@pytest.mark.parametrize(
    ("text", "proper"),
    [
        ("what did Caroline say about Zephyr?", {"caroline", "zephyr"}),
        ("how often is the DR drill?", set()),
        ("which Rechnung was it", {"rechnung"}),
        ("welche Nummern sind l\u00fcckenlos im Kreis", set()),
        ("l\u00fcckenlose Nummern", set()),
        ("qui est responsable de la Facturation", set()),
        ("what is in exporter.py?", {"exporter.py"}),
    ],
)
def test_names_that_are_proper_are_known_by_their_capitals_in_english(text: str, proper: set[str]) -> None:
    assert understood(text, us(NOW)).proper == proper


@pytest.mark.parametrize(
    ("text", "dispensable"),
    [
        ("heap-use-after-free on address 0x60300000aaaa in parse_row", {"0x60300000aaaa"}),
        ("worker crashed with pid 4711 while writing", {"4711", "pid 4711"}),
        ("File exporter.py, line 213, in run_all", {"213", "line 213"}),
        ("request 550e8400-e29b-41d4-a716-446655440000 timed out in checkout", {"550e8400-e29b-41d4-a716-446655440000"}),
        ("0x60300000aaaa", set()),
        ("what is 550e8400-e29b-41d4-a716-446655440000?", set()),
        ("which port does it listen on now", {"now"}),
        ("the port 8080 is taken by nginx", set()),
    ],
)
def test_what_differs_each_time_need_not_be_held_where_there_is_more(text: str, dispensable: set[str]) -> None:
    found = understood(text, us(NOW))
    assert found.dispensable == dispensable
    assert not dispensable.intersection(name.lower() for name in found.identifiers)


def test_a_place_within_a_file_is_no_part_of_its_name() -> None:
    assert identifiers("exporter.py:213 and src/app.ts:12:5 but http://localhost:8080") == ("exporter.py", "src/app.ts", "http://localhost:8080")


def test_a_short_word_in_capitals_is_a_word_and_a_long_one_a_code() -> None:
    assert identifiers("does DNS or the API send SIGTERM?") == ("SIGTERM",)
