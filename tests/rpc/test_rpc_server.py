import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import anyio
import pytest

from omegad.rpc.server import Call, Limits
from omegad.runtime.errors import NotFound
from tests.builders import until
from tests.rpc.misbehaving import MEGABYTE, Desk, by_id, code_of
from tests.rpc.raw_client import serving


async def test_a_request_is_answered_under_its_id() -> None:
    async with serving(Desk()) as house, house.dial() as line:
        line.ask("x", "echo", {"a": ["é", None]})
        assert await line.receive() == {"jsonrpc": "2.0", "id": "x", "result": {"a": ["é", None]}}


async def test_a_notification_is_never_answered_whatever_happens() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        for method in ("echo", "no.such", "rpc.cancel"):
            line.send({"jsonrpc": "2.0", "method": method, "params": {}})
        assert (await line.call("echo"))["id"] == "call"
        assert desk.seen == ["echo", "no.such", "echo"]


async def test_a_domain_error_is_an_answer_with_its_kind_tag_and_hint() -> None:
    async def refuse(_call: Call) -> object:
        raise NotFound("no memory m1", hint="look again")

    async with serving(refuse) as house, house.dial() as line:
        assert (await line.call("memory.get"))["error"] == {
            "code": -32000,
            "message": "no memory m1",
            "data": {"kind": "not_found", "tag": "MEMORY", "hint": "look again"},
        }


async def test_what_a_refused_call_was_at_is_let_go_of_when_it_is_told() -> None:
    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    async def refuse(_call: Call) -> object:
        what = Held()
        held.append(weakref.ref(what))
        # A circle, as wherever a call waits for what another thread comes to
        waits: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        waits.set_exception(NotFound("no memory m1"))
        return await waits

    async with serving(refuse) as house, house.dial() as line:
        gc.collect()
        gc.disable()
        try:
            assert code_of(await line.call("memory.get")) == -32000
            await until(lambda: held[0]() is None)
        finally:
            gc.enable()


async def raise_value_error() -> object:
    raise ValueError("secret path /home/me")


async def raise_group() -> object:
    raise ExceptionGroup("secret", [ValueError("secret")])


async def cancel_itself() -> object:
    raise asyncio.CancelledError


async def await_a_cancelled_future() -> object:
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


async def return_what_is_no_json() -> object:
    return object()


async def recurse() -> object:
    return await recurse()


@pytest.mark.parametrize(
    "mistake",
    [
        raise_value_error,
        raise_group,
        cancel_itself,
        await_a_cancelled_future,
        return_what_is_no_json,
        recurse,
    ],
)
async def test_a_mistake_in_a_handler_is_told_to_its_caller_without_details_and_to_nobody_else(
    mistake: Callable[[], Awaitable[object]],
) -> None:
    desk = Desk()

    async def handler(call: Call) -> object:
        return await (mistake() if call.method == "break" else desk(call))

    async with serving(handler) as house, house.dial() as line, house.dial() as other:
        other.ask(1, "wait")
        await desk.begun.acquire()
        answer = await line.call("break")
        assert code_of(answer) == -32603
        assert "secret" not in str(answer)
        assert (await line.call("echo"))["result"] == {}
        desk.gate.set()
        assert (await other.receive())["id"] == 1


async def test_hostile_lines_are_each_answered_and_the_connection_lives_on() -> None:
    hostile = [
        b"x",
        b"\xff",
        b"{}",
        b"[]",
        b"\x00",
        b"[" * 200_000,
        b'{"jsonrpc":"2.0","id":1,"method":"a","params":"\\ud800"}',
        b"[1,2]",
        b"1" * 9_000,
    ]
    async with serving(Desk()) as house, house.dial() as line:
        for data in hostile:
            line.send(data)
            answer = await line.receive()
            assert code_of(answer[0] if isinstance(answer, list) else answer) in {-32700, -32600}
        assert (await line.call("echo"))["result"] == {}


async def test_a_line_of_twenty_megabytes_gets_one_error_and_the_connection_lives_on() -> None:
    async with serving(Desk()) as house, house.dial() as line:
        line.send(b'"' + b"x" * (20 * MEGABYTE) + b'"')
        assert code_of(await line.receive()) == -32600
        assert (await line.call("echo"))["result"] == {}


