"""In which order: what speaks for a memory, and which of several tells how things are."""

from typing import Any

import pytest

from omegad.memory.types import BUILT_IN
from omegad.runtime.times import EPOCH, MICROSECOND
from tests.builders import (
    START_US,
    contradicted,
    deleted,
    edited,
    promoted,
    queried,
    rated,
    repeated,
    stored,
    superseded,
)
from tests.searching import DAY_US, MODES, Searched, day, ids, stages_of

YEAR_ON_US = START_US + 400 * DAY_US
TEXT = "the export job runs at noon"
QUESTION = "why does the export job run"  # which prefers nobody for being new

LIFTED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "type": (QUESTION, {}, {"event_type": "decision"}),
    "priority": (QUESTION, {}, {"priority": 5}),
    "author": ("when does Anna run the export job", {"text": f"Bert: {TEXT}"}, {"text": f"Anna: {TEXT}"}),
    "period": ("did the export job run in March 2026", {"at": day(10)}, {"at": day(70)}),
    "day after": ("did the export job run on 11.03.2026", {"at": day(10)}, {"at": day(70)}),
    "referenced": ("did the export job run in March 2026", {}, {"referenced_at": day(70)}),
    "project": ("why does the shop export job run", {"project": "p"}, {"project": "shop"}),
    "tags": ("why does the billing export job run", {"tags": ("other",)}, {"tags": ("billing",)}),
    "identifiers": (
        "why is src/jobs/exporter.py",
        {"text": f"{TEXT} exporter"},
        {"text": f"{TEXT} src/jobs/exporter.py"},
    ),
    "in a row": ("why a red export job", {"text": "a job to export red"}, {"text": "a red export job to"}),
    "wish": (
        "when should I run the export job",
        {"text": f"Anna: I know that {TEXT}", "session_id": "s"},
        {"text": f"Anna: I love that {TEXT}", "session_id": "t"},
    ),
    "probation": (QUESTION, {"on_probation": True}, {}),
}


@pytest.mark.parametrize(("question", "plain", "special"), LIFTED.values(), ids=LIFTED.keys())
def test_of_two_that_are_else_alike_the_one_comes_first_that_something_speaks_for(
    views: Searched, question: str, plain: dict[str, Any], special: dict[str, Any]
) -> None:
    for name, given in (("plain", plain), ("special", special)):
        rest: dict[str, Any] = {"at": START_US, **given}
        views.put(name, rest.pop("text", TEXT), **rest)
    for mode in ("hybrid", "keyword"):
        assert views.found(question, mode=mode, now_us=YEAR_ON_US)[0] == "special", mode


LIFTING = {
    "helpful": rated("b", 1),
    "outdated": rated("a", -1),
    "said again": repeated("b"),
    "found": queried(("b", 0.9)),
}
STILL = {
    "contradicted": contradicted("a", "b"),
    "denied": contradicted("a", "c"),
    "promoted": promoted("b"),
}


@pytest.mark.parametrize("what", [*LIFTING, *STILL])
def test_what_happens_to_a_memory_moves_it_but_a_flag_does_not(views: Searched, what: str) -> None:
    for name, text in (("a", TEXT), ("b", TEXT), ("c", "the bakery opens at six")):
        views.put(name, text, at=START_US)
    for mode in MODES[:3]:
        assert views.found(QUESTION, mode=mode)[0] == "a", "equals are in the order in which they were stored"
    views.show((LIFTING | STILL)[what])
    for mode in MODES[:3]:
        assert views.found(QUESTION, mode=mode)[0] == ("b" if what in LIFTING else "a"), mode


