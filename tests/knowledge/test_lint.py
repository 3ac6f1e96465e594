"""The lint finds each defect that is planted in a store, and nothing else; and what was dismissed three
times it does not find.
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from omegad.knowledge.calibration import Calibration, calibration
from omegad.knowledge.events import FindingDismissed, Outcome, ThesisPredicted, ThesisResolved
from omegad.knowledge.lint import DAY_US, Finding, Lint, components, examine, lint
from omegad.knowledge.lint_report import RecurringLint
from omegad.log.event import Event
from omegad.memory.events import ConflictSettled
from omegad.memory.types import MemoryTypes
from omegad.reactions.contract import Reader
from omegad.requests.method import Moment
from omegad.runtime.config import Config
from omegad.session.habits import Habit
from omegad.storage.driver import Connection
from projections import (
    conflicts,
    conversations,
    dismissals,
    edges,
    feedback,
    memories,
    owners,
    retrievals,
    theses,
)
from tests.acceptance.conftest import PATIENCE_S, Home, daemon, home, homes, until
from tests.builders import (
    START_US,
    contradicted,
    edited,
    evidenced,
    linked,
    open_in_memory,
    queried,
    recorded,
    related,
    session_started,
    stored,
    superseded,
    thesis_stated,
    tool_called,
)

__all__ = ["daemon", "home", "homes"]

LATE_US = START_US + 100 * DAY_US
TYPES = MemoryTypes({})
VIEWS = (memories, edges, conflicts, retrievals, theses, feedback, conversations, dismissals, owners)


def shown(*events: Event) -> Connection:
    connection = open_in_memory()
    for projection in VIEWS:
        connection.executescript(projection.SCHEMA)
        for position, event in enumerate(events, 1):
            if isinstance(event, projection.EVENTS):
                for sql, values in projection.project(recorded(event, position, project="shop")):
                    connection.execute(sql, values)
    return connection


def findings(*events: Event, now_us: int = LATE_US) -> list[Finding]:
    connection = shown(*events)
    found = examine(connection, now_us, TYPES).findings
    connection.close()
    return found


def seen_by_query(*memory_ids: str, at: int = LATE_US) -> Event:
    return queried(*((memory_id, 0.9) for memory_id in memory_ids), query_id=f"q-{memory_ids}-{at}", at=at)


def vain(number: int, text: str = "how do we deploy?") -> Event:
    return queried(query_id=f"vain-{number}", text=text, at=LATE_US)


HEALTHY = (
    stored("a"),
    stored("b", "another", event_type="decision"),
    related("a", ("b", 0.7)),
    seen_by_query("a", "b"),
)


@pytest.mark.parametrize(
    ("planted", "rule", "ids"),
    [
        ((), None, ()),
        ((stored("o", "alone"),), "orphan", ("o",)),
        (
            (stored("d", "we use x", event_type="decision"), seen_by_query("d", at=START_US)),
            "stale_decision",
            ("d",),
        ),
        ((contradicted("a", "b"),), "contradiction", ("b", "a")),
        (
            (stored("c", "base"), seen_by_query("c"), linked("b", "c", "evolves"), superseded("c", "a")),
            "rests_on",
            ("b", "c"),
        ),
        (
            (stored("c", "base"), seen_by_query("c"), linked("b", "c", "evolves"), edited("c", "no base")),
            "rests_on",
            ("b", "c"),
        ),
        (
            (
                thesis_stated("th-1", memory_id="b", due_at=LATE_US - 1),
                evidenced("th-1", "ev-1", memory_id="a"),
            ),
            "thesis",
            ("th-1", "b"),
        ),
        ((vain(1), vain(2)), "asked_in_vain", ("how do we deploy?",)),
        ((stored("e", "Ada likes tea", entity_id="Ada"), seen_by_query("e")), "gap", ("Ada",)),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_each_defect_is_found_and_nothing_else(
    planted: Sequence[Event], rule: str | None, ids: tuple[str, ...]
) -> None:
    found = findings(*HEALTHY, *planted)
    assert [(one.rule, one.ids) for one in found] == ([] if rule is None else [(rule, ids)])
    assert all("omegad" in one.settle and one.text for one in found)
    if rule is not None:
        thrice = [FindingDismissed(rule=rule, ids=ids)] * 3
        assert len(findings(*HEALTHY, *planted, *thrice[:2])) == 1
        assert findings(*HEALTHY, *planted, *thrice) == []


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("b", "a")])
def test_what_is_settled_is_not_asked_and_what_is_asked_can_be_said(one: str, other: str) -> None:
    flags = (*HEALTHY, stored("c", "a third"), contradicted("a", "b"), contradicted("a", "c"))
    (found,) = findings(*flags)
    assert found.ids == ("c", "b", "a")
    assert found.settle == "omegad memory settle b a contradicts|supersedes|compatible"
    settled = ConflictSettled(memory_id=one, target_id=other, verdict="contradicts")
    (left,) = findings(*flags, settled)
    assert (left.ids, left.settle.split()[3:5]) == (("c", "a"), ["c", "a"])


def test_of_several_that_deny_each_other_a_pair_is_asked_about_that_does() -> None:
    third, fourth = stored("c", "a third"), stored("d", "a fourth")
    flags = (contradicted("a", "b"), contradicted("c", "d"), contradicted("c", "a"))
    (found,) = findings(*HEALTHY, third, fourth, seen_by_query("c", "d"), *flags)
    assert found.count == 4
    assert found.settle.startswith(("omegad memory settle b a ", "omegad memory settle d c "))


def test_what_was_answered_since_was_not_asked_in_vain() -> None:
    answered = queried(("a", 0.9), query_id="answered", text="How do we deploy? ", at=LATE_US)
    assert findings(*HEALTHY, vain(1), vain(2), answered) == []
    assert findings(*HEALTHY, vain(1), vain(2, "where do we deploy?")) == []


def test_where_nothing_was_ever_kept_nothing_is_asked_in_vain() -> None:
    connection = shown(*HEALTHY, vain(1), vain(2))
    assert [one.settle for one in examine(connection, LATE_US, TYPES).findings] == [
        'omegad store "the answer"'
    ]
    connection.execute("UPDATE retrieval_queries SET project = 'nowhere'")
    assert examine(connection, LATE_US, TYPES).findings == []
    connection.close()
    connection = shown(vain(1), vain(2))
    connection.execute("UPDATE retrieval_queries SET project = NULL")
    assert examine(connection, LATE_US, TYPES).findings == []
    connection.close()


def test_a_question_that_a_tool_asks_of_all_projects_as_well_is_asked_once() -> None:
    connection = shown(*HEALTHY, *map(vain, range(4)))
    connection.execute("UPDATE retrieval_queries SET project = NULL WHERE query_id IN ('vain-1', 'vain-3')")
    (twice,) = examine(connection, LATE_US, TYPES).findings
    assert "asked 2 times in vain" in twice.text
    connection.execute("DELETE FROM retrieval_queries WHERE query_id IN ('vain-2', 'vain-3')")
    assert examine(connection, LATE_US, TYPES).findings == []
    connection.close()


def test_one_call_of_omega_query_that_finds_nothing_was_asked_in_vain_once(daemon: Home) -> None:
    daemon.call("memory.store", content="Billing runs on PostgreSQL 16", project="shop")
    asked = {"query": "which font has the logo of zebras?"}

    def vain_at_all() -> list[str]:
        daemon.call("tools.call", name="omega_query", arguments=asked, session_id="s-1", project="shop")
        until(daemon.caught_up)
        found = daemon.call("lint.report")["findings"]
        return [one["text"] for one in found if one["rule"] == "asked_in_vain"]

    assert vain_at_all() == []
    assert len(vain_at_all()) == 1


def test_a_project_that_is_worked_on_without_decisions_is_a_gap() -> None:
    old_decision = stored("d", "we use x", event_type="decision")
    log = (old_decision, seen_by_query("d", at=START_US + 50 * DAY_US), session_started(), tool_called())
    early = START_US + 20 * DAY_US
    assert findings(*log, now_us=early) == []
    connection = shown(*log)
    connection.execute("UPDATE agent_sessions SET last_us = ?", (START_US + 45 * DAY_US,))
    found = examine(connection, START_US + 50 * DAY_US, TYPES).findings
    assert [(one.rule, one.ids) for one in found] == [("gap", ("shop",))]
    connection.close()


def test_predictions_worse_than_the_base_rate_are_a_finding_from_thirty_on() -> None:
    def judged(count: int) -> list[Event]:
        log = list[Event]()
        for number in range(count):
            thesis_id = f"th-{number}"
            log += [
                thesis_stated(thesis_id, memory_id="b"),
                ThesisPredicted(thesis_id=thesis_id, version=1, probability=0.9, due_at=None, criterion=None),
            ]
            log.append(
                ThesisResolved(
                    thesis_id=thesis_id, version=1, outcome="no" if number % 2 else "yes", source="seen"
                )
            )
        return log

    assert findings(*HEALTHY, *judged(29)) == []
    (one,) = findings(*HEALTHY, *judged(30))
    assert (one.rule, one.count) == ("calibration", 30)
    connection = shown(*HEALTHY, *judged(30))
    for project, rules in (("shop", ["calibration"]), ("depot", [])):
        assert [one.rule for one in examine(connection, LATE_US, TYPES, project).findings] == rules, (
            "those of the project alone"
        )
        answer = calibration(
            connection, Calibration(project=project), Moment(position=1, stale_by=0, now_us=LATE_US)
        )
        assert [one.n for one in answer.domains] == ([30] if rules else [])
    connection.close()


def settled(home: Home, finding: Any) -> None:
    """Run the command that a finding names, as a person does."""
    words = shlex.split(finding["settle"])
    assert words[0] == "omegad"
    done = subprocess.run(
        [sys.executable, "-m", *words],
        env=home.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, "")


def rests(home: Home) -> list[Any]:
    return [
        one
        for one in home.call("lint.report", project="shop", limit=100)["findings"]
        if one["rule"] == "rests_on"
    ]


def test_the_command_that_a_finding_of_what_rests_on_something_names_settles_it(daemon: Home) -> None:
    """And so does an edit of what rests on it, until what it rests on changes once more."""

    def stored_as(content: str) -> str:
        return str(
            daemon.call("memory.store", content=content, event_type="decision", project="shop")["memory_id"]
        )

    base, on_it, other = (
        stored_as("the ledger is in PostgreSQL"),
        stored_as("reports read a replica"),
        stored_as("exports are nightly"),
    )
    for memory_id in (on_it, other):
        daemon.call("memory.link", memory_id=memory_id, target_id=base, edge_type="evolves")
    stated = daemon.call("thesis.state", statement="full text search is enough", project="shop")
    daemon.call("thesis.evidence", thesis_id=stated["thesis_id"], memory_id=base, side="for")
    assert rests(daemon) == []
    daemon.call("memory.edit", memory_id=base, content="the ledger is in SQLite")
    assert {one["ids"][0] for one in rests(daemon)} == {on_it, other, stated["memory_id"]}
    daemon.call("memory.edit", memory_id=other, content="exports are hourly")
    assert {one["ids"][0] for one in rests(daemon)} == {on_it, stated["memory_id"]}
    daemon.call("memory.delete", memory_id=base)
    assert {one["ids"][0] for one in rests(daemon)} == {on_it, other, stated["memory_id"]}
    while found := rests(daemon):
        settled(daemon, found[0])
        assert len(rests(daemon)) == len(found) - 1
    daemon.check()


def test_a_habit_is_no_subject_of_a_gap() -> None:
    habit = Habit("after edits", "pytest -q").entity_id
    assert findings(*HEALTHY, stored("h", "Habit: …", entity_id=habit), seen_by_query("h")) == []


def test_the_report_is_kept_where_a_person_asks_for_that(daemon: Home) -> None:
    assert "nothing to keep" in daemon.shown("lint", "--save")
    daemon.call("memory.store", content="Ada likes tea", entity_id="Ada", project="shop")
    saved = json.loads(daemon.shown("lint", "--save", "--json"))["saved"]
    report = daemon.call("memory.get", memory_id=saved["memory_id"])
    assert (saved["outcome"], report["source"], report["event_type"]) == (
        "stored",
        "auto_lint",
        "advisor_insight",
    )
    assert "gap (1)" in report["content"]
    assert f"unchanged: report {saved['memory_id']}" in daemon.shown("lint", "--save")
    of_project = daemon.call("lint.save", project="shop")
    assert (of_project["outcome"], of_project["memory_id"] != saved["memory_id"]) == ("stored", True)
    daemon.call("memory.store", content="Bo likes coffee", entity_id="Bo", project="shop")
    again = daemon.call("lint.save")
    assert again["outcome"] == "stored"
    hidden = daemon.call("memory.get", memory_id=saved["memory_id"])
    assert hidden["superseded_by"] == again["memory_id"]
    daemon.check()


def test_each_gap_gets_a_research_task_once(daemon: Home) -> None:
    habit = Habit("after edits", "pytest -q").entity_id
    for entity in ("Ada", "Bo", habit):
        daemon.call("memory.store", content=f"{entity} is there", entity_id=entity, project="shop")
    assert "2 tasks put down; 0 gaps had theirs" in daemon.shown("lint", "--tasks")
    tasks = daemon.call("task.list")["tasks"]
    assert sorted(one["title"] for one in tasks) == [
        f"Research: of {entity} only 1 thing is known" for entity in ("Ada", "Bo")
    ]
    daemon.call("task.cancel", task_id=tasks[0]["task_id"], reason="never mind")
    again = daemon.shown("lint", "--tasks", "--project", "shop")
    assert "0 tasks put down; 2 gaps had theirs" in again
    assert "TASK" not in again
    assert daemon.call("lint.tasks")["tasks"] == []
    daemon.check()
    daemon.stop()
    daemon.paths.digest_key.unlink()  # as in a home that a backup was restored to
    daemon.start()
    assert daemon.call("lint.tasks")["tasks"] == []


def test_faded_memories_are_a_finding_where_they_are_most() -> None:
    log = [stored(f"m-{number}", f"fact {number}") for number in range(9)]
    log_of = [*log, related("m-0", *((f"m-{number}", 0.6) for number in range(9)))]
    found = findings(*log_of, now_us=START_US + 200 * DAY_US)
    assert [(one.rule, one.count) for one in found] == [("strength", 9)]


def test_components_are_those_of_a_graph() -> None:
    assert list(components([("a", "b"), ("c", "d"), ("b", "c"), ("x", "y"), ("y", "x")])) == [
        ("a", "b", "c", "d"),
        ("x", "y"),
    ]
    assert list(components([])) == []


def test_a_report_has_five_findings_and_says_how_many_there_are() -> None:
    planted = [
        stored(f"e-{number}", f"fact of {number}", entity_id=f"entity-{number}") for number in range(8)
    ]
    connection = shown(*HEALTHY, *planted, seen_by_query(*(f"e-{number}" for number in range(8))))
    report = lint(connection, Lint(), TYPES, Moment(position=3, stale_by=0, now_us=LATE_US))
    assert (len(report.findings), report.total, report.figures.memories) == (5, 8, 10)
    connection.close()


def commands(connection: Connection) -> list[Any]:
    return list(RecurringLint(7, TYPES).due(0, Reader(connection, LATE_US)))


def test_the_report_takes_the_place_of_the_last_and_is_left_out_where_nothing_changed() -> None:
    planted = (*HEALTHY, stored("o", "alone"))
    connection = shown(*planted)
    (first,) = commands(connection)
    connection.close()
    assert (first.event_type, first.source, first.supersedes) == ("advisor_insight", "auto_lint", ())
    assert "orphan (1)" in first.content
    assert "related to nothing" in first.metadata["findings"][0]["text"]
    report = stored(
        "report", first.content, event_type="advisor_insight", source=first.source, metadata=first.metadata
    )
    connection = shown(*planted, report)
    assert commands(connection) == []
    connection.close()
    connection = shown(*planted, report, stored("p", "alone as well"))
    (second,) = commands(connection)
    connection.close()
    assert second.supersedes == ("report",)
    assert "orphans 2 (+1)" in second.content
    connection = shown(*HEALTHY)
    assert commands(connection) == []
    connection.close()


def test_the_report_waits_for_a_slot_to_go_by_and_repeats_no_question() -> None:
    connection = shown(*HEALTHY, vain(1), vain(2))
    (command,) = commands(connection)
    assert "asked in vain (2)" in command.content
    assert "deploy" not in command.content
    assert list(RecurringLint(7, TYPES).due(0, Reader(connection, START_US + 3 * DAY_US))) == []
    assert Config().lint_days == 1
    connection.close()


def test_a_thesis_whose_memory_holds_no_longer_is_a_finding() -> None:
    (one,) = findings(
        *HEALTHY,
        thesis_stated("th-1", memory_id="b"),
        evidenced("th-1", "ev-1", memory_id="a"),
        superseded("b", "a"),
        now_us=START_US,
    )
    assert (one.rule, one.ids) == ("thesis", ("th-1", "b"))
    assert "said by a memory that is superseded: 0.50 (1 for, 0 against, 0 echoes)" in one.text


def test_predictions_of_no_domain_can_be_dismissed_like_any_other() -> None:
    log = list[Event]()
    for number in range(30):
        thesis_id = f"th-{number}"
        outcome: Outcome = "no" if number % 2 else "yes"
        log += [
            thesis_stated(thesis_id, memory_id="b", domain=None, prior=0.9),
            ThesisResolved(thesis_id=thesis_id, version=1, outcome=outcome, source="seen"),
        ]
    (one,) = findings(*HEALTHY, *log)
    assert (one.rule, one.ids) == ("calibration", ("no domain",))
    assert findings(*HEALTHY, *log, *[FindingDismissed(rule=one.rule, ids=one.ids)] * 3) == []


def test_a_long_question_is_known_by_what_a_dismissal_can_name() -> None:
    (one,) = findings(*HEALTHY, vain(1, "why? " * 100), vain(2, "why? " * 100))
    assert [len(name) for name in one.ids] == [256]
    assert (
        findings(
            *HEALTHY,
            vain(1, "why? " * 100),
            vain(2, "why? " * 100),
            *[FindingDismissed(rule=one.rule, ids=one.ids)] * 3,
        )
        == []
    )


@pytest.mark.parametrize("figures", [7, ["orphans"], {"orphans": "x"}, {"orphans": None}])
def test_what_only_looks_like_a_report_or_has_expired_is_in_the_way_of_none(figures: object) -> None:
    looks_so = {"event_type": "advisor_insight", "source": "auto_lint", "metadata": {"figures": figures}}
    expired, forged = (
        stored("over", "a report", ttl_seconds=60, **looks_so),
        stored("forged", "another", **looks_so),
    )
    connection = shown(*HEALTHY, stored("o", "alone"), expired, forged)
    (command,) = commands(connection)
    connection.close()
    assert (command.supersedes, "orphans 1," in command.content) == (("forged",), True)
