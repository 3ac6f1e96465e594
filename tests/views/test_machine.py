"""Any sequence of what can happen to a home: the views equal the log, and the answers do not depend on the
views having been there before.
"""

import asyncio
import os
import tempfile
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import projections
from omegad.embedding import embedder
from omegad.log.decision import Proposal
from omegad.memory.upkeep.expiry import ExpireMemories, expire
from omegad.runtime.config import Config
from omegad.runtime.errors import Conflict, NotFound, Refused
from omegad.storage.digest import Digest, digest
from tests.builders import FakeClock, FakeModel, Served, everything, paths_in, put_model, served
from tests.projections.test_contract import Views

HOUR_US = 3_600_000_000
WORDS = ("alpha", "beta", "gamma", "delta", "not", "3.12")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join) | st.sampled_from(
    [
        "deploys go through blue-green in the cloud",
        "deploys go through blue-green in the cloud; rollbacks too",
        "Billing runs on PostgreSQL 16",
        "Billing switched from PostgreSQL 16 to CockroachDB",
        "Billing switched back from CockroachDB to PostgreSQL 16",
        "the port of the api is 8080",
        "the port of the api is now 9090",
        "PaymentGateway の設定値",
    ]
)
TYPES = st.sampled_from(["memory", "decision"])
OWN_TYPES = ["memory", "decision"]
QUESTIONS = (
    "alpha beta",
    "gamma",
    "delta 3.12",
    "which database does billing run on?",
    "payment gateway",
    "設定",
)


class Told(NamedTuple):
    """What a client knows of a memory."""

    content: str
    event_type: str
    ttl_us: int | None = None
    ends_us: float = float("inf")


class Shared(NamedTuple):
    """What clients know of a task."""

    status: str
    owner: str | None
    waits_for: tuple[str, ...]


