"""Queries as of an earlier moment: the answer that was given then, what they cost, and what they leave
behind.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from omegad.catalog.methods import SERVED
from omegad.log.folding import Progress
from omegad.memory.events import MemoryStored
from omegad.requests.method import QueryMethod
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, NotFound, OmegadError, Refused, Stale, StorageFull
from omegad.runtime.times import rfc3339
from omegad.search.events import MemoryQueried
from omegad.views import generation, past
from omegad.views.workers import Work
from tests.builders import (
    FakeClock,
    FakeModel,
    Served,
    T,
    WorkersHere,
    append,
    deleted,
    edited,
    embedded,
    erased,
    everything,
    linked,
    paths_in,
    put_model,
    queried,
    rated,
    served,
    skill_improved,
    stored,
    thesis_stated,
    tool_called,
    until,
)

KEYWORDS = Config(model="none")
WORDS = ("alpha", "beta", "gamma", "delta")
KINDS = ("store", "store", "edit", "delete", "restore", "supersede", "rate", "promote", "expire", "wait")
ASIDE = frozenset({"as_of", "since", "took_ms", "query_id", "stale_by"})
HISTORIES = int(os.environ.get("HISTORIES", "3"))
STEPS = 40

Step = tuple[int, int, int]
Asked = tuple[str, dict[str, object], Any]


async def told(it: Served, method: str, **params: object) -> Any:
    """Return an answer without what is of the asking itself."""
    answer = await it.caller.call(method, **params)
    return {name: value for name, value in answer.items() if name not in ASIDE}


def kept(paths: Paths) -> list[str]:
    return sorted(path.name for path in (paths.home / generation.PAST).glob("*.db"))


class Life:
    """A home in which numbers say what happens, and every question is kept with its answer."""

    def __init__(self, it: Served, clock: FakeClock) -> None:
        self.it = it
        self.clock = clock
        self.ids: list[str] = []
        self.asked: list[Asked] = []

    async def step(self, kind: int, one: int, other: int) -> None:
        name = KINDS[kind % len(KINDS)] if self.ids else "store"
        first, second = (self.ids[number % len(self.ids)] if self.ids else "" for number in (one, other))
        match name:
            case "store":
                content = f"{WORDS[one % 4]} {WORDS[other % 4]} of {one} and {other}"
                await self._do(
                    "memory.store",
                    content=content,
                    probation=bool(one % 2),
                    **({"ttl_seconds": 60 * (1 + other)} if other % 3 else {}),
                )
            case "edit":
                await self._do(
                    "memory.edit", memory_id=first, content=f"{WORDS[other % 4]} rather than {one}"
                )
            case "supersede":
                await self._do("memory.supersede", memory_id=first, superseded_by=second)
            case "rate":
                await self._do(
                    "memory.rate", memory_id=first, rating=("helpful", "unhelpful", "outdated")[other % 3]
                )
            case "expire":
                self.clock.us += 120_000_000 * other
                await self.it.expire()
            case "wait":
                self.clock.us += 3_600_000_000 * one
            case _:
                await self._do(f"memory.{name}", memory_id=first)
        await self._ask(
            text=f"{WORDS[one % 4]} {WORDS[other % 4]}",
            mode=("hybrid", "keyword", "semantic", "phrase")[other % 4],
            explain=bool(one % 2),
        )

    async def _do(self, method: str, **params: object) -> None:
        try:
            answer = await self.it.caller.call(method, **params)
        except (Invalid, Refused):
            return  # what the guards do not let come about
        if method == "memory.store" and answer["memory_id"] not in self.ids:
            self.ids.append(answer["memory_id"])

    async def _ask(self, **params: object) -> None:
        answer = await self.it.caller.call("memory.query", **params)
        self.asked.append(
            (answer["query_id"], params, {name: value for name, value in answer.items() if name not in ASIDE})
        )


@settings(
    max_examples=HISTORIES, phases=[Phase.generate]
)  # a history of fewer steps is no clearer, and takes minutes to find
@given(
    steps=st.lists(
        st.tuples(st.integers(0, len(KINDS) - 1), st.integers(0, 9), st.integers(0, 9)),
        min_size=STEPS,
        max_size=STEPS,
    )
)
def test_an_earlier_query_is_answered_as_it_was_then(steps: list[Step]) -> None:
    async def scenario(folder: Path) -> None:
        paths, clock = paths_in(folder), FakeClock()
        put_model(paths.models)
        asked = list[Asked]()
        ids = list[str]()
        for start in range(
            0, STEPS, STEPS // 2
        ):  # copies of the views are taken meanwhile, and outlive the service
            async with served(paths, clock) as it:
                life = Life(it, clock)
                life.ids, life.asked = ids, asked
                for step in steps[start : start + STEPS // 2]:
                    await life.step(*step)
                    await it.caught_up()
                    await it.daemon.services.past.copies.take()
        async with served(paths, clock) as it:
            assert it.daemon.services.past.copies.all()
            for query_id, params, answer in asked:
                again = await it.caller.call("memory.query", **params, as_of=query_id)
                assert {name: value for name, value in again.items() if name not in ASIDE} == answer
                assert again["as_of"]["is_comparable"]
                assert again["as_of"]["changed"] == {}

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(past, "COPY_EVERY", 30)
        patched.setattr("omegad.embedding.embedder._load_session", lambda _folder, _manifest: FakeModel())
        anyio.run(scenario, Path(folder))


async def test_a_moment_is_a_position_a_time_or_a_query(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = (await it.caller.call("memory.store", content="alpha runs on blue"))["memory_id"]
        query_id = (await it.caller.call("memory.query", text="alpha"))["query_id"]
        position = await it.caught_up()
        at = (await everything(it.daemon.services.log))[position - 1].recorded_at
        clock.us += 60_000_000
        await it.caller.call("memory.edit", memory_id=memory_id, content="alpha runs on green")
        for as_of in (position, str(position), query_id, rfc3339(at), rfc3339(at + 1_000)):
            answer = await it.caller.call("memory.get", memory_id=memory_id, as_of=as_of)
            assert answer["content"] == "alpha runs on blue", as_of
        for as_of in (0, rfc3339(clock.us - 3_600_000_000)):
            assert (await it.caller.call("memory.list", as_of=as_of))["memories"] == []
            with pytest.raises(NotFound):
                await it.caller.call("memory.get", memory_id=memory_id, as_of=as_of)
        for as_of, wrong in (
            (10**6, "beyond the end"),
            ("2026-99-01", "not a time"),
            ("9000-01-01", "yet to come"),
            (-1, "as_of"),
            ("", "as_of"),
        ):
            with pytest.raises(Invalid, match=wrong):
                await it.caller.call("memory.list", as_of=as_of)
        with pytest.raises(NotFound, match="no query"):
            await it.caller.call("memory.list", as_of="01890a5d-ac96-774b-bcce-b302099a8057")


GIVEN = {"paths": ["/nowhere/alpha.py"], "text": "alpha", "sql": "SELECT content, status FROM memories"}
"""What queries cannot do without, beside the ids of what is there."""
BESIDE = {"receipts.list": ("memory_id",), "memory.stale": ("days",), "context.assemble": ("query",)}
"""What more they are asked with, so that they have something to say."""


def required(params: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(params) if field.required]


async def test_every_query_looks_back_and_leaves_no_trace(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = (
            await it.caller.call(
                "memory.store", content="alpha is slow", event_type="lesson_learned", session_id="s-1"
            )
        )["memory_id"]
        thesis_id = (await it.caller.call("thesis.state", statement="alpha is slow because of beta"))[
            "thesis_id"
        ]
        task_id = (await it.caller.call("task.create", title="make alpha quick"))["task_id"]
        known = {
            "memory_id": memory_id,
            "thesis_id": thesis_id,
            "task_id": task_id,
            "session_id": "s-1",
            "days": 0,
            "query": "alpha",
            "project": "shop",
            **GIVEN,
        }
        asked = {
            name: {key: known[key] for key in (*required(method.params), *BESIDE.get(name, ()))}
            for name, method in SERVED.items()
            if isinstance(method, QueryMethod)
        }
        then = dict[str, Any]()
        for name, params in asked.items():
            position = await it.caught_up()
            then[name] = (position, await told(it, name, **params))
        await it.caught_up()
        await it.caller.call("memory.delete", memory_id=memory_id)
        await it.caller.call("memory.store", content="alpha is quick", event_type="lesson_learned")
        head = await it.caught_up()
        for name, params in asked.items():
            position, answer = then[name]
            assert await told(it, name, **params, as_of=position) == answer, name
        assert await it.caught_up() == head


async def test_what_an_answer_was_made_with_otherwise_is_said(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha")
        await it.caught_up()
        old = queried(
            query_id="q-old",
            read_position=1,
            ranking_version=1,
            embedder_id="another",
            versions={"memories": 1, "theses": 1},
        )
        await append(
            it.daemon.services.log, old, queried(query_id="q-older", read_position=1, mode="keyword")
        )
        found = (await it.caller.call("memory.query", text="alpha", as_of="q-old"))["as_of"]
        assert found["is_comparable"]
        assert {name: then for name, (then, _) in found["changed"].items()} == {
            "memories": 1,
            "ranking": 1,
            "embedder": "another",
        }
        found = (await it.caller.call("memory.query", text="alpha", as_of="q-older"))["as_of"]
        assert not found["is_comparable"]
        assert found["changed"].keys() == {"ranking"}
    assert model.texts


async def test_what_was_erased_since_is_not_shown_and_counted(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        answer = await it.caller.call("memory.store", content="alpha secret")
        query_id = (await it.caller.call("memory.query", text="alpha"))["query_id"]
        position = await it.caught_up()
        assert (await it.caller.call("memory.list", as_of=position))["memories"]
        assert b"alpha secret" in b"".join(
            path.read_bytes() for path in (paths.home / generation.PAST).iterdir()
        )
        recorded = next(
            one.position
            for one in await everything(it.daemon.services.log)
            if isinstance(one.event, MemoryQueried)
        )
        log, sql = it.daemon.services.log, "DELETE FROM payloads WHERE position IN (?, ?)"
        await append(log, erased(answer["position"], recorded))
        await log._writer.run(
            lambda connection: connection.execute(sql, (answer["position"], recorded)).fetchall()
        )
        found = await it.caller.call("memory.list", as_of=position)
        assert (found["memories"], found["as_of"]["erased"]) == ([], 2)
        assert b"alpha secret" not in b"".join(
            path.read_bytes() for path in (paths.home / generation.PAST).iterdir()
        )
        with pytest.raises(Invalid, match="erased"):
            await it.caller.call("memory.list", as_of=query_id)


async def test_few_moments_are_kept_and_none_beyond_the_service(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        for number in range(12):
            await it.caller.call("memory.store", content=f"alpha {number} of {'x' * number}")
        await it.caught_up()
        counts: dict[int, int] = {}

        async def ask(position: int) -> None:
            page = await it.caller.call("memory.list", as_of=position, limit=100)
            counts[position] = len(page["memories"])
            assert page["position"] == position

        async with anyio.create_task_group() as tasks:
            for position in (9, 3, 12, 1, 9, 6, 3, 12, 2, 7):
                tasks.start_soon(ask, position)
        positions = [
            one.position
            for one in await everything(it.daemon.services.log)
            if isinstance(one.event, MemoryStored)
        ]
        assert counts == {position: sum(one <= position for one in positions) for position in counts}
        await ask(7)
        assert len(kept(paths)) == past.FILES_MAX
        monkeypatch.setattr(past, "BYTES_MAX", 1)
        await ask(5)
        assert len(kept(paths)) == 1
        with monkeypatch.context() as full:
            full.setattr(past, "ROOM", 2**62)
            with pytest.raises(StorageFull):
                await ask(4)
        with monkeypatch.context() as soon:
            soon.setattr(past, "IDLE_S", 0.0)
            soon.setattr(past, "TIDY_EVERY_S", 0.01)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it.daemon.services.past.run)
                await until(lambda: not kept(paths))
                tasks.cancel_scope.cancel()
        await ask(5)
    assert kept(paths) == []


async def test_what_takes_long_says_how_far_it_is_and_goes_on(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = anyio.Event()
    async with served(paths, clock, KEYWORDS) as it:
        await append(
            it.daemon.services.log, *(stored(f"mem-{number}", f"alpha {number}") for number in range(20))
        )
        position, genuine = await it.caught_up(), WorkersHere.done

        async def slow(self: WorkersHere, work: Work, answer: type[T], tell: Progress) -> T:
            tell(position // 4, position)
            await may_go_on.wait()
            return await genuine(self, work, answer, tell)

        monkeypatch.setattr(WorkersHere, "done", slow)
        with monkeypatch.context() as hasty:
            hasty.setattr(past, "WAIT_S", 0.05)
            for asked in (position, position, 3):
                with pytest.raises(Stale, match=f"position {position} are being made: 25 %"):
                    await it.caller.call("memory.list", as_of=asked)
        may_go_on.set()
        assert len((await it.caller.call("memory.list", as_of=position, limit=100))["memories"]) == 20
        assert len(kept(paths)) == 1


async def test_copies_are_few_spread_out_and_of_this_log_and_version(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 10)
    monkeypatch.setattr(past, "COPIES_TIMES", 100)
    monkeypatch.setattr(past, "COPIES_MAX", 4)

    def positions(it: Served) -> list[int]:
        return [position for position, _ in it.daemon.services.past.copies.all()]

    async with served(paths, clock, KEYWORDS) as it:
        for part in range(8):
            await append(it.daemon.services.log, *(tool_called(10 * part + number) for number in range(10)))
            await it.caught_up()
            await it.daemon.services.past.copies.take()
            await it.daemon.services.past.copies.take()
        assert positions(it) == [20, 40, 60, 80]
        monkeypatch.setattr(past, "COPIES_TIMES", 2)
        await append(it.daemon.services.log, *(tool_called(number) for number in range(100, 110)))
        await it.caught_up()
        await it.daemon.services.past.copies.take()
        assert len(positions(it)) == 2
    (folder := paths.home / generation.PAST).joinpath("copy-7-0123456789abcdef.db").write_bytes(
        b"of another log"
    )
    async with served(paths, clock, KEYWORDS) as it:
        assert len(positions(it)) == 2
        assert 7 not in positions(it)
    monkeypatch.setattr("projections.audit.VERSION", 10**6)
    async with served(paths, clock, KEYWORDS) as it:
        assert positions(it) == []
        assert [path for path in folder.iterdir() if path.suffix == ".db"] == []


async def test_a_folder_that_is_in_nobodys_power_ends_no_service(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 1)
    monkeypatch.setattr(past, "TIDY_EVERY_S", 0.01)
    (paths.home / "asof").write_text("in the way")
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = (await it.caller.call("memory.store", content="alpha runs on blue"))["memory_id"]
        position = await it.caught_up()
        await anyio.sleep(0.3)  # of which nothing is told but in the daemon's own log
        with pytest.raises(OmegadError, match="asof"):
            await it.caller.call("memory.get", memory_id=memory_id, as_of=position)
        (paths.home / "asof").unlink()
        for as_of in (position, position - 1):
            await it.caller.call("memory.list", as_of=as_of)
            for kept in (paths.home / "asof").glob("[0-9]*.db"):
                kept.unlink()
        assert (await it.caller.call("memory.get", memory_id=memory_id))["content"] == "alpha runs on blue"


async def test_what_changed_between_two_moments_is_told_by_what_it_is_about(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        log = it.daemon.services.log
        await append(
            log,
            stored("mem-1", "alpha"),
            stored("mem-2", "beta"),
            thesis_stated("th-1", statement="beta is slow"),
        )
        await append(
            log,
            edited("mem-1", "gamma"),
            rated("mem-1"),
            rated("mem-1"),
            embedded("mem-2", "beta"),
            queried(("mem-1", 0.5)),
        )
        await append(log, skill_improved("search"), deleted("mem-1"), linked("mem-2", "mem-1"))

        async def diff(**params: object) -> tuple[list[tuple[object, ...]], Any]:
            answer = await it.caller.call("log.diff", **params)
            return [
                (one["noun"], one["id"], *one["what"], one["text"], one["first"], one["last"])
                for one in answer["changes"]
            ], answer

        changes, answer = await diff(**{"from": 3, "to": 10})
        assert changes == [
            ("memory", "mem-1", "edited", "rated", "deleted", "gamma", 4, 10),
            ("skill", "search", "improved", None, 9, 9),
        ]
        assert answer["tags"]["memory.rated"] == 2
        assert answer["tags"].keys() >= {"memory.queried", "memory.embedded"}
        assert answer["next"] is None
        parts, answer = await diff(**{"from": 0, "limit": 2, "to": 11})
        assert [part[1] for part in parts] == ["mem-1", "mem-2"]
        assert answer["next"] == answer["to"] == 2
        rest, answer = await diff(**{"from": 2, "to": 11, "limit": 4})
        assert [part[:2] for part in rest] == [
            ("thesis", "th-1"),
            ("memory", "mem-1"),
            ("skill", "search"),
            ("memory", "mem-2"),
        ]
        assert answer["to"] == 11
        with pytest.raises(Invalid, match="before"):
            await diff(**{"from": 3, "to": 2})
