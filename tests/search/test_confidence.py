"""How sure an answer is: the same for the same views, less where the question is unheard of, and nothing
where nothing speaks for it.
"""

import math

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import projections
from omegad import search
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.search import Matches, QueryMemory, pipeline
from omegad.search.model import fitted, probability
from tests.builders import EMBEDDER, START_US, deleted, edited, stored, superseded, vector_of
from tests.searching import DAY_US, LATER_US, MODES, Searched, day

UNHEARD = "which Zeppelin lands in Friedrichshafen?"


def put_deploys(views: Searched, count: int = 60, **given: str) -> None:
    for number in range(count):
        views.put(f"m{number}{given}", f"the deploy of service{number} runs at noon", at=START_US, **given)


def asked(views: Searched) -> list[Matches]:
    questions = (
        "deploy of service3",
        "service3 and the zeppelin",
        UNHEARD,
        "why service4?",
        "service5 on 2 January 2026",
    )
    return [views.matches(text, mode=mode, explain=True) for text in questions for mode in MODES]


def test_the_same_views_give_the_same_answers_whatever_was_asked_before(views: Searched) -> None:
    known: list[list[Matches]] = []
    for number in range(30):
        views.put(
            f"m{number}", f"the deploy of service{number % 7} runs at noon", session_id=f"s{number % 4}"
        )
        if number % 5 == 0:
            views.show(deleted(f"m{number // 2}") if number % 2 else edited(f"m{number}", "gamma"))
        asked(views)
    known.append(asked(views))
    views.index = VectorIndexes(VectorIndex(EMBEDDER))
    known.append(asked(views))
    rebuilt = Searched()
    rebuilt.vectors = views.vectors
    for projection in projections.ALL:
        rebuilt.apply(projection, *views.history)
        rebuilt.index.sync(rebuilt.connection)
    known += [asked(rebuilt), asked(rebuilt)]
    rebuilt.connection.close()
    assert all(one == known[0] for one in known[1:])


@pytest.mark.parametrize("mode", MODES[:3])
def test_the_more_of_a_question_is_unheard_of_the_less_sure(views: Searched, mode: str) -> None:
    put_deploys(views)
    texts = (
        "deploy of service7",
        "deploy of service7 by airship",
        "deploy of service7 by airship over alpine glaciers",
    )
    sure = [views.matches(text, mode=mode).confidence for text in texts]
    assert sure == sorted(sure, reverse=True)
    assert sure[0] > sure[1]


def test_what_only_another_project_knows_is_unheard_of(views: Searched) -> None:
    put_deploys(views)
    views.put("elsewhere", "the zeppelin of the deploy lands", project="q")
    known, unknown = (
        views.matches(f"the deploy of the {what}", mode="keyword", project="p").confidence
        for what in ("zeppelin", "gondola")
    )
    assert known == unknown
    assert views.matches("the deploy of the zeppelin", mode="keyword", project="q").confidence > known


def test_a_time_that_no_memory_is_of_makes_no_answer_less_sure(views: Searched) -> None:
    put_deploys(views)
    plain, never, then = (
        views.matches(f"the deploy of service7{when}", day(10)).confidence
        for when in ("", " in 1999", " in January 2026")
    )
    assert never == pytest.approx(plain, abs=0.05)
    assert then > never


def test_a_time_that_no_memory_is_of_is_said(views: Searched) -> None:
    put_deploys(views)
    views.put("other", "the deploy of service9", project="q", at=day(40))
    views.put("told of", "the deploy of service8", referenced_at=day(70))
    told = {
        text: views.matches(f"the deploy of service7 {text}", day(100), project="p").nothing_of
        for text in ("", "on 10 February 2026", "in 1999", "in January 2026", "on 12 March 2026", "next week")
    }
    assert told == dict.fromkeys(told) | {
        "on 10 February 2026": "2026-02-10",
        "in 1999": "1999-01-01 to 1999-12-31",
    }
    assert views.matches("service7 in 1999", day(100), mode="keyword").nothing_of is None


def test_what_was_replaced_is_of_its_time_and_what_was_deleted_is_not(views: Searched) -> None:
    put_deploys(views)
    for number, memory_id in ((40, "replaced"), (50, "deleted")):
        views.put(memory_id, f"the deploy of {memory_id}", at=day(number))
    views.show(superseded("replaced", "m1"))
    views.show(deleted("deleted"))
    told = [
        [views.matches(text, day(100), project=project).nothing_of for project in ("p", "q")]
        for text in ("on 10 February 2026", "on 20 February 2026")
    ]
    assert told == [[None, "2026-02-10"], ["2026-02-20", "2026-02-20"]]


@pytest.mark.parametrize("is_multilingual", [False, True])
def test_how_a_question_for_whatever_is_of_a_time_is_worded_hardly_decides(
    views: Searched, *, is_multilingual: bool
) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=is_multilingual))
    put_deploys(views)
    views.put("then", "le cache est parti", at=day(93))
    views.put("last month", "der Router ist neu", at=day(70))
    sure = [
        views.matches(text, day(100)).confidence
        for text in (
            "what did we do last week?",
            "last week",
            "what was done last week",
            "what did we work on last week?",
            "Sur quoi avons-nous travaillé la semaine dernière ?",
            "what did we do last month?",
        )
    ]
    assert min(sure) > 0.8
    assert max(sure) - min(sure) < 0.1


