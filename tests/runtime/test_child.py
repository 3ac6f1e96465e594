"""A process beside this one is started without holding the event loop, and ends with the block."""

import subprocess
import sys
import time
from typing import Any

import anyio
import pytest

from omegad.runtime import child
from tests.builders import until

ECHO = (sys.executable, "-I", "-S", "-c", "import sys; print(sys.stdin.readline().strip() * 2)")
SLEEP = (sys.executable, "-I", "-S", "-c", "print(1, flush=True); import time; time.sleep(600)")
LINE_BYTES = 1_000


async def test_it_is_given_what_is_asked_and_heard() -> None:
    async with child.started(ECHO, LINE_BYTES, b"ab\n") as running:
        assert await running.output.read() == b"abab\n"
        assert await running.wait() == 0


async def test_no_file_closes_a_descriptor_that_the_loop_has_closed() -> None:
    async with child.started(ECHO, LINE_BYTES, b"ab\n") as running:
        assert await running.output.read() == b"abab\n"
        # uvloop would close its number, then the file once more, by when it may be somebody else's
        assert running.process.stdout is None


async def test_it_is_killed_at_the_end_of_the_block_and_with_whoever_is_cancelled() -> None:
    async with child.started(SLEEP, LINE_BYTES) as running:
        assert await running.output.readline() == b"1\n"
    assert running.process.returncode == -9
    begun: list[child.Child] = []

    async def ask() -> None:
        async with child.started(SLEEP, LINE_BYTES) as second:
            await second.output.readline()
            begun.append(second)
            await second.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(lambda: bool(begun))
        tasks.cancel_scope.cancel()
    assert begun[0].process.returncode == -9


async def test_one_that_hears_nothing_and_one_that_is_not_there_are_told() -> None:
    silent = (sys.executable, "-I", "-S", "-c", "import os; os.close(0)")
    async with child.started(silent, LINE_BYTES, b"x" * 1_000_000) as running:
        assert await running.output.read() == b""
    with pytest.raises(FileNotFoundError):
        async with child.started(("/no/such/program",), LINE_BYTES):
            pass


async def test_the_loop_goes_on_while_it_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    begin, ticks = subprocess.Popen, 0

    def slow(*given: Any, **named: Any) -> object:
        time.sleep(0.3)
        return begin(*given, **named)

    monkeypatch.setattr(subprocess, "Popen", slow)

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        async with child.started(ECHO, LINE_BYTES, b"a\n"):
            assert ticks > 3
        tasks.cancel_scope.cancel()
