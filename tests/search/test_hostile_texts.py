"""Questions and memories that were made to take long take no longer than others of their length, and keep
nobody waiting.
"""

import anyio
import pytest

from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid
from tests.builders import FakeClock, served

LIMIT_S = 10.0
"""A hundred times what it takes; before the words of a question were bounded it was minutes."""
UNITS = ("\\n", "C:\\", "a.", "n-m-", "x:1:", "v1.2.", "設a")
QUESTION_CHARACTERS, CONTENT_BYTES = 8_000, 64 * 1024


async def test_hostile_questions_over_hostile_memories(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none", read_timeout_s=LIMIT_S)) as it:
        for number in range(2):
            for unit in UNITS:
                content = f"number {number} {unit * (CONTENT_BYTES // len(unit.encode()) - 10)}"
                stored = await it.caller.call("memory.store", content=content)
                assert stored["memory_id"]
        await it.caught_up()
        with anyio.fail_after(LIMIT_S * 2):
            for unit in UNITS:
                await it.caller.call("memory.query", text=unit * (QUESTION_CHARACTERS // len(unit)))
        with pytest.raises(Invalid, match="256 words"):
            await it.caller.call("memory.query", text="\\n" * (QUESTION_CHARACTERS // 2), mode="phrase")
        assert (await it.caller.call("memory.query", text="n " * 200, mode="phrase"))["results"]