def test_by_the_model_for_all_languages_what_is_of_then_is_an_answer_as_if_there_were_nothing_else(
    views: Searched,
) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=True))
    views.model = fitted()
    for number in range(200):
        views.put(f"m{number}", f"läuft nicht z{number} y{number} x{number} Router v{number}", at=day(number))
    views.put("then", "Router a b c d e f g", referenced_at=START_US - 300 * DAY_US)
    matter, alone, never = (
        views.matches(text, day(300))
        for text in (
            "Was war im März 2025 mit dem Router?",
            "Was ist im März 2025 passiert?",
            "Was war im März 2024 mit dem Router?",
        )
    )
    assert [found.results[0].memory_id for found in (matter, alone)] == ["then", "then"]
    assert (matter.nothing_of, alone.nothing_of) == (None, None)
    assert never.nothing_of == "2024-03-01 to 2024-03-31"


@pytest.mark.parametrize("is_multilingual", [False, True])
def test_whoever_asks_for_whatever_is_of_a_time_is_told_nothing_where_nothing_is(
    views: Searched, *, is_multilingual: bool
) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=is_multilingual))
    views.model = fitted()
    for number, content in enumerate(("der Router ist neu", "what did happen there", "ce qui a changé")):
        views.put(f"m{number}", content, at=day(90 + number))
    views.put("as ever", "what happened in the lab is in the log since 2019", at=day(94))
    for text, days in (
        ("what happened in February?", "2026-02-01 to 2026-02-28"),
        ("what did we decide in February?", "2026-02-01 to 2026-02-28"),
        ("Was ist im Februar passiert?", "2026-02-01 to 2026-02-28"),
        ("what did we do 3 weeks ago?", "2026-03-14 to 2026-03-24"),
    ):
        for mode in MODES[:2]:
            found = views.matches(text, day(98), mode=mode)
            assert (found.results, found.confidence, found.nothing_of) == ([], 0.0, days), text


def test_a_question_of_small_words_alone_is_answered_with_nothing(views: Searched) -> None:
    views.model = fitted()
    views.put("only", "the deploy of billing")
    assert views.matches("the deploy", day(1)).results
    found = views.matches("the", day(1))
    assert (found.results, found.confidence) == ([], 0.0)
    assert views.matches("the", day(1), mode="keyword").results


@pytest.mark.parametrize(
    "telling", ["What happened in February was an outage", "Outage on 2026-02-12: what happened"]
)
def test_what_says_that_it_is_of_then_may_answer_who_asks_for_whatever_is(
    views: Searched, telling: str
) -> None:
    views.put("telling", telling, at=day(90))
    views.put("other", "what happened in May was none", at=day(91))
    found = views.matches("what happened in February?", day(98))
    assert found.nothing_of
    assert found.confidence > 0
    assert "telling" in [one.memory_id for one in found.results]


def test_a_time_to_come_and_one_that_something_replaced_is_of_are_no_reason_for_silence(
    views: Searched,
) -> None:
    put_deploys(views, 3)
    views.put("replaced", "the deploy of replaced", at=day(40))
    views.show(superseded("replaced", "m1"))
    for text in ("what happens next week?", "what happened on 10 February 2026?"):
        assert views.matches(text, day(100)).confidence > 0


@pytest.mark.parametrize("has_vectors", [True, False])
def test_where_nothing_speaks_for_an_answer_there_is_none(views: Searched, *, has_vectors: bool) -> None:
    put_deploys(views)
    views.put("told of then", "the deploy runs at noon", referenced_at=START_US)
    views.model = fitted()
    sources = search.Sources(None, None, views.types)
    for text, is_answered in (("deploy of service7", True), ("1 January 2026", True), (UNHEARD, False)):
        query = search.QueryMemory(text=text)
        found = search.search(
            views.connection, query, views.sources(query) if has_vectors else sources, LATER_US
        )
        assert bool(found.results) is is_answered
        assert (found.confidence >= found.floor) is is_answered


def test_below_the_floor_an_answer_says_how_likely_the_best_was(views: Searched) -> None:
    put_deploys(views, 3)
    sure = views.matches("deploy of service1")
    for floor, is_answered in ((sure.confidence - 1e-3, True), (sure.confidence + 1e-3, False)):
        views.model = msgspec.structs.replace(fitted(), floor=floor, caution=1.0)
        found = views.matches("deploy of service1")
        assert (bool(found.results), found.confidence) == (is_answered, sure.confidence)


@pytest.mark.parametrize("mode", ["keyword", "phrase"])
def test_who_asks_for_words_is_told_of_whatever_has_them(views: Searched, mode: str) -> None:
    put_deploys(views)
    views.put("said", f"{UNHEARD} Nobody knows, and service7 is not E4711", session_id="s")
    views.model = msgspec.structs.replace(fitted(), floor=1.0)
    for text in ("service7", UNHEARD, "E4711"):
        assert "said" in views.found(text, mode=mode, limit=100)
    assert views.matches("bicycle", mode=mode).results == []


