"""What anybody on the machine may do who can connect over HTTP and knows no token: nothing that others
would feel.
"""

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import anyio
import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from omegad.edge.web import door, tools
from omegad.edge.web.asking import Asking
from omegad.edge.web.serving import Part, Web
from omegad.rpc import endpoint
from tests.acceptance.conftest import PATIENCE_S, until
from tests.edge.mcp.conftest import Host
from tests.edge.web.test_mcp import INITIALIZE, listens

TOKEN = "t" * 43
NOBODY = 65_534
ACCEPTS = {"accept": "application/json, text/event-stream"}
SHORT_S = 0.3  # of a deadline that is to be missed
MUCH_BYTES = 32 << 20  # more than the buffers between two processes hold


class Served:
    """HTTP in this process, and those who connect."""

    def __init__(self, port: int) -> None:
        self.port = port

    @asynccontextmanager
    async def connection(
        self, said: bytes = b""
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(said)
        try:
            yield reader, writer
        finally:
            writer.close()

    async def answer(self, said: bytes) -> bytes:
        """Return all that is answered until the other end closes."""
        with anyio.fail_after(PATIENCE_S):
            async with self.connection(said) as (reader, _):
                return await reader.read()

    def head(self, *lines: str, token: str | None = TOKEN, path: str = "/mcp") -> bytes:
        shown = [f"Authorization: Bearer {token}"] if token else []
        return "\r\n".join(
            [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *shown, *lines, "\r\n"]
        ).encode()

    async def initialize(self) -> int:
        """Ask as the owner does, on a connection of its own."""
        headers = {**ACCEPTS, "authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as client:
            return (
                await client.post(f"http://127.0.0.1:{self.port}/mcp", json=INITIALIZE, headers=headers)
            ).status_code


async def much(_request: Request) -> Response:
    return Response(b"m" * MUCH_BYTES)


@asynccontextmanager
async def served(share: float = 1.0) -> AsyncIterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=endpoint.BACKLOG)
    is_over = asyncio.Event()
    asking = Asking(Path("none"), lambda: None, "test")
    parts = [tools.part(asking, {"OMEGAD_HOME": "none"}), Part([Route("/much", much)])]
    http = Web(listener, TOKEN, asking, parts, share)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(http.serve, is_over)
        yield Served(listener.getsockname()[1])
        is_over.set()


@pytest.mark.parametrize("part", ["nothing", "a head", "a body", "the next head"])
async def test_a_request_has_a_deadline_as_a_whole_however_its_bytes_come(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "BODY_S" if part == "a body" else "HEAD_S", SHORT_S)
    async with served() as web:
        before = {
            "a body": web.head("Content-Length: 100000"),
            "the next head": web.head("Content-Length: 0"),
        }.get(part, b"")
        async with web.connection(before) as (reader, writer):
            if part == "the next head":
                assert b" 400 " in await reader.readuntil(
                    b"\r\n\r\n"
                )  # whatever it was, the connection is kept
            answer = asyncio.create_task(reader.read())
            with anyio.fail_after(PATIENCE_S):
                while not answer.done():
                    if part != "nothing":
                        writer.write(b"P")
                    await anyio.sleep(SHORT_S / 10)
            assert b"HTTP/1.1 408 Request Timeout" in await answer


async def test_a_connection_that_is_kept_for_another_request_is_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "KEPT_S", SHORT_S)
    async with served() as web:
        assert (await web.answer(web.head("Content-Length: 0"))).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("body", [b"zz\r\n\r\n", b"-1\r\n"], ids=repr)
