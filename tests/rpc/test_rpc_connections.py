import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import anyio
import msgspec
import pytest

from omegad.rpc import session
from omegad.rpc.protocol import Request
from omegad.rpc.server import Call, Limits
from omegad.runtime.errors import OmegadError, Unavailable
from tests.builders import PATIENCE_S, until
from tests.rpc.misbehaving import MEGABYTE, Desk, by_id, code_of
from tests.rpc.raw_client import serving


async def test_three_hundred_idle_connections_do_not_keep_others_from_being_served() -> None:
    async with serving(Desk()) as house, AsyncExitStack() as stack:
        idle = [await stack.enter_async_context(house.dial()) for _ in range(300)]
        line = await stack.enter_async_context(house.dial())
        for _ in range(100):
            assert (await line.call("echo"))["result"] == {}
        assert house.server.connections == 301
        assert (await idle[0].call("echo"))["result"] == {}


async def test_the_requests_of_a_client_that_vanishes_are_cancelled_and_others_go_on() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as other:
        async with house.dial() as line:
            for i in range(3):
                line.ask(i, "hang")
                await desk.begun.acquire()
        await until(lambda: house.server.connections == 1)
        await until(lambda: house.server.in_flight == 0)
        assert desk.cancelled == 3
        assert (await other.call("echo"))["result"] == {}


async def test_what_a_vanished_client_had_still_waiting_is_never_begun() -> None:
    desk = Desk()
    async with serving(desk, Limits(requests_in_flight_max=2)) as house:
        async with house.dial() as line:
            for i in range(50):
                line.ask(i, "hang")
            for _ in range(2):
                await desk.begun.acquire()
        await until(lambda: house.server.connections == 0)
        await until(lambda: house.server.in_flight == 0)
        assert desk.seen == ["hang"] * 2


async def test_a_client_that_vanishes_in_the_middle_of_an_answer_hurts_nobody() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as other:
        for _ in range(20):
            async with house.dial() as line:
                line.ask(1, "big")
                line.ask(2, "big")
                await line.reader.readexactly(1000)
                line.writer.transport.abort()
        await until(lambda: house.server.connections == 1)
        assert (await other.call("echo"))["result"] == {}


async def test_a_client_that_only_stops_writing_gets_its_answers() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        line.ask(1, "wait")
        line.writer.write(b'{"jsonrpc":"2.0","id":2,"method":"echo"}')
        line.writer.write_eof()
        assert (await line.receive())["id"] == 2
        desk.gate.set()
        assert (await line.receive())["id"] == 1
        assert await line.receive() is None


async def test_a_slow_reader_stalls_nobody_and_its_answers_do_not_pile_up() -> None:
    desk = Desk()
    limits = Limits(requests_in_flight_max=4, unread_bytes_max=MEGABYTE)
    async with serving(desk, limits) as house, house.dial() as other:
        with socket.socket(socket.AF_UNIX) as slow:
            slow.connect(str(house.path))
            for i in range(200):
                slow.sendall(msgspec.json.encode({"jsonrpc": "2.0", "id": i, "method": "big"}) + b"\n")
            await desk.begun.acquire()
            for _ in range(100):
                assert (await other.call("echo"))["result"] == {}
            assert desk.seen.count("big") <= 10
            reader, writer = await asyncio.open_unix_connection(sock=slow, limit=4 * MEGABYTE)
            with anyio.fail_after(PATIENCE_S):
                assert {msgspec.json.decode(await reader.readline())["id"] for _ in range(200)} == set(
                    range(200)
                )
            writer.close()


async def test_no_more_answers_are_made_than_a_connection_may_leave_unread_and_all_of_them_arrive() -> None:
    desk = Desk()
    limits = Limits(answer_bytes_max=4 * MEGABYTE)
    async with serving(desk, limits, long_answers={"big": MEGABYTE}) as house, house.dial() as other:
        with socket.socket(socket.AF_UNIX) as slow:
            slow.connect(str(house.path))
            for i in range(60):
                slow.sendall(msgspec.json.encode({"jsonrpc": "2.0", "id": i, "method": "big"}) + b"\n")
            await until(lambda: len(desk.seen) >= 4)
            for _ in range(100):
                assert (await other.call("echo"))["result"] == {}
            assert desk.seen.count("big") <= 8
            assert house.server.held_bytes <= 8 * MEGABYTE
            reader, writer = await asyncio.open_unix_connection(sock=slow, limit=4 * MEGABYTE)
            with anyio.fail_after(PATIENCE_S):
                assert {msgspec.json.decode(await reader.readline())["id"] for _ in range(60)} == set(
                    range(60)
                )
            writer.close()


