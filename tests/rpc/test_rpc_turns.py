"""Who asks without end keeps nobody else waiting, and all that clients send takes no more than one budget."""

import time
from contextlib import AsyncExitStack, suppress
from itertools import count

import anyio
import anyio.lowlevel
import pytest

from omegad.rpc import endpoint
from omegad.rpc.server import Call, Lane, Limits
from omegad.runtime.precedence import HOOKS
from tests.builders import PATIENCE_S, until
from tests.rpc.misbehaving import MEGABYTE, Desk, code_of
from tests.rpc.raw_client import Line, serving

GREEDY_REQUESTS = 40
WORK_S = 0.002
TURNS_OF_HOOK = 60


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take each connection for a process of its own."""
    numbers = count(1_000_000)
    monkeypatch.setattr(endpoint, "peer_pid", lambda _connection: next(numbers))


class Busy:
    """A handler that computes, and notes what it was asked in which order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def __call__(self, call: Call) -> object:
        self.seen.append(call.method)
        until_s = time.perf_counter() + WORK_S
        while time.perf_counter() < until_s:
            pass
        return {}


class Hooked(Busy):
    """One that is asked by a hook as well, whose answer takes some turns."""

    async def __call__(self, call: Call) -> object:
        if call.method != "hook":
            return await super().__call__(call)
        with HOOKS.held():
            self.seen.append("hook begins")
            for _ in range(TURNS_OF_HOOK):
                await anyio.lowlevel.checkpoint()
            self.seen.append("hook ends")
        return {}


async def test_who_asks_without_end_gives_way_to_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omegad.runtime.precedence.HOLD_S", PATIENCE_S)
    pids = iter([7] * 16 + [8])
    monkeypatch.setattr(endpoint, "peer_pid", lambda _connection: next(pids))
    house_of = Hooked()
    async with serving(house_of) as house, AsyncExitStack() as stack:
        greedy = [await stack.enter_async_context(house.dial()) for _ in range(16)]
        modest = await stack.enter_async_context(house.dial())
        assert (await modest.call("hello"))["result"] == {}
        for line in greedy:
            for number in range(GREEDY_REQUESTS):
                line.send({"jsonrpc": "2.0", "id": number, "method": "greedy"})
        await until(lambda: house_of.seen.count("greedy") > 16)
        assert (await modest.call("hook"))["result"] == {}
        begun, ended = (house_of.seen.index(name) for name in ("hook begins", "hook ends"))
        for line in greedy:
            for _ in range(GREEDY_REQUESTS):
                await line.receive()
    assert house_of.seen.count("greedy") == 16 * GREEDY_REQUESTS
    assert ended - begun < TURNS_OF_HOOK


@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_client_that_asks_one_thing_is_served_before_all_that_another_has_asked(
    monkeypatch: pytest.MonkeyPatch, *, is_batch: bool
) -> None:
    pids = iter([7] * 16 + [8])
    monkeypatch.setattr(endpoint, "peer_pid", lambda _connection: next(pids))
    busy = Busy()
    async with serving(busy) as house, AsyncExitStack() as stack:
        greedy = [await stack.enter_async_context(house.dial()) for _ in range(16)]
        modest = await stack.enter_async_context(house.dial())
        assert (await modest.call("hello"))["result"] == {}
        for line in greedy:
            asked = [
                {"jsonrpc": "2.0", "id": number, "method": "greedy"} for number in range(GREEDY_REQUESTS)
            ]
            for message in [asked] if is_batch else asked:
                line.send(message)
        await until(lambda: "greedy" in busy.seen)
        assert (await modest.call("modest"))["result"] == {}
        before = busy.seen.index("modest")
        for line in greedy:
            for _ in range(1 if is_batch else GREEDY_REQUESTS):
                await line.receive()
    assert busy.seen.count("greedy") == 16 * GREEDY_REQUESTS
    assert before < 8 * GREEDY_REQUESTS