async def test_a_batch_is_answered_in_one_line_and_without_its_notifications() -> None:
    async with serving(Desk()) as house, house.dial() as line:
        ask = {"jsonrpc": "2.0", "method": "echo", "params": [1]}
        line.send([ask | {"id": 1}, ask, 5, ask | {"id": 2, "method": "no.such"}])
        answers = by_id(await line.receive())
        assert answers.keys() == {1, 2, None}
        assert answers[1]["result"] == [1]
        assert (code_of(answers[2]), code_of(answers[None])) == (-32601, -32600)


async def test_a_batch_of_notifications_is_not_answered() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        line.send([{"jsonrpc": "2.0", "method": "echo"}] * 3)
        assert (await line.call("echo"))["id"] == "call"
        assert desk.seen == ["echo"] * 4


async def test_a_batch_larger_than_the_limit_in_flight_is_still_answered_whole() -> None:
    async with serving(Desk(), Limits(requests_in_flight_max=3)) as house, house.dial() as line:
        line.send([{"jsonrpc": "2.0", "id": i, "method": "echo"} for i in range(100)])
        assert by_id(await line.receive()).keys() == set(range(100))


async def test_a_batch_whose_answers_take_too_much_is_answered_as_far_as_they_go() -> None:
    desk = Desk()
    async with (
        serving(desk, Limits(answer_bytes_max=4 * MEGABYTE), long_answers={"big": MEGABYTE}) as house,
        house.dial() as line,
    ):
        line.send([{"jsonrpc": "2.0", "id": i, "method": "big"} for i in range(100)])
        answers = by_id(await line.receive())
        assert answers.keys() == set(range(100))
        refused = [code_of(answer) for answer in answers.values() if "error" in answer]
        assert (set(refused), len(refused)) == ({-32004}, 100 - desk.seen.count("big"))
        assert 1 < desk.seen.count("big") <= 5
        assert (await line.call("echo"))["result"] == {}


async def test_long_answers_that_nobody_could_foresee_are_withheld_once_too_many_are_collected() -> None:
    desk = Desk()
    async with serving(desk, Limits(answer_bytes_max=MEGABYTE)) as house, house.dial() as line:
        line.send([{"jsonrpc": "2.0", "id": i, "method": "big"} for i in range(64)])
        answers = await line.receive()
        assert len(answers) == 64
        assert {code_of(answer) for answer in answers if "error" in answer} == {-32004}
        assert sum("result" in answer for answer in answers) <= 5


async def test_no_more_requests_run_than_may_be_in_flight_and_none_is_lost() -> None:
    desk = Desk()
    async with (
        serving(desk, Limits(requests_in_flight_max=4)) as house,
        house.dial() as line,
        house.dial() as other,
    ):
        for i in range(50):
            line.ask(i, "wait")
        for _ in range(4):
            await desk.begun.acquire()
        assert (await other.call("echo"))["result"] == {}
        assert desk.seen.count("wait") == house.server.in_flight == 4
        desk.gate.set()
        assert {(await line.receive())["id"] for _ in range(50)} == set(range(50))


async def test_large_requests_wait_for_each_other() -> None:
    desk = Desk()
    async with (
        serving(desk, Limits(line_bytes_max=MEGABYTE)) as house,
        house.dial() as line,
        house.dial() as other,
    ):
        for i in range(6):
            line.ask(i, "wait", ["x" * (MEGABYTE - 200)])
        for _ in range(2):
            await desk.begun.acquire()
        for _ in range(50):
            assert (await other.call("echo"))["result"] == {}
        assert desk.seen.count("wait") == 2
        desk.gate.set()
        assert [(await line.receive())["id"] for _ in range(6)] == list(range(6))


async def test_an_id_that_is_in_use_is_refused_and_may_be_used_again_afterwards() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        line.ask(1, "wait")
        line.ask(1, "echo")
        line.ask("1", "echo", ["another id"])
        assert by_id([await line.receive(), await line.receive()]).keys() == {1, "1"}
        desk.gate.set()
        assert (await line.receive())["result"] == {}
        line.ask(1, "echo")
        assert (await line.receive())["result"] == {}
        assert desk.seen == ["wait", "echo", "echo"]