async def test_clients_that_do_not_read_leave_room_for_those_that_do() -> None:
    desk = Desk()
    limits = Limits(answer_bytes_max=4 * MEGABYTE, answer_bytes_in_all_max=12 * MEGABYTE)
    async with (
        serving(desk, limits, long_answers={"big": MEGABYTE}) as house,
        AsyncExitStack() as stack,
        house.dial() as other,
    ):
        deaf = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(4)]
        for connection in deaf:
            connection.connect(str(house.path))
            for i in range(20):
                connection.sendall(msgspec.json.encode({"jsonrpc": "2.0", "id": i, "method": "big"}) + b"\n")
        await until(lambda: len(desk.seen) >= 4)
        for _ in range(20):
            assert (await other.call("echo"))["result"] == {}
            assert (await other.call("big"))["result"] == "x" * MEGABYTE
        assert house.server.held_bytes <= 12 * MEGABYTE


async def test_a_client_that_finds_no_room_for_its_answer_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "RETRIES_MAX", 3)
    desk = Desk()
    limits, long_answers = (
        Limits(answer_bytes_in_all_max=2 * MEGABYTE),
        dict.fromkeys(("big", "hang"), MEGABYTE),
    )
    async with (
        serving(desk, limits, long_answers=long_answers) as house,
        house.dial() as first,
        house.dial() as second,
        house.dial() as third,
    ):
        for line in (first, second):
            line.ask(1, "hang")
            await desk.begun.acquire()
        assert code_of(await third.call("big")) == -32004
        assert (await third.call("echo"))["result"] == {}
        assert desk.seen == ["hang", "hang", "echo"]


async def test_a_client_that_reads_nothing_at_all_is_disconnected() -> None:
    desk = Desk()
    async with serving(desk, Limits(unread_bytes_max=1000, unread_s=0.05)) as house, house.dial() as other:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(str(house.path))
            deaf.sendall(b'{"jsonrpc":"2.0","id":1,"method":"big"}\n')
            await desk.begun.acquire()
            await until(lambda: house.server.connections == 1)
        assert (await other.call("echo"))["result"] == {}


async def test_a_client_that_reads_slowly_is_not_disconnected() -> None:
    async with serving(Desk(), Limits(unread_bytes_max=1000, unread_s=1.0)) as house:
        with socket.socket(socket.AF_UNIX) as slow:
            slow.connect(str(house.path))
            slow.settimeout(0)
            await asyncio.get_running_loop().sock_sendall(slow, b'{"jsonrpc":"2.0","id":1,"method":"big"}\n')
            received = b""
            while not received.endswith(b"\n"):
                received += await asyncio.get_running_loop().sock_recv(slow, 128 * 1024)
                await anyio.sleep(0.15)  # longer in all than the patience, though never at a stretch
            assert msgspec.json.decode(received)["result"] == "x" * MEGABYTE


async def test_one_connection_too_many_is_told_why_and_closed() -> None:
    async with serving(Desk(), Limits(connections_max=2)) as house, house.dial() as first:
        async with house.dial() as second:
            assert (await second.call("echo"))["result"] == {}
            async with house.dial() as third:
                answer = await third.receive()
                assert (answer["id"], code_of(answer), answer["error"]["data"]["kind"]) == (
                    None,
                    -32004,
                    "overloaded",
                )
                assert await third.receive() is None
            assert house.server.refused == 1
        await until(lambda: house.server.connections == 1)
        async with house.dial() as fourth:
            assert (await fourth.call("echo"))["result"] == (await first.call("echo"))["result"] == {}


async def test_so_many_connections_too_many_are_told_why_and_none_stays_for_long() -> None:
    async with (
        serving(Desk(), Limits(connections_max=1)) as house,
        house.dial() as first,
        AsyncExitStack() as stack,
    ):
        assert (await first.call("echo"))["result"] == {}
        for _ in range(100):
            line = await stack.enter_async_context(house.dial())
            assert code_of(await line.receive()) == -32004
            assert len(house.server._turned_away) <= 33
        await until(lambda: not house.server._turned_away)
        assert (await first.call("echo"))["result"] == {}


def not_us(_connection: socket.socket) -> int:
    return os.geteuid() + 1


def nobody_knows(_connection: socket.socket) -> int:
    raise OSError


@pytest.mark.parametrize("uid_of", [not_us, nobody_knows])
async def test_another_user_is_turned_away_unheard(uid_of: Callable[[socket.socket], int]) -> None:
    desk = Desk()
    async with serving(desk, uid_of=uid_of) as house, house.dial() as line:
        line.ask(1, "echo")
        answer = await line.receive()
        assert (answer["id"], answer["error"]["data"]["kind"]) == (None, "refused")
        assert await line.receive() is None
        assert (desk.seen, house.server.connections, house.server.refused) == ([], 0, 1)


