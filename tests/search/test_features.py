"""What a memory shows of being the answer, and that things are found by their names."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.index.terms import telling
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.search import QueryMemory, features, pipeline
from omegad.search.features import (
    FEATURES,
    PART_OF_NAME,
    PRIOR,
    RATING_MAX,
    SHOWN,
    TOLD,
    TOLD_LATER,
    MemoryFeatures,
)
from omegad.search.question import understood
from tests.builders import EMBEDDER, START_US, edited, promoted, rated
from tests.searching import LATER_US, Searched, day


def shown(views: Searched, row: int, question: str = "x") -> MemoryFeatures:
    """Return what a row shows, all terms of the question being as rare."""
    asked, rarity = understood(question, LATER_US), dict.fromkeys(telling(question), 1.0)
    return features.shown(views.connection, [row], asked, rarity, types=views.types, now_us=LATER_US)[row]


def value(views: Searched, row: int, name: str, question: str = "x") -> float:
    return float(shown(views, row, question).features[[*SHOWN, *PRIOR].index(name)])


def observed(views: Searched, question: str, rows: list[int], names: tuple[str, ...]) -> list[list[float]]:
    """Return some of the features that a search sees of some rows, by row."""
    query = QueryMemory(text=question)
    seen = pipeline.observed(views.connection, query, views.sources(query), LATER_US)
    by_row = dict(zip(seen.rows, seen.features[:, [FEATURES.index(name) for name in names]], strict=True))
    return [by_row[row].tolist() for row in rows]


def held(content: str, question: str) -> float:
    """Return the share of a question's identifiers that a content holds."""
    views = Searched()
    found = value(views, views.store("a", content), "identifiers", question)
    views.connection.close()
    return found


HELD = """
see src/jobs/exporter.py | where is exporter.py?; class PaymentGateway: | PaymentGateway
v1.2.3 is out | is 1.2.3 out?
1.2.3 is out | is v1.2.3 out?; https://example.org/a?b=c | https://example.org/a?b=c; 使用config.py | config.py
"""
HELD_IN_PART = """
see test_exporter.py | where is exporter.py?; class PaymentGatewayFactory: | PaymentGateway
the payment gateway | PaymentGateway
paymentGateway | payment_gateway; run it with --dry-run-all | --dry-run
"""
NOT_HELD = """
the exporter is in py | where is exporter.py?; payment and then a gateway | PaymentGateway
uses numpy 11.26.4 | 1.26.4
v1.2.30 is out | is v1.2.3 out?; error E11012 again | E1101; alpha.py | no name at all
"""


@pytest.mark.parametrize(
    ("pairs", "share"),
    [(HELD, 1.0), (HELD_IN_PART, PART_OF_NAME), (NOT_HELD, 0.0), ("a.py | A.PY or b.py", 0.5)],
)
def test_a_content_holds_a_name_as_it_is_written_or_as_part_of_another(pairs: str, share: float) -> None:
    for pair in pairs.strip().replace("\n", "; ").split("; "):
        content, question = pair.split(" | ")
        assert held(content, question) == pytest.approx(share), pair


@given(
    st.text(st.sampled_from("aB1_./-\\()[]*+?^$|設 é"), min_size=1, max_size=60),
    st.text(st.sampled_from("aB1_./-()[*+?^|設 é"), max_size=40),
)
def test_any_name_can_be_looked_for_in_any_content(content: str, question: str) -> None:
    assert 0.0 <= held(content, question) <= 1.0


def test_a_memory_is_read_as_it_says_now_and_one_that_is_not_there_yet_is_left_out(views: Searched) -> None:
    row = views.store("a", "Anna: see exporter.py", session_id="s")
    assert (shown(views, row).is_spoken, shown(views, row).session_id) == (True, "s")
    views.show(edited("a", "Bert: see importer.py"))
    question = "importer.py of Bert"
    assert [value(views, row, name, question) for name in ("identifiers", "coverage")] == (
        pytest.approx([1.0] * 2)
    )
    assert value(views, row, "identifiers", "exporter.py") == 0.0
    asked = understood(question, LATER_US)
    told = features.shown(views.connection, [row, 999], asked, {}, types=views.types, now_us=LATER_US)
    assert told.keys() == {row}
    assert features.shown(views.connection, [], asked, {}, types=views.types, now_us=LATER_US) == {}


