"""What ranking asks of a candidate, read off the views; and that things are found by their names."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.memory_types import BUILT_IN
from omegad.queries.search.details import PART_OF_NAME, Asked, asked, details, statements
from omegad.queries.search.question import understood
from omegad.queries.search.ranking import DAY_US, Details
from omegad.queries.search.renewal import SHORT
from tests.builders import START_US, at_most, contradicted, deleted, edited, promoted, queried, rated, repeated
from tests.queries.searching import LATER_US, Searched, day

NOW_US = LATER_US


@pytest.fixture
def views() -> Iterator[Searched]:
    made = Searched()
    yield made
    made.connection.close()


def ask(text: str) -> Asked:
    return asked(understood(text, NOW_US), text)


def known(views: Searched, row: int, question: str = "", now_us: int = NOW_US) -> Details:
    return details(views.connection, [row], ask(question), views.types, now_us)[row]


def held(content: str, question: str) -> float:
    """Return the share of a question's identifiers that a content holds."""
    views = Searched()
    found = known(views, views.store("a", content), question)
    views.connection.close()
    return found.identifiers


# --- what is read off a row ---------------------------------------------------------------------------------------------------------------


def test_what_is_known_of_a_memory_is_read_off_its_row(views: Searched) -> None:
    row = views.store("a", "Anna: we no longer use Redis because of load?", event_type="decision", priority=5, at=START_US)
    views.show(rated("a", 2), repeated("a"), queried(("a", 0.9)))
    found = known(views, row, "why did Anna drop it?", START_US + 10 * DAY_US)
    assert (found.is_author_named, found.is_question, found.gives_reason, found.announces_change) == (True, True, True, True)
    assert (found.characters, found.priority, found.rating, found.uses, found.times_found) == (45, 5, 2, 3, 1)
    assert (found.kind_weight, found.decays) == (BUILT_IN["decision"].weight, BUILT_IN["decision"].decays)
    assert found.age_days == pytest.approx(10)
    assert (found.on_probation, found.denied_by, found.is_in_period) == (False, None, False)


def test_a_row_that_is_not_there_yet_is_left_out(views: Searched) -> None:
    row = views.store("a", "alpha")
    assert details(views.connection, [row, 999], ask("x"), views.types, NOW_US).keys() == {row}
    assert details(views.connection, [], ask("x"), views.types, NOW_US) == {}


def test_a_reason_counts_only_where_one_is_asked_for(views: Searched) -> None:
    row = views.store("a", "it is so because it is so")
    assert known(views, row, "why is it so?").gives_reason
    assert not known(views, row, "is it so?").gives_reason


def test_an_author_counts_only_where_they_are_named(views: Searched) -> None:
    row, nobody = views.store("a", "Caroline: hello"), views.store("b", "hello")
    assert known(views, row, "what did Caroline say?").is_author_named
    assert not known(views, row, "what did Melanie say?").is_author_named
    assert not known(views, nobody, "what did Caroline say?").is_author_named


def test_it_idles_since_it_was_last_said_and_ages_since_it_was_stored(views: Searched) -> None:
    row = views.store("a", "alpha", at=START_US)
    views.show(repeated("a"), occurred_at=day(30))
    found = known(views, row, now_us=day(40))
    assert [found.age_days, found.idle_days] == pytest.approx([40, 10])
    assert known(views, row, now_us=START_US - DAY_US).age_days == 0.0


def test_a_memory_is_of_the_time_it_speaks_of_or_else_was_stored(views: Searched) -> None:
    march = "what happened in March 2026?"
    stored_then, told_later = views.store("a", "alpha", at=day(70)), views.store("b", "beta", at=day(200), referenced_at=day(70))
    told_then = views.store("c", "gamma", at=day(70), referenced_at=START_US)
    assert [known(views, row, march).is_in_period for row in (stored_then, told_later, told_then)] == [True, True, False]
    assert not known(views, stored_then, "what happened?").is_in_period
    assert [known(views, row).dated_us for row in (told_later, told_then)] == [day(70), START_US]


def test_a_window_holds_its_first_moment_and_not_its_last(views: Searched) -> None:
    rows = [views.store(f"m{number}", "x", referenced_at=moment) for number, moment in enumerate((day(1) - 1, day(1), day(2) - 1, day(2)))]
    assert [known(views, row, "on 2026-01-02").is_in_period for row in rows] == [False, True, True, False]