class Home(RuleBasedStateMachine):
    """A home with a paper model, and what its clients were told."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.paths = paths_in(Path(self.folder.name))
        self.clock = FakeClock()
        self.runner = asyncio.Runner()
        self.stopping = asyncio.Event()
        self.active: dict[str, Told] = {}
        self.hidden: dict[str, Told] = {}
        self.requests: set[str] = set()
        self.tasks: dict[str, Shared] = {}

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    def call(self, method: str, **params: object) -> Any:
        return self.run(self.it.caller.call(method, **params))

    async def _start(self) -> None:
        is_up: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
        self.stopping = asyncio.Event()
        self.host = asyncio.create_task(self._serve(is_up))
        self.it = await is_up

    async def _serve(self, is_up: asyncio.Future[Served]) -> None:
        async with served(self.paths, self.clock, Config()) as it:
            is_up.set_result(it)
            await self.stopping.wait()

    async def _stop(self) -> None:
        await self.it.caught_up()
        self.stopping.set()
        await self.host

    @initialize()
    def begin(self) -> None:
        put_model(self.paths.models)
        self.run(self._start())

    def _some(self, data: st.DataObject) -> str:
        return str(data.draw(st.sampled_from([*sorted(self.active), *sorted(self.hidden), "mem-nobody"])))

    def _hide(self, memory_id: str) -> None:
        self.hidden[memory_id] = self.active.pop(memory_id)

    def _said(self, memory_id: str, content: str | None = None) -> None:
        """Note that a memory was said again, or now says something else, and lives on from now."""
        told = self.active[memory_id]
        ends_us = float("inf") if told.ttl_us is None else self.clock.us + told.ttl_us
        self.active[memory_id] = told._replace(content=content or told.content, ends_us=ends_us)

    def _holder(self, told: Told) -> str | None:
        return next(
            (
                name
                for name, one in self.active.items()
                if (one.content, one.event_type) == (told.content, told.event_type)
            ),
            None,
        )

    @rule(
        content=TEXTS,
        event_type=TYPES,
        request_id=st.none() | st.sampled_from(["r1", "r2"]),
        hours=st.none() | st.integers(1, 2),
    )
    def store(self, content: str, event_type: str, request_id: str | None, hours: int | None) -> None:
        request_id = request_id and f"{request_id} {content} {event_type} {hours}"
        ttl_seconds = hours and hours * 3_600
        params = {
            "content": content,
            "event_type": event_type,
            "request_id": request_id,
            "ttl_seconds": ttl_seconds,
        }
        answer = self.call("memory.store", **params)
        if request_id is None or request_id not in self.requests:
            ttl_us = None if hours is None else hours * HOUR_US
            self._stored(
                answer,
                Told(content, event_type, ttl_us, float("inf") if ttl_us is None else self.clock.us + ttl_us),
            )
            self._lasts(answer["memory_id"], ttl_us)
        if request_id:
            self.requests.add(request_id)
            assert self.call("memory.store", **params) == answer

    def _lasts(self, memory_id: str, ttl_us: int | None) -> None:
        """Note what a store promises whoever holds the content: the longer time to live of the two."""
        told = self.active[memory_id]
        if ttl_us is None:
            self.active[memory_id] = told._replace(ttl_us=None, ends_us=float("inf"))
        elif told.ttl_us is not None and ttl_us > told.ttl_us:
            self.active[memory_id] = told._replace(
                ttl_us=ttl_us, ends_us=max(told.ends_us, self.clock.us + ttl_us)
            )

    def _stored(self, answer: dict[str, Any], told: Told) -> None:
        memory_id = answer["memory_id"]
        match answer["outcome"]:
            case "stored":
                assert memory_id not in self.hidden
                assert self._holder(told) is None
                self.active[memory_id] = told
            case "evolved":
                grown = self.call("memory.get", memory_id=memory_id)["content"]
                assert grown == told.content
                assert grown.startswith(self.active[memory_id].content)
                self._said(memory_id, grown)
            case _:
                self._said(memory_id)
        assert self._holder(told) in {None, memory_id}
        for other in answer["superseded"]:
            self._hide(other)
        assert set(answer["contradicts"]) <= {*self.active, *answer["superseded"]}

    @rule(content=TEXTS)
    def store_durably(self, content: str) -> None:
        self.call("memory.store", content=f"durable {content}", event_type="checkpoint", ack="durable")

    @rule(data=st.data(), content=TEXTS, how=st.sampled_from(["edit", "edit durably", "upsert"]))
    def edit(self, data: st.DataObject, content: str, how: str) -> None:
        memory_id = self._some(data)
        params: dict[str, object] = {
            "memory_id": memory_id,
            "content": content,
            "ack": "durable" if how == "edit durably" else "related",
        }
        method = "memory.edit"
        if how == "upsert":
            method, params = (
                "memory.upsert",
                {**params, "source": "import", "timestamp": "2026-01-01", "confidence": 1.0},
            )
        try:
            self.call(method, **params)
        except Conflict:
            assert self._holder(self.active[memory_id]._replace(content=content)) not in {None, memory_id}
        except (NotFound, Refused):
            assert memory_id not in self.active
        else:
            if self.active[memory_id].content != content:
                self._said(memory_id, content)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        memory_id = self._some(data)
        try:
            self.call("memory.delete", memory_id=memory_id)
        except (NotFound, Refused):
            assert memory_id not in self.active
        else:
            if memory_id in self.active:
                self._hide(memory_id)

    @rule(data=st.data())
    def supersede(self, data: st.DataObject) -> None:
        memory_id, other = self._some(data), self._some(data)
        try:
            self.call("memory.supersede", memory_id=memory_id, superseded_by=other)
        except (NotFound, Refused):
            assert memory_id == other or not {memory_id, other} <= set(self.active)
        else:
            self._hide(memory_id)

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        memory_id = self._some(data)
        try:
            self.call("memory.restore", memory_id=memory_id)
        except Conflict:
            assert self._holder(self.hidden[memory_id]) is not None
        except (NotFound, Refused):
            assert memory_id not in self.hidden
        else:
            told = self.hidden.pop(memory_id)
            is_over = told.ends_us <= self.clock.us
            self.active[memory_id] = told._replace(ttl_us=None, ends_us=float("inf")) if is_over else told

    @rule(data=st.data(), rating=st.sampled_from(["helpful", "unhelpful", "outdated"]))
    def rate(self, data: st.DataObject, rating: str) -> None:
        memory_id = self._some(data)
        try:
            score = self.call("memory.rate", memory_id=memory_id, rating=rating)["score"]
        except NotFound:
            assert memory_id == "mem-nobody"
        else:
            assert self.call("memory.get", memory_id=memory_id)["rating"] == score

    @rule(data=st.data(), content=TEXTS)
    def capture_and_promote(self, data: st.DataObject, content: str) -> None:
        answer = self.call("memory.store", content=content, source="auto", probation=True)
        self._stored(answer, Told(content, "memory"))
        memory_id = self._some(data)
        try:
            self.call("memory.promote", memory_id=memory_id)
        except (NotFound, Refused):
            assert memory_id not in self.active
        else:
            assert self.call("memory.get", memory_id=memory_id)["status"] == "active"

    @rule(
        data=st.data(),
        edge_type=st.sampled_from(["related", "evolves"]),
        weight=st.sampled_from([0.25, 1.0]),
        link=st.booleans(),
    )
    def link_or_unlink(self, data: st.DataObject, edge_type: str, weight: float, *, link: bool) -> None:
        ends = {"memory_id": self._some(data), "target_id": self._some(data)}
        try:
            if link:
                self.call("memory.link", **ends, edge_type=edge_type, weight=weight)
            else:
                self.call("memory.unlink", **ends)
        except (NotFound, Refused):
            assert not link or "mem-nobody" in ends.values() or len(set(ends.values())) == 1
        else:
            edges = self.call("memory.get", memory_id=ends["memory_id"])["edges"]
            drawn = [
                edge["weight"]
                for edge in edges
                if (edge["memory_id"], edge["direction"]) == (ends["target_id"], "out")
            ]
            assert (weight in drawn) if link else drawn == []

    @rule(data=st.data(), probability=st.sampled_from([0.1, 0.9]), form=st.booleans())
    def state_a_thesis(self, data: st.DataObject, probability: float, *, form: bool) -> None:
        content = data.draw(TEXTS)
        try:
            if form:
                answer = self.call(
                    "memory.store",
                    content=content,
                    event_type="decision",
                    metadata={"thesis": True, "prior": probability},
                )
            else:
                answer = self.call("thesis.state", statement=content, prior=probability)
        except Conflict:
            return
        memory_id = answer["memory_id"]
        kept = self.call("memory.get", memory_id=memory_id)["content"]
        assert memory_id not in self.hidden
        self.active.setdefault(memory_id, Told(content, "decision"))
        self._said(memory_id, kept)
        self._lasts(memory_id, None)

    @rule(data=st.data(), side=st.sampled_from(["for", "against", "mentions"]))
    def give_or_retract_evidence(self, data: st.DataObject, side: str) -> None:
        if thesis_id := self._open_thesis(data):
            try:
                given = self.call(
                    "thesis.evidence", thesis_id=thesis_id, memory_id=self._some(data), side=side
                )
                if data.draw(st.booleans()):
                    self.call("thesis.retract", thesis_id=thesis_id, evidence_id=given["evidence_id"])
            except (NotFound, Refused):
                pass

    @rule(data=st.data(), outcome=st.sampled_from(["yes", "no", "n/a"]))
    def resolve_a_thesis(self, data: st.DataObject, outcome: str) -> None:
        if thesis_id := self._open_thesis(data):
            self.call("thesis.resolve", thesis_id=thesis_id, outcome=outcome, source="seen")
            with pytest.raises(Refused):
                self.call("thesis.predict", thesis_id=thesis_id, probability=0.5)

    def _open_thesis(self, data: st.DataObject) -> str | None:
        names = sorted(
            one["thesis_id"] for one in self.call("thesis.list")["theses"] if one["outcome"] is None
        )
        return data.draw(st.sampled_from(names)) if names else None

    @rule(are_recorded=st.booleans())
    def time_passes(self, *, are_recorded: bool) -> None:
        self.clock.us += HOUR_US * 2 // 5
        for memory_id in [name for name, told in self.active.items() if told.ends_us <= self.clock.us]:
            self._hide(memory_id)
        if are_recorded:
            named = (*self.active, *self.hidden)
            decide = partial(expire, ExpireMemories(memory_ids=named))
            self.run(self.it.daemon.services.log.append(Proposal(decide=decide)))

    @rule(tool_use_id=st.sampled_from(["t1", "t2", "t3"]))
    def call_a_tool(self, tool_use_id: str) -> None:
        first = self.call("tool.record", session_id="s", tool_name="Bash", tool_use_id=tool_use_id)
        assert self.call("tool.record", session_id="s", tool_name="Bash", tool_use_id=tool_use_id) == first

    @rule(data=st.data())
    def put_down_a_task(self, data: st.DataObject) -> None:
        waits_for = data.draw(st.lists(st.sampled_from(sorted(self.tasks)), max_size=2)) if self.tasks else []
        task_id = self.call("task.create", title="do it", depends_on=waits_for)["task_id"]
        self.tasks[task_id] = Shared("open", None, tuple(waits_for))

    @rule(session_id=st.sampled_from(["s", "other"]))
    def take_the_next_task(self, session_id: str) -> None:
        done = {task_id for task_id, known in self.tasks.items() if known.status == "completed"}
        ready = (
            task_id
            for task_id, known in self.tasks.items()
            if known.status == "open" and done.issuperset(known.waits_for)
        )
        taken = self.call("task.next", session_id=session_id)["task_id"]
        assert taken == next(ready, None)
        if taken:
            self.tasks[taken] = self.tasks[taken]._replace(status="claimed", owner=session_id)

    @rule(
        data=st.data(),
        session_id=st.sampled_from(["s", "other"]),
        settled=st.sampled_from(["completed", "failed"]),
    )
    def settle_a_task(self, data: st.DataObject, session_id: str, settled: str) -> None:
        if self.tasks:
            task_id = data.draw(st.sampled_from(sorted(self.tasks)))
            known = self.tasks[task_id]
            method, more = (
                ("task.complete", {}) if settled == "completed" else ("task.fail", {"reason": "no"})
            )
            try:
                self.call(method, task_id=task_id, session_id=session_id, **more)
            except Refused:
                assert (known.status, known.owner) != ("claimed", session_id)
            else:
                assert (known.status, known.owner) == ("claimed", session_id)
                self.tasks[task_id] = known._replace(status=settled)

    @rule(text=st.sampled_from(QUESTIONS), mode=st.sampled_from(["hybrid", "semantic", "keyword", "phrase"]))
    def ask(self, text: str, mode: str) -> None:
        found = self.call("memory.query", text=text, mode=mode, event_types=["memory", "decision"], limit=100)
        assert {one["memory_id"]: one["content"] for one in found["results"]}.items() <= {
            name: told.content for name, told in self.active.items()
        }.items()

    @rule(name=st.none() | st.sampled_from([projection.NAME for projection in projections.ALL]))
    def rebuild(self, name: str | None) -> None:
        assert self.call("views.rebuild", name=name)["ok"]

    @rule()
    def restart(self) -> None:
        self.run(self._stop())
        self.run(self._start())

    @rule(also_vectors=st.booleans())
    def lose_the_views(self, *, also_vectors: bool) -> None:
        self.run(self._backlog())
        before = self._answers()
        self.run(self._stop())
        for path in (
            *self.paths.home.glob("views*"),
            *(self.paths.home.glob("embeddings*") if also_vectors else ()),
        ):
            path.unlink()
        self.run(self._start())
        self.run(self._backlog())
        assert self._answers() == before

    @rule(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9))
    def show_the_log_in_other_batches(self, sizes: list[int]) -> None:
        self.run(self.it.caught_up())
        shown, live = self.run(self.it.daemon.services.views.read(_shown))
        # Vectors and queries are logged at moments of their own: what came after the views were read is left
        # out.
        log = self.run(everything(self.it.daemon.services.log))[:shown]
        anew, start = Views(), 0
        for size in (*sizes, len(log)):
            anew.apply(log[start : start + size])
            start += size
        assert anew.say() == live
        anew.connection.close()

    async def _backlog(self) -> None:
        """Wait until nothing lacks its vectors."""
        for _ in range(1_000):
            await self.it.caught_up()
            if not await self.it.daemon.services.views.read(_lacking):
                return
            await asyncio.sleep(0.005)
        raise AssertionError("the backlog is never worked off")

    def _answers(self) -> list[Any]:
        # What is stale is noted by the clock, which a daemon that was started again reads at once.
        listed = self.call("memory.list", limit=1_000, event_types=OWN_TYPES)["memories"]
        found = [
            self.call("memory.query", text=text, limit=100, mode="keyword", event_types=OWN_TYPES)["results"]
            for text in QUESTIONS
        ]
        counted = ("retrieval_count", "last_retrieved_at")
        kept = [{name: value for name, value in one.items() if name not in counted} for one in listed]
        return [kept, *(sorted(one["memory_id"] for one in results) for results in found)]

    @invariant()
    def the_views_equal_the_log(self) -> None:
        if not hasattr(self, "it"):
            return
        self.run(self.it.caught_up())
        report = self.call("views.verify")
        assert {name: view for name, view in report["views"].items() if not view["equal"]} == {}

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        if hasattr(self, "it"):
            listed = self.call("memory.list", limit=1_000, event_types=OWN_TYPES)["memories"]
            assert {one["memory_id"]: one["content"] for one in listed} == {
                name: told.content for name, told in self.active.items()
            }

    @invariant()
    def an_id_once_acknowledged_answers_for_ever(self) -> None:
        for memory_id, told in self.hidden.items():
            found = self.call("memory.get", memory_id=memory_id)
            assert found["content"] == told.content

    def teardown(self) -> None:
        if hasattr(self, "it"):
            report = self.call("log.verify")
            assert (report["ok"], report["problems"]) == (True, [])
            self.run(self._stop())
        self.runner.close()
        self.folder.cleanup()


def _shown(connection: Any) -> tuple[int, dict[str, Digest]]:
    """Return the position that every view shows, and what they say there, of one snapshot."""
    ((position,),) = connection.execute("SELECT DISTINCT position FROM checkpoints").fetchall()
    return position, {one.NAME: digest(connection, one) for one in projections.ALL}


def _lacking(connection: Any) -> int:
    sql = """
    SELECT (SELECT count(*) FROM deferred AS d JOIN memory_vectors AS v ON v.id = d.position * 1024)
         + (SELECT count(*) FROM memories WHERE status != 'deleted'
         AND node_id NOT IN (SELECT memory_id FROM memory_vectors))
    """
    found: int = connection.execute(sql).fetchone()[0]
    return found


@pytest.mark.long
class TestHome(Home.TestCase):  # type: ignore[misc, valid-type]
    # A failure is shown as it was found: to make it smaller takes minutes, since every step of it is a
    # running service.
    settings = settings(
        max_examples=int(os.environ.get("LIVES", "10")),
        stateful_step_count=20,
        phases=(Phase.explicit, Phase.generate),
    )

    @pytest.fixture(autouse=True)
    def _paper_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake = FakeModel()
        monkeypatch.setattr(embedder, "_load_session", lambda _folder, _manifest: fake)
