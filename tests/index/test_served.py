"""That a question which comes with the start waits for the index, as long as that takes."""

import threading

import anyio
import pytest

from omegad.index.vector_indexes import VectorIndexes
from omegad.runtime.config import Config, Paths
from omegad.storage import readers
from omegad.storage.driver import Connection
from tests.builders import FakeClock, served

READ_S = 1.0


@pytest.mark.usefixtures("model")
async def test_a_first_question_waits_for_the_index_beyond_what_a_read_may_take(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock) as it:
        await it.caller.call("memory.store", content="alpha beta")
    begun, may_go_on, sync = threading.Event(), threading.Event(), VectorIndexes.sync

    def slow(index: VectorIndexes, connection: Connection) -> None:
        with index._lock:
            begun.set()
            may_go_on.wait()
        readers.check()  # as the many rows of a large index are interrupted
        sync(index, connection)

    monkeypatch.setattr(VectorIndexes, "sync", slow)
    async with served(paths, clock, Config(read_timeout_s=READ_S)) as it, anyio.create_task_group() as tasks:
        await anyio.to_thread.run_sync(begun.wait)
        found = list[object]()

        async def ask() -> None:
            found.append(await it.caller.call("memory.query", text="alpha", mode="keyword"))

        tasks.start_soon(ask)
        await anyio.sleep(2 * READ_S)
        assert not found
        may_go_on.set()
    assert len(found[0]["results"]) == 1  # type: ignore[index]
