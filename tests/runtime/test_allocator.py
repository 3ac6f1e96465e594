"""What is freed goes back to the system while the process lives."""

import ctypes
import subprocess
import sys
from unittest.mock import AsyncMock

import anyio
import anyio.lowlevel
import pytest

from omegad.runtime import allocator
from tests.builders import until

KEPT_OF = 50
PIECE_BYTES, PIECES = 4_096, 10_000
PATIENCE_S = 60.0


GIVES_BACK = f"""
import anyio
import anyio.lowlevel
from omegad.runtime import allocator

async def main():
    allocator.LOOK_EVERY_S = 0.01
    before = allocator.resident_bytes()
    pieces = [bytes([number % 256]) * {PIECE_BYTES} for number in range({PIECES})]
    kept = pieces[::{KEPT_OF}]
    del pieces
    grown = allocator.resident_bytes() - before
    assert grown > {PIECE_BYTES * PIECES} / 2, grown
    async with anyio.create_task_group() as tasks:
        allocator.GROWN_BYTES = -grown
        tasks.start_soon(allocator.keep_giving_back, anyio.lowlevel.checkpoint)
        with anyio.fail_after({PATIENCE_S}):
            while allocator.resident_bytes() - before >= grown / 4:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert len(kept) == {PIECES // KEPT_OF}

anyio.run(main)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library")
def test_what_is_freed_between_what_stays_is_returned_to_the_system() -> None:
    """In a process of its own: in one that has freed much before, what is made fits into that."""
    subprocess.run([sys.executable, "-c", GIVES_BACK], check=True)


async def test_nothing_is_looked_for_where_the_process_has_not_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    occupied, trimmed = [100], list[int]()
    monkeypatch.setattr(allocator, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(allocator, "GROWN_BYTES", 10)
    monkeypatch.setattr(allocator, "resident_bytes", lambda: occupied[0])
    monkeypatch.setattr(allocator, "give_back", lambda: trimmed.append(occupied[0]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(allocator.keep_giving_back, anyio.lowlevel.checkpoint)
        await anyio.sleep(0.05)
        occupied[0] = 109
        await anyio.sleep(0.05)
        assert not trimmed
        occupied[0] = 110
        await until(lambda: trimmed == [110])
        await anyio.sleep(0.05)
        assert trimmed == [110]
        tasks.cancel_scope.cancel()


async def test_it_is_looked_for_once_when_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    worked, trimmed = [0.0], list[float]()
    monkeypatch.setattr(allocator, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(allocator, "resident_bytes", lambda: 100)
    monkeypatch.setattr(allocator, "process_time", lambda: worked[0])
    monkeypatch.setattr(allocator, "give_back", lambda: trimmed.append(worked[0]))
    let_go = AsyncMock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(allocator.keep_giving_back, let_go)
        await anyio.sleep(0.02)
        worked[0] = allocator.WORKED_S / 2
        await anyio.sleep(0.02)
        assert not trimmed
        worked[0] = 2 * allocator.WORKED_S
        await until(lambda: trimmed == [worked[0]])
        await anyio.sleep(0.02)
        assert len(trimmed) == 1
        let_go.assert_awaited_once()
        tasks.cancel_scope.cancel()


def test_structs_are_looked_at_before_there_are_threads() -> None:
    """As msgspec says it of one: what it found out of its fields is kept with the class."""
    code = """
import msgspec
from omegad.runtime import allocator

class Inner(msgspec.Struct):
    number: "int"

class Outer(Inner):
    inner: "Inner"
    nothing: "object | memoryview"

class Unknown(msgspec.Struct):
    what: "NotThere"

allocator.know_structs()
Outer.__annotations__["inner"] = Inner.__annotations__["number"] = "NotThere"
print(msgspec.json.decode(b'{"number":1}', type=Inner))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "Inner(number=1)\n"