@pytest.mark.parametrize(
    ("changes", "is_permanent"), [({}, True), ({"ttl_seconds": 60}, False), ({"on_probation": True}, False), ({"event_type": "checkpoint"}, True)]
)
def test_what_has_no_end_and_was_asked_for_is_permanent(views: Searched, changes: dict[str, Any], *, is_permanent: bool) -> None:
    row = views.store("a", "alpha", **changes)
    assert known(views, row).is_permanent is is_permanent


def test_probation_ends_with_a_promotion_and_a_denial_with_the_memory_that_denies(views: Searched) -> None:
    row = views.store("a", "alpha", on_probation=True)
    denying = views.store("b", "not alpha")
    views.show(contradicted("a", "b"))
    found = known(views, row)
    assert (found.on_probation, found.denied_by) == (True, denying)
    views.show(promoted("a"), deleted("b"))
    found = known(views, row)
    assert (found.on_probation, found.denied_by, found.is_permanent) == (False, None, True)


def test_what_denies_a_memory_counts_for_a_question_about_how_things_are(views: Searched) -> None:
    row, denying = views.store("a", "alpha"), views.store("b", "not alpha")
    views.show(contradicted("a", "b"))
    assert known(views, row, "is it alpha now?").denied_by == denying
    for question in ("was it alpha before?", "why is it alpha?", "was it alpha in March 2026?"):
        assert known(views, row, question).denied_by is None


def test_words_in_common_with_tags_and_project_count_up_to_a_bound(views: Searched) -> None:
    row = views.store("a", "alpha", tags=("billing", "tax"), auto_tags=("python",), project="/src/shop-api")
    overlaps = [known(views, row, text).overlap for text in ("bread", "the billing", "shop billing", "shop billing tax python", "THE and of")]
    assert overlaps == [0.0, 0.5, 1.0, 1.0, 0.0]


def test_an_edit_is_read_as_it_says_now(views: Searched) -> None:
    row = views.store("a", "Anna: see exporter.py")
    views.show(edited("a", "Bert: see importer.py"))
    assert known(views, row, "exporter.py").identifiers == 0.0
    assert known(views, row, "importer.py, says Bert").identifiers == 1.0
    assert known(views, row, "importer.py, says Bert").is_author_named


def test_statements_are_short_and_not_turns_of_a_conversation(views: Searched) -> None:
    contents = ["the api listens on 8080", "Anna: the api listens on 8080", "x" * SHORT, "the port was moved"]
    rows = [views.store(f"m{number}", content) for number, content in enumerate(contents)]
    found = details(views.connection, rows, ask("x"), views.types, NOW_US)
    assert statements(views.connection, rows[::-1], found) == [contents[3], None, None, contents[0]]
    assert statements(views.connection, [], {}) == []


# --- identifiers --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "question", "share"),
    [
        ("see src/jobs/exporter.py", "where is exporter.py?", 1.0),
        ("see test_exporter.py", "where is exporter.py?", PART_OF_NAME),
        ("the exporter is in py", "where is exporter.py?", 0.0),
        ("EXPORTER.PY", "exporter.py", 1.0),
        ("class PaymentGateway:", "PaymentGateway", 1.0),
        ("class PaymentGatewayFactory:", "PaymentGateway", PART_OF_NAME),
        ("the payment gateway", "PaymentGateway", PART_OF_NAME),
        ("payment_gateway()", "PaymentGateway", PART_OF_NAME),
        ("paymentGateway", "payment_gateway", PART_OF_NAME),
        ("payment and then a gateway", "PaymentGateway", 0.0),
        ("uses numpy 1.26.4", "1.26.4", 1.0),
        ("uses numpy 11.26.4", "1.26.4", 0.0),
        ("v1.2.30 is out", "is v1.2.3 out?", 0.0),
        ("error E1101 again", "E1101", 1.0),
        ("error E11012 again", "E1101", 0.0),
        ("https://example.org/a?b=c", "https://example.org/a?b=c", 1.0),
        ("run it with --dry-run", "--dry-run", 1.0),
        ("run it with --dry-run-all", "--dry-run", PART_OF_NAME),
        ("alpha.py", "alpha.py or beta.py", 0.5),
        ("a.b (c) [d] *e*", "what of a.b and c_x?", 0.5),
        ("", "alpha.py", 0.0),
        ("alpha.py", "no name at all", 0.0),
        ("使用config.py", "config.py", 1.0),
    ],
)
def test_a_content_holds_a_name_as_it_is_written_or_as_part_of_another(content: str, question: str, share: float) -> None:
    assert held(content or "x", question) == pytest.approx(share)


