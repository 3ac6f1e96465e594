"""A year of a few sessions: every time through is its own, and a daemon verifies, answers, and lets go of it."""

from pathlib import Path

import msgspec
import pytest

from omegad import daemon
from omegad.log.event import RecordedEvent
from omegad.memory.events import MemoryEmbedded, MemoryStored
from omegad.session.events import ToolCalled
from tests import builders
from tests.bench.year import events, running
from tests.bench.year.events import TOOL_CALLS, Year, hashes, lived

MEMORY, SESSION = "mem-96efab26eef7bc20", "codex-07"
DIGEST = "9f494c61cbfe96723425c191ae66c2082c8f72649dad7517ccb012e5ee75ac6a"
MODEL = "9b42d435b69e7471"


def script() -> list[RecordedEvent]:
    stored = builders.stored(MEMORY, f"Found in {SESSION}")
    embedded = MemoryEmbedded(memory_id=MEMORY, embedder_id=MODEL, text_hashes=(DIGEST,))
    what = (
        builders.session_started(delivery=builders.delivery("10ff20aab675a07f336c537099978922", "d" * 40)),
        builders.tool_called(),
        stored,
        embedded,
        builders.queried((MEMORY, 0.5), query_id="01a22baf-b546-76f5-9c7a-84794778e0e2"),
        builders.session_ended(delivery=builders.delivery("b4ef5e5788f429501277d8a25e9646a1", "e" * 40)),
    )
    return [
        builders.recorded(event, position, session_id=SESSION, cause=3 if event is embedded else None)
        for position, event in enumerate(what, 1)
    ]


@pytest.fixture(autouse=True)
def _few_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "POOL", 20)


def test_every_time_through_is_its_own_and_holds_together() -> None:
    year = Year(script(), "test")
    first, second = (list(year.again(time, 1 + time * 100, 5)) for time in (0, 1))
    assert len(first) == len(second) == 5 + TOOL_CALLS
    (stored, again), (embedded, anew) = (
        [next(new for new in those if isinstance(new.event, kind)) for those in (first, second)]
        for kind in (MemoryStored, MemoryEmbedded)
    )
    memory, other = (msgspec.structs.asdict(new.event) for new in (stored, again))
    named = [msgspec.structs.asdict(new.event)["memory_id"] for new in (embedded, anew)]
    assert named == [memory["memory_id"], other["memory_id"]]
    assert memory["memory_id"] != other["memory_id"]
    assert memory["content"] != other["content"]
    assert hashes(first).keys() == hashes(second).keys() == {MODEL}
    assert hashes(first) != hashes(second)
    assert (embedded.cause, anew.cause) == (2 + TOOL_CALLS, 102 + TOOL_CALLS)
    assert {new.session_id for new in second} == {f"{SESSION}-1"}
    calls = [new.event for new in second if isinstance(new.event, ToolCalled)]
    assert [call.call_index for call in calls] == list(range(1, TOOL_CALLS + 1))
    assert len({call.tool_use_id for call in calls}) == TOOL_CALLS


def test_a_year_is_made_rebuilt_verified_and_let_go_of(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    making = running.Making(home, Year(script(), "test"), 200, lambda _: None)
    daemon.run(lambda: making.run([100]))
    assert [made.events for made in making.made] == [135, 225]
    (rebuilt,) = making.rebuilt
    assert rebuilt.events == 135
    assert 0 < rebuilt.shown_s <= rebuilt.seconds
    served = running.served(home, lambda _: None)
    assert served.is_verified
    assert served.is_verified_after
    assert 0 < served.aged["tool.called"] < 200
    assert served.freed_mb > 0
    assert len(lived(home / "log.db")) >= 225