async def test_a_cancelled_request_is_answered_once_as_cancelled() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line:
        line.ask(7, "hang")
        await desk.begun.acquire()
        line.ask(8, "rpc.cancel", {"id": 7})
        answers = by_id([await line.receive(), await line.receive()])
        assert answers[8]["result"] == {"ok": True}
        assert (code_of(answers[7]), answers[7]["error"]["message"], answers[7]["error"]["data"]["kind"]) == (
            -32002,
            "cancelled",
            "refused",
        )
        assert desk.cancelled == 1
        assert (await line.call("rpc.cancel", {"id": 7}))["result"] == {"ok": False}


async def test_one_cannot_cancel_what_another_connection_asked() -> None:
    desk = Desk()
    async with serving(desk) as house, house.dial() as line, house.dial() as other:
        line.ask(7, "wait")
        await desk.begun.acquire()
        assert (await other.call("rpc.cancel", {"id": 7}))["result"] == {"ok": False}
        desk.gate.set()
        assert (await line.receive())["result"] == {}


async def test_a_request_can_be_cancelled_when_as_many_run_as_may() -> None:
    desk = Desk()
    async with serving(desk, Limits(requests_in_flight_max=2)) as house, house.dial() as line:
        line.ask(1, "hang")
        line.ask(2, "hang")
        line.ask(3, "rpc.cancel", {"id": 1})
        assert {(await line.receive())["id"] for _ in range(2)} == {1, 3}


async def test_a_request_cancelled_before_it_began_never_runs() -> None:
    desk = Desk()
    async with serving(desk, Limits(requests_in_flight_max=1)) as house, house.dial() as line:
        ask = {"jsonrpc": "2.0", "params": {}}
        line.send(
            [
                ask | {"id": 1, "method": "wait"},
                ask | {"id": 2, "method": "echo"},
                ask | {"id": 3, "method": "rpc.cancel", "params": {"id": 2}},
            ]
        )
        await desk.begun.acquire()
        desk.gate.set()
        answers = by_id(await line.receive())
        assert code_of(answers[2]) == -32002
        assert desk.seen == ["wait"]


async def test_what_a_handler_shields_is_finished_though_its_request_is_cancelled() -> None:
    desk = Desk()
    finished = anyio.Event()

    async def shielding(_call: Call) -> object:
        with anyio.CancelScope(shield=True):
            desk.begun.release()
            await desk.gate.wait()
        finished.set()
        await anyio.lowlevel.checkpoint()
        return "done"

    async with serving(shielding) as house, house.dial() as line:
        line.ask(1, "store")
        await desk.begun.acquire()
        assert (await line.call("rpc.cancel", {"id": 1}))["result"] == {"ok": True}
        assert not finished.is_set()
        desk.gate.set()
        assert code_of(await line.receive()) == -32002
        assert finished.is_set()


@pytest.mark.parametrize("params", [{}, {"id": True}, [1]])
async def test_a_cancellation_without_a_usable_id_is_invalid(params: object) -> None:
    async with serving(Desk()) as house, house.dial() as line:
        assert code_of(await line.call("rpc.cancel", params)) == -32602


async def test_each_connection_is_a_peer_of_its_own_for_as_long_as_it_lasts() -> None:
    async def introduce(call: Call) -> object:
        call.peer.name += "x"
        call.peer.written += 1
        return [call.peer.connection, call.peer.name, call.peer.written]

    async with serving(introduce) as house, house.dial() as first, house.dial() as second:
        assert [(await line.call("hello"))["result"] for line in (first, first, second)] == [
            [1, "x", 1],
            [1, "xx", 2],
            [2, "x", 1],
        ]


async def test_notifications_come_before_the_answer_they_belong_to() -> None:
    async def progress(call: Call) -> object:
        for i in range(3):
            await call.notify("progress", {"done": i})
        return "done"

    async with serving(progress) as house, house.dial() as line:
        line.ask(1, "work")
        assert [(await line.receive())["params"] for _ in range(3)] == [{"done": 0}, {"done": 1}, {"done": 2}]
        assert (await line.receive())["result"] == "done"


async def test_the_server_counts_what_it_did() -> None:
    async with serving(Desk()) as house, house.dial() as line:
        await line.call("echo")
        line.send(b"nonsense")
        await line.receive()
        assert (
            house.server.connections,
            house.server.requests,
            house.server.refused,
            house.server.in_flight,
        ) == (1, 2, 1, 0)