@given(st.text(st.sampled_from("aB1_./-\\()[]*+?^$|設 é"), max_size=60), st.text(st.sampled_from("aB1_./-\\()[]*+?^$|設 é"), min_size=1, max_size=40))
def test_any_name_can_be_looked_for_in_any_content(content: str, question: str) -> None:
    assert 0.0 <= held(content or "x", question) <= 1.0


def test_a_pasted_log_is_looked_for_as_quickly_as_any_question(views: Searched) -> None:
    """Of 8,192 characters, nearly every word of which names a thing, in as many long memories as are refined."""
    line = '  File "/usr/lib/python3/site-packages/pkg{0}/mod_{0}.py", line {0}, in call_{0}: E{0}\n'
    question = "".join(line.format(number) for number in range(100, 250))[:8_192]
    rows = [views.store(f"m{number}", f"see src/mod_{number}.py and so on " * 500) for number in range(60)]
    with at_most(2):
        details(views.connection, rows, ask(question), views.types, NOW_US)


def test_contents_of_nothing_but_names_are_looked_through_quickly(views: Searched) -> None:
    content = " ".join(f"aB{number}" for number in range(6_000))
    rows = [views.store(f"m{number}", f"{content} {number}") for number in range(60)]
    with at_most(1.5):
        details(views.connection, rows, ask("what is in aB17.py?"), views.types, NOW_US)


# --- found by name ------------------------------------------------------------------------------------------------------------------------

NAMED = {
    "path": "the nightly job lives in src/jobs/exporter.py",
    "test": "the nightly job is tested in test_exporter.py",
    "camel": "PaymentGateway raises when the card is declined",
    "snake": "call load_user_settings before anything else",
    "version": "we are pinned to numpy 1.26.4 for now",
    "other version": "we were pinned to numpy 1.24.1 for a while",
    "url": "the docs are at https://docs.example.org/api/v2/users",
    "error": "sqlite3.OperationalError: database is locked, when two writers meet",
    "code": "the linter reports E1101 there, wrongly",
    "flag": "pass --no-verify only when the hook is broken",
    "env": "the port comes from OMEGAD_SOCKET_PORT",
    "cjk": "データベースは毎晩六時に復元されます",
    "glued": "配置在config.toml中设置",
    "korean": "배포스크립트는파이프라인에서만실행합니다",
    "plain": "the bakery opens at six in the morning",
}


@pytest.fixture(scope="module")
def named() -> Iterator[Searched]:
    made = Searched()
    for name, content in NAMED.items():
        made.put(name, content, at=START_US)
    yield made
    made.connection.close()


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("exporter.py", "path"),
        ("what does exporter.py do?", "path"),
        ("src/jobs/exporter.py", "path"),
        ("jobs/exporter.py", "path"),
        ("test_exporter.py", "test"),
        ("PaymentGateway", "camel"),
        ("payment gateway", "camel"),
        ("gateway", "camel"),
        ("payment_gateway", "camel"),
        ("load_user_settings()", "snake"),
        ("loadUserSettings", "snake"),
        ("user settings", "snake"),
        ("which numpy: 1.26.4", "version"),
        ("numpy 1.24.1", "other version"),
        ("https://docs.example.org/api/v2/users", "url"),
        ("docs.example.org", "url"),
        ("database is locked", "error"),
        ("sqlite3.OperationalError", "error"),
        ("OperationalError", "error"),
        ("what is E1101?", "code"),
        ("--no-verify", "flag"),
        ("OMEGAD_SOCKET_PORT", "env"),
        ("$OMEGAD_SOCKET_PORT", "env"),
        ("データベース", "cjk"),
        ("復元", "cjk"),
        ("config.toml", "glued"),
        ("设置", "glued"),
        ("在config.toml中", "glued"),
        ("파이프라인", "korean"),
    ],
)
def test_a_thing_is_found_by_its_name(named: Searched, question: str, name: str) -> None:
    assert named.found(question, mode="keyword")[0] == name


def test_a_file_comes_before_the_file_whose_name_ends_in_its_name(views: Searched) -> None:
    views.put("test", "the nightly job is in test_exporter.py", at=START_US)
    views.put("path", "the nightly job is in src/jobs/exporter.py", at=START_US)
    for mode in ("hybrid", "keyword"):
        assert views.found("exporter.py", mode=mode) == ["path", "test"], mode