@pytest.mark.parametrize(
    "question",
    ["how do we deploy?", "deploy pipeline", "who runs the deploy", "what did I say about the pipeline"],
)
@pytest.mark.parametrize("has_vectors", [True, False])
def test_the_first_memory_of_a_new_user_is_answered(
    views: Searched, question: str, *, has_vectors: bool
) -> None:
    (views.put if has_vectors else views.store)("first", "we deploy from the pipeline alone")
    views.model = fitted()
    assert views.found(question) == ["first"]


def test_what_is_faintly_alike_may_well_be_the_answer_where_it_is_all_there_is_and_hardly_among_many(
    views: Searched,
) -> None:
    views.show(stored("first", "billing runs on PostgreSQL"), project="p")
    views.embed(
        "first", "database billing runs on something by the row"
    )  # one word of eight, as a model may see it
    views.model = fitted()
    faint, unlike = (
        views.matches(text).confidence
        for text in ("which database did we choose?", "how do I bake sourdough bread?")
    )
    least = fitted().floor_of(1)
    put_deploys(views)
    assert faint > least > unlike
    assert views.matches("which database did we choose?").confidence < faint / 3


@given(st.floats(0.01, 0.9), st.floats(1, 1_000), st.integers(1, 1_000), st.floats(-8, 8))
def test_what_few_memories_are_asked_for_is_met_with_silence_by_the_same_signs_as_among_many(
    floor: float, caution: float, memories: int, signs: float
) -> None:
    model = msgspec.structs.replace(fitted(), floor=floor, caution=caution)
    assume(abs(signs - math.log(floor / (1 - floor))) > 1e-6)
    odds = {"signs": 1.0, "few": math.log(caution)}
    among_few = probability(odds, {"signs": signs, "few": 1 / memories})
    assert (among_few < model.floor_of(memories)) == (probability(odds, {"signs": signs}) < floor)


def test_by_the_model_for_all_languages_an_answer_must_stand_out_from_what_is_as_near_as_all(
    views: Searched,
) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=True))
    views.model = fitted()
    for number in range(40):
        views.put(f"m{number}", f"läuft nicht z{number} y{number} x{number}")
    question = "wann läuft der nächtliche Export fertig"
    silent = views.matches(question)
    views.show(stored("other", "La exportación termina a las tres"), project="p")
    views.embed("other", "der nächtliche Export fertig um drei")  # as the model sees what it says
    answered = views.matches(question)
    assert silent.results == []
    assert answered.results[0].memory_id == "other"
    assert answered.confidence > 0.9 > 5 * silent.confidence


def test_what_is_in_the_question_s_own_language_must_be_nearer(views: Searched) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=True))
    views.model = fitted()
    sure = dict[str, float]()
    for text in ("Der Export wurde neu gebaut und die Liste auch", "La exportación y la lista se hicieron"):
        views.show(stored(text, text), project=text)
        views.embed(text, "was haben wir gebaut a b c d e f g")
        sure[text] = views.matches("Was haben wir dort gebaut?", project=text).confidence
    own, other = sure.values()
    assert own < other


def test_a_short_question_is_in_the_language_of_the_model_that_it_is_compared_by(views: Searched) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER), VectorIndex("other", is_multilingual=True))
    views.put("usual", "the cache is emptied at noon")

    def spoken() -> str:
        query = QueryMemory(text="nettoyage cache")
        sources = msgspec.structs.replace(views.sources(query), vector={"other": vector_of(query.text)})
        return pipeline.observed(views.connection, query, sources, LATER_US).question.language.code

    unmet = spoken()
    views.store("french", "le cache est vidé à midi")
    views.embed("french", "le cache est vidé à midi", embedder_id="other")
    assert (unmet, spoken()) == ("en", "fr")


def test_in_another_language_what_is_near_word_by_word_is_the_surer_answer(views: Searched) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=True))
    views.model = fitted()
    passages = (
        "Die Sicherung läuft um drei, und vorher wird alles geprüft wie immer in jeder Woche. ",
        "Kaffee und Tee bestellt sie jeden zweiten Freitag nach.",
    )
    views.show(stored("export", "".join(passages)), project="p")
    views.embed("export", *passages)
    query, compared = QueryMemory(text="wann läuft der nächtliche Export fertig"), list[str]()

    def sure(nearness: float | None) -> float:
        def tell(passage: str) -> float | None:
            compared.append(passage)
            return nearness

        sources = msgspec.structs.replace(views.sources(query), nearness=tell)
        return search.search(views.connection, query, sources, LATER_US).confidence

    by_word = [sure(nearness) for nearness in (0.1, 0.3, 0.5, 0.7)]
    assert by_word == sorted({*by_word})
    assert by_word[0] < sure(None) < by_word[-1]
    assert {*compared} == {passages[0]}
