import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from omegad.client import AsyncClient, Client, blocking
from omegad.rpc import endpoint
from omegad.rpc.protocol import InternalError, InvalidRequest, MethodNotFound, ParseFailed, WireError
from omegad.rpc.server import Call, Limits
from omegad.runtime import errors
from tests.builders import PATIENCE_S, until
from tests.rpc.raw_client import serving, socket_path

T = TypeVar("T")


class Desk:
    """Answers `echo`; everything else has its own name."""

    def __init__(self) -> None:
        self.begun = asyncio.Semaphore(0)
        self.gate = anyio.Event()
        self.cancelled = anyio.Event()

    async def __call__(self, call: Call) -> object:
        self.begun.release()
        match call.method:
            case "wait":
                await self.gate.wait()
            case "hang":
                try:
                    await anyio.sleep_forever()
                finally:
                    self.cancelled.set()
            case "count":
                for i in range(30_000):
                    await call.notify("counted", {"i": i})
            case "refuse":
                raise errors.ModelMissing(hint="install one")
        return call.params


async def in_thread(function: Callable[[], T]) -> T:
    with anyio.fail_after(PATIENCE_S):
        return await anyio.to_thread.run_sync(function)


@contextmanager
def answering(path: Path, reply: bytes) -> Iterator[None]:
    """Be a server that gives one client this answer, whatever it asks, and hangs up."""

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(reply)

    with endpoint.listening(path) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        yield
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


async def test_calls_on_one_connection_run_side_by_side() -> None:
    desk = Desk()
    async with serving(desk) as house, AsyncClient(house.path) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call, "wait")
        await desk.begun.acquire()
        assert await client.call("echo", text="é", method="x") == {"text": "é", "method": "x"}
        desk.gate.set()


async def test_hundreds_of_calls_each_get_their_own_answer() -> None:
    async with serving(Desk()) as house, AsyncClient(house.path) as client:
        calls = [client.call("echo", i=i, text="x" * 10_000) for i in range(500)]
        assert [answer["i"] for answer in await asyncio.gather(*calls)] == list(range(500))


async def test_a_call_that_is_cancelled_is_cancelled_in_the_daemon_too() -> None:
    desk = Desk()
    async with serving(desk) as house, AsyncClient(house.path) as client:
        waiting = asyncio.create_task(client.call("hang"))
        await desk.begun.acquire()
        waiting.cancel()
        with anyio.fail_after(PATIENCE_S):
            await desk.cancelled.wait()
        assert waiting.cancelled()
        assert await client.call("echo") == {}


async def test_both_clients_raise_the_catalogues_exceptions() -> None:
    async with serving(Desk()) as house, AsyncClient(house.path) as client:
        with pytest.raises(errors.Unavailable) as refusal:
            await client.call("refuse")

        def refused() -> errors.OmegadError:
            with Client(house.path) as blocking, pytest.raises(errors.Unavailable) as found:
                blocking.call("refuse")
            return found.value

        for error in (refusal.value, await in_thread(refused)):
            assert (error.code, error.kind, error.tag, error.hint) == (
                -32005,
                "unavailable",
                "RETRIEVAL",
                "install one",
            )
            assert str(error) == str(errors.ModelMissing())


@pytest.mark.parametrize(
    "kind",
    [
        *(errors.NotFound, errors.Conflict, errors.Refused, errors.Invalid, errors.Stale, errors.Overloaded),
        *(
            errors.Unavailable,
            errors.ShuttingDown,
            ParseFailed,
            InvalidRequest,
            MethodNotFound,
            InternalError,
        ),
    ],
)
def test_an_error_keeps_its_class_on_the_way(kind: type[errors.OmegadError]) -> None:
    sent = kind()
    received = blocking.rebuild(
        WireError(sent.code, str(sent), {"kind": sent.kind, "tag": sent.tag, "hint": sent.hint})
    )
    assert type(received) is kind
    assert (received.code, received.kind, received.tag, received.hint, str(received)) == (
        sent.code,
        sent.kind,
        sent.tag,
        sent.hint,
        str(sent),
    )


def test_an_error_of_a_newer_daemon_is_still_an_error() -> None:
    received = blocking.rebuild(WireError(-32019, "news", {}))
    assert (type(received), received.code, str(received)) == (errors.OmegadError, -32019, "news")


async def test_no_daemon_is_said_by_both_clients() -> None:
    with socket_path() as path:
        with pytest.raises(errors.NoDaemon):
            async with AsyncClient(path):
                pytest.fail("it connected")
        with pytest.raises(errors.NoDaemon), Client(path):
            pytest.fail("it connected")


async def test_neither_client_speaks_to_another_users_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Desk()) as house:
        monkeypatch.setattr(endpoint, "peer_uid", lambda _connection: os.geteuid() + 1)
        with pytest.raises(errors.Unavailable, match="another user"):
            async with AsyncClient(house.path):
                pytest.fail("it connected")
        with pytest.raises(errors.Unavailable, match="another user"), Client(house.path):
            pytest.fail("it connected")


async def test_a_name_is_introduced_with_hello() -> None:
    heard: list[tuple[str, bytes]] = []

    async def listen(call: Call) -> object:
        heard.append((call.method, bytes(call.params)))
        return {}

    def blocking(path: Path) -> None:
        with Client(path, name="cli"):
            pass
        client = Client(path, name="script")
        client.call("echo")
        client.close()

    async with serving(listen) as house:
        async with AsyncClient(house.path, name="bridge"):
            pass
        await in_thread(lambda: blocking(house.path))
    assert [method for method, _ in heard] == ["system.hello"] * 3 + ["echo"]
    assert [params for _, params in heard] == [
        b'{"protocol":1,"client":"%s"}' % name for name in (b"bridge", b"cli", b"script")
    ] + [b"{}"]