def test_a_contradiction_by_what_is_older_is_told_and_changes_no_score(views: Searched) -> None:
    for number in range(6):
        views.put(f"m{number}", f"{TEXT} {number}", at=day(number))
    before = views.find("when does the export job run", explain=True)
    views.show(contradicted(before[3].memory_id, before[0].memory_id))
    after = views.find("when does the export job run", explain=True)
    assert [(one.memory_id, one.score, one.explanation) for one in after] == [
        (one.memory_id, one.score, one.explanation) for one in before
    ]
    assert [one.contradicted_by for one in after] == [*[None] * 3, before[0].memory_id, None, None]
    assert after[3].conflict is not None
    assert before[0].content in after[3].conflict
    assert [one.conflict for one in after if one is not after[3]] == [None] * 5
    views.show(deleted(before[0].memory_id))
    again = views.find("when does the export job run")
    assert [one.conflict for one in again] == [None] * 5, "what was deleted is shown nowhere"


@pytest.mark.parametrize("mode", MODES)
def test_the_stages_of_a_score_add_up_to_it(views: Searched, mode: str) -> None:
    for number in range(30):
        given: dict[str, Any] = {
            "event_type": ("memory", "decision", "checkpoint")[number % 3],
            "priority": 1 + number % 5,
        }
        text = f"{('', 'Anna: ')[number % 2]}alpha beta{number % 7} of job_{number}.py was raised to {number}"
        views.put(
            f"m{number}",
            text,
            at=day(7 * number),
            session_id=f"s{number % 9}",
            on_probation=number % 4 == 0,
            **given,
        )
    views.show(rated("m3", 2), *[rated("m4", -2)] * 8)
    for question in (
        "alpha beta3",
        "what is alpha beta2 of job_9.py?",
        "why did Anna raise beta4 in February?",
        "job_9.py",
    ):
        found = views.find(question, now_us=YEAR_ON_US, limit=30, explain=True, mode=mode)
        assert [one for one in found if abs(sum(stages_of(one).values()) - one.score) > 1e-9] == []
        assert found[:1] == [] or found[0].score == pytest.approx(
            views.matches(question, YEAR_ON_US, mode=mode).confidence, abs=1e-6
        )
    assert views.find("job_9.py", mode=mode)
    assert all(one.explanation is None for one in views.find("alpha beta3"))


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_only_what_fades_is_the_weaker_for_its_age(views: Searched, kind: str) -> None:
    views.put("a", TEXT, event_type=kind, at=START_US, ttl_seconds=None)
    young, old = (stages_of(views.find(QUESTION, now_us=day(days), explain=True)[0]) for days in (1, 3_000))
    assert (young.get("strength", 0.0) > old.get("strength", 0.0)) is BUILT_IN[kind].decays


@pytest.mark.parametrize("mode", MODES)
def test_the_score_of_the_first_is_the_confidence_however_little_the_weights_give_it(
    views: Searched, mode: str
) -> None:
    views.put("near", "the deploy runs", at=START_US)
    views.put("far", "deploy at night", at=START_US)
    views.show(*[rated(name, -2) for name in ("near", "far")] * 4)
    found = views.matches("the deploy runs", mode=mode, explain=True)
    assert ids(found.results) == ["near", "far"][: len(found.results)]
    assert found.results[0].score == pytest.approx(found.confidence, abs=1e-6)
    assert [one for one in found.results if abs(sum(stages_of(one).values()) - one.score) > 1e-9] == []


# --- how things are, and how they were ------------------------------------------------------------


def test_what_was_told_the_day_after_is_shown_only_where_nothing_is_of_the_day_that_is_asked_for(
    views: Searched,
) -> None:
    views.put("today", "what we did: some work on the cache", at=day(200), event_type="decision", priority=5)
    questions = ("what did we do yesterday?", "was haben wir gestern gemacht?", "yesterday")
    now_us = day(200) + DAY_US // 4

    def answers() -> list[tuple[list[str], bool]]:
        found = [views.matches(question, now_us, all=False) for question in questions]
        return [(ids(one.results), one.nothing_of is not None) for one in found]

    assert answers() == [(["today"], True)] * 3
    views.put("yesterday", "the pipeline was split in two", at=day(199), event_type="memory", priority=1)
    assert answers() == [(["yesterday"], False)] * 3


