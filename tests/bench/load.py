"""A client that asks as fast as it is answered: `python -m tests.bench.load SOCKET METHOD CONNECTIONS
REQUESTS NAME`.

Requests are encoded beforehand and answers are not decoded, so that what is measured is the daemon. Prints
one JSON object.
"""

import selectors
import socket
import sys
import time
from typing import Final

import msgspec

from tests.bench.homes import tool_call

READ_BYTES: Final = 64 * 1024


class Loaded(msgspec.Struct, frozen=True):
    """What came of it: how long it took, each request's time, and how much of a core the client itself
    used.
    """

    requests: int
    errors: int
    seconds: float
    latencies_ms: list[float]
    client_cpu_s: float


class _Agent:
    """One connection with its requests, one under way at a time."""

    def __init__(self, path: str, requests: list[bytes]) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path)
        self.errors = 0
        self.latencies_ns: list[int] = []
        self._requests = iter(requests)
        self._sent_ns = 0

    def ask(self) -> bool:
        """Send the next request, and say whether there was one."""
        request = next(self._requests, None)
        if request is None:
            return False
        self._sent_ns = time.perf_counter_ns()
        self.socket.sendall(request)
        return True

    def hear(self) -> bool:
        """Read what has come, and say whether it was a whole answer."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the daemon closed the connection")
        if not data.endswith(b"\n"):
            return False
        self.errors += b'"error"' in data
        self.latencies_ns.append(time.perf_counter_ns() - self._sent_ns)
        return True


def drive(path: str, method: str, connections: int, requests: int, name: str) -> Loaded:
    """Send *requests* from *connections*, each waiting for its answer before it sends the next."""
    share = requests // connections
    agents = [
        _Agent(path, [_encoded(method, f"{name}-{number}", call) for call in range(share)])
        for number in range(connections)
    ]
    selector = selectors.DefaultSelector()
    started, cpu = time.perf_counter(), time.process_time()
    for agent in agents:
        selector.register(agent.socket, selectors.EVENT_READ, agent)
        agent.ask()
    left = connections
    while left:
        for key, _ in selector.select():
            agent = key.data
            if agent.hear() and not agent.ask():
                left -= 1
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    latencies = [ns / 1e6 for agent in agents for ns in agent.latencies_ns]
    return Loaded(share * connections, sum(agent.errors for agent in agents), seconds, latencies, cpu)


def _encoded(method: str, session_id: str, number: int) -> bytes:
    request: dict[str, object] = {"jsonrpc": "2.0", "id": number, "method": method}
    if method == "tool.record":
        fields = msgspec.structs.asdict(tool_call(number, session_id))
        request["params"] = {key: value for key, value in fields.items() if key not in {"request_id", "ack"}}
    return msgspec.json.encode(request) + b"\n"


if __name__ == "__main__":
    where, method_name, how_many_connections, how_many_requests, whose = sys.argv[1:]
    sys.stdout.buffer.write(
        msgspec.json.encode(
            drive(where, method_name, int(how_many_connections), int(how_many_requests), whose)
        )
    )
