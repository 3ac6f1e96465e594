"""Any sequence of what can happen to a home: the views equal the log, and the answers do not depend on the views having been there before."""

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from omegad.config import Config
from omegad.embedding import embedder
from omegad.errors import NotFound, Refused
from tests.builders import FakeClock, FakeModel, Served, paths_in, put_model, served

WORDS = ("alpha", "beta", "gamma", "delta", "not", "3.12")
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
QUESTIONS = ("alpha beta", "gamma", "delta 3.12")


class Home(RuleBasedStateMachine):
    """A home with a paper model, and what its clients were told."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.paths = paths_in(Path(self.folder.name))
        self.clock = FakeClock()
        self.runner = asyncio.Runner()
        self.stopping = asyncio.Event()
        self.active: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.calls = 0

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

    @rule(content=TEXTS, event_type=st.sampled_from(["memory", "decision"]), request_id=st.none() | st.sampled_from(["r1", "r2"]))
    def store(self, content: str, event_type: str, request_id: str | None) -> None:
        params = {"content": content, "event_type": event_type, "request_id": request_id and f"{request_id} {content} {event_type}"}
        answer = self.call("memory.store", **params)
        if answer["outcome"] == "stored" and answer["memory_id"] not in self.hidden:
            self.active[answer["memory_id"]] = content
        assert answer["memory_id"] in self.active or request_id
        if request_id:
            assert self.call("memory.store", **params) == answer

    @rule(content=TEXTS)
    def store_durably(self, content: str) -> None:
        self.call("memory.store", content=f"durable {content}", event_type="checkpoint", ack="durable")

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        memory_id = data.draw(st.sampled_from([*sorted(self.active), *sorted(self.hidden), "mem-nobody"]))
        try:
            self.call("memory.delete", memory_id=memory_id)
        except (NotFound, Refused):
            assert memory_id not in self.active
        else:
            del self.active[memory_id]
            self.hidden.add(memory_id)

    @rule(tool_use_id=st.sampled_from(["t1", "t2", "t3"]))
    def call_a_tool(self, tool_use_id: str) -> None:
        first = self.call("tool.record", session_id="s", tool_name="Bash", tool_use_id=tool_use_id)
        assert self.call("tool.record", session_id="s", tool_name="Bash", tool_use_id=tool_use_id) == first

    @rule(text=st.sampled_from(QUESTIONS), mode=st.sampled_from(["hybrid", "semantic", "keyword"]))
    def ask(self, text: str, mode: str) -> None:
        found = self.call("memory.query", text=text, mode=mode, event_types=["memory", "decision"], limit=100)
        assert {one["memory_id"] for one in found["results"]} <= set(self.active)

    @rule(name=st.none() | st.sampled_from(["memories", "vectors", "fulltext", "edges"]))
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
        for path in (*self.paths.home.glob("views*"), *(self.paths.home.glob("embeddings*") if also_vectors else ())):
            path.unlink()
        self.run(self._start())
        self.run(self._backlog())
        assert self._answers() == before

    async def _backlog(self) -> None:
        """Wait until nothing lacks its vectors."""
        for _ in range(1_000):
            await self.it.caught_up()
            if not await self.it.daemon.parts.views.read(_lacking):
                return
            self.it.daemon.backlog.wake()
            await asyncio.sleep(0.005)
        raise AssertionError("the backlog is never worked off")

    def _answers(self) -> list[Any]:
        listed = [one["memory_id"] for one in self.call("memory.list", limit=1_000)["memories"]]
        return [listed, *(self.call("memory.query", text=text, limit=100)["results"] for text in QUESTIONS)]

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
            listed = self.call("memory.list", limit=1_000, event_types=["memory", "decision"])["memories"]
            assert {one["memory_id"]: one["content"] for one in listed} == self.active

    def teardown(self) -> None:
        if hasattr(self, "it"):
            assert self.call("log.verify")["ok"]
            self.run(self._stop())
        self.runner.close()
        self.folder.cleanup()


def _lacking(connection: Any) -> int:
    sql = """
    SELECT (SELECT count(*) FROM deferred) + (SELECT count(*) FROM memories WHERE status != 'deleted'
            AND node_id NOT IN (SELECT memory_id FROM memory_vectors))
    """
    found: int = connection.execute(sql).fetchone()[0]
    return found


class TestHome(Home.TestCase):  # type: ignore[misc, valid-type]
    # A failure is shown as it was found: to make it smaller takes minutes, since every step of it is a running service.
    settings = settings(max_examples=12, stateful_step_count=14, phases=(Phase.explicit, Phase.generate))

    @pytest.fixture(autouse=True)
    def _paper_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fake = FakeModel()
        monkeypatch.setattr(embedder, "_load_session", lambda _folder, _manifest: fake)
