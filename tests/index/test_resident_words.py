"""Full text answered from memory: the same as the file answers, in every state that a reader can see, and
nothing of any other.
"""

import random
from collections.abc import Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import projections
from omegad.index import resident_words
from omegad.index import served as served_index
from omegad.index.filters import Filters
from omegad.index.fulltext import FullText, ResidentFullText
from omegad.index.postings import counted
from omegad.index.resident_words import KEPT, ResidentWords
from omegad.index.scope import Scope
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.log.projection import schema
from omegad.operations import erasing
from omegad.runtime.config import Paths
from omegad.search import QueryMemory, Sources, search
from omegad.storage.database import open_reader, open_writer
from omegad.storage.driver import sqlite
from omegad.storage.transaction import run_script, snapshot
from omegad.views import kept
from tests.builders import (
    EMBEDDER,
    FakeClock,
    deleted,
    edited,
    evolved,
    expired,
    memory_erased,
    repeated,
    restored,
    served,
    superseded,
    until,
)
from tests.searching import LATER_US, Searched

THINGS = [
    "billing",
    "gateway",
    "resizer",
    "indexer",
    "exporter",
    "webhook",
    "scheduler",
    "relay",
    "cache",
    "limiter",
    "importer",
    "ledger",
]
NAMES = [
    "fjord_amber.py",
    "PaymentGateway",
    "v1.2.3",
    "0.9.4",
    "ECONNRESET",
    "src/ingest/cedar.rs",
    "evt_1PQrst",
    "café",
    "Zürich",
]
OTHERS = (
    "der Zähler zählt die Zeilen doppelt",
    "数据库连接超时",
    "les données sont écrites deux fois",
    "설정 파일",
)
QUESTIONS = (
    "why did the billing gateway stop?",
    "fjord_amber.py and PaymentGateway",
    "which limiter ignored 0.9.4, and v1.2.3?",
    "evt_1PQ in the ledger",
    "Zähler der Zeilen in café Zürich",
    "数据库 超时",
    "les données doublées",
    "billing relay relay scheduler cache limiter importer exporter webhook indexer resizer ledger",
    "number17 of the cedar.rs",
    "nothing-like-this",
)
TERMS = (
    '"billing"',
    '"src/ingest/cedar.rs"',
    '("PaymentGateway" OR "payment gateway")',
    '"relay relay"',
    '"evt" *',
    '"zeppelin"',
    '"say ""hello"""',
)


