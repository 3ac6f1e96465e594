"""Logged queries asked again: what is otherwise and nothing else, and what that is worth."""

import os
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import projections
from omegad.catalog.events import CODEC
from omegad.embedding import catalogue
from omegad.log.event import NewEvent
from omegad.operations import replaying
from omegad.operations.replay_report import Replayed
from omegad.operations.replaying import Home, Otherwise, Wanted, replay
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, ModelFailed, ModelMissing, Stale
from omegad.runtime.times import rfc3339
from omegad.search import model as weights
from omegad.search.events import MemoryQueried
from omegad.storage.database import open_untouched, open_writer
from tests.builders import (
    FakeClock,
    FakeModel,
    Served,
    append,
    paths_in,
    put_model,
    rated,
    running_log,
    served,
    session_ended,
)
from tests.histories import STEPS, Step, history

HISTORIES = int(os.environ.get("HISTORIES", "10"))
HOMES = Path(__file__).parents[1] / "homes"
KEYWORDS = Config(model="none")
NOTHING = Otherwise()
SAME = Otherwise(weights=weights.read(weights.written()))
"""Weights that are those in force, with which every question is asked twice."""
NOTES = (
    "The billing service retries with jitter",
    "The billing service times out after nine seconds",
    "The image resizer leaks file descriptors",
    "The webhook relay signs every message",
    "The billing export runs at night",
)
QUESTIONS = ("billing service", "who leaks descriptors?", "what is signed", "billing at night", "zebra")


def again(
    paths: Paths,
    otherwise: Otherwise = NOTHING,
    wanted: Wanted | None = None,
    *,
    model: FakeModel | None = None,
) -> Replayed:
    """Ask the questions of a home again; they are all looked at."""
    home = Home(paths, Config(), CODEC, projections.ALL, lambda _folder, _manifest: model or FakeModel())
    return replay(home, wanted or Wanted(), otherwise, 1_000, lambda _done, _total, _what: None)