async def test_notifications_wait_for_a_slow_reader_and_end_with_it() -> None:
    sent = 0
    ended = anyio.Event()

    async def flood(call: Call) -> object:
        nonlocal sent
        try:
            while True:
                await call.notify("log.event", "x" * 1000)
                sent += 1
        finally:
            ended.set()

    async with serving(flood, Limits(unread_bytes_max=100_000)) as house:
        with socket.socket(socket.AF_UNIX) as slow:
            slow.connect(str(house.path))
            slow.sendall(b'{"jsonrpc":"2.0","id":1,"method":"log.follow"}\n')
            counts = [-1]
            while counts[-1] != sent or not sent:
                counts.append(sent)
                await anyio.sleep(0.05)
            assert sent < 2_000
        with anyio.fail_after(PATIENCE_S):
            await ended.wait()


async def test_whoever_waits_for_a_slow_reader_is_told_that_it_is_gone() -> None:
    told = anyio.Event()

    async def stubborn(call: Call) -> object:
        with anyio.CancelScope(shield=True):
            try:
                while True:
                    await call.notify("log.event", "x" * 1000)
            except Unavailable:
                told.set()
        return None

    async with serving(stubborn, Limits(unread_bytes_max=100_000, unread_s=0.05)) as house:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(str(house.path))
            deaf.sendall(b'{"jsonrpc":"2.0","id":1,"method":"log.follow"}\n')
            with anyio.fail_after(PATIENCE_S):
                await told.wait()


async def test_whoever_notifies_a_client_that_is_gone_is_told() -> None:
    told: list[OmegadError] = []
    gate = anyio.Event()
    done = anyio.Event()

    async def stubborn(call: Call) -> object:
        with anyio.CancelScope(shield=True):
            await gate.wait()
            try:
                await call.notify("late", None)
            except Unavailable as error:
                told.append(error)
            done.set()
        return None

    async with serving(stubborn) as house:
        async with house.dial() as line:
            line.ask(1, "x")
            await until(lambda: house.server.in_flight == 1)
        await until(lambda: house.server.connections == 0)
        gate.set()
        with anyio.fail_after(PATIENCE_S):
            await done.wait()
    assert len(told) == 1


async def test_a_graceful_stop_lets_requests_end_and_takes_no_new_ones() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line, house.dial() as other:
        line.ask(1, "wait")
        await desk.begun.acquire()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.server.stop, PATIENCE_S)
            await house.server.stopping.wait()
            assert code_of(await other.call("echo")) == -32006
            with pytest.raises(ConnectionRefusedError):
                async with house.dial():
                    pass
            desk.gate.set()
            assert (await line.receive())["result"] == {}
        assert await line.receive() is None
        assert await other.receive() is None
        assert house.server.connections == 0


async def test_a_graceful_stop_tells_those_it_cannot_wait_for() -> None:
    desk = Desk()
    async with serving(desk, Limits(requests_in_flight_max=1)) as house, house.dial() as line:
        line.ask(1, "hang")
        await desk.begun.acquire()
        line.ask(2, "hang")
        await house.server.stop(0.01)
        answers = by_id([await line.receive(), await line.receive()])
        assert (code_of(answers[1]), code_of(answers[2])) == (-32006, -32006)
        assert await line.receive() is None
        assert desk.cancelled == 1


async def test_a_stop_sends_every_byte_of_the_last_answers() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        line.ask(1, "wait", ["x" * MEGABYTE])
        await desk.begun.acquire()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(house.server.stop, PATIENCE_S)
            await house.server.stopping.wait()
            desk.gate.set()
            assert (await line.receive())["result"] == ["x" * MEGABYTE]


async def test_what_waits_for_its_turn_when_serving_ends_is_never_begun() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        assert (await line.call("echo"))["result"] == {}
        (connected,) = house.server._sessions
    connected.take(Request(jsonrpc="2.0", method="echo"))
    assert desk.seen == ["echo"]


async def test_serving_ends_when_it_is_stopped_though_a_client_never_reads() -> None:
    desk = Desk()
    async with serving(desk) as house:
        with socket.socket(socket.AF_UNIX) as deaf:
            deaf.connect(str(house.path))
            deaf.sendall(b'{"jsonrpc":"2.0","id":1,"method":"big"}\n')
            await desk.begun.acquire()
            with anyio.fail_after(PATIENCE_S):
                await house.server.stop(0.01)
        assert house.server.connections <= 1
