"""What a question tells about its answer beside its words."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omegad.runtime.times import EPOCH, MICROSECOND
from omegad.search.question import IDENTIFIERS_MAX, Question, identifiers, like, understood
from tests.builders import at_most

NOW = datetime(2026, 5, 20, 13, 30, tzinfo=UTC)
PRESENT = """
which database do we use?; what is the current default timeout?; are we still on Postgres?
what did we decide about retries?; what is new this week?
which tests are failing today?; how do we deploy?; the reasoning engine is slow
what must I run before a release?; which check comes before the merge?
how long does a session last?; who made the last release?; tell me
"""
PAST = """
have we had this before?; what did we run before the release was automatic?
what was the original port?; which port was it before the move?; what did the config previously say
which queue did we use to run at first?; Why?
when did we move to Postgres?; why do we use Postgres?; what is the reason for two queues?
what did we do in March 2024?
what happened to the export?; has the export ever failed?; what's the rationale for two queues
what was done yesterday?; as of v2, which port?
"""
NAMES = r"""
exporter.py src/jobs/exporter.py .env .gitignore /etc/hosts C:\temp\log.txt ~/.bashrc 3.12 1.5.20
https://example.org/a/b?c=d user@example.org --dry-run -v $HOME OMEGAD_HOME MAX_RETRIES E1101 ENOENT
SQLITE_BUSY TS2345 HTTPServerError parseConfig load_users std::vector #4711 utf8 a1b2c3d 8080
"""
NO_NAMES = """
; which database do we use, and why?; Caroline and I met in Paris; the well-known two-phase commit
12 of 7 in 2026 or in 1999; don't, can't
it's Anna's; ... -- / . _ !?; どのデータベース v; wait... what?
(parenthesised) [bracketed] {braced} <angled> *starred* `quoted`
a linter, e.g. or i.e. on a call
tabs and/or spaces; read-only/immutable; yes/no; the 3rd try; on 2026-03-04; at 10:30 or 11pm; 5/20/2026
50% of 3x; 200ms
does DNS or the API answer
"""


def entries(table: str) -> list[str]:
    return [text.strip() for text in table.strip().replace("\n", ";").split(";")]


def asked(text: str, now: datetime = NOW) -> Question:
    return understood(text, (now - EPOCH) // MICROSECOND)


@pytest.mark.parametrize(
    ("text", "is_past"),
    [*((text, False) for text in entries(PRESENT)), *((text, True) for text in entries(PAST))],
)
def test_a_question_is_about_the_past_or_a_reason_or_about_how_things_are(
    text: str, *, is_past: bool
) -> None:
    assert asked(text).is_past is is_past


@pytest.mark.parametrize("name", NAMES.split())
@pytest.mark.parametrize("around", ["{}", "what does {} do?", "is it `{}`, or what", "see ({}).", '"{}"'])
def test_what_names_a_thing_exactly_is_an_identifier_as_it_is_written(name: str, around: str) -> None:
    assert identifiers(around.format(name)) == (name,)


@pytest.mark.parametrize("text", entries(NO_NAMES))
def test_words_years_small_numbers_times_and_abbreviations_are_no_identifiers(text: str) -> None:
    assert identifiers(text) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("app.py calls db.py, and app.py's loader calls app.py", ("app.py", "db.py")),
        (
            "exporter.py:213 and src/app.ts:12:5 but http://localhost:8080",
            ("exporter.py", "src/app.ts", "http://localhost:8080"),
        ),
        ("does DNS send SIGTERM to v1.2.3?", ("SIGTERM", "1.2.3")),
        ("what of app.py in March 2024 or on 2024-03-05", ("app.py",)),
    ],
)
def test_an_identifier_is_told_once_in_order_without_its_place_and_a_version_without_its_v(
    text: str, found: tuple[str, ...]
) -> None:
    assert asked(text).identifiers == found


@pytest.mark.parametrize(
    ("text", "names", "proper"),
    [
        ("did Caroline tell bob about New York?", {"caroline", "new", "york"}, {"caroline", "new", "york"}),
        ("What did Zephyr do?", {"what", "zephyr"}, {"zephyr"}),
        ("how often is the DR drill?", {"dr"}, set()),
        ("welche Nummern sind lückenlos im Kreis", {"nummern", "kreis"}, set()),
        ("what is in exporter.py?", set(), {"exporter.py"}),
        ("nobody at all, i think", set(), set()),
    ],
)
def test_names_are_told_by_their_capitals_and_proper_ones_in_english_alone(
    text: str, names: set[str], proper: set[str]
) -> None:
    assert (set(asked(text).names), set(asked(text).proper)) == (names, proper)


@example("\u017fix days ago")
@example("f\u0130ve day\u017f ago")
@example("999 years ago")
@example("٢٠٢٦-٠٣-٠٤")
@example("January 9999")
@given(
    st.text(max_size=200)
    | st.text(
        st.sampled_from("in on 0123456789-may March ago last week day\u017f\u0130\u212a.,/\\'"), max_size=60
    )
    | st.lists(
        st.sampled_from(
            ["in", "March", "2026", "last", "week", "2", "days", "ago", "why", "x.py", "on", "8"]
        ),
        max_size=12,
    ).map(" ".join)
)
def test_any_text_is_understood(text: str) -> None:
    for now in (NOW, EPOCH, datetime(9999, 1, 1, tzinfo=UTC)):
        found = asked(text, now)
        assert len(found.identifiers) <= IDENTIFIERS_MAX
        assert found.period is None or found.period.start_us < found.period.end_us
        assert found.is_past or found.period is None or found.period.end_us > (now - EPOCH) // MICROSECOND


@pytest.mark.parametrize(
    "unit", ["in ", "may ", "aA", "1", "last ", "2026-", "_", " ", "why ", "a.b ", "(", "a/", "1:", "e."]
)
def test_no_question_takes_long(unit: str) -> None:
    with at_most(3):
        asked(unit * (256 * 1024 // len(unit)))


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("the limit is 1000 since v2.3 (https://example.org/a/b)", set()),
        ("see Importer.py and PaymentGateway", {"importer.py"}),
        ("src/jobs/nightly.py in E_LIMIT", {"src/jobs/nightly.py"}),
    ],
)
def test_a_text_names_files_beside_that_which_is_asked_for(text: str, alike: set[str]) -> None:
    assert like(("exporter.py",), text) == alike