async def test_a_body_that_cannot_be_read_is_refused_once_and_nothing_else_answers(
    body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as web:
        kind = (
            "Accept: application/json, text/event-stream",
            "Content-Type: application/json",
            "Transfer-Encoding: chunked",
        )
        for said in (web.head(*kind) + body, web.head("Transfer-Encoding: chunked", path="/other") + body):
            answer = await web.answer(said)
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.count(b"HTTP/1.1 ") == 1
        assert [
            record.message
            for record in caplog.records
            if record.name == "uvicorn.error" and record.levelname == "ERROR"
        ] == []


@pytest.mark.parametrize(
    "version", [[], ["Mcp-Protocol-Version: 2099-01-01"]], ids=["of no version", "of a version"]
)
@pytest.mark.parametrize("end", ["leaves", "is late", "is late and asks to go on", "says no HTTP"])
async def test_who_leaves_or_is_refused_within_a_body_is_nobodys_error(
    end: str, version: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if end.startswith("is late"):
        monkeypatch.setattr(door, "BODY_S", SHORT_S)
    expects = ["Expect: 100-continue"] if end == "is late and asks to go on" else []
    lines = [
        "Accept: application/json, text/event-stream",
        "Content-Type: application/json",
        *version,
        *expects,
    ]
    async with served() as web:
        if end == "says no HTTP":
            answer = await web.answer(
                web.head("Transfer-Encoding: chunked", "Expect: 100-continue", *lines) + b"no number\r\n"
            )
            assert answer.startswith(b"HTTP/1.1 400 ")
        elif end == "leaves":
            async with web.connection(web.head("Content-Length: 100", *lines) + b"{"):
                await anyio.sleep(SHORT_S / 10)
        else:
            answer = await web.answer(web.head("Content-Length: 100", *lines) + (b"" if expects else b"{"))
            assert b"HTTP/1.1 408 " in answer
        assert await web.initialize() == 200
    assert not [record for record in caplog.records if record.levelname in {"ERROR", "CRITICAL"}]


async def test_a_stranger_is_answered_once_by_the_head_alone_and_closed() -> None:
    async with served() as web:
        promised = "Content-Length: 1000000"
        for said, status in (
            (web.head(promised, token=None), b"401 Unauthorized"),
            (web.head(promised, token="x" * 43), b"401 Unauthorized"),
            (web.head("X-Token: " + TOKEN, promised, token=None), b"401 Unauthorized"),
            (web.head(promised, token=None, path="/other"), b"404 Not Found"),
            (web.head(*[f"X-{number}: y" for number in range(100)]), b"431 Request Header Fields Too Large"),
            (web.head("X: " + "y" * 16_384), b"431 Request Header Fields Too Large"),
            (b"x" * 20_000, b"431 Request Header Fields Too Large"),
            (b"\x16\x03\x01\x02\x00\x01", b"400 Bad Request"),  # how TLS begins
            (b"GET /mcp\r\n\r\n", b"400 Bad Request"),
        ):
            answer = await web.answer(said + web.head("Content-Length: 0"))
            assert answer.startswith(b"HTTP/1.1 " + status), (said[:200], answer)
            assert answer.count(b"HTTP/1.1 ") == 1
        assert b'WWW-Authenticate: Bearer error="invalid_token"' in await web.answer(web.head(token=None))
        assert await web.initialize() == 200


async def test_a_stranger_takes_the_place_of_another_and_never_the_owners() -> None:
    async with served(share=0.0) as web, AsyncExitStack() as connections:
        own, own_writer = await connections.enter_async_context(web.connection(web.head("Content-Length: 0")))
        assert b" 400 " in await own.readuntil(b"\r\n\r\n")
        count = 3 * door.STRANGERS_MIN
        strangers = [
            (await connections.enter_async_context(web.connection(b"POST /mcp")))[0] for _ in range(count)
        ]
        with anyio.fail_after(PATIENCE_S):
            for reader in strangers[: count - door.STRANGERS_MIN]:
                with suppress(ConnectionResetError):
                    assert await reader.read() == b""
        assert (await web.answer(web.head("Content-Length: 0"))).startswith(
            b"HTTP/1.1 503 "
        )  # of his own he may have one here
        own_writer.write(web.head("Content-Length: 0"))
        assert b" 400 " in await own.readuntil(b"\r\n\r\n")
        own_writer.close()
        await own_writer.wait_closed()
        assert await web.initialize() == 200


@pytest.mark.parametrize("then", ["close", "keep-alive"])
async def test_an_answer_that_nobody_reads_takes_no_place_for_ever(
    then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "UNREAD_S", SHORT_S)
    async with served(share=0.0) as web:  # where the owner may have one connection
        asks = web.head(f"Connection: {then}", path="/much").replace(b"POST", b"GET")
        async with web.connection(asks) as (reader, _):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            with anyio.fail_after(PATIENCE_S):
                while await web.initialize() != 200:
                    pass  # it is refused until then


@contextmanager
def strangers(port: int, number: int) -> Iterator[None]:
    """Have so many half requests come from another user where this one may be another, else from this one."""
    script = f"""
import os, socket, sys
if os.geteuid() == 0:
    os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
def connect(said):
    one = socket.socket()
    one.settimeout(10)
    one.connect(("127.0.0.1", {port}))
    one.send(said)
    return one
held = [connect(b"POST /mcp HTTP/1.1\\r\\nHost: ") for _ in range({number})]
for _ in range({number}):
    with connect(b"POST /mcp HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nContent-Length: 0\\r\\n\\r\\n") as one:
        assert one.recv(12) == b"HTTP/1.1 401"
print("held", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()


def test_another_user_cannot_keep_the_owner_out_nor_fill_the_log(host: Host) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    host.home.paths.config.write_text('web = ["mcp"]\n', encoding="utf-8")
    command = [sys.executable, "-m", "omegad", "web", "--port", str(port)]
    log = host.home.paths.web_log
    few = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (200, 200))
    with (
        log.open("wb") as output,
        subprocess.Popen(command, env=host.environ, stderr=output, preexec_fn=few) as process,  # noqa: PLW1509
    ):
        try:
            until(lambda: listens(port))
            token = (
                subprocess.run([*command[:-2], "--token"], env=host.environ, capture_output=True, check=True)
                .stdout.decode()
                .strip()
            )
            headers = {**ACCEPTS, "authorization": f"Bearer {token}"}
            ask = partial(
                httpx2.post,
                f"http://127.0.0.1:{port}/mcp",
                json=INITIALIZE,
                headers=headers,
                timeout=PATIENCE_S,
            )
            assert ask().status_code == 200  # it takes connections long before it has loaded what answers
            with strangers(port, 220):
                assert ask().status_code == 200
        finally:
            process.terminate()
        assert process.wait(PATIENCE_S) == 0
    until(host.home.paths.lock.exists)
    host.kill_daemon()
    said = [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]
    unauthorized = [record for record in said if record.get("status") == "Unauthorized"]
    assert [record.get("repeated") for record in unauthorized] == [None, 219]
    assert len(said) < 10