def test_a_turn_shows_who_speaks_what_it_answers_and_whether_it_tells_of_itself_and_of_a_time(
    views: Searched,
) -> None:
    question = "where did Bert find the red bicycle?"
    turns = ("Anna: is the red bicycle yours?", "Bert: I found it in Ghent last weekend", "Anna: how nice")
    rows = [views.put(f"turn {place}", text, session_id="s") for place, text in enumerate(turns)]
    rows.append(views.put("note", "Bert: I lost the red bicycle yesterday?"))
    names = ("author", "asks", "answers", "first_person", "dated")
    assert observed(views, question, rows, names) == [
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, pytest.approx(1.0, abs=0.5), 1.0, 1.0],
        [0.0] * 5,
        [0.0] * 5,
    ]
    foreign = observed(views, "wo hat Bert das rote Fahrrad, the red bicycle, gefunden?", rows, names)
    assert foreign[:2] == [[0.0] * 5, [1.0, 0.0, 0.0, 0.0, 0.0]]


def test_a_turn_says_what_somebody_likes_where_advice_is_asked_for(views: Searched) -> None:
    turns = (
        "Anna: I really can't stand horror films",
        "Anna: always name the director of a film",
        "Anna: we saw two horror films",
        "Anna: I'd like to see horror films",
    )
    rows = [views.put(f"turn {place}", text, session_id="s") for place, text in enumerate(turns)]
    rows.append(views.put("note", "I can't stand horror films"))

    def wishes(question: str) -> list[float]:
        return [value for (value,) in observed(views, question, rows, ("wishes",))]

    assert wishes("can you suggest some films?") == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert wishes("which films did Anna recommend?") == [0.0] * 5
    assert wishes("welchen der films soll ich heute sehen, suggest films!") == [0.0] * 5


def test_what_candidates_are_as_texts_is_the_same_from_memory_as_from_the_file(views: Searched) -> None:
    views.index = VectorIndexes(VectorIndex(EMBEDDER), VectorIndex("other", is_multilingual=True))
    rows = [
        views.put("turn", "Anna: is the bicycle yours?", session_id="s"),
        views.put("note", "Bert: where does the bicycle stand?"),
        views.put("long", "a bicycle " * 200, "a bell", session_id="s"),
        views.put("edited", "Anna: the bicycle is mine", session_id="s"),
        views.store("unembedded", "Bert: whose is the bicycle?", session_id="s"),
        views.store("foreign", "Bert: das Fahrrad steht im Hof", session_id="s"),
    ]
    views.embed("foreign", "Bert: das Fahrrad steht im Hof", embedder_id="other")
    query = QueryMemory(text="what does Bert say of the bicycle?")
    shown = [TOLD.index("author"), TOLD.index("asks")]

    def told() -> list[list[float]]:
        seen = pipeline.observed(views.connection, query, views.sources(query), LATER_US)
        found = [
            features.told(views.connection, seen.candidates, seen.question, index)
            for index in (views.index, None)
        ]
        (of_index, length), (of_file, same_length) = found
        assert of_index.tolist() == of_file.tolist()
        assert length == same_length
        known = views.index.text_traits(seen.candidates.ids, ["bert"]).is_known
        assert seen.candidates.ids[~known].tolist() == [rows[4]]
        places = seen.candidates.ids.searchsorted(rows)
        return [of_index[place, shown].tolist() for place in places]

    assert told() == [[0, 1], [0, 0], [0, 0], [0, 0], [1, 1], [1, 0]]
    views.show(edited("edited", "Bert: is the bicycle mine?"))
    assert told()[3] == [1, 1]
    views.embed("edited", "Bert: is the bicycle mine?")
    assert told()[3] == [1, 1]


def test_words_count_by_how_rare_they_are_a_name_by_its_parts_and_words_of_no_rarity_for_nothing(
    views: Searched,
) -> None:
    row = views.store("a", "The payment gateway declines it")
    question = "why did PaymentGateway decline cards in March 2025?"
    (gateway, decline, cards), asked = telling("PaymentGateway decline cards"), understood(question, LATER_US)
    rarity = {gateway: 3.0, decline: 1.0, cards: 2.0}
    known = features.shown(views.connection, [row], asked, rarity, types=views.types, now_us=LATER_US)
    assert known[row].features[SHOWN.index("coverage")] == pytest.approx(7 / 9)


def test_a_time_holds_its_first_moment_and_not_its_last_and_the_day_after_is_when_it_may_be_told(
    views: Searched,
) -> None:
    rows = [
        views.store(f"m{number}", "x", referenced_at=moment)
        for number, moment in enumerate((day(1) - 1, day(1), day(2) - 1, day(2)))
    ]
    assert [value(views, row, "period", "on 02.01.2026") for row in rows] == [0.0, 1.0, 1.0, TOLD_LATER]
    late = [views.store(f"late{at}", "x", referenced_at=at) for at in (day(3) - 1, day(3))]
    assert [value(views, row, "period", "on 2026-01-02") for row in late] == [TOLD_LATER, 0.0]
    assert (
        value(
            views, views.store("told then", "x", at=day(1), referenced_at=START_US), "period", "on 2026-01-02"
        )
        == 0.0
    )