OLDER, NEWER = "the api server listens on port 8080", "the api server listens on port 9090"
NOW = "which port does the api server listen on?"


def put_versions(views: Searched, older: str = OLDER, newer: str = NEWER, **given: Any) -> None:
    """Put two memories of one matter that do not fade, the older of which something speaks for; in sessions
    of their own, unless one is given.
    """
    sessions = {"older": {"session_id": "s-1"} | given, "newer": {"session_id": "s-2"} | given}
    views.put("older", older, at=START_US, event_type="constraint", **sessions["older"])
    views.put("newer", newer, at=day(300), event_type="constraint", **sessions["newer"])
    views.show(rated("older", 1))


@pytest.mark.parametrize(
    "question", [NOW, "what is the current port of the api server", "the api server listens on port"]
)
def test_a_question_about_how_things_are_is_answered_with_the_newest(views: Searched, question: str) -> None:
    put_versions(views)
    found = views.find(question, now_us=YEAR_ON_US, explain=True)
    assert ids(found) == ["newer", "older"]
    assert [stages_of(one).get("newer", 0.0) > 0 for one in found] == [True, False]


UNLIFTED: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "how it was": ("which port did the api server originally listen on?", OLDER, NEWER, {}),
    "before": ("which port did the api server listen on before?", OLDER, NEWER, {}),
    "a reason": ("why does the api server listen on port 8080?", OLDER, NEWER, {}),
    "another time": ("which port did the api server listen on in January 2026?", OLDER, NEWER, {}),
    "one session": (NOW, OLDER, NEWER, {"session_id": "s"}),
    "turns": (NOW, f"Anna: {OLDER}", f"Anna: {NEWER}", {}),
    "a turn after a statement": (NOW, OLDER, f"Anna: {NEWER}", {}),
    "another file": (
        "which nightly job lives in exporter.py?",
        "the nightly job lives in jobs/exporter.py",
        "the nightly job lives in jobs/test_exporter.py",
        {},
    ),
    "another matter": (NOW, OLDER, "bread needs flour, water, salt and patience at port night", {}),
}


@pytest.mark.parametrize(("question", "older", "newer", "given"), UNLIFTED.values(), ids=UNLIFTED.keys())
def test_what_is_new_is_not_lifted_where_it_replaces_nothing(
    views: Searched, question: str, older: str, newer: str, given: dict[str, Any]
) -> None:
    put_versions(views, older, newer, **given)
    for mode in ("hybrid", "keyword"):
        found = views.find(question, now_us=YEAR_ON_US, explain=True, mode=mode)
        assert found[0].memory_id == "older" or newer.startswith("Anna"), mode
        assert all("newer" not in stages_of(one) for one in found), mode


@pytest.mark.parametrize("newer", ["Port: the api server listens on 9090 by now", f"ARM: {NEWER}"])
def test_a_note_that_begins_like_a_turn_is_none_where_there_is_no_session(
    views: Searched, newer: str
) -> None:
    put_versions(views, OLDER, newer, session_id=None)
    assert views.found(NOW, now_us=YEAR_ON_US) == ["newer", "older"]


def test_the_newest_may_follow_although_it_lacks_the_name_that_is_asked_for(views: Searched) -> None:
    put_versions(
        views,
        "the retry limit is five attempts for each customer of the shop (exporter.py)",
        "the retry limit is nine attempts for each customer of the shop",
    )
    found = views.find("which limit has exporter.py for each customer of the shop", now_us=YEAR_ON_US)
    assert ids(found) == ["newer", "older"]


def test_what_holds_little_of_the_question_is_not_lifted_for_being_alike_and_new(views: Searched) -> None:
    question = "after a long walk along the quiet canal tell me: what is the size of the festival"
    views.show(stored("size", "its size: large"), occurred_at=day(1), session_id=None)
    views.show(stored("place", "its site: oslo"), occurred_at=day(2), session_id=None)
    views.embed("size", f"{question} a1 a2 a3 a4 a5 a6 a7")
    views.embed("place", f"{question} b1 b2 b3 b4 b5 b6 b7")
    found = views.find(question, now_us=YEAR_ON_US, explain=True, project=None)
    assert ids(found) == ["size", "place"]
    assert all("newer" not in stages_of(one) for one in found)


