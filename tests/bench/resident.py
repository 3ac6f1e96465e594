"""`rss`: how much memory the daemon's process occupies, in units of 1,000,000 bytes."""

import subprocess
import sys
import time
from pathlib import Path

from omegad.client.blocking import Client
from omegad.embedding.catalogue import MINILM, installed
from omegad.runtime.config import find_paths
from tests.bench import homes, texts
from tests.bench.figures import Effort, Figure, Report
from tests.bench.starts import IMPORTS, MODEL_IMPORTS

IDLE_S = 2.0
QUERIES = 100


def run(effort: Effort, report: Report) -> None:
    """Measure an idle daemon without a model, and one that has embedded 1,000 memories and 100 questions."""
    with homes.directory() as place:
        report(_idle(place / "home"))
        if installed(find_paths().models, MINILM.name):
            report(_at_work(place / "busy", effort.pick(1_000, 200)))
        else:
            print(f"rss with a model: skipped, {MINILM.name} is not installed")


def _idle(home: Path) -> Figure:
    with homes.served(home) as running, homes.connected(running) as client:
        client.call("system.ping")
        time.sleep(IDLE_S)
        return _figure("rss, idle, no model", client, running.process.pid, "< 60 MB", IMPORTS)


def _at_work(home: Path, count: int) -> Figure:
    notes = texts.notes(count, "stored")
    with homes.served(home, MINILM.name) as running, homes.connected(running) as client:
        for note in notes:
            client.call(
                "memory.store", content=note.content, project=note.project, event_type=note.event_type
            )
        for note in notes[:QUERIES]:
            client.call("memory.query", text=note.question)
        return _figure(
            f"rss, {MINILM.name}, {count:,} stores, {QUERIES} queries",
            client,
            running.process.pid,
            "< 170 MB",
            MODEL_IMPORTS,
        )


def _figure(name: str, client: Client, pid: int, goal: str, imports: str) -> Figure:
    status = client.call("system.status")
    assert isinstance(status, dict)
    kernel = _kernel(Path(f"/proc/{pid}/status"))
    note = ", ".join(f"{key} {value:.1f} MB" for key, value in kernel.items())
    floors = {"an interpreter that imports the same": _bare(imports)}
    return Figure(
        name=name,
        unit="MB",
        median=status["rss_bytes"] / 1e6,
        runs="1 process",
        goal=goal,
        floors=floors,
        note=note,
    )


def _bare(imports: str) -> float:
    code = f"{imports}; from omegad.runtime.allocator import resident_bytes; print(resident_bytes())"
    return int(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout) / 1e6


def _kernel(path: Path) -> dict[str, float]:
    """Return what the kernel says of a process's memory, in MB; nothing where there is no /proc."""
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    wanted = {"VmRSS:": "in all", "VmHWM:": "at most", "RssAnon:": "its own", "RssFile:": "of files"}
    return {wanted[row[0]]: int(row[1]) * 1024 / 1e6 for row in rows if row[0] in wanted}
