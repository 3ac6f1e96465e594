"""`socket`: tool calls recorded through a daemon of its own process, from a client of its own process."""

import subprocess
import sys
from pathlib import Path

import msgspec

from tests.bench import homes
from tests.bench.figures import Effort, Report, of_calls, of_rounds
from tests.bench.load import Loaded

CONNECTIONS = 64
RECORD, PING = "tool.record", "system.ping"


def run(effort: Effort, report: Report) -> None:
    """Measure 64 connections and one, each in turns with `system.ping`, which touches neither log nor
    views.
    """
    rounds, many, single = effort.pick(5, 2), effort.pick(12_800, 6_400), effort.pick(400, 200)
    loads: dict[tuple[str, int], list[Loaded]] = {
        (method, size): [] for method in (PING, RECORD) for size in (CONNECTIONS, 1)
    }
    with homes.directory() as place, homes.served(place / "home") as running:
        with homes.connected(running) as client:
            client.call("system.ping")
        for number in range(rounds):
            for (method, size), found in loads.items():
                found.append(
                    _load(running.paths.socket, method, size, many if size > 1 else single, f"round-{number}")
                )
    ping, record = (
        [one.requests / one.seconds for one in loads[method, CONNECTIONS]] for method in (PING, RECORD)
    )
    floor = sorted(ping)[len(ping) // 2]
    report(
        of_rounds(
            "tool.record, 64 connections",
            "events/s",
            record,
            goal=">= 5,000 events/s",
            floors={PING: floor},
            note=_remark(loads[RECORD, CONNECTIONS]),
        )
    )
    for size in (CONNECTIONS, 1):
        floor_ms = of_calls("", _latencies(loads[PING, size])).median
        name = f"tool.record, {size} connection{'s' if size > 1 else ''}, latency"
        report(of_calls(name, _latencies(loads[RECORD, size]), floors={PING: floor_ms}))


def _load(socket: Path, method: str, connections: int, requests: int, name: str) -> Loaded:
    command = [
        sys.executable,
        "-m",
        "tests.bench.load",
        str(socket),
        method,
        str(connections),
        str(requests),
        f"{name}-{connections}",
    ]
    return msgspec.json.decode(
        subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout, type=Loaded
    )


def _latencies(loads: list[Loaded]) -> list[float]:
    return [ms for one in loads for ms in one.latencies_ms]


def _remark(loads: list[Loaded]) -> str:
    share = sum(one.client_cpu_s for one in loads) / sum(one.seconds for one in loads)
    return f"{sum(one.errors for one in loads)} errors; the client used {share:.0%} of a core"
