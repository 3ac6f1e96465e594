"""Which part of a long content answers, and that it is shown for the whole."""

import pytest

from omegad.embedding.passages import short_passages
from omegad.index.terms import asked, stemmed_in
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.search import QueryMemory, Sources, search
from omegad.search.clauses import CLAUSE_CHARACTERS, LONG, READ_CHARACTERS, clause
from omegad.text.languages import language_of
from omegad.text.quoting import excerpt
from tests.builders import EMBEDDER, vector_of
from tests.searching import LATER_US, Searched

OTHER = "The walk through the harbour was long, and nobody had brought anything to eat. "
ANSWER = "The nightly export times out unless fetch_size is 500."
QUESTION = "why does the export time out?"


def chosen(content: str, question: str = QUESTION) -> str | None:
    language = language_of(question)
    return clause(content, stemmed_in(language, asked(question, language)), language)


@pytest.mark.parametrize("before", [0, 1, 7, 40])
def test_the_sentences_that_hold_most_of_the_question_are_chosen_wherever_they_stand(before: int) -> None:
    content = f"{OTHER * before}{ANSWER} {OTHER * 9}"
    found = chosen(content)
    assert found is not None
    assert ANSWER in found
    assert found in content
    assert len(found) <= CLAUSE_CHARACTERS


def test_what_stands_in_two_sentences_is_chosen_with_both() -> None:
    content = f"{OTHER * 3}The export was slow. It timed out. {OTHER * 9}An export. {OTHER * 3}"
    assert "The export was slow. It timed out." in (chosen(content) or "")


def test_what_few_sentences_hold_tells_more_than_what_many_do() -> None:
    content = f"{'The export ran at night, as an export does. ' * 8}{OTHER * 5}It times out. {OTHER * 5}"
    assert "It times out." in (chosen(content, "does the export time out at night?") or "")


def test_a_clause_is_of_one_paragraph() -> None:
    content = f"{OTHER * 5}The export ran.\n\nIt timed out.\n \n{OTHER * 5}\n- export\n- timed out\n\n{OTHER}"
    assert (chosen(content) or "").endswith("- export\n- timed out")


@pytest.mark.parametrize(
    "content",
    [
        ANSWER,
        f"{ANSWER} ".ljust(LONG, "x"),
        OTHER * 9,
        "x" * LONG * 9,
        f"{OTHER * (READ_CHARACTERS // len(OTHER) + 1)}{ANSWER}",
    ],
)
def test_nothing_is_chosen_of_what_is_short_or_holds_nothing_where_it_is_read(content: str) -> None:
    assert chosen(content) is None


@pytest.mark.parametrize("sign", ["x", " ", "\n", ".", "数", "\u0301", "👩‍👩‍👧"])
def test_what_has_no_sentences_is_cut_within_the_bound(sign: str) -> None:
    content = f"{sign * 2_000} the export {sign * 2_000}"
    found = chosen(content) or ""
    assert len(found) <= CLAUSE_CHARACTERS
    assert found in content


def test_an_excerpt_has_dots_where_there_is_more() -> None:
    assert [excerpt("abc", passage) for passage in (None, "abc", "a", "b", "c")] == [
        "abc",
        "abc",
        "a…",
        "…b…",
        "…c",
    ]


def test_a_search_says_which_passage_of_a_long_memory_answers(views: Searched) -> None:
    views.put("long", f"{OTHER * 7}{ANSWER} {OTHER * 7}")
    views.put("short", ANSWER)
    found = {one.memory_id: one.passage for one in views.matches(QUESTION).results}
    assert found["short"] is None
    assert ANSWER in (found["long"] or "")


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        (
            "Welche Datenbank nutzen wir?",
            "Unsere Datenbanken laufen auf PostgreSQL. ",
            "Der Hafen war lang. ",
        ),
        ("Где лежит ключ?", "Ключи хранятся в сейфе. ", "Мы долго гуляли. "),
    ],
)
def test_words_of_other_languages_are_found_in_their_other_forms(
    question: str, answer: str, other: str
) -> None:
    assert answer.strip() in (chosen(f"{other * 30}{answer}{other * 30}", question) or "")


def test_across_languages_the_nearest_passage_of_a_long_memory_is_shown(views: Searched) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=True))
    answer = "La exportación termina a las tres. "
    content = f"{'Hemos caminado mucho. ' * 40}{answer * 3}{'Hemos caminado mucho. ' * 40}".strip()
    seen = ["export fertig um drei" if answer in one else "wandern" for one in short_passages(content)]
    views.store("long", content, session_id=None)
    views.embed("long", *(f"{said} {place}" for place, said in enumerate(seen)))
    (found,) = views.find("wann ist der export fertig")
    assert answer.strip() in (found.passage or "")


def test_an_english_question_is_shown_the_nearest_passage_of_what_is_in_another_language_alone(
    views: Searched,
) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER), VectorIndex("other", is_multilingual=True))
    question, answer = "when is the export finished", "La exportación termina a las tres. "
    texts = {
        "foreign": f"{'Hemos caminado mucho. ' * 40}{answer * 3}{'Hemos caminado mucho. ' * 40}".strip(),
        "english": OTHER * 20,
    }
    for memory_id, content in texts.items():
        views.store(memory_id, content, session_id=None)
        parts = short_passages(content)
        nearest = 1 if memory_id == "english" else [answer in one for one in parts].index(True)
        said = [f"{question if place == nearest else 'wandering'} {place}" for place in range(len(parts))]
        views.embed(memory_id, *said, embedder_id="other")
        if memory_id == "english":
            views.embed(memory_id, *said)
    query = QueryMemory(text=question, all=True)
    vector = vector_of(question)
    sources = Sources({EMBEDDER: vector, "other": vector}, views.index, views.types, views.model)
    found = {one.memory_id: one for one in search(views.connection, query, sources, LATER_US).results}
    assert answer.strip() in (found["foreign"].passage or "")
    assert found["english"].passage is None