async def test_a_client_whose_hello_is_refused_closes_its_connection() -> None:
    async def refuse(_call: Call) -> object:
        raise errors.Refused("too old")

    async with serving(refuse) as house:
        with pytest.raises(errors.Refused, match="too old"):
            async with AsyncClient(house.path, name="bridge"):
                pytest.fail("it went on")
        await until(lambda: not house.server.connections)


async def test_a_connection_too_many_is_told_so_by_both_clients() -> None:
    def refused(path: Path) -> str:
        with Client(path) as blocking, pytest.raises(errors.Overloaded) as refusal:
            blocking.call("echo")
        return refusal.value.kind

    async with serving(Desk(), Limits(connections_max=1)) as house, AsyncClient(house.path) as first:
        assert await first.call("echo") == {}
        async with AsyncClient(house.path) as second:
            with pytest.raises(errors.Overloaded):
                await second.call("echo")
        assert await in_thread(lambda: refused(house.path)) == "overloaded"


async def test_notifications_come_in_order_and_none_is_lost_while_they_are_taken() -> None:
    async with serving(Desk()) as house, AsyncClient(house.path) as client:
        await client.notify("count")
        await until(client._wire.inbox.is_full)
        await until(lambda: not house.server.in_flight)
        await anyio.sleep(0.1)  # what is on its way would now be lost
        expected = 0
        async for notification in client.notifications():
            assert (notification.method, notification.params) == ("counted", {"i": expected})
            expected += 1
            if expected == 30_000:
                break


async def test_a_call_is_answered_though_nobody_takes_the_notifications_and_their_loss_is_told() -> None:
    async with serving(Desk()) as house, AsyncClient(house.path) as client:
        assert await client.call("count", x=1) == {"x": 1}
        taken = 0
        with pytest.raises(errors.Overloaded, match="lost"):  # noqa: PT012  the last turn of the loop raises
            async for _ in client.notifications():
                taken += 1
        assert taken == blocking.LOST_NOTIFICATIONS_FROM


async def test_the_blocking_client_takes_notifications_too() -> None:
    def count(path: Path) -> list[object]:
        with Client(path) as client:
            client.notify("count")
            notifications = client.notifications()
            return [next(notifications).params for _ in range(1000)]

    async with serving(Desk()) as house:
        assert await in_thread(lambda: count(house.path)) == [{"i": i} for i in range(1000)]


async def test_what_is_notified_during_a_call_is_handed_over_in_order_before_its_answer() -> None:
    def counted(path: Path) -> list[object]:
        taken: list[object] = []
        with Client(path, on_notice=taken.append) as client:
            taken.append(client.call("count", x=1))
        return taken

    async with serving(Desk()) as house:
        expected = [*({"i": i} for i in range(30_000)), {"x": 1}]
        assert await in_thread(lambda: counted(house.path)) == expected


async def test_calls_and_notifications_end_when_the_daemon_goes() -> None:
    desk = Desk()
    async with serving(desk) as house, AsyncClient(house.path) as client:
        waiting = asyncio.create_task(client.call("hang"))
        await desk.begun.acquire()
        await house.server.stop(0.01)
        with pytest.raises(errors.ShuttingDown):
            await waiting
        with pytest.raises(errors.NoDaemon):
            await anext(client.notifications())
        with pytest.raises(errors.NoDaemon):
            await client.call("echo")
        with pytest.raises(errors.NoDaemon):
            await client.notify("echo")


async def test_notifications_end_when_the_client_is_closed() -> None:
    async with serving(Desk()) as house, AsyncClient(house.path) as client:
        await client.close()
        assert [one async for one in client.notifications()] == []


async def test_a_blocking_call_that_takes_too_long_is_given_up_and_the_next_gets_its_own_answer() -> None:
    desk = Desk()

    def impatient(path: Path) -> object:
        with Client(path, timeout_s=0.1) as client:
            with pytest.raises(errors.Unavailable, match=r"0\.1 s"):
                client.call("wait", first=True)
            client._timeout_s = PATIENCE_S
            asyncio.run_coroutine_threadsafe(open_gate(), loop).result()
            return client.call("echo", second=True)

    async def open_gate() -> None:
        desk.gate.set()

    loop = asyncio.get_running_loop()
    async with serving(desk) as house:
        assert await in_thread(lambda: impatient(house.path)) == {"second": True}


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 400 Bad Request\n", b'{"id":1,"result":"\xff"}\n', b"[]\n", b"", b'{"id":1,"res']
)
async def test_what_answers_but_is_no_omegad_is_no_daemon(reply: bytes) -> None:
    def blocking(path: Path) -> None:
        with Client(path, timeout_s=PATIENCE_S) as client, pytest.raises(errors.NoDaemon):
            client.call("echo")

    with socket_path() as path:
        with answering(path, reply):
            await in_thread(lambda: blocking(path))
        with answering(path, reply):
            async with AsyncClient(path) as client:
                with pytest.raises(errors.NoDaemon):
                    await client.call("echo")


async def test_an_answer_may_come_in_many_pieces_and_after_one_that_nobody_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("omegad.client.blocking.READ_BYTES", 1)

    def ask(path: Path) -> object:
        with Client(path, timeout_s=PATIENCE_S) as client:
            return client.call("a")

    with (
        socket_path() as path,
        answering(path, b'{"id":99,"result":0}\n{"method":"news"}\n{"id":1,"result":"\xc3\xa9"}\n'),
    ):
        assert await in_thread(lambda: ask(path)) == "é"