@pytest.mark.parametrize(("of_question", "best"), [(8, "newer"), (2, "older")], ids=["near", "far"])
def test_what_is_far_from_the_question_is_not_lifted_for_being_like_what_is_near(
    views: Searched, of_question: int, best: str
) -> None:
    asked = [f"q{number}" for number in range(10)]
    shared = " ".join(f"a{number}" for number in range(10))
    views.show(stored("older", "its size is large"), occurred_at=day(1), session_id=None)
    views.show(stored("newer", "its site is oslo"), occurred_at=day(2), session_id=None)
    views.embed("older", " ".join([*asked, shared]))
    views.embed("newer", " ".join([*asked[:of_question], shared]))
    found = views.find(" ".join(asked), now_us=YEAR_ON_US, explain=True, project=None)
    assert found[0].memory_id == best
    assert [stages_of(one).get("newer", 0.0) > 0 for one in found] == [best == "newer", False]


def test_nothing_is_lifted_among_texts_that_the_model_does_not_tell_apart(views: Searched) -> None:
    for number in range(7):
        views.put(f"m{number}", f"gamma delta epsilon zeta eta theta {number}", at=day(number))
    found = views.find("gamma delta epsilon zeta eta theta 3", now_us=YEAR_ON_US, explain=True)
    assert all("newer" not in stages_of(one) for one in found)


def test_what_was_said_again_lately_is_as_new_as_that(views: Searched) -> None:
    put_versions(views)
    views.show(edited("older", OLDER), occurred_at=day(390))
    views.embed("older", OLDER)
    assert views.found(NOW, now_us=YEAR_ON_US) == ["older", "newer"]


def test_what_the_question_names_exactly_is_not_displaced_by_what_has_come_since(views: Searched) -> None:
    views.put("old", "the build needs hatchling 1.25 or newer", at=START_US)
    views.put("new", "the build needs hatchling 1.27 or newer", at=day(300))
    views.show(contradicted("old", "new"))
    assert views.found("which hatchling does the build need", now_us=YEAR_ON_US)[0] == "new"
    assert views.found("hatchling 1.25", now_us=YEAR_ON_US)[0] == "old"


def test_what_took_anothers_place_is_found_where_that_was(views: Searched) -> None:
    """Also over several; not where what it replaced is deleted."""
    for number, text in enumerate(("unit tests use unittest", "we moved to nose", "pytest it is now")):
        views.put(f"m{number}", text, at=day(number))
    views.put("other", "the audit trail has a framework")
    question = "which framework do unit tests use"
    assert views.found(question)[0] == "m0"
    views.show(superseded("m0", "m1"), superseded("m1", "m2"))
    first = views.find(question, explain=True)[0]
    assert (first.memory_id, stages_of(first)["coverage"] > 0) == ("m2", True)
    views.show(deleted("m0"))
    assert views.found(question)[0] == "other"


def test_what_took_the_place_of_many_is_found_for_itself_and_takes_no_room_of_others(views: Searched) -> None:
    for number in range(80):
        views.put(f"m{number}", f"deploy {number} of the export failed on rack {number}")
    views.put("many", "deploys of the export failed")
    views.put("old", "the export uses the kraken bucket")
    views.put("new", "files are brought by hand")
    views.show(*(superseded(f"m{number}", "many") for number in range(80)), superseded("old", "new"))
    assert views.found("where is the kraken bucket of the export")[0] == "new"


