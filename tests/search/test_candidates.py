"""Who is found: candidates from words, vectors and sessions, as filters, expiry and edits leave them."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad import search
from omegad.memory.types import TTL_SECONDS_MAX
from omegad.search import QueryMemory, candidates, pipeline
from tests.builders import START_US, contradicted, deleted, edited, expired, linked, superseded
from tests.searching import LATER_US, MODES, Searched, day, ids, stages_of

BUSY = MODES[:3]


@pytest.mark.parametrize("mode", BUSY)
def test_what_shares_more_with_the_question_comes_first(views: Searched, mode: str) -> None:
    views.put("far", "bread is baked at night")
    views.put("near", "the build needs python")
    views.put("nearest", "which python does the build need: the build needs python 3.12")
    found = views.find("which python does the build need", mode=mode)
    assert ids(found)[:2] == ["nearest", "near"]
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_words_alone_find_what_meaning_misses_and_a_phrase_only_what_has_it_in_a_row(views: Searched) -> None:
    views.put("a", "the quick brown fox")
    views.put("b", "brown is the quick fox", session_id="s")
    views.put("c", "and the dog is lazy", session_id="s")
    views.show(contradicted("a", "b"))
    assert views.found("lazy dog", mode="keyword")[0] == "c"
    assert views.found("zeppelin", mode="keyword") == []
    assert set(views.found("zeppelin", mode="semantic")) == {"a", "b", "c"}
    assert views.found("quick brown", mode="phrase") == ["a"]


@pytest.mark.parametrize("mode", BUSY)
def test_of_a_project_and_of_none_is_what_has_that_project_or_none(views: Searched, mode: str) -> None:
    for memory_id, project in (("own", "p"), ("everywhere", None), ("other", "q")):
        views.put(memory_id, f"the build of {memory_id} needs python", project=project)
    asked = "what does the build need python for"
    assert set(views.found(asked, mode=mode, project="p", or_none=True)) == {"own", "everywhere"}
    assert views.found(asked, mode=mode, project="p") == ["own"]
    assert views.found(asked, mode=mode, project="nowhere", or_none=True) == ["everywhere"]
    assert set(views.found(asked, mode=mode, or_none=True)) == {"own", "everywhere", "other"}


def test_both_scores_of_a_candidate_are_known_whichever_index_found_it(
    views: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        views.put("by meaning", "noon noon"),
        views.put("by words", "zeppelin " + " ".join(f"word{number}" for number in range(15))),
    ]
    for number in range(8):
        views.put(
            f"other {number}",
            f"bread is baked at noon and sold on day {number} of the week in the market hall",
        )
    monkeypatch.setattr(candidates, "CANDIDATES", 1)
    assert [views.found("zeppelin noon", mode=mode, limit=1) for mode in ("semantic", "keyword")] == [
        ["by meaning"],
        ["by words"],
    ]
    query = search.QueryMemory(text="zeppelin noon", limit=1, all=True)
    seen = pipeline.observed(views.connection, query, views.sources(query), LATER_US).candidates
    assert seen.ids.tolist() == rows
    assert min(*seen.cosine, *seen.bm25) > 0


@pytest.mark.parametrize("text", ["?!", "\0", "   ", "the"])
def test_a_question_without_words_has_an_answer_by_meaning_and_none_by_words(
    views: Searched, text: str
) -> None:
    assert views.found(text) == views.found("anything at all") == []
    views.put("a", "alpha")
    assert views.found(text) == views.found(text, mode="semantic") == ["a"]
    assert views.found(text, mode="keyword") == views.found(text, mode="phrase") == []


@pytest.mark.parametrize("mode", MODES)
def test_what_was_hidden_or_has_expired_is_not_found(views: Searched, mode: str) -> None:
    lives = {"overdue": 10, "lasting": 11, "for ever": TTL_SECONDS_MAX}
    for name in ("kept", "deleted", "superseded", "expired", *lives):
        views.put(name, "alpha", at=START_US, ttl_seconds=lives.get(name))
    views.show(deleted("deleted"), superseded("superseded", "kept"), expired("expired"))
    assert set(views.found("alpha", mode=mode, now_us=START_US + 10_000_000)) == {
        "kept",
        "lasting",
        "for ever",
    }
    assert set(views.found("alpha", mode=mode, now_us=START_US + 9_999_999)) == {
        "kept",
        "lasting",
        "for ever",
        "overdue",
    }


def test_an_edit_changes_what_a_memory_is_found_by(views: Searched) -> None:
    views.put("a", "the zeppelin flies")
    views.put("b", "bread is baked")
    assert views.found("zeppelin flies")[0] == "a"
    views.show(edited("a", "submarines dive"))
    views.embed("a", "submarines dive")
    assert views.found("zeppelin flies", mode="keyword") == []
    assert views.found("submarines dive")[0] == "a"
    explanation = views.find("zeppelin flies", explain=True, limit=1)[0].explanation
    assert explanation
    assert explanation.cosine < 0.5


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "phrase"])
def test_expired_memories_crowd_nobody_out(views: Searched, mode: str) -> None:
    for number in range(candidates.CANDIDATES + 20):
        views.put(f"expired{number}", f"alpha {number}", at=START_US, ttl_seconds=1)
    views.put("kept", "some longer text with many other words in which alpha is but one of them")
    assert views.found("alpha", mode=mode) == ["kept"]


def test_a_reader_that_is_behind_the_index_answers_what_it_sees(views: Searched) -> None:
    views.put("a", "alpha")
    row = views.put("b", "alpha beta")
    assert set(views.found("alpha beta")) == {"a", "b"}
    views.connection.execute("DELETE FROM memories WHERE id = ?", (row,))
    views.connection.execute("DELETE FROM memories_fts WHERE rowid = ?", (row,))
    assert views.found("alpha beta") == ["a"]


@pytest.mark.parametrize("mode", MODES)
def test_no_more_are_answered_than_asked_for_and_the_limit_changes_no_order(
    views: Searched, mode: str
) -> None:
    for number in range(120):
        views.put(f"m{number}", f"alpha {number}")
    assert len(views.found("alpha", mode=mode, limit=100)) == 100
    assert views.found("alpha", mode=mode, limit=7) == views.found("alpha", mode=mode, limit=10)[:7]


@given(
    st.lists(st.text(st.sampled_from("ab c.py_設定?1A:"), min_size=1, max_size=30), min_size=1, max_size=6),
    st.text(min_size=1, max_size=60),
)
def test_any_question_of_any_memories_has_an_answer(contents: list[str], question: str) -> None:
    views = Searched()
    for number, content in enumerate(contents):
        views.put(f"m{number}", content, session_id=f"s{number % 2}")
    for mode in MODES:
        found = views.matches(question, mode=mode, limit=100, explain=True)
        assert 0.0 <= found.confidence <= 1.0
        assert len(set(ids(found.results))) == len(found.results)
        assert all(one.score >= other.score >= 0.0 for one, other in pairwise(found.results))
        assert all(abs(sum(stages_of(one).values()) - one.score) < 1e-9 for one in found.results)
    views.connection.close()


# --- beside each other, and linked ----------------------------------------------------------------


def test_what_stands_right_beside_a_memory_in_its_session_is_an_answer_too(
    views: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates, "CANDIDATES", 1)
    for name, text in (
        ("before", "and then she told us"),
        ("found", "the zeppelin flies at noon"),
        ("after", "that is all"),
        ("far", "nobody spoke"),
    ):
        views.put(name, text, session_id="s")
        views.put(f"elsewhere {name}", "in another session", session_id="t")
    found = views.found("zeppelin", mode="keyword")
    assert found[0] == "found"
    assert set(found) == {"found", "before", "after"}
    assert views.found("zeppelin flies", mode="phrase") == ["found"]


@pytest.mark.parametrize("is_embedded", [True, False])
def test_a_neighbour_that_is_hidden_or_filtered_out_is_no_answer(
    views: Searched, *, is_embedded: bool
) -> None:
    put = views.put if is_embedded else views.store
    put("before", "and then she told us about it", session_id="s", event_type="decision")
    put("found", "the zeppelin flies at noon", session_id="s")
    put("after", "that is all there was", session_id="s")
    for mode in ("hybrid", "keyword"):
        assert set(views.found("zeppelin", mode=mode, event_types=("memory",))) == {"found", "after"}
    views.show(deleted("after"))
    for mode in ("hybrid", "keyword"):
        assert views.found("zeppelin", mode=mode, event_types=("memory",)) == ["found"]


def test_the_best_of_a_session_lifts_the_rest_of_it(views: Searched) -> None:
    views.put("alone", "well, at noon then", session_id="t")
    views.put("lead", "why does the export job run at noon", session_id="s")
    views.put("beside", "well, at noon then", session_id="s")
    for mode in ("hybrid", "keyword"):
        assert views.found("why does the export job run at noon", mode=mode) == ["lead", "beside", "alone"]


def test_a_widened_search_follows_the_edges_of_the_best_within_the_filter(views: Searched) -> None:
    views.put("deploy", "deploys go through the pipeline")
    views.put("coffee", "the coffee machine is on the second floor")
    views.put("elsewhere", "the sugar is in the drawer", project="q")
    views.put("hidden", "the tea is there too")
    views.show(
        linked("deploy", "coffee", "evolves", 0.8),
        linked("hidden", "deploy"),
        linked("elsewhere", "deploy"),
        deleted("hidden"),
    )
    question = "deploys pipeline"
    assert views.found(question, mode="keyword") == ["deploy"]
    found = views.find(question, mode="keyword", widen=True, explain=True, project="p")
    assert ids(found) == ["deploy", "coffee"]
    assert stages_of(found[1]) == {"linked": found[1].score}
    assert set(views.found(question, mode="keyword", widen=True)) == {"deploy", "coffee", "elsewhere"}


# --- a time that the question names ---------------------------------------------------------------


@pytest.mark.parametrize("mode", BUSY)
@pytest.mark.parametrize("then", ["stored", "told of"])
def test_what_is_of_the_time_that_is_named_is_found_among_many_that_match_better(
    views: Searched, mode: str, then: str
) -> None:
    for number in range(100):
        views.put(f"other{number}", f"what was done by the team: step {number}", at=day(number % 90))
    views.put(
        "wanted",
        "Anna of the team mended the importer",
        at=day(95 if then == "stored" else 0),
        referenced_at=day(95) if then == "told of" else None,
    )
    assert "wanted" in views.found("what was done by the team 5 days ago?", mode=mode, now_us=day(100))
    assert "wanted" not in views.found("what was done by the team?", mode=mode, now_us=day(100))
    assert "wanted" not in views.found(
        "what was done by the team 5 days ago?", mode=mode, now_us=day(100), project="q"
    )


def test_words_that_only_say_when_are_not_looked_for(views: Searched) -> None:
    views.put("says so", "a report is due every week, last thing on friday", at=day(0))
    views.put("is so", "the importer was slow", at=day(94))
    found = views.find("the importer, last week", now_us=day(100), explain=True)
    assert [one.memory_id for one in found if one.explanation and one.explanation.bm25 > 0] == ["is so"]


@pytest.mark.parametrize(
    ("question", "old", "new"),
    [
        ("what did we do last week?", "last week we did the routers", "the switch was replaced"),
        ("what did we decide last week?", "decide by vote, as we did last week", "the switch was replaced"),
        ("what happened last week?", "this is what happened last week: nothing", "the switch was replaced"),
        (
            "Was haben wir letzte Woche gemacht?",
            "letzte Woche haben wir die Router gemacht",
            "Neue Kabel sind da",
        ),
    ],
)
def test_what_said_last_week_long_ago_is_not_of_last_week(
    views: Searched, question: str, old: str, new: str
) -> None:
    for number in range(3):
        views.put(f"old{number}", old, at=day(number))
    views.put("new", new, at=day(94))
    assert views.found(question, now_us=day(100))[0] == "new"


# --- what has no vector yet -----------------------------------------------------------------------


def test_what_has_no_vector_yet_is_found_by_its_words_and_counted(views: Searched) -> None:
    for number in range(40):
        views.store(
            f"waiting{number}", f"the zeppelin{number} collector listens on port {number}", session_id=None
        )
    assert views.found("zeppelin7") == views.found("zeppelin7", mode="keyword") == ["waiting7"]
    for number in range(40):
        views.put(f"embedded{number}", f"the nightly job number {number} writes a report about the week")
    for number in (3, 17, 31):
        found = views.matches(f"which port does the zeppelin{number} collector listen on")
        assert ids(found.results)[0] == f"waiting{number}"
        assert 0 < found.unembedded <= 40
    assert (
        views.matches("report", mode="keyword").unembedded
        == views.matches("report", mode="semantic").unembedded
        == 0
    )


def test_what_waits_for_the_vector_finds_the_same_and_where_none_comes_it_is_said(views: Searched) -> None:
    for number in range(5):
        views.put(f"m{number}", f"alpha beta{number} of the importer", at=day(number))
    query = QueryMemory(text="alpha beta3, last week", explain=True, all=True)
    sources = views.sources(query)
    waiting = msgspec.structs.replace(sources, vector=lambda: sources.vector)
    assert search.search(views.connection, query, waiting, LATER_US) == search.search(
        views.connection, query, sources, LATER_US
    )
    with pytest.raises(pipeline.NotEmbedded):
        search.search(
            views.connection, query, msgspec.structs.replace(sources, vector=lambda: None), LATER_US
        )
