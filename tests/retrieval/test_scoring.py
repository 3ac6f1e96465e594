"""The metrics, on answers made by hand; and the set, which must be what its scores claim to be about."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.retrieval import asking, report
from tests.retrieval.__main__ import main
from tests.retrieval.asking import Kept, Run
from tests.retrieval.dataset import KINDS, Kind, Memory, Question, load_memories, load_questions
from tests.retrieval.scoring import CEILINGS, FLOORS, LIMIT, Answered, Hit, Scorecard, scored, shortfalls

MEMORIES = load_memories()
QUESTIONS = load_questions()
BY_KEY = {memory.key: memory for memory in MEMORIES}

LEAST: dict[Kind, int] = {
    "identifier": 30,
    "multilingual": 12,
    "temporal": 8,
    "paraphrase": 15,
    "multihop": 8,
    "update": 24,
    "unanswerable": 30,
    "decision": 10,
    "reason": 10,
    "lesson": 10,
    "error": 10,
    "preference": 10,
}

IDS = st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=LIMIT)


def answered(ids: str, gold: str = "", kind: Kind = "lesson", **changes: Any) -> Answered:
    """An answer whose ids are letters, abstained where there are none."""
    fields: dict[str, Any] = {
        "question": Question(kind=kind, text="?", gold=tuple(gold)),
        "hits": tuple(Hit(memory_id=one, score=1.0) for one in ids),
        "abstained": not ids,
        "took_ms": 1.0,
        "golds": frozenset(gold),
    }
    return Answered(**fields | changes)


def update(ids: str, newest: str = "n", stale: str = "s") -> Answered:
    return answered(ids, newest, "update", newest=newest, stale=stale)


@pytest.mark.parametrize(
    ("ids", "gold", "at_5", "at_10"),
    [
        ("axxxx", "a", 1, 1),
        ("vwxyza", "a", 0, 1),
        ("vwxyabcdeb", "ab", 0.5, 1),
        ("vwxyz", "a", 0, 0),
        ("", "a", 0, 0),
        ("ab", "abcd", 0.5, 0.5),
    ],
)
def test_recall_is_the_share_of_golds_among_the_first(ids: str, gold: str, at_5: float, at_10: float) -> None:
    one = answered(ids, gold)
    assert (one.recall(5), one.recall(10)) == (at_5, at_10)


@pytest.mark.parametrize(
    ("ids", "gold", "rank"), [("abc", "a", 1), ("abc", "cb", 1 / 2), ("abc", "z", 0), ("", "a", 0)]
)
def test_the_reciprocal_rank_is_that_of_the_first_gold(ids: str, gold: str, rank: float) -> None:
    assert answered(ids, gold).reciprocal_rank() == rank


@given(IDS, st.sets(st.sampled_from("abcdefghijkl"), min_size=1))
def test_more_places_never_find_less(ids: list[str], golds: set[str]) -> None:
    one = answered("".join(ids), "".join(sorted(golds)))
    found = [one.recall(places) for places in range(1, LIMIT + 1)]
    assert found == sorted(found)
    assert (one.reciprocal_rank() > 0) == (found[-1] > 0)


@pytest.mark.parametrize(
    ("ids", "is_above"),
    [("ns", True), ("xns", True), ("n", True), ("sn", False), ("s", False), ("", False), ("xy", False)],
)
def test_the_newest_is_above_when_it_was_found_and_nothing_stale_comes_first(
    ids: str,
    is_above: bool,  # noqa: FBT001
) -> None:
    assert update(ids).is_newest_above() is is_above


def test_an_update_that_was_merged_into_what_it_changes_tells_nobody_what_holds() -> None:
    assert not update("n", stale="n").is_newest_above()


def test_each_share_is_over_the_questions_that_it_is_about() -> None:
    card = scored(
        [
            answered("a", "a", "identifier"),
            answered("vwxyab", "ab", "identifier"),
            answered("", "a", took_ms=9.0),
            answered("b", kind="unanswerable"),
            answered("", kind="unanswerable"),
            answered("", kind="unanswerable"),
            update("ns"),
            update("sn"),
        ]
    )
    assert card.identifiers == 1 / 2
    assert card.unanswerable_abstained == 2 / 3
    assert card.answerable_abstained == 1 / 5
    assert card.newest_above_stale == 1 / 2
    assert card.query_p50_ms == 1.0
    assert card.overall.questions == 5
    assert card.recall_5 == (1 + 1 / 2 + 0 + 1 + 1) / 5
    assert card.overall.recall_10 == 4 / 5
    assert {kind: recall.questions for kind, recall in card.kinds.items()} == {
        "lesson": 1,
        "identifier": 2,
        "update": 2,
    }
    assert card.kinds["update"].mrr == 3 / 4


def test_a_share_of_no_questions_is_none() -> None:
    card = scored([answered("a", "a")])
    assert (card.identifiers, card.unanswerable_abstained, card.newest_above_stale) == (None, None, None)


def test_what_falls_short_is_a_miss() -> None:
    good = [answered("a", "a"), answered("", kind="unanswerable"), update("ns"), answered("xxa", "a")]
    bad = [
        answered("a", "a", abstained=True),
        answered("vwxyza", "a"),
        answered("x", kind="unanswerable"),
        update("sn"),
        answered("", "a"),
        answered("a", "ab"),
    ]
    assert [one.is_miss() for one in (*good, *bad)] == [False] * len(good) + [True] * len(bad)


def test_floors_and_ceilings_are_kept_or_named() -> None:
    card = scored([answered("a", "a"), answered("", "a")])
    assert shortfalls(card, {"recall_5": 50.0}, {"answerable_abstained": 50.0}) == []
    assert shortfalls(card, {"recall_5": 50.1}, {}) == ["recall_5 is 50.0 %, the floor is 50.1 %"]
    assert shortfalls(card, {}, {"answerable_abstained": 49.0}) == [
        "answerable_abstained is 50.0 %, the ceiling is 49 %"
    ]
    assert shortfalls(card, {"identifiers": 100.0}, {}) == [], "nothing was asked"


def test_every_floor_is_of_a_figure_that_the_report_shows() -> None:
    assert {*FLOORS, *CEILINGS} == {*report.LABELS}
    assert all(name == "recall_5" or name in Scorecard.__struct_fields__ for name in report.LABELS)


class PaperDaemon:
    """Takes whatever says "twice" for what it has, and finds everything, newest first."""

    def __init__(self) -> None:
        self.stored: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        if method == "memory.store":
            is_new = "twice" not in params["content"]
            if is_new:
                self.stored.append(params)
            return {
                "memory_id": f"mem-{len(self.stored)}",
                "outcome": "stored" if is_new else "duplicate",
                "redacted": [],
            }
        self.asked.append(params)
        results = [{"memory_id": f"mem-{number}", "score": 0.5} for number in range(len(self.stored), 0, -1)]
        return {"results": results, "abstained": not results, "degraded": "keyword"}


def test_what_was_merged_is_found_by_the_id_that_answers_for_it() -> None:
    daemon = PaperDaemon()
    memories = [
        Memory(key=key, content=f"{key} {word}", event_type="memory", session_id="s")
        for key, word in (("a", ""), ("b", "twice"), ("c", ""))
    ]
    kept = asking.store(daemon.call, memories)
    questions = [
        Question(kind="lesson", text="what is b?", gold=("b",), project="shop"),
        Question(kind="update", text="c or a?", gold=("c",), newest="c", stale="a"),
    ]
    answers, degraded = asking.ask(daemon.call, questions, kept)
    assert [(one.key, one.memory_id, one.outcome) for one in kept] == [
        ("a", "mem-1", "stored"),
        ("b", "mem-1", "duplicate"),
        ("c", "mem-2", "stored"),
    ]
    assert daemon.asked == [{"limit": LIMIT, "all": True, **question.parameters()} for question in questions]
    assert daemon.asked[0] == {
        "limit": 10,
        "all": True,
        "text": "what is b?",
        "mode": "hybrid",
        "project": "shop",
    }
    assert [hit.keys for hit in answers[0].hits] == [("c",), ("a", "b")]
    assert answers[0].golds == {"mem-1"}
    assert answers[0].recall(5) == 1
    assert answers[1].is_newest_above()
    assert degraded == 2


def test_the_report_names_misses_and_what_was_merged() -> None:
    kept = [
        Kept(key="a", memory_id="a", outcome="stored", redacted=("token",)),
        Kept(key="b", memory_id="a", outcome="duplicate"),
    ]
    answers = [answered("a", "a"), update("sn")]
    run = Run(card=scored(answers), kept=kept, answers=answers, degraded=1)
    short, long = ("\n".join(report.lines(run, is_verbose=is_verbose)) for is_verbose in (False, True))
    assert "b is duplicate: a answers for it" in short
    assert "a has lost what looks like a secret: token" in short
    assert "1 answers were degraded" in short
    assert long.startswith(short)
    assert long.count("wanted:") == 1
    assert (
        "update: ?\n    wanted: n\n     1. 1.000 (not of the set) s\n  *  2. 1.000 (not of the set) n" in long
    )


def test_the_command_says_so_where_there_is_no_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["retrieval"])
    assert main() == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert (
        printed.err
        == f"no embedding model is installed in {tmp_path}/omegad/models; `omegad model install` fetches"
        " one\n"
    )


def test_the_command_says_so_where_no_daemon_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["retrieval", "--socket", str(tmp_path / "none")])
    assert main() == 3
    assert "no omegad answers" in capsys.readouterr().err


def test_the_set_is_large_enough_to_tell_something() -> None:
    assert len(MEMORIES) >= 230
    assert len(QUESTIONS) >= 150
    counted = Counter(question.kind for question in QUESTIONS)
    assert {kind: counted[kind] for kind in KINDS if counted[kind] < LEAST[kind]} == {}


def test_every_key_is_one_memory_and_every_text_is_said_once() -> None:
    assert len(BY_KEY) == len(MEMORIES)
    assert len({memory.content for memory in MEMORIES}) == len(MEMORIES)
    assert len({(question.text, question.project) for question in QUESTIONS}) == len(QUESTIONS)


def test_every_gold_is_a_memory_within_the_scope_of_its_question() -> None:
    for question in QUESTIONS:
        keys = {*question.gold, *filter(None, (question.newest, question.stale))}
        assert keys <= BY_KEY.keys(), question
        assert len(question.gold) == len({*question.gold}), question
        assert question.project is None or {BY_KEY[key].project for key in keys} <= {question.project}, (
            question
        )
        assert (question.kind == "unanswerable") == (not question.gold), question


def test_an_update_names_a_stale_memory_that_was_stored_earlier() -> None:
    order = {memory.key: number for number, memory in enumerate(MEMORIES)}
    updates = [question for question in QUESTIONS if question.newest or question.stale]
    assert {question.kind for question in updates} == {"update"}
    assert len(updates) == sum(question.kind == "update" for question in QUESTIONS)
    for question in updates:
        assert question.newest in question.gold
        assert question.stale
        assert question.stale not in question.gold
        assert order[question.stale] < order[question.newest]


def test_the_set_is_as_mixed_as_memories_are() -> None:
    types = Counter(memory.event_type for memory in MEMORIES)
    assert len(types) >= 9
    assert max(types.values()) < len(MEMORIES) / 2
    assert len({memory.project for memory in MEMORIES}) == 6
    assert sum(memory.referenced_date is None for memory in MEMORIES) >= 30
    assert sum(len(memory.content) >= 1_500 for memory in MEMORIES) >= 10
    sessions = Counter(memory.session_id for memory in MEMORIES)
    assert sum(count > 1 for count in sessions.values()) >= 50
    assert 0.4 < sum(question.project is None for question in QUESTIONS) / len(QUESTIONS) < 0.6


def test_what_is_asked_for_by_name_stands_in_its_memory() -> None:
    """An identifier that is one word is in every memory that answers it, and nothing that is unanswerable
    is in any.
    """
    for question in QUESTIONS:
        if " " in question.text:
            continue
        named = {memory.key for memory in MEMORIES if question.text.casefold() in memory.content.casefold()}
        if question.kind == "identifier":
            assert {*question.gold} <= named, question
        elif question.kind == "unanswerable":
            assert not named, question