@pytest.fixture(scope="module", autouse=True)
def _few() -> Iterator[None]:
    """Have the words of few memories in memory, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resident_words, "FEW", 0)
        yield


def made(views: Searched, count: int, seed: int) -> None:
    """Store memories of all kinds."""
    choose = random.Random(seed)  # noqa: S311  the same memories each time
    for number in range(count):
        said = [
            *choose.choices(THINGS, k=choose.randrange(3, 30)),
            choose.choice(NAMES),
            f"number{number % 97}",
        ]
        choose.shuffle(said)
        text = " ".join(said) + choose.choice(["", '. say "hello" to the relay relay', *OTHERS])
        given: dict[str, Any] = {"tags": tuple(choose.sample(THINGS, choose.randrange(3)))}
        put = views.store if number % 10 == 0 else views.put
        put(
            f"m{seed}-{number}",
            text,
            project=choose.choice([None, "p", "quartz cache"]),
            session_id=choose.choice([None, "s1", "s2"]),
            event_type=choose.choice(["decision", "memory"]),
            ttl_seconds=1 if number % 31 == 0 else None,
            **given,
        )


def changed(views: Searched, seed: int) -> None:
    """Have happened to some memories whatever can."""
    choose = random.Random(seed)  # noqa: S311  the same memories each time
    names = [
        name for (name,) in views.connection.execute("SELECT node_id FROM memories ORDER BY id").fetchall()
    ]
    for name in choose.sample(names, 24):
        other = choose.choice(names)
        views.show(
            *choose.choice(
                [
                    (edited(name, f"{choose.choice(THINGS)} says fjord_amber.py otherwise"),),
                    (evolved(name, f"the {choose.choice(THINGS)} relay relay, and v1.2.3 besides"),),
                    (repeated(name, tags=("ledger", "zeppelin")),),
                    (deleted(name),),
                    (deleted(name), restored(name)),
                    (superseded(name, other),),
                    (expired(name),),
                ]
            )
        )


@pytest.fixture(scope="module")
def home() -> Iterator[Searched]:
    """Views with their words in memory, brought from state to state in steps of several sizes."""
    views = Searched()
    words = ResidentWords()
    views.index = VectorIndexes(VectorIndex(EMBEDDER), words=words)
    made(views, 300, 1)
    words.fill(views.connection)
    for seed, count in ((2, 1), (3, 40), (4, 3), (5, 60), (6, 1)):
        made(views, count, seed)
        changed(views, seed)
        assert words.of(views.connection) is not None, seed
    yield views
    views.connection.close()


def both(views: Searched, **filters: Any) -> tuple[FullText, ResidentFullText, Scope]:
    scope = Scope(views.connection, Filters(**filters), LATER_US, views.index)
    assert isinstance(scope.fulltext, ResidentFullText)
    return FullText(views.connection), scope.fulltext, scope


@pytest.mark.parametrize("term", TERMS)
def test_of_a_term_memory_says_what_the_file_says(home: Searched, term: str) -> None:
    file, memory, _ = both(home)
    rows = np.array([row for (row,) in home.connection.execute("SELECT id FROM memories ORDER BY id")])
    assert [memory.count(term, most) for most in (1, 50, 9_999)] == [
        file.count(term, most) for most in (1, 50, 9_999)
    ]
    for most in (7, 9_999):
        assert memory.latest(term, most).tolist() == file.latest(term, most).tolist()
    assert memory.holds(term, rows).tolist() == file.holds(term, rows).tolist()


@pytest.mark.parametrize("filters", [{}, {"project": "quartz cache"}, {"event_types": ("memory",)}], ids=str)
@pytest.mark.parametrize(
    "terms", [TERMS[:1], TERMS[1:4], (*TERMS[:4], *TERMS[5:]), TERMS, TERMS[5:6]], ids=str
)
def test_of_several_terms_memory_finds_and_scores_what_the_file_does(
    home: Searched, terms: tuple[str, ...], filters: dict[str, Any]
) -> None:
    file, memory, scope = both(home, **filters)
    rows = [row for (row,) in home.connection.execute("SELECT id FROM memories")]
    assert memory.scores(terms, rows) == pytest.approx(file.scores(terms, rows), rel=1e-12)
    for limit, first in ((5, 5), (9_999, 9_999), (9_999, 5)):
        for are_few in (True, False):
            wanted = file.best(terms, scope.filtered, limit, first, are_few=are_few)
            found = memory.best(terms, scope.filtered, limit, first, are_few=are_few)
            assert list(found)[:first] == list(wanted)[:first]
            assert found == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword", "phrase"])
def test_a_question_is_answered_as_by_the_file(home: Searched, mode: str) -> None:
    for question in QUESTIONS:
        for filters in ({}, {"project": "p"}):
            answers = []
            for index in (home.index, VectorIndexes(VectorIndex(EMBEDDER))):
                query = QueryMemory(text=question, mode=mode, all=True, **filters)  # type: ignore[arg-type]
                vector = home.sources(query).vector
                found = search(
                    home.connection, query, Sources(vector, index, home.types, home.model), LATER_US
                )
                answers.append([(one.memory_id, round(one.score, 9)) for one in found.results])
            assert answers[0] == answers[1], (question, filters)


def test_a_reader_gets_the_words_of_its_own_state_or_none(tmp_path: Path) -> None:
    views, words = Searched(), ResidentWords()
    views.connection = open_writer(tmp_path / "views.db", durable=False)
    for projection in projections.ALL:
        run_script(views.connection, schema(projection))
    views.store("a", "alpha")
    words.fill(views.connection)
    behind = open_reader(tmp_path / "views.db")

    def holders() -> list[int] | None:
        found = words.of(behind)
        if found is None:
            return None
        assert words.tokenizer
        rows: list[int] = found.holding(words.tokenizer.tokens("alpha")).latest(999)[::-1].tolist()
        return rows

    with snapshot(behind):
        assert holders() == [1]
        for number in range(resident_words.STATES_MAX + 1):
            views.store(f"m{number}", "alpha")
            ahead = words.of(views.connection)
            assert ahead is not None
            assert ahead.count == number + 2
            assert holders() == ([1] if number < resident_words.STATES_MAX - 1 else None)
            assert words.of(views.connection) is ahead, "what a reader behind asks for changes nothing"
    assert holders() == [1, *range(2, resident_words.STATES_MAX + 3)]
    behind.close()


def test_what_is_erased_leaves_memory_and_the_rest_is_read_anew(views: Searched) -> None:
    wanted = list[int]()
    words = ResidentWords(lambda: wanted.append(1))
    views.store("a", "alpha gamma")
    views.store("b", "alpha beta")
    assert words.of(views.connection) is None
    words.fill(views.connection)
    assert words.size_bytes > 0
    assert len(wanted) == 1
    views.show(memory_erased("b"))
    assert words.of(views.connection) is None, "nothing tells what has become otherwise"
    views.store("c", "gamma")
    assert words.of(views.connection) is None
    assert words.size_bytes == 0
    assert len(wanted) == 2
    words.fill(views.connection)
    found = words.of(views.connection)
    assert found is not None
    assert words.tokenizer
    held = [
        found.holding(phrase).latest(9)[::-1].tolist()
        for phrase in map(words.tokenizer.tokens, ["alpha", "beta"])
    ]
    assert held == [[1], []]


@pytest.mark.usefixtures("model")
async def test_words_of_what_was_erased_go_from_memory_while_a_file_cannot_be_wiped(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader of the views holds on to what was erased, so that the file waits for it."""
    monkeypatch.setattr(erasing, "FINISH_S", 0.3)
    async with served(paths, clock) as it:
        views, near = it.daemon.services.views, it.daemon.services.near
        stored = await it.caller.call("memory.store", content="the attic is damp")
        await it.caught_up()
        await it.caller.call("memory.query", text="attic", mode="keyword")
        index = near.index(views.file)
        assert index is not None
        await until(lambda: index.words and index.words.size_bytes)
        with closing(sqlite.connect(str(views.file), isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM memories").fetchone()
            done = await it.caller.call("memory.erase", memory_id=stored["memory_id"])
            assert done["unfinished"]
            assert near.size == (0, 0)
            assert near.index(views.file) is not index


@pytest.mark.usefixtures("model")
async def test_a_service_has_the_words_in_memory_and_none_of_what_was_erased(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock) as it:
        near = it.daemon.services.near

        def words() -> ResidentWords | None:
            index = near.index(it.daemon.services.views.file)
            return None if index is None else index.words

        await it.caller.call("memory.store", content="the cellar is dry")
        stored = await it.caller.call("memory.store", content="the attic is damp", project="p")
        await it.caught_up()
        await it.caller.call("memory.query", text="cellar", mode="keyword")
        await until(lambda: (held := words()) and held.size_bytes)
        before = words()
        near.forget_index()
        assert words() is before, "new vectors change no word"
        await it.caller.call("memory.erase", memory_id=stored["memory_id"])
        assert words() is not before
        await it.caller.call("memory.query", text="attic", mode="keyword")
        await until(lambda: (held := words()) and held.size_bytes)
        found = await it.caller.call("memory.query", text="attic cellar", mode="keyword")
        assert [one["content"] for one in found["results"]] == ["the cellar is dry"]


def kept_in(views: Searched, words: ResidentWords) -> None:
    """Keep words beside the views, as a service does."""
    if found := words.to_keep():
        head, arrays = found
        kept.begin(views.connection, KEPT)
        for number, part in enumerate(kept.cut(arrays), 1):
            kept.add(views.connection, KEPT, number, part)
        kept.finish(views.connection, KEPT, head, kept.digest_of(head, arrays))


@pytest.fixture
def kept_views(monkeypatch: pytest.MonkeyPatch) -> Iterator[Searched]:
    """Views of some memories, in whose file words can be kept, in small parts."""
    monkeypatch.setattr(resident_words, "KEPT_FROM", 2)
    monkeypatch.setattr(kept, "PART_BYTES", 100)
    views = Searched()
    checkpoints = resources.files("omegad.views").joinpath("checkpoints.sql")
    run_script(views.connection, checkpoints.read_text(encoding="utf-8"))
    made(views, 60, 1)
    yield views
    views.connection.close()


@pytest.mark.parametrize("later", [0, 9])
def test_words_that_were_kept_are_those_of_full_text(kept_views: Searched, later: int) -> None:
    words, next_words, read = ResidentWords(), ResidentWords(), ResidentWords()
    next_words.fill_from_kept(kept_views.connection)
    assert next_words.of(kept_views.connection) is None, "nothing was kept"
    words.fill(kept_views.connection)
    made(kept_views, 3, 2)
    assert words.of(kept_views.connection) is not None
    kept_in(kept_views, words)
    assert words.to_keep() is None, "they are kept already"
    if later:
        made(kept_views, later, 3)
        changed(kept_views, 3)
    next_words.fill_from_kept(kept_views.connection)
    read.fill(kept_views.connection)
    found, wanted = next_words.of(kept_views.connection), read.of(kept_views.connection)
    assert found is not None
    assert wanted is not None
    assert next_words.tokenizer is not None
    for phrase in (*THINGS, *NAMES, "relay relay"):
        tokens = next_words.tokenizer.tokens(phrase)
        rows, same = (one.holding(tokens).latest(100)[::-1] for one in (wanted, found))
        assert len(rows)
        assert same.tolist() == rows.tolist(), phrase
        held = [one.scores([one.holding(tokens)], rows).tolist() for one in (found, wanted)]
        assert held[0] == held[1], phrase


@pytest.mark.parametrize("loss", ["too much", "erased", "unfinished"])
def test_words_that_were_kept_and_are_not_those_of_full_text_are_left(
    kept_views: Searched, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ResidentWords()
    words.fill(kept_views.connection)
    kept_in(kept_views, words)
    match loss:
        case "too much":
            monkeypatch.setattr(resident_words, "CHANGED_MAX", 3)
            made(kept_views, 4, 2)
        case "erased":
            kept_views.show(memory_erased("m1-5"))
        case _:
            kept.begin(kept_views.connection, KEPT)
    next_words = ResidentWords()
    next_words.fill_from_kept(kept_views.connection)
    assert next_words.of(kept_views.connection) is None
    next_words.fill(kept_views.connection)
    assert next_words.of(kept_views.connection) is not None
    assert next_words.to_keep() is not None


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM kept WHERE part = (SELECT max(part) FROM kept)",
        "UPDATE kept SET bytes = zeroblob(length(bytes)) WHERE part = 2",
        "UPDATE kept SET bytes = x'ff' WHERE part = 0",
        "UPDATE kept SET bytes = substr(bytes, 1, 30) WHERE part = 0",
    ],
)
def test_words_that_are_not_as_they_were_kept_are_left(kept_views: Searched, damage: str) -> None:
    words = ResidentWords()
    words.fill(kept_views.connection)
    kept_in(kept_views, words)
    assert kept.read(kept_views.connection, KEPT)
    kept_views.connection.execute(damage)
    next_words = ResidentWords()
    next_words.fill_from_kept(kept_views.connection)
    assert next_words.of(kept_views.connection) is None


@pytest.mark.usefixtures("model")
async def test_a_service_keeps_the_words_for_the_next_and_erases_them(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resident_words, "KEPT_FROM", 2)
    monkeypatch.setattr(served_index, "PAUSE_S", 0.0)
    monkeypatch.setattr(served_index, "KEEP_EVERY_S", 0.02)

    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="the cellar is dry")
        stored = await it.caller.call("memory.store", content="the attic is damp", project="p")
        await it.caught_up()
        await it.caller.call("memory.query", text="cellar", mode="keyword")
        with closing(open_reader(it.daemon.services.views.file)) as reader:
            await until(lambda: kept.read(reader, KEPT))
    monkeypatch.setattr(resident_words, "_whole", lambda *_: None)
    async with served(paths, clock) as it:
        near, file = it.daemon.services.near, it.daemon.services.views.file
        await until(lambda: (index := near.index(file)) and index.words and index.words.size_bytes)
        await it.caller.call("memory.erase", memory_id=stored["memory_id"])
        with closing(open_reader(file)) as reader:
            assert reader.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_what_changes_at_once_is_read_anew_where_it_is_much_and_not_kept_where_it_is_too_much(
    views: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = list[int]()
    words = ResidentWords(lambda: wanted.append(1))
    words.fill(views.connection)
    monkeypatch.setattr(resident_words, "CHANGED_MAX", 3)
    for number in range(4):
        views.store(f"m{number}", "alpha")
    assert words.of(views.connection) is None
    words.fill(views.connection)
    assert words.of(views.connection) is not None
    monkeypatch.setattr(resident_words, "TOKENS_MAX", 12)
    views.store("last", "alpha beta")
    assert words.of(views.connection) is None
    words.fill(views.connection)
    assert len(wanted) == 2
    assert words.of(views.connection) is None
    assert len(wanted) == 2, "nobody asks again for what takes too much"


def test_few_words_are_left_in_the_file(views: Searched, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = list[int]()
    words = ResidentWords(lambda: wanted.append(1))
    monkeypatch.setattr(resident_words, "FEW", 2)
    for number in range(2):
        views.store(f"m{number}", "alpha")
        words.fill(views.connection)
        assert (words.of(views.connection) is not None) == bool(number)
        assert not wanted


def test_small_steps_come_to_few_segments(views: Searched) -> None:
    words = ResidentWords()
    words.fill(views.connection)
    for number in range(120):
        views.store(f"m{number}", f"alpha number{number}")
        found = words.of(views.connection)
    assert found is not None
    assert len(found.segments) <= 4
    assert words.tokenizer
    alpha, one = (found.holding(phrase) for phrase in map(words.tokenizer.tokens, ["alpha", "number7"]))
    assert alpha.latest(999).tolist() == [*range(120, 0, -1)]
    assert one.latest(999).tolist() == [8]
    assert counted([alpha], np.arange(122)).tolist() == [[0.0, *[1.0] * 120, 0.0]]
