"""What is shown beside the first result: what may answer as well, and of wordings of one fact one."""

import msgspec
import numpy as np
import pytest

from omegad.memory.events import ConflictOffered
from omegad.search import folding, results
from omegad.search.folding import Saying
from tests.builders import contradicted, rated, related, stored
from tests.searching import LATER_US, Searched, day

ONE_FACT = (
    "Billing runs on PostgreSQL 16",
    "The billing service uses PostgreSQL 16",
    "For billing it is PostgreSQL 16 that we run",
)
OTHER_FACTS = (
    "Billing runs on PostgreSQL 17",
    "Billing runs on MySQL 16",
    "Billing does not run on PostgreSQL 16",
    "Search runs on PostgreSQL 16",
)


def put_many(views: Searched) -> None:
    views.put("answer", "the nightly export times out unless fetch_size is 500")
    for number in range(9):
        views.put(f"other{number}", f"nightly walk number {number} through the harbour")


def test_what_is_far_less_likely_is_counted_and_not_shown(views: Searched) -> None:
    put_many(views)
    question = "why does the nightly export times out"
    cut, whole = (views.matches(question, all=which) for which in (False, True))
    assert [one.memory_id for one in cut.results] == ["answer"]
    assert len(whole.results) == len(cut.results) + cut.more == 10
    assert whole.more == 0
    assert whole.results[0] == cut.results[0]
    assert views.matches(question, all=False, limit=3).more == 2


def test_what_is_about_as_likely_stays(views: Searched) -> None:
    for number in range(3):
        views.put(f"m{number}", f"the export of shop{number} runs nightly, at {number} o'clock")
    question = "when does the export run nightly?"
    found = views.matches(question, all=False)
    assert (len(found.results), found.beyond) == (3, 0)
    one = views.matches(question, all=False, limit=1)
    assert (one.results, one.more, one.beyond) == (found.results[:1], 0, 2)
    assert views.matches(question, limit=1).beyond == 0


def test_what_is_far_less_likely_is_not_counted_beyond_the_limit(views: Searched) -> None:
    put_many(views)
    found = views.matches("why does the nightly export times out", all=False, limit=1)
    assert (len(found.results), found.more, found.beyond) == (1, 0, 0)


@pytest.mark.parametrize("question", ["what happened in March?", "what happened march", "was war März"])
def test_who_asks_for_whatever_is_of_a_time_is_shown_all_of_it(views: Searched, question: str) -> None:
    texts = ("the release was split", "what happened: a login test was mended", "a customer asked for SAML")
    for number, text in enumerate(texts):
        views.put(f"march{number}", text, at=day(61 + number))
        views.put(f"may{number}", text, at=day(125 + number))
    found = views.matches(question, now_us=day(200), all=False)
    assert sorted(one.memory_id for one in found.results) == ["march0", "march1", "march2"]


@pytest.mark.parametrize("mode", ["keyword", "phrase"])
def test_modes_of_words_alone_leave_nothing_out(views: Searched, mode: str) -> None:
    put_many(views)
    found = views.matches("nightly", mode=mode, all=False)
    assert (len(found.results), found.more) == (10, 0)


@pytest.mark.parametrize("proved", [None, "m0"])
def test_wordings_of_one_fact_are_one_result_the_best_proved_or_newest_in_front(
    views: Searched, proved: str | None
) -> None:
    for number, text in enumerate(ONE_FACT):
        views.show(stored(f"m{number}", text), project="p", session_id=None, occurred_at=day(number))
        views.embed(f"m{number}", ONE_FACT[0])
    if proved:
        views.show(rated(proved, 1))
    found = views.matches("what does billing run on?", all=False).results
    front = proved or "m2"
    assert [one.memory_id for one in found] == [front]
    assert sorted((front, *found[0].same)) == ["m0", "m1", "m2"]
    assert len(views.matches("what does billing run on?").results) == 3


def test_a_wording_that_may_deny_another_for_which_it_stands_is_not_said_to_deny_itself(
    views: Searched,
) -> None:
    for number, text in enumerate(ONE_FACT):
        views.show(stored(f"m{number}", text), project="p", session_id=None, occurred_at=day(number))
        views.embed(f"m{number}", ONE_FACT[0])
    views.show(ConflictOffered(memory_id="m2", target_id="m0", similarity=0.9))
    found = views.matches("what does billing run on?", all=False).results
    assert [one.memory_id for one in found] == ["m2"]
    assert [one.doubted_by for one in results.with_doubts(views.connection, found, day(4))] == [None]


@pytest.mark.parametrize("newer", ["dropped the builds that run in Bazel", "it is revert: builds in Bazel"])
def test_what_may_replace_another_is_shown_beside_it(newer: str) -> None:
    """As whoever stored it was asked, and however like both are to a third."""
    texts = ("the builds run in Bazel", newer, "we build in Bazel")
    sayings = [Saying(text, 0.0, number) for number, text in enumerate(texts)]
    assert sorted(map(sorted, folding.groups(sayings, np.ones((3, 3))))) == [[0, 2], [1]]