def test_what_was_replaced_is_not_what_is_of_a_time_in_place_of_what_replaced_it(views: Searched) -> None:
    views.put("old", "the retro dropped the weekly demo", at=day(40))
    morning_after = day(41) - day(41) % DAY_US + DAY_US // 3
    views.put("new", "the retro keeps the weekly demo, but on tuesdays", at=morning_after)
    asked = f"what happened on {(EPOCH + day(40) * MICROSECOND).date()}"
    assert views.found(asked, YEAR_ON_US)[0] == "old"
    views.show(superseded("old", "new"))
    (found,) = views.find(asked, YEAR_ON_US, explain=True)
    assert (found.memory_id, stages_of(found)["period"] > 0) == ("new", True)


@pytest.mark.parametrize("changes", [{"project": "other"}, {"ttl_seconds": 1}], ids=["elsewhere", "over"])
def test_what_took_the_place_of_what_is_of_another_project_or_over_is_found_for_itself_alone(
    views: Searched, changes: dict[str, Any]
) -> None:
    question = "which framework do unit tests use"
    views.put("old", "unit tests use unittest", at=day(1), **changes)
    views.put("new", "lunch comes from the harbour", at=day(2))
    before = views.matches(question, YEAR_ON_US, project="p").confidence
    views.show(superseded("old", "new"))
    assert views.matches(question, YEAR_ON_US, project="p").confidence == before


def test_what_denies_another_stands_above_it_however_little_it_says_of_the_question(views: Searched) -> None:
    put_versions(views, OLDER, "nothing listens on port 8080")
    found = views.find(NOW, now_us=YEAR_ON_US, all=True)
    assert ids(found) == ["older", "newer"]
    views.show(contradicted("older", "newer"))
    assert ids(views.find(NOW, now_us=YEAR_ON_US)) == ["newer", "older"]


def test_what_denies_another_is_found_with_it_however_far_behind_it_was(views: Searched) -> None:
    put_versions(views, OLDER, "the harbour gave up on it in spring")
    for number in range(20):
        views.put(f"m{number}", f"the api server listens to shop {number} on rack {number}", at=day(number))
    assert "newer" not in views.found(NOW, now_us=YEAR_ON_US, limit=3)
    views.show(contradicted("older", "newer"))
    assert views.found(NOW, now_us=YEAR_ON_US, limit=3)[:2] == ["newer", "older"]


def test_what_denies_another_is_found_with_it_where_all_else_is_nearer_to_the_question(
    views: Searched,
) -> None:
    put_versions(views, OLDER, "the harbour gave up on it in spring")
    views.put("newest", "the mayor took that back", at=day(390))
    for number in range(120):
        views.put(f"m{number}", f"the api server listens to shop {number} on rack {number}", at=day(number))
    views.show(contradicted("older", "newer"))
    assert views.found(NOW, now_us=YEAR_ON_US, limit=3)[:2] == ["newer", "older"]
    views.show(contradicted("newer", "newest"))
    assert views.found(NOW, now_us=YEAR_ON_US, limit=3) == ["newest", "newer", "older"]
    assert "newest" not in views.found(NOW, now_us=YEAR_ON_US, mode="keyword", limit=100)


def test_what_denies_another_stands_above_it_although_it_lacks_the_name_that_is_asked_for(
    views: Searched,
) -> None:
    put_versions(
        views,
        "the retry limit of exporter.py is five attempts for each customer of the shop",
        "the retry limit is nine attempts for each customer of the shop (importer.py)",
    )
    question = "which limit has exporter.py for each customer of the shop"
    assert views.found(question, now_us=YEAR_ON_US)[0] == "older"
    views.show(contradicted("older", "newer"))
    assert views.found(question, now_us=YEAR_ON_US)[0] == "newer"


def test_what_lacks_the_name_that_is_asked_for_and_names_another_does_not_replace_it(views: Searched) -> None:
    put_versions(
        views,
        "the retry limit is five attempts for each customer of the shop (exporter.py)",
        "the retry limit is nine attempts for each customer of the shop (importer.py)",
    )
    found = views.find("which limit has exporter.py for each customer of the shop", now_us=YEAR_ON_US)
    assert ids(found) == ["older", "newer"]