async def test_connections_of_one_client_share_the_places_of_a_lane_and_others_have_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pids = iter([7] * 4 + [8])
    monkeypatch.setattr(endpoint, "peer_pid", lambda _connection: next(pids))
    desk = Desk()
    lane = Lane("reads", of_connection=2, of_client=5)
    async with serving(desk, lanes={"wait": lane}) as house, AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(house.dial()) for _ in range(4)]
        other = await stack.enter_async_context(house.dial())
        for line in lines:
            for number in range(4):
                line.ask(number, "wait")
        await until(lambda: desk.seen.count("wait") == 5)
        other.ask("other", "wait")
        await until(lambda: desk.seen.count("wait") == 6)
        assert (await other.call("echo"))["result"] == {}
        await lines[3].close()
        desk.gate.set()
        assert (await other.receive())["id"] == "other"
        for line in lines[:3]:
            assert {(await line.receive())["id"] for _ in range(4)} == set(range(4))
        await until(lambda: house.server.in_flight == 0)


async def test_nonsense_without_end_is_answered_in_turns(strangers: None) -> None:  # noqa: ARG001
    async with serving(Desk()) as house, house.dial() as noisy, house.dial() as modest:
        noisy.send(b"x\n" * 100_000)
        assert code_of(await noisy.receive()) == -32700
        for number in range(20):
            modest.ask(number, "echo")
            assert (await modest.receive())["id"] == number
        for _ in range(99_999):
            assert await noisy.receive()


HALF = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["' + b"x" * (3 * MEGABYTE)
REST = b'"]}\n'
TIGHT = Limits(line_bytes_max=4 * MEGABYTE, incoming_bytes_in_all_max=8 * MEGABYTE, line_s=1.0)


async def test_half_lines_of_many_clients_take_no_more_than_one_budget_and_all_come_to_their_end() -> None:
    limits = Limits(line_bytes_max=4 * MEGABYTE, incoming_bytes_in_all_max=8 * MEGABYTE, line_s=600.0)
    async with serving(Desk(), limits) as house, AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(house.dial()) for _ in range(12)]
        async with anyio.create_task_group() as tasks:
            for line in lines:
                tasks.start_soon(_write, line, HALF + REST)
            most = 0
            for line in lines:
                answer = await line.receive()
                assert len(answer["result"][0]) == 3 * MEGABYTE
                most = max(most, house.server.intake.bytes)
        assert most < 8 * MEGABYTE + 12 * MEGABYTE
        assert house.server.intake.bytes == 0
        assert not house.server.intake.waiting


async def _write(line: Line, data: bytes) -> None:
    line.writer.write(data)
    with suppress(ConnectionError):
        await line.writer.drain()


async def test_who_never_ends_a_long_line_is_disconnected_once_others_wait_and_small_requests_never_wait() -> (
    None
):
    async with serving(Desk(), TIGHT) as house, AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(_write, await stack.enter_async_context(house.dial()), HALF)
        await until(lambda: house.server.intake.bytes >= 8 * MEGABYTE)
        other = await stack.enter_async_context(house.dial())
        assert (await other.call("echo"))["result"] == {}
        late = [await stack.enter_async_context(house.dial()) for _ in range(2)]
        for line in late:
            tasks.start_soon(_write, line, HALF + REST)
        for line in late:
            assert (await line.receive())["id"] == 1
        assert (await other.call("echo"))["result"] == {}
        await until(lambda: house.server.intake.bytes <= 8 * MEGABYTE)
        tasks.cancel_scope.cancel()


async def test_who_never_ends_a_long_line_may_keep_it_while_nobody_waits() -> None:
    limits = Limits(line_bytes_max=4 * MEGABYTE, incoming_bytes_in_all_max=2 * MEGABYTE, line_s=0.01)
    async with serving(Desk(), limits) as house, house.dial() as line:
        await _write(line, HALF)
        await until(lambda: house.server.intake.bytes >= 3 * MEGABYTE)
        await anyio.sleep(0.6)
        await _write(line, REST)
        assert (await line.receive())["id"] == 1


async def test_what_needs_few_words_is_refused_with_many() -> None:
    async with serving(Desk(), brief=["echo"]) as house, house.dial() as line:
        assert (await line.call("echo", ["x" * 1_000]))["result"]
        assert code_of(await line.call("echo", ["x" * 100_000])) == -32602
