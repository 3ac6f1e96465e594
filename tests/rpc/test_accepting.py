"""Connections that come while there are no descriptors for them."""

import subprocess
import sys

import msgspec

SCRIPT = """
import asyncio, os, resource, socket, sys
import anyio
from omegad.runtime import telemetry
from omegad.rpc import accepting

class Greeting(asyncio.Protocol):
    def connection_made(self, transport):
        transport.write(b"hello")
        transport.close()

async def main():
    telemetry.configure("info")
    accepting.RETRY_S = 0.001
    tries = 0
    listener = socket.create_server(("127.0.0.1", 0))
    clients = [socket.socket() for _ in range(20)]
    loop = asyncio.get_running_loop()
    accept_one = loop.sock_accept
    async def counted(sock):
        nonlocal tries
        tries += 1
        return await accept_one(sock)
    loop.sock_accept = counted
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(accepting.accept, listener, Greeting)
        await anyio.sleep(0)
        spare = [os.dup(0)]
        limit = max(map(int, os.listdir("/dev/fd"))) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        while True:
            try:
                spare.append(os.dup(0))
            except OSError:
                break
        for client in clients:
            client.connect(listener.getsockname())
        while tries < 10:
            await anyio.sleep(0.001)
        for descriptor in spare:
            os.close(descriptor)
        for client in clients:
            client.setblocking(False)
            assert await loop.sock_recv(client, 5) == b"hello"
        tasks.cancel_scope.cancel()

anyio.run(main)
"""


def test_where_descriptors_run_out_connections_wait_and_are_told_of_once() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True, timeout=60)
    said = [msgspec.json.decode(line) for line in done.stderr.splitlines()]
    assert {record["event"] for record in said} == {"accepting.waits"}
    assert [("repeated" in record) for record in said] == [False, True]
    assert "Too many open files" in said[0]["error"]