def bytes_of(home: Path) -> dict[str, bytes]:
    return {
        path.relative_to(home).as_posix(): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


async def ask(it: Served, *texts: str, **params: Any) -> list[dict[str, Any]]:
    return [await it.caller.call("memory.query", text=text, **params) for text in texts]


def found(answers: list[dict[str, Any]]) -> dict[str, list[str]]:
    return {one["query_id"]: [result["memory_id"] for result in one["results"]] for one in answers}


async def filled(paths: Paths, clock: FakeClock, config: Config = KEYWORDS) -> dict[str, list[str]]:
    """Fill a home with notes and questions between them; return the ids that answered, by query."""
    async with served(paths, clock, config) as it:
        answers = list[dict[str, Any]]()
        for note in NOTES:
            await it.caller.call("memory.store", content=note)
            await it.caught_up()
            clock.us += 3_600_000_000
            answers += await ask(it, *QUESTIONS, mode="hybrid" if config is not KEYWORDS else "keyword")
        await it.caught_up()
    return found(answers)


@pytest.mark.parametrize("otherwise", [NOTHING, SAME, Otherwise(embedder=catalogue.MINILM.name)])
async def test_with_nothing_otherwise_all_is_answered_as_it_was(
    paths: Paths, clock: FakeClock, model: FakeModel, otherwise: Otherwise
) -> None:
    answers = await filled(paths, clock, Config())
    before = bytes_of(paths.home)
    report = again(paths, otherwise, model=model)
    assert (report.asked, report.same, report.differences) == (len(answers), len(answers), [])
    assert (report.unlike_log, report.unreadable, report.left_out) == (0, 0, 0)
    assert any(map(bool, answers.values()))
    assert bytes_of(paths.home) == before


@settings(max_examples=HISTORIES, deadline=None)
@given(steps=STEPS, mode=st.sampled_from(["hybrid", "keyword"]))
def test_any_log_can_be_asked_again(steps: list[Step], mode: str) -> None:
    async def scenario(folder: Path) -> None:
        paths = paths_in(folder)
        paths.home.mkdir(parents=True, exist_ok=True)
        put_model(paths.models, "embedder-0")
        async with running_log(paths.log) as log:
            events = [
                msgspec.structs.replace(
                    event, mode=mode, read_position=place, text=f"memory CamelCase{place % 10}"
                )
                if isinstance(event, MemoryQueried)
                else event
                for place, event in enumerate(history(steps))
            ]
            if events:
                await append(log, *events)
        asked = sum(isinstance(event, MemoryQueried) for event in events)
        for otherwise in (NOTHING, SAME, Otherwise(embedder="none"), Otherwise(frozenset({"mem-0"}))):
            report = again(paths, otherwise)
            assert report.asked + report.unreadable == asked
            assert report.same + report.changed == report.asked
            if otherwise in (NOTHING, SAME):
                assert report.changed == 0
            if otherwise.without:
                assert all("mem-0" in one.before for one in report.differences)
                assert not any("mem-0" in one.after for one in report.differences)

    with TemporaryDirectory() as folder:
        anyio.run(scenario, Path(folder))


@pytest.mark.parametrize("name", sorted(path.name.removesuffix(".tar.xz") for path in HOMES.glob("*.tar.xz")))
def test_a_home_of_before_is_asked_again_and_stays_as_it_was(name: str, paths: Paths) -> None:
    paths.home.mkdir(mode=0o700, exist_ok=True)
    with tarfile.open(HOMES / f"{name}.tar.xz") as packed:
        packed.extractall(paths.home, filter="data")
    before = bytes_of(paths.home)
    report = again(paths, SAME)
    assert report.asked > 0
    assert (report.changed, report.differences) == (0, [])
    assert bytes_of(paths.home) == before


async def test_without_a_memory_exactly_those_answers_change_that_held_it(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    answers = await filled(paths, clock, Config())
    everyone = {memory_id for ids in answers.values() for memory_id in ids}
    for memory_id in everyone:
        report = again(paths, Otherwise(frozenset({memory_id})), model=model)
        changed = {one.query_id: one for one in report.differences}
        assert changed.keys() == {query_id for query_id, ids in answers.items() if memory_id in ids}
        for query_id, one in changed.items():
            assert list(one.before) == answers[query_id]
            assert memory_id not in one.after
            assert memory_id in {it.memory_id for it in one.moved if it.after is None}
    report = again(paths, Otherwise(frozenset(everyone)), model=model)
    held = sum(map(bool, answers.values()))
    assert (report.changed, report.abstentions_gained, report.came) == (held, held, 0)
    assert again(paths, model=model).changed == 0


async def test_what_comes_in_the_place_of_a_memory_is_the_next_best(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for number in range(4):
            await it.caller.call("memory.store", content=f"alpha {'beta ' * number}{number}")
        await it.caught_up()
        (all_of,) = found(await ask(it, "alpha beta", mode="keyword", limit=4)).values()
        await ask(it, "alpha beta", mode="keyword", limit=2)
        await it.caught_up()
    (one,) = again(paths, Otherwise(frozenset({all_of[0]})), Wanted(limit=1)).differences
    assert (one.before, one.after) == (tuple(all_of[:2]), tuple(all_of[1:3]))
    assert [(it.memory_id, it.before, it.after) for it in one.moved] == [
        (all_of[0], 1, None),
        (all_of[1], 2, 1),
        (all_of[2], None, 2),
    ]
    assert one.moved[0].text.startswith("alpha")


async def test_other_weights_answer_otherwise(paths: Paths, clock: FakeClock) -> None:
    await filled(paths, clock)
    force = weights.fitted()
    opposite = {
        name: msgspec.structs.replace(weight, short=-weight.short, long=-weight.long)
        for name, weight in force.ranking.items()
    }
    report = again(paths, Otherwise(weights=msgspec.structs.replace(force, ranking=opposite)))
    assert report.changed > 0
    assert (report.left, report.came, report.unlike_log) == (0, 0, 0)
    assert all(set(one.before) == set(one.after) for one in report.differences)


async def test_another_embedder_answers_by_its_own_vectors_from_when_something_was_said(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        first = (await it.caller.call("memory.store", content="alpha is slow"))["memory_id"]
        await it.caught_up()
        await ask(it, "beta is quick")
        await it.caller.call("memory.edit", memory_id=first, content="beta is quick")
        await it.caught_up()
        await ask(it, "beta is quick", "beta is quick")
        await it.caught_up()
    put_model(paths.models)
    model = FakeModel()
    before = bytes_of(paths.home)
    report = again(paths, Otherwise(embedder=catalogue.MINILM.name), model=model)
    assert model.texts.count("alpha is slow") == 1
    assert model.texts.count("beta is quick") == 2  # as a memory's text, and once as a question's
    assert report.asked == 3
    assert bytes_of(paths.home) == before
    with pytest.raises(ModelMissing, match=r"bge-small-en-v1.5.*not installed; there is none, all-MiniLM"):
        again(paths, Otherwise(embedder="bge-small-en-v1.5"))


async def test_without_its_model_a_question_is_asked_by_its_words_and_that_is_said(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    answers = await filled(paths, clock, Config())
    report = again(paths, Otherwise(embedder="none"), model=model)
    assert (report.asked, report.unlike_log) == (len(answers), 0)
    put_model(paths.models, "another")
    report = again(paths, model=model)
    assert report.asked == len(answers)
    assert report.unlike_log_by.keys() <= {"embedder"}
    assert report.changed == 0


async def test_a_text_that_a_model_fails_on_is_found_by_its_words_and_a_model_that_does_not_load_is_told(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    answers = await filled(paths, clock, Config())
    model.failing = True
    report = again(paths, model=model)
    assert (report.asked, report.changed) == (len(answers), 0)

    def load(_folder: Path, _manifest: object) -> FakeModel:
        raise RuntimeError("out of luck")

    home = Home(paths, Config(), CODEC, projections.ALL, load)
    with pytest.raises(ModelFailed, match="all-MiniLM-L6-v2 cannot be loaded: out of luck"):
        replay(home, Wanted(), NOTHING, 0, lambda _done, _total, _what: None)


async def test_vectors_that_the_cache_has_lost_are_computed(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    await filled(paths, clock, Config())
    for path in paths.home.glob("embeddings.db*"):
        path.unlink()
    again_by = FakeModel()
    assert again(paths, SAME, model=again_by).unlike_log == 0
    assert set(NOTES) <= set(again_by.texts)
    assert not paths.embeddings.exists()
    assert model.texts


async def test_what_was_right_is_told_by_ratings_and_by_what_sessions_used(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for note in ("alpha one", "alpha two", "beta"):
            await it.caller.call("memory.store", content=note)
        await it.caught_up()
        first = found(await ask(it, "alpha", mode="keyword", asked_in="s-1"))
        await ask(it, "alpha", mode="keyword", asked_in="s-2")
        await ask(it, "beta", mode="keyword", asked_in="s-3")
        await it.caught_up()
        assert again(paths, Otherwise()).known == 0
        used, wrong = next(iter(first.values()))
        log = it.daemon.services.log
        end = (await append(log, NewEvent(event=session_ended(), session_id="s-1"))).position
        await append(log, NewEvent(event=rated(used), cause=end))
        await it.caller.call("memory.rate", memory_id=wrong, rating="unhelpful")
        await it.caught_up()
    report = again(paths)
    assert report.known == 1  # of s-1, whose end said so; s-2 was shown last what is wrong
    assert (report.recall, report.mrr, report.wrong) == ((1.0, 1.0), (1.0, 1.0), (1, 1))
    report = again(paths, Otherwise(frozenset({used, wrong})))
    assert (report.recall, report.mrr, report.wrong) == ((1.0, 0.0), (1.0, 0.0), (1, 0))
    told = {
        it.memory_id: it.is_right for one in report.differences for it in one.moved if it.is_right is not None
    }
    assert told == {used: True, wrong: False}


async def test_questions_are_chosen_by_time_position_project_and_number(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call("memory.store", content="alpha", project="p")
        await ask(it, "alpha one", project="p")
        first = await it.caught_up()
        clock.us += 86_400_000_000
        since = rfc3339(clock.us)
        await ask(it, "alpha two")
        second = await it.caught_up()
        clock.us += 86_400_000_000
        await ask(it, "alpha three", project="p")
        await it.caught_up()

    def texts(**wanted: Any) -> list[str]:
        with closing(open_untouched(paths.log)) as log:
            questions, *left_out = replaying.chosen(log, CODEC, Wanted(**wanted))
        assert left_out == [0, 0]
        return [question.event.text for question in questions]

    assert texts() == ["alpha one", "alpha two", "alpha three"]
    assert texts(project="p") == ["alpha one", "alpha three"]
    assert texts(limit=2) == ["alpha two", "alpha three"]
    assert texts(since=since) == ["alpha two", "alpha three"]
    assert texts(until=since) == ["alpha one"]
    assert texts(since=str(first + 1), until=str(second)) == ["alpha two"]
    with pytest.raises(Invalid, match="since is not a time"):
        texts(since="yesterday")


async def test_what_was_erased_is_neither_asked_nor_answered(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        kept = (await it.caller.call("memory.store", content="alpha kept"))["memory_id"]
        gone = (await it.caller.call("memory.store", content="alpha secret"))["memory_id"]
        await it.caught_up()
        (held,) = await ask(it, "alpha", mode="keyword")
        await ask(it, "secret alpha", mode="keyword")
        await it.caught_up()
        await it.caller.call("memory.erase", memory_id=gone)
        await it.caught_up()
    assert len(held["results"]) == 2
    report = again(paths, Otherwise(frozenset({kept})))
    assert report.asked + report.unreadable == 2
    assert report.unlike_log >= 1
    assert all(one.before == (kept,) and one.after == () for one in report.differences)
    assert b"alpha secret" not in msgspec.json.encode(report)


async def test_an_erasure_meanwhile_ends_it_without_an_answer(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(paths, clock)

    def erase(*_: object) -> None:
        with closing(open_writer(paths.log, durable=False)) as log:
            log.execute("INSERT OR IGNORE INTO erasures VALUES (1)")

    monkeypatch.setattr(replaying, "judge", erase)
    with pytest.raises(Stale, match="the log has lost"):
        again(paths)


async def test_what_there_is_no_time_for_is_left_out_and_counted(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = await filled(paths, clock)
    now = iter(range(100_000))
    monkeypatch.setattr("omegad.operations.replaying.time.monotonic", lambda: float(next(now)))
    report = again(paths, NOTHING, Wanted(within_s=20.0))
    assert 0 < report.asked < len(answers)
    assert report.left_out == len(answers) - report.asked


async def test_a_log_whose_daemon_was_killed_is_read_and_left_as_it_is(
    paths: Paths, clock: FakeClock
) -> None:
    answers = await filled(paths, clock)
    writer = open_writer(paths.log, durable=True)
    try:
        writer.execute("PRAGMA user_version=7")
        left = {name: data for name, data in bytes_of(paths.home).items() if name.startswith("log.db")}
    finally:
        writer.close()
    for name, data in left.items():
        (paths.home / name).write_bytes(data)
    assert len(left["log.db-wal"]) > 0
    del left["log.db-shm"]  # what whoever has it open tells the others
    assert again(paths).asked == len(answers)
    assert {name: (paths.home / name).read_bytes() for name in left} == left


async def test_nothing_lies_about_meanwhile_and_nothing_is_left_where_it_is_broken_off(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answers = await filled(paths, clock)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    told = list[int]()

    def progress(done: int, _total: int, _what: str) -> None:
        assert list(folder.iterdir()) == []  # so that not even what is killed leaves anything
        told.append(done)
        if len(told) > len(answers):
            raise KeyboardInterrupt

    home = Home(paths, KEYWORDS, CODEC, projections.ALL)
    with pytest.raises(KeyboardInterrupt):
        replay(home, Wanted(), NOTHING, 0, progress)
    assert list(folder.iterdir()) == []


def test_there_has_to_be_a_log(paths: Paths) -> None:
    with pytest.raises(Invalid, match="no log at"):
        again(paths)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"floor": 2.0}, "floor: 2 is no probability"),
        ({"caution": 0.5}, "caution: 0.5 is less than once the floor"),
        ({"floor": "much"}, "Expected `float`, got `str`"),
        ({"confidence": {}}, "confidence lacks 'by_chance'"),
        ({"confidence_by_words": {"luck": 1.0}}, "confidence_by_words"),
        ({"newness": {"reach": 1.0, "same": [0.5, 0.5], "blind": 0.5}}, "newness.same: 0.5 is not below 0.5"),
        ({"newness": {"reach": 1e7, "same": [0.1, 0.5], "blind": 0.5}}, "1e\\+07 is larger"),
        ({"lengths": [1.0, 0.0]}, "lengths: 1 is not below 0"),
        ({"colour": "red"}, "unknown field `colour`"),
    ],
)
def test_weights_that_cannot_be_ranked_with_are_refused(changes: dict[str, Any], wrong: str) -> None:
    written = msgspec.json.decode(weights.written())
    assert weights.read(msgspec.json.encode(written)) == weights.fitted()
    with pytest.raises(Invalid, match=wrong):
        weights.read(msgspec.json.encode(written | changes))
    with pytest.raises(Invalid, match="these are no weights"):
        weights.read(b"{")


def test_weights_beyond_what_a_float_can_raise_to_are_a_probability_still() -> None:
    assert weights.probability({"intercept": -1e6}, {"intercept": 1.0}) == pytest.approx(0.0)
    assert weights.probability({"intercept": 1e6}, {"intercept": 1.0}) == pytest.approx(1.0)
