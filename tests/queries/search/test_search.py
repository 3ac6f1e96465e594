"""The whole of a search: candidates from words and vectors, their order, and what an answer tells; over views that events have filled."""

from collections.abc import Iterator
from itertools import pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.memory_types import BUILT_IN, TTL_SECONDS_MAX, MemoryType, MemoryTypes
from omegad.queries import search
from omegad.queries.search import calibration, gathering, ranking
from omegad.queries.search.mirror import Mirror
from omegad.queries.search.ranking import Candidates, Ranked, Weights
from omegad.queries.search.renewal import COMPARED
from tests.builders import EMBEDDER, START_US, contradicted, deleted, edited, linked, promoted, queried, rated, repeated, stored, superseded
from tests.queries.searching import DAY_US, LATER_US, MODES, Searched, day, ids, stages_of

BUSY = MODES[:3]
YEAR_ON_US = START_US + 400 * DAY_US


@pytest.fixture(autouse=True)
def _everything_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests see the order of what would else be abstained from."""
    monkeypatch.setattr(calibration, "FLOOR", 0.0)


@pytest.fixture
def views() -> Iterator[Searched]:
    made = Searched()
    yield made
    made.connection.close()


# --- who is found -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", BUSY)
def test_what_shares_more_with_the_question_comes_first(views: Searched, mode: str) -> None:
    views.put("far", "bread is baked at night")
    views.put("near", "the build needs python")
    views.put("nearest", "which python does the build need: the build needs python 3.12")
    found = views.find("which python does the build need", mode=mode)
    assert ids(found)[:2] == ["nearest", "near"]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_words_alone_find_what_meaning_misses_and_the_other_way_round(views: Searched) -> None:
    views.put("a", "alpha beta gamma")
    views.put("b", "delta epsilon")
    assert views.found("delta", mode="keyword") == ["b"]
    assert views.found("zeta", mode="keyword") == []
    assert set(views.found("zeta", mode="semantic")) <= {"a", "b"}


def test_a_phrase_is_found_only_in_a_row(views: Searched) -> None:
    views.put("a", "the quick brown fox")
    views.put("b", "brown is the quick fox")
    assert views.found("quick brown", mode="phrase") == ["a"]


def test_a_phrase_that_is_denied_is_still_found_only_in_a_row(views: Searched) -> None:
    views.put("a", "the quick brown fox is red")
    views.put("b", "the fox is blue")
    views.show(contradicted("a", "b"))
    assert views.found("quick brown fox", mode="phrase") == ["a"]


def test_both_scores_of_a_candidate_are_known_whichever_index_found_it(views: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [views.put("by meaning", "noon noon"), views.put("by words", "zeppelin " + " ".join(f"word{number}" for number in range(15)))]
    for number in range(8):
        views.put(f"other {number}", f"bread is baked at noon and sold on day {number} of the week in the market hall")
    monkeypatch.setattr(gathering, "CANDIDATES", 1)
    ranked: list[Candidates] = []
    matched = ranking.matched

    def watched(known: Candidates, weights: Weights, count: int, *, must_match: bool) -> list[Ranked]:
        ranked.append(known)
        return matched(known, weights, count, must_match=must_match)

    monkeypatch.setattr(ranking, "matched", watched)
    found = [views.found("zeppelin noon", mode=mode, limit=1) for mode in ("semantic", "keyword", "hybrid")]
    assert found[:2] == [["by meaning"], ["by words"]]
    assert ranked[-1].ids.tolist() == rows
    assert min(*ranked[-1].cosine, *ranked[-1].bm25) > 0


def test_without_vectors_a_hybrid_search_is_one_by_words(views: Searched) -> None:
    for name, content in (("a", "the zeppelin flies at noon"), ("b", "bread is baked at night")):
        views.show(stored(name, content), session_id=None)
    assert views.found("zeppelin") == views.found("zeppelin", mode="keyword") == ["a"]


@pytest.mark.parametrize("text", ["", "?!", "\0", "the", "   "])
def test_a_question_without_words_has_an_answer_by_meaning_and_none_by_words(views: Searched, text: str) -> None:
    views.put("a", "alpha")
    for mode in MODES:
        assert views.matches(text or ".", mode=mode).confidence >= 0.0
    if text != "the":
        assert views.found(text or ".", mode="keyword") == []


def test_in_an_empty_store_nothing_is_found(views: Searched) -> None:
    for mode in MODES:
        found = views.matches("anything at all", mode=mode)
        assert (found.results, found.confidence) == ([], 0.0)


def test_what_was_hidden_or_has_expired_is_not_found(views: Searched) -> None:
    for name in ("kept", "deleted", "superseded", "expired", "lasting"):
        views.put(name, f"alpha {name}", at=START_US, ttl_seconds={"expired": 10, "lasting": 11}.get(name))
    views.show(deleted("deleted"))
    views.show(superseded("superseded", "kept"))
    for mode in BUSY:
        assert set(views.found("alpha", mode=mode, now_us=START_US + 10_000_000)) == {"kept", "lasting"}, mode
    assert set(views.found("alpha", now_us=START_US + 9_999_999)) == {"kept", "lasting", "expired"}


def test_a_very_long_time_to_live_is_for_ever(views: Searched) -> None:
    views.put("a", "alpha", ttl_seconds=TTL_SECONDS_MAX)
    assert views.found("alpha", mode="keyword") == ["a"]
    assert views.found("alpha") == ["a"]


def test_an_edit_changes_what_a_memory_is_found_by(views: Searched) -> None:
    views.put("a", "the zeppelin flies")
    views.put("b", "bread is baked")
    assert views.found("zeppelin flies")[0] == "a"
    views.show(edited("a", "submarines dive"))
    views.embed("a", "submarines dive")
    assert views.found("zeppelin flies", mode="keyword") == []
    assert views.found("zeppelin flies", mode="semantic")[:1] != ["a"]
    explanations = [one.explanation for one in views.find("zeppelin flies or submarines dive", explain=True)]
    assert explanations[0]
    assert explanations[0].cosine < 0.9
    assert views.found("submarines dive")[0] == "a"


def test_expired_memories_crowd_nobody_out(views: Searched) -> None:
    for number in range(gathering.CANDIDATES + 20):
        views.put(f"expired{number}", f"alpha {number}", at=START_US, ttl_seconds=1)
    views.put("kept", "some longer text with many other words in which alpha is but one of them")
    for mode in ("keyword", "hybrid", "phrase"):
        assert views.found("alpha", mode=mode) == ["kept"], mode


def test_a_reader_that_is_behind_the_mirror_answers_what_it_sees(views: Searched) -> None:
    views.put("a", "alpha")
    row = views.put("b", "alpha beta")
    assert set(views.found("alpha beta")) == {"a", "b"}
    views.connection.execute("DELETE FROM memories WHERE id = ?", (row,))
    views.connection.execute("DELETE FROM memories_fts WHERE rowid = ?", (row,))
    assert views.found("alpha beta") == ["a"]


def test_the_limit_is_kept(views: Searched) -> None:
    for number in range(90):
        views.put(f"m{number}", f"alpha {number}")
    for limit in (1, 7, 80):
        assert len(views.found("alpha", limit=limit)) == limit
    assert views.found("alpha 3", limit=7) == views.found("alpha 3", limit=20)[:7]


# --- in which order -----------------------------------------------------------------------------------------------------------------------


def test_scores_never_rise_and_nobody_is_there_twice(views: Searched) -> None:
    for number in range(40):
        views.put(f"m{number}", f"alpha beta{number % 7} gamma{number % 3}", session_id=f"s{number % 5}", at=day(number % 9))
    found = views.find("alpha beta1 gamma2", limit=40)
    assert all(one.score >= other.score for one, other in pairwise(found))
    assert len(found) == len(set(ids(found))) == 40


def test_scores_never_rise_beyond_those_that_are_compared_either(views: Searched) -> None:
    for number in range(COMPARED + 20):
        views.put(f"m{number}", "alpha beta", at=day(0 if number else 300))
    found = views.find("what is alpha beta now", now_us=YEAR_ON_US, limit=COMPARED + 20)
    assert len(found) == COMPARED + 20
    assert all(one.score >= other.score for one, other in pairwise(found))


def test_equals_are_in_the_order_in_which_they_were_stored(views: Searched) -> None:
    for name in ("c", "a", "b"):
        views.put(name, "alpha beta", at=START_US)
    for mode in BUSY:
        assert views.found("alpha beta", mode=mode) == ["c", "a", "b"], mode


def test_the_order_in_which_different_memories_were_stored_does_not_matter() -> None:
    texts = {"a": "alpha beta", "b": "alpha gamma delta", "c": "beta of the alpha", "d": "epsilon"}
    orders = set()
    for order in permutations(texts):
        views = Searched()
        for name in order:
            views.put(name, texts[name], at=START_US)
        orders.add(tuple(views.found("alpha beta gamma")))
        views.connection.close()
    assert len(orders) == 1


@pytest.mark.parametrize("mode", BUSY)
def test_the_stages_of_a_score_add_up_to_it(views: Searched, mode: str) -> None:
    for number in range(30):
        row: dict[str, Any] = {
            "session_id": f"s{number % 4}",
            "event_type": ("memory", "decision", "checkpoint")[number % 3],
            "priority": 1 + number % 5,
        }
        text = f"Anna: alpha beta{number % 7} of job_{number}.py was raised to {number} because of load"
        views.put(f"m{number}", text, at=day(7 * number), on_probation=number % 4 == 0, **row)
    views.show(rated("m3", 2), rated("m4", -2), contradicted("m5", "m6"), contradicted("m7", "m8"))
    for question in ("alpha beta3", "what is alpha beta2 of job_9.py now?", "why did Anna raise beta4 in February?"):
        found = views.find(question, now_us=YEAR_ON_US, limit=30, explain=True, mode=mode)
        assert found
        assert [one for one in found if abs(sum(stages_of(one).values()) - one.score) > 1e-9] == []
    assert all(one.explanation is None for one in views.find("alpha beta3"))


def test_the_stages_of_a_score_add_up_to_it_for_what_everything_speaks_against(views: Searched) -> None:
    words = " ".join(f"filler{number}" for number in range(80))
    views.put("best", "alpha beta gamma delta", at=START_US)
    views.put("denied", f"{words} alpha?", on_probation=True, priority=1, at=START_US)
    views.show(*[rated("denied", -2)] * 8, contradicted("denied", "best"))
    found = views.find("alpha beta gamma delta", explain=True)
    assert ids(found) == ["best", "denied"]
    for one in found:
        assert sum(stages_of(one).values()) == pytest.approx(one.score, abs=1e-9)


def test_a_type_that_counts_for_almost_nothing_is_answered_in_order_all_the_same() -> None:
    views = Searched(MemoryTypes({"rumour": MemoryType(weight=0.25)}))
    views.put("near", "alpha beta gamma", event_type="rumour", at=START_US)
    views.put("far", "alpha of another kind", event_type="rumour", at=START_US)
    found = views.find("alpha beta gamma", explain=True)
    assert ids(found) == ["near", "far"]
    assert found[0].score > found[1].score >= 0.0
    assert found[0].score == pytest.approx(views.matches("alpha beta gamma").confidence, abs=1e-6)


# --- what else moves a memory -------------------------------------------------------------------------------------------------------------

TEXT = "the export job runs at noon"


def order(views: Searched, question: str = "when does the export job run", **changes: Any) -> list[str]:
    return views.found(question, **changes)


def _put(views: Searched, name: str, given: dict[str, Any]) -> None:
    rest = {key: value for key, value in given.items() if key != "text"}
    views.put(name, given.get("text", TEXT), **{"at": START_US, **rest})


QUESTION = "when does the export job run"
LIFTED: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("type", QUESTION, {}, {"event_type": "decision"}),
    ("priority", QUESTION, {}, {"priority": 5}),
    ("author", "when does Anna run the export job", {"text": f"Bert: {TEXT}"}, {"text": f"Anna: {TEXT}"}),
    ("window", "did the export job run in March 2026", {"at": day(10)}, {"at": day(70)}),
    ("referenced", "did the export job run in March 2026", {}, {"referenced_at": day(70)}),
    ("project", "when does the shop export job run", {"project": "p"}, {"project": "shop"}),
    ("tags", "when does the billing export job run", {"tags": ("other",)}, {"tags": ("billing",)}),
    ("identifiers", "what does src/jobs/exporter.py do", {"text": f"{TEXT} exporter"}, {"text": f"{TEXT} src/jobs/exporter.py"}),
    ("reason", "why does the export job run at noon", {"text": f"{TEXT} as always"}, {"text": f"{TEXT} because of load"}),
    ("statement", QUESTION, {"text": f"{TEXT}?"}, {"text": f"{TEXT}."}),
    ("probation", QUESTION, {"on_probation": True}, {}),
]


@pytest.mark.parametrize(("question", "plain", "special"), [one[1:] for one in LIFTED], ids=[one[0] for one in LIFTED])
def test_of_two_that_are_else_alike_the_one_comes_first_that_something_speaks_for(
    views: Searched, question: str, plain: dict[str, Any], special: dict[str, Any]
) -> None:
    _put(views, "plain", plain)
    _put(views, "special", special)
    for mode in ("hybrid", "keyword"):
        assert order(views, question, mode=mode, now_us=YEAR_ON_US)[0] == "special", mode


@pytest.mark.parametrize(
    ("event", "best"),
    [
        (rated("b", 1), "b"),
        (rated("a", -1), "b"),
        (contradicted("a", "c"), "b"),
        (promoted("b"), "a"),
        (repeated("b"), "b"),
        (queried(("b", 0.9)), "a"),
    ],
    ids=["helpful", "outdated", "contradicted", "promoted", "said again", "only found"],
)
def test_what_happens_to_a_memory_moves_it(views: Searched, event: Any, best: str) -> None:
    for name in ("a", "b"):
        _put(views, name, {})
    _put(views, "c", {"text": "the bakery opens at six"})
    assert order(views)[0] == "a"
    views.show(event)
    assert order(views)[0] == best


def test_what_denies_a_memory_counts_only_while_it_is_there_itself(views: Searched) -> None:
    for name in ("a", "b"):
        _put(views, name, {})
    _put(views, "denial", {"text": "the bakery opens at six"})
    views.show(contradicted("a", "denial"))
    assert order(views)[0] == "b"
    views.show(deleted("denial"))
    assert order(views)[0] == "a"


def test_what_denies_a_memory_stands_in_its_place_where_the_question_asks_for_it(views: Searched) -> None:
    views.put("older", "the export job runs at noon", at=START_US)
    views.put("other", "the import job runs at night", at=START_US)
    views.put("denial", "everything was moved to the small hours", at=day(1), project="q")
    views.show(contradicted("older", "denial"))
    found = views.find("when does the export job run", explain=True)
    assert ids(found)[0] == "denial"
    assert "succeeds" in stages_of(found[0])
    assert "denial" not in views.found("when does the export job run", project="p")
    assert views.found("when did the export job run before", explain=True)[0] == "older"
    views.show(deleted("denial"))
    assert views.found("when does the export job run")[0] == "older"


@pytest.mark.parametrize("kind", sorted(BUILT_IN))
def test_what_is_permanent_is_not_neglected_and_what_is_exempt_does_not_fade(kind: str) -> None:
    views = Searched()
    views.put("a", TEXT, event_type=kind, at=START_US, ttl_seconds=None)
    young, old = (views.find("when did the export job run", now_us=START_US + days * DAY_US, explain=True)[0] for days in (1, 3_000))
    if not BUILT_IN[kind].decays:
        assert stages_of(young) == pytest.approx(stages_of(old))
    captured = Searched()
    captured.put("a", TEXT, event_type=kind, at=START_US, on_probation=True)
    loss = stages_of(old).get("strength", 0.0)
    neglected = stages_of(captured.find("when did the export job run", now_us=START_US + 3_000 * DAY_US, explain=True)[0])
    assert (neglected.get("strength", 0.0) < loss - 1e-6) is BUILT_IN[kind].decays


def test_the_best_of_a_session_lifts_the_rest_of_it(views: Searched) -> None:
    views.put("alone", "well, at noon then", session_id="t")
    views.put("lead", "when does the export job run at noon", session_id="s")
    views.put("beside", "well, at noon then", session_id="s")
    for mode in ("hybrid", "keyword"):
        assert order(views, "when does the export job run at noon", mode=mode) == ["lead", "beside", "alone"]


# --- how things are, and how they were ----------------------------------------------------------------------------------------------------

OLDER, NEWER = "the api server listens on port 8080", "the api server listens on port 9090"


@pytest.fixture
def versions(views: Searched) -> Searched:
    """Two memories of the same matter, the older of which is the better match."""
    views.put("older", OLDER, at=START_US)
    views.put("newer", NEWER, at=day(300))
    return views


@pytest.mark.parametrize(
    "question", ["which port does the api server listen on now?", "what is the current port of the api server", "the api server listens on port"]
)
def test_a_question_about_now_is_answered_with_the_newest(versions: Searched, question: str) -> None:
    found = versions.find(question, now_us=YEAR_ON_US, explain=True)
    assert ids(found) == ["newer", "older"]


@pytest.mark.parametrize(
    "question",
    [
        "which port did the api server originally listen on?",
        "which port did the api server listen on before?",
        "why does the api server listen on port 8080?",
        "which port did the api server listen on in January 2026?",
        "did the api server listen on port 8080?",
    ],
)
def test_a_question_about_then_or_about_a_reason_prefers_nobody_for_being_new(versions: Searched, question: str) -> None:
    found = versions.find(question, now_us=YEAR_ON_US, explain=True)
    assert set(ids(found)) == {"older", "newer"}
    assert all("newer" not in stages_of(one) for one in found)


def test_a_newer_memory_about_something_else_makes_nothing_outdated(views: Searched) -> None:
    views.put("older", OLDER, at=START_US)
    views.put("another", "bread needs flour, water, salt and patience on port night", at=day(300))
    assert views.found("which port does the api server listen on now?", now_us=YEAR_ON_US)[0] == "older"


def test_what_was_said_again_lately_is_as_new_as_that(versions: Searched) -> None:
    versions.show(edited("older", OLDER), occurred_at=day(390))
    versions.embed("older", OLDER)
    assert versions.found("which port does the api server listen on now?", now_us=YEAR_ON_US)[0] == "older"


def test_without_vectors_nobody_is_taken_for_outdated(versions: Searched) -> None:
    found = versions.find("which port does the api server listen on now?", now_us=YEAR_ON_US, mode="keyword", explain=True)
    assert all("newer" not in stages_of(one) for one in found)


# --- anything whatever --------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.sampled_from("ab c.py_設定?1A:"), min_size=1, max_size=30), min_size=1, max_size=6), st.text(min_size=1, max_size=60))
def test_any_question_of_any_memories_has_an_answer(contents: list[str], question: str) -> None:
    views = Searched()
    for number, content in enumerate(contents):
        views.put(f"m{number}", content, session_id=f"s{number % 2}")
    for mode in MODES:
        found = views.matches(question, mode=mode, limit=100, explain=True)
        assert 0.0 <= found.confidence <= 1.0
        assert len(set(ids(found.results))) == len(found.results)
        assert all(one.score >= other.score for one, other in pairwise(found.results))
    views.connection.close()


def test_the_position_of_an_answer_is_that_of_the_view_that_is_furthest_behind(views: Searched) -> None:
    views.connection.execute("CREATE TABLE checkpoints (name TEXT, position INTEGER)")
    views.connection.execute("INSERT INTO checkpoints VALUES ('memories', 9), ('vectors', 7), ('fulltext', 8), ('sessions', 9), ('audit', 1)")
    assert search.position(views.connection) == 7
    assert search.position(views.connection, ("memories",)) == 9


def test_a_new_mirror_answers_as_the_one_that_saw_everything_happen(views: Searched) -> None:
    for number in range(30):
        views.put(f"m{number}", f"alpha beta{number % 7}", session_id=f"s{number % 4}")
        if number % 5 == 0:
            views.show(deleted(f"m{number // 2}") if number % 2 else edited(f"m{number}", "gamma"))
        views.find("alpha beta3")
    before = views.find("alpha beta3", now_us=LATER_US, limit=30)
    views.mirror = Mirror(EMBEDDER)
    assert views.find("alpha beta3", now_us=LATER_US, limit=30) == before


def test_what_the_question_names_exactly_is_not_displaced_by_what_has_come_since(views: Searched) -> None:
    views.put("old", "the build needs hatchling 1.25 or newer", at=START_US)
    views.put("new", "the build needs hatchling 1.27 or newer", at=START_US + 300 * DAY_US)
    views.show(contradicted("old", "new"))
    assert order(views, "which hatchling does the build need", now_us=YEAR_ON_US)[0] == "new"
    assert order(views, "hatchling 1.25", now_us=YEAR_ON_US)[0] == "old"


def test_a_widened_search_follows_the_edges_of_the_best(views: Searched) -> None:
    views.put("deploy", "deploys go through the pipeline")
    views.put("coffee", "the coffee machine is on the second floor")
    views.put("hidden", "the tea is there too")
    views.show(linked("deploy", "coffee", "evolves", 0.8), linked("hidden", "deploy", "related", 1.0), deleted("hidden"))
    question = "how do deploys go through the pipeline"
    assert "linked" not in stages_of(views.find(question, explain=True)[-1])
    widened = views.find(question, widen=True, explain=True)
    assert ids(widened) == ["deploy", "coffee"]
    assert stages_of(widened[1])["linked"] > 0
    assert sum(stages_of(widened[1]).values()) == pytest.approx(widened[1].score)
    assert ids(views.find(question, widen=True, tags=("none",))) == []


def test_what_an_edge_led_to_is_judged_like_the_rest(views: Searched) -> None:
    views.put("deploy", "deploys go through pipeline.yml")
    views.put("coffee", "the coffee machine is on the second floor")
    views.show(linked("deploy", "coffee", "evolves", 1.0))
    assert ids(views.find("what does pipeline.yml do", widen=True)) == ["deploy", "coffee"]


# --- a time that the question names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
@pytest.mark.parametrize("then", ["stored", "told of"])
def test_what_is_of_the_time_that_is_named_is_found_among_many_that_match_better(views: Searched, mode: str, then: str) -> None:
    for number in range(100):
        views.put(f"other{number}", f"what was done by the team: step {number}", at=day(number % 90))
    views.put("wanted", "Anna mended the importer", at=day(95 if then == "stored" else 0), referenced_at=None if then == "stored" else day(95))
    assert "wanted" in views.found("what was done by the team 5 days ago?", mode=mode, now_us=day(100))
    assert "wanted" not in views.found("what was done by the team?", mode=mode, now_us=day(100))


def test_what_is_of_that_time_still_has_to_pass_the_filters(views: Searched) -> None:
    views.put("other", "alpha", at=day(5))
    views.put("wanted", "alpha", at=day(5), project="q")
    assert views.found("alpha 5 days ago", now_us=day(10), project="q") == ["wanted"]
    assert views.found("what was 5 days ago", now_us=day(10), project="q") == ["wanted"]


def test_of_the_memories_of_a_time_those_come_first_that_match(views: Searched) -> None:
    views.put("near", "the importer was slow", at=day(50))
    for number in range(5):
        views.put(f"far{number}", f"bread number {number} is baked", at=day(50))
    assert views.found("what of the importer in the last 2 days", now_us=day(51))[0] == "near"


def test_words_that_only_say_when_are_not_looked_for(views: Searched) -> None:
    views.put("says so", "a report is due every week, last thing on friday", at=day(0))
    views.put("is so", "the importer was slow", at=day(97))
    found = views.find("the importer, last week", now_us=day(100), explain=True)
    assert [one.memory_id for one in found if one.explanation and one.explanation.bm25 > 0] == ["is so"]


def test_a_time_that_no_memory_names_makes_no_answer_less_likely(views: Searched) -> None:
    views.put("a", "the importer was slow", at=day(0))
    plain, timed = (views.matches(f"was the importer slow{when}?", now_us=day(100)).confidence for when in ("", " in September 1999"))
    assert timed == pytest.approx(plain, abs=0.05)


def test_the_memories_of_a_time_are_found_by_an_index(views: Searched) -> None:
    for condition in ("m.status = 'active'", "m.status = 'active' AND (m.expires_us IS NULL OR m.expires_us > 1)"):
        plan = views.plan(gathering.OF_PERIOD.format(condition=condition), (0, 1, 10))
        assert "USING INDEX memories_by_day" in plan
        assert "TEMP B-TREE" not in plan


# --- what has no vector yet ---------------------------------------------------------------------------------------------------------------


def test_what_waits_for_its_vector_is_found_by_its_words_as_if_it_had_one(views: Searched) -> None:
    for number in range(40):
        views.put(f"embedded{number}", f"the nightly job number {number} writes a report about the week")
    for number in range(40):
        views.show(stored(f"waiting{number}", f"the zeppelin{number} collector listens on port {number}"), session_id=None)
    for number in (3, 17, 31):
        found = views.matches(f"which port does the zeppelin{number} collector listen on")
        assert ids(found.results)[0] == f"waiting{number}"
        assert found.confidence > calibration.floor(80)
        assert found.unembedded > 0


def test_what_waits_for_its_vector_stands_before_what_is_less_like_the_question(views: Searched) -> None:
    views.put("other", "which port does the collector listen on, somebody asked", at=START_US)
    views.show(stored("waiting", "the zeppelin collector listens on port 8080"), session_id=None, occurred_at=START_US)
    for number in range(20):
        views.put(f"m{number}", f"bread number {number} is baked at night", at=START_US)
    assert views.found("which port does the zeppelin collector listen on")[0] == "waiting"


def test_an_answer_tells_how_many_candidates_had_no_vector(views: Searched) -> None:
    views.put("embedded", "the zeppelin flies at noon")
    assert views.matches("zeppelin").unembedded == 0
    views.show(stored("waiting", "the zeppelin lands at six"), session_id=None)
    assert views.matches("zeppelin").unembedded == 1
    assert views.matches("zeppelin", mode="keyword").unembedded == 0


def test_what_stands_beside_a_memory_without_a_vector_must_pass_the_filters_too(views: Searched) -> None:
    views.put("embedded", "something else entirely")
    views.show(stored("found", "the zeppelin flies at noon"), stored("beside", "and then it lands"), session_id="s")
    views.show(stored("hidden", "and then it burns", event_type="decision"), session_id="s")
    assert set(views.found("zeppelin flies", event_types=("memory",))) - {"embedded"} == {"found", "beside"}


# --- how sure, by words alone -------------------------------------------------------------------------------------------------------------


def test_by_words_alone_an_answer_that_holds_the_telling_words_is_surer(views: Searched) -> None:
    for number in range(60):
        views.put(f"m{number}", f"the deploy of service{number} runs at noon")
    telling, common = (views.matches(text, mode="keyword") for text in ("deploy of service7", "deploy of the unheard Zeppelin in Friedrichshafen"))
    assert telling.results
    assert common.results
    assert telling.confidence > 0.8
    assert common.confidence < 0.3


def test_a_search_that_had_to_do_without_vectors_may_abstain_and_one_that_was_asked_to_may_not(
    views: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "FLOOR", 0.266)
    for number in range(60):
        views.put(f"m{number}", f"the deploy of service{number} runs at noon")
    sources = search.Sources(None, None, views.types)
    text = "deploy of the unheard Zeppelin in Friedrichshafen"
    assert search.search(views.connection, search.QueryMemory(text=text), sources, LATER_US).results == []
    assert search.search(views.connection, search.QueryMemory(text=text, mode="keyword"), sources, LATER_US).results
    assert search.search(views.connection, search.QueryMemory(text="deploy of service7"), sources, LATER_US).results


def test_a_question_of_nothing_but_a_time_is_answered_without_vectors_too(views: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "FLOOR", 0.266)
    views.put("then", "the deploy runs at noon", referenced_at=day(70))
    sources = search.Sources(None, None, views.types)
    assert ids(search.search(views.connection, search.QueryMemory(text="12 March 2026"), sources, YEAR_ON_US).results) == ["then"]


def test_what_differs_each_time_makes_no_match_less_sure(views: Searched) -> None:
    for number in range(60):
        views.put(f"m{number}", f"the deploy of service{number} runs at noon")
    views.put("error", "heap-use-after-free on an address in parse_row, fixed by copying the row")
    pasted, unheard = (
        views.matches(f"heap-use-after-free on address {part} in parse_row", mode="keyword") for part in ("0x60300000aaaa", "Zeppelin")
    )
    assert ids(pasted.results)[0] == "error"
    assert pasted.confidence > unheard.confidence + 0.05


# --- held exactly -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["#412", "88121", "minAvailable", "v0.9.4", "0.9.4"])
def test_what_alone_holds_a_name_comes_first_whatever_its_session_lifts(views: Searched, name: str) -> None:
    for number in range(60):
        views.put(f"m{number}", f"what changed in the release for the budget of event {number}", session_id="s")
    views.put("exact", "see #412 and 88121: minAvailable of the budget is 2 since v0.9.4, for evt_1PQrst", session_id="t")
    assert views.found(f"what changed in the release for {name}?")[0] == "exact"


def test_a_name_is_found_by_its_beginning(views: Searched) -> None:
    views.put("other", "the event was handled")
    views.put("begun", "the payment evt_1PQrstuv was handled twice")
    assert views.found("evt_1PQ", mode="keyword") == ["begun"]
    assert views.found("what of evt_1PQ?")[0] == "begun"


def test_a_long_memory_that_holds_the_rare_words_is_not_buried_by_a_short_one_that_holds_one(views: Searched) -> None:
    """BM25 alone gives it a sixth of the short one's score."""
    filler = " ".join(f"filler{number} went by and was noted" for number in range(600))
    views.put("long", f"{filler} the zeppelin collector needs the blue key", at=START_US)
    views.put("short", "the collector was late", at=START_US)
    for number in range(60):
        views.put(f"m{number}", f"bread number {number} is baked at night", at=START_US)
    words = {one.memory_id: stages_of(one)["words"] for one in views.find("which key does the zeppelin collector need", explain=True, limit=5)}
    assert words["long"] > 0.5 * words["short"]