def test_what_somebody_said_denies_another_is_shown_beside_it(views: Searched) -> None:
    views.model = msgspec.structs.replace(views.model, beside=99.0)
    for number, text in enumerate(ONE_FACT):
        views.show(stored(f"m{number}", text), project="p", session_id=None, occurred_at=day(number))
        views.embed(f"m{number}", ONE_FACT[0])
    views.show(contradicted("m0", "m2"))
    found = views.matches("what does billing run on?", all=False).results
    assert {one.memory_id: one.same for one in found} == {"m2": ("m1",), "m0": ()}


def test_groups_keep_the_place_of_the_first_and_join_what_one_wording_joins() -> None:
    sayings = [Saying(text, 0.0, number) for number, text in enumerate(("a", *ONE_FACT, "b"))]
    cosines = np.eye(5)
    cosines[1, 3] = cosines[3, 1] = cosines[2, 3] = cosines[3, 2] = folding.SAME_COSINE
    assert folding.groups(sayings, cosines) == [[0], [3, 2, 1], [4]]


@pytest.mark.parametrize("other", OTHER_FACTS)
def test_what_differs_in_a_number_a_name_or_a_sign_is_not_the_same(other: str) -> None:
    sayings = [Saying(ONE_FACT[0], 0.0, 0), Saying(other, 0.0, 1)]
    assert folding.groups(sayings, np.ones((2, 2))) == [[0], [1]]


@pytest.mark.parametrize(
    ("limit", "groups"), [("twenty", [[0], [1]]), ("15", [[1, 0]]), ("fifteen", [[1, 0]])]
)
def test_a_number_in_words_is_a_number(limit: str, groups: list[list[int]]) -> None:
    texts = (
        "Sessions expire after fifteen minutes of silence",
        f"After {limit} minutes in which nobody said a word a session is over",
    )
    sayings = [Saying(text, 0.0, number) for number, text in enumerate(texts)]
    assert folding.groups(sayings, np.ones((2, 2))) == groups


def test_turns_of_a_conversation_and_long_texts_are_never_the_same() -> None:
    turns = [Saying(text, 0.0, number, is_spoken=True) for number, text in enumerate(ONE_FACT)]
    texts = [Saying(text * 30, 0.0, number) for number, text in enumerate(ONE_FACT)]
    for sayings in (turns, texts):
        assert len(folding.groups(sayings, np.ones((3, 3)))) == 3


def test_a_question_in_a_conversation_brings_what_answered_it(views: Searched) -> None:
    views.model = msgspec.structs.replace(views.model, beside=0.0)
    for place, text in enumerate(
        ("Anna: why did the deploy of the shop fail?", "Bert: a certificate", "Anna: how nice, that deploy")
    ):
        views.put(f"turn {place}", text, session_id="s")
    views.put("note", "the deploy of the shop takes an hour")
    assert views.found("why did the deploy of the shop fail?", all=False) == ["turn 0", "turn 1"]


def test_what_follows_a_turn_that_asks_nothing_stays_behind(views: Searched) -> None:
    views.model = msgspec.structs.replace(views.model, beside=0.0)
    for place, text in enumerate(("Anna: the deploy of the shop failed", "Bert: a certificate")):
        views.put(f"turn {place}", text, session_id="s")
    assert views.found("why did the deploy of the shop fail?", all=False) == ["turn 0"]


def test_what_may_take_the_place_of_the_first_is_found_by_its_edges_and_not_through_its_project(
    views: Searched,
) -> None:
    views.put("old", "the export runs nightly")
    looked: list[str] = []
    views.connection.set_trace_callback(looked.append)
    results.with_doubts(views.connection, views.find("when does the export run?"), LATER_US)
    views.connection.set_trace_callback(None)
    (sql,) = [one for one in looked if "edges AS e" in one and "related" in one]
    steps = [row[3] for row in views.plans(sql)]
    assert [one for one in steps if "edges_by_target" in one], steps
    assert [one for one in steps if "memories_by_project" in one] == []


@pytest.mark.parametrize(
    ("text", "kind", "cosine", "is_told"),
    [
        ("the export runs hourly", "decision", 0.9, True),
        ("the export runs hourly", "lesson_learned", 0.9, False),
        ("we removed the walk through the harbour", "decision", 0.6, False),
    ],
)
def test_what_is_near_and_of_its_type_may_take_the_place_of_the_first(
    views: Searched, text: str, kind: str, cosine: float, *, is_told: bool
) -> None:
    views.put("old", "the export runs nightly", event_type="decision", at=day(1))
    views.show(stored("new", text, event_type=kind), project="p", session_id=None, occurred_at=day(2))
    views.show(related("new", ("old", cosine)))
    found = views.find("when does the export run?", limit=1)
    told = results.with_doubts(views.connection, [one for one in found if one.memory_id == "old"], day(3))
    assert [one.doubted_by for one in told] == ["new" if is_told else None]