def test_ratings_are_bounded_a_bad_one_counts_twice_and_probation_ends_with_a_promotion(
    views: Searched,
) -> None:
    rows = [views.store(name, "x", on_probation=True) for name in "abc"]
    views.show(rated("a", 1), rated("b", -1), *[rated("c", -2)] * 40, promoted("a"))
    assert [value(views, row, "rating") for row in rows] == [1.0, -2.0, -2.0 * RATING_MAX]
    assert [value(views, row, "probation") for row in rows] == [0.0, 1.0, 1.0]


# --- found by name --------------------------------------------------------------------------------

NAMED = """
the nightly job lives in src/jobs/exporter.py = exporter.py | what does exporter.py do? | src/jobs/exporter.py | jobs/exporter.py
the nightly job is tested in test_exporter.py = test_exporter.py
PaymentGateway raises when the card is declined = PaymentGateway | payment gateway | gateway | payment_gateway
call load_user_settings before anything else = load_user_settings() | loadUserSettings | user settings
we are pinned to numpy 1.26.4 for now = which numpy: 1.26.4 | v1.26.4
we were pinned to numpy 1.24.1 for a while = numpy 1.24.1
the docs are at https://docs.example.org/api/v2/users = https://docs.example.org/api/v2/users | docs.example.org
sqlite3.OperationalError: database is locked, when two writers meet = database is locked | sqlite3.OperationalError | OperationalError
the linter reports E1101 there, wrongly = what is E1101?
pass --no-verify only when the hook is broken = --no-verify
the port comes from OMEGAD_SOCKET_PORT = OMEGAD_SOCKET_PORT | $OMEGAD_SOCKET_PORT
データベースは毎晩六時に復元されます = データベース | 復元
配置在config.toml中设置 = config.toml | 设置 | 在config.toml中
배포스크립트는파이프라인에서만실행합니다 = 파이프라인
the payment evt_1PQrstuv was handled twice = evt_1PQ | what of evt_1PQ?
the bakery opens at six in the morning =
"""  # what a memory says, and what it is asked for by
ASKED = [
    (one.partition(" =")[0], question.strip())
    for one in NAMED.strip().splitlines()
    for question in one.partition(" =")[2].split("|")
]


@pytest.fixture(scope="module")
def named() -> Iterator[Searched]:
    made = Searched()
    for content in dict(ASKED):
        made.put(content, content, at=START_US)
    yield made
    made.connection.close()


@pytest.mark.parametrize(("content", "question"), ASKED)
def test_a_thing_is_found_by_its_name(named: Searched, content: str, question: str) -> None:
    assert named.found(question, mode="keyword")[:1] == [content] or not question


@pytest.mark.parametrize("name", ["#412", "88121", "minAvailable", "v0.9.4"])
def test_what_alone_holds_a_name_comes_first_whatever_its_session_lifts(views: Searched, name: str) -> None:
    for number in range(60):
        views.put(
            f"m{number}", f"what changed in the release for the budget of event {number}", session_id="s"
        )
    views.put("exact", "see #412 and 88121: minAvailable of the budget is 2 since v0.9.4", session_id="t")
    assert views.found(f"what changed in the release for {name}?")[0] == "exact"


def test_words_cover_a_question_where_they_stand_in_one_passage(views: Searched) -> None:
    filling = "Nothing of it is said here. " * 50
    together = views.store("together", f"{filling}The export times out at night. {filling}")
    apart = views.store("apart", f"The export is fine. {filling}At night. {filling}It times out.")
    question = "export times out at night"
    assert value(views, together, "coverage", question) == pytest.approx(1.0)
    assert 0 < value(views, apart, "coverage", question) <= 0.5


def test_whoever_asks_for_whatever_is_of_a_time_asks_for_no_answer_in_a_conversation(views: Searched) -> None:
    turns = ("Anna: what did we decide?", "Bert: it is decided", "Anna: how nice")
    rows = [views.put(f"turn {place}", text, session_id="s") for place, text in enumerate(turns)]
    names = ("near_words", "asks", "answers")
    assert observed(views, "what did we decide in January 2026?", rows, names) == [[0.0] * 3] * 3
    assert observed(views, "what did Bert decide about bicycles?", rows, names)[1][2] > 0
