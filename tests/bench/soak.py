"""A daemon at mixed work for a long time, and what it takes meanwhile: `python -m tests.bench.soak [--minutes
N] [--model NAME] [--agents N]`.

Agents come, work and go, each session on a connection of its own: hooks, stores, questions, tools, edits,
rates, looks at the past. Beside them somebody follows the log, somebody vanishes in the middle of a request,
and somebody verifies and rebuilds. Prints a row now and then, and at the end how each column moved in the
second half, a minute and a thousand events; `own_mb` is what no file is behind, of which the vectors take
`index_mb`. Linux only: it reads /proc.
"""

import argparse
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec
import numpy as np

from omegad.client.blocking import Client
from omegad.embedding.catalogue import VECTOR_BYTES
from omegad.index.vector_index import EXACT_MAX
from omegad.rpc import endpoint
from omegad.runtime.errors import OmegadError
from tests.bench import homes, texts
from tests.bench.figures import machine
from tests.bench.homes import PATIENCE_S, Running
from tests.bench.texts import Note

NOTES = 80_000
CALLS_A_SESSION = 30
PAUSE_S = 0.02
ROWS = 60
BESIDE_VECTOR_BYTES = 113  # its signs, its row and its memory's, and what filters ask of it
COLUMNS = (
    "minutes",
    "events",
    "memories",
    "rss_mb",
    "own_mb",
    "index_mb",
    "rest_mb",
    "descriptors",
    "threads",
    "log_wal_mb",
    "views_wal_mb",
    "vectors_wal_mb",
    "connections",
)

Sample = dict[str, float]


class Work:
    """What the agents have in hand together."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.is_over = threading.Event()
        self.done = Counter[str]()
        self.refused = Counter[str]()
        self._notes = iter(texts.notes(NOTES, "soak"))
        self._numbers = count(1)
        self._lock = threading.Lock()

    def client(self, name: str = "") -> Client:
        """Connect."""
        return Client(self.running.paths.socket, name=name, timeout_s=PATIENCE_S)

    def note(self) -> Note:
        """Return a note that nobody had."""
        with self._lock:
            return next(self._notes)

    def session_id(self) -> str:
        """Return a name that no session had."""
        with self._lock:
            return f"session-{next(self._numbers)}"

    def ask(self, client: Client, method: str, **params: object) -> dict[str, object]:
        """Ask, and count what came of it; an error is counted and answered with nothing."""
        time.sleep(PAUSE_S)
        try:
            answer = client.call(method, **params)
        except OmegadError as error:
            self.refused[f"{method}: {error}"[:200]] += 1
            return {}
        self.done[method] += 1
        return answer if isinstance(answer, dict) else {}


def _agent(work: Work, choose: random.Random) -> None:
    """Live one session after another."""
    while not work.is_over.is_set():
        with work.client("agent") as client:
            _session(work, client, work.session_id(), choose)


def _session(work: Work, client: Client, session_id: str, choose: random.Random) -> None:
    def hook(event: str, **fields: object) -> None:
        payload = {"session_id": session_id, "cwd": "/src/atlas", "hook_event_name": event} | fields
        work.ask(client, "hook.dispatch", event=event, payload=payload, host="claude-code")

    hook("SessionStart", source="startup")
    hook("UserPromptSubmit", prompt=work.note().question)
    stored: list[str] = []
    for number in range(CALLS_A_SESSION):
        if work.is_over.is_set():
            return
        _step(work, client, (session_id, number), choose, hook, stored)
    hook("Stop", last_assistant_message=f"We decided: {work.note().content}")
    hook("SessionEnd", reason="exit")


def _step(
    work: Work,
    client: Client,
    at: tuple[str, int],
    choose: random.Random,
    hook: Callable[..., None],
    stored: list[str],
) -> None:
    """Do one thing that agents do."""
    session_id, number = at
    note = work.note()
    about = {"session_id": session_id, "project": note.project}
    match choose.choices(
        ("tool", "store", "query", "edit", "rate", "call", "past", "sql"), (40, 15, 20, 4, 6, 10, 2, 3)
    )[0]:
        case "store":
            answer = work.ask(
                client,
                "memory.store",
                content=note.content,
                event_type=note.event_type,
                request_id=f"{session_id}-{number}",
                **about,
            )
            stored += [str(answer["memory_id"])] if answer else []
        case "query":
            work.ask(client, "memory.query", text=note.question, **about)
        case "edit" if stored:
            work.ask(
                client,
                "memory.edit",
                memory_id=choose.choice(stored),
                content=f"{note.content} Corrected.",
                reason="soak",
            )
        case "rate" if stored:
            work.ask(
                client,
                "memory.rate",
                memory_id=choose.choice(stored),
                rating=choose.choice(("helpful", "unhelpful", "outdated")),
            )
        case "call":
            work.ask(client, "tools.call", name="omega_query", arguments={"query": note.question}, **about)
        case "past":
            head = work.ask(client, "system.status").get("log", {})
            assert isinstance(head, dict)
            work.ask(
                client, "memory.query", text=note.question, as_of=str(max(1, int(head.get("head", 1)) // 2))
            )
        case "sql":
            work.ask(client, "audit.sql", sql="SELECT count(*) FROM audit_log")
        case _:
            tool = {
                "tool_name": "Bash",
                "tool_input": {"command": f"pytest tests/part_{number}"},
                "tool_use_id": f"{session_id}-{number}",
            }
            hook("PreToolUse", **tool)
            hook("PostToolUse", **tool, tool_response={"stdout": note.content * 4})


def _follower(work: Work, choose: random.Random) -> None:
    """Follow the log, and vanish."""
    while not work.is_over.is_set():
        with endpoint.connect(work.running.paths.socket, PATIENCE_S) as connection:
            connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"log.follow","params":{}}\n')
            until = time.monotonic() + choose.uniform(0.5, 5)
            connection.settimeout(1.0)
            with suppress(TimeoutError):  # nothing happened
                while time.monotonic() < until and connection.recv(65_536):
                    pass
        work.done["followed"] += 1


def _vanisher(work: Work, choose: random.Random) -> None:
    """Ask for much, read little of it or nothing, and go."""
    while not work.is_over.is_set():
        with endpoint.connect(work.running.paths.socket, PATIENCE_S) as connection:
            line = b'{"jsonrpc":"2.0","id":1,"method":"log.read","params":{"limit":1000}}\n'
            with suppress(OSError):
                connection.sendall(line[: choose.randrange(len(line))] if choose.random() < 0.5 else line)
                connection.settimeout(0.05)
                connection.recv(100)
        work.done["vanished"] += 1
        time.sleep(choose.uniform(0.05, 1))


def _inspector(work: Work, choose: random.Random) -> None:
    """Verify and rebuild now and then."""
    while not work.is_over.wait(choose.uniform(20, 40)):
        with work.client("inspector") as client:
            for method in ("log.verify", "views.verify", "views.rebuild"):
                work.ask(client, method)


def _sample(work: Work, started_s: float) -> Sample:
    process = Path(f"/proc/{work.running.process.pid}")
    with work.client() as client:
        status = client.call("system.status")
        counted = client.call("audit.sql", sql="SELECT count(*) FROM memories")
    assert isinstance(status, dict)
    assert isinstance(counted, dict)
    kernel = dict(
        line.split(":", 1) for line in (process / "status").read_text(encoding="ascii").splitlines()
    )
    home = work.running.paths.home

    def wal_mb(*files: Path) -> float:
        return sum(file.stat().st_size for file in files if file.exists()) / 1e6

    own_mb, index_mb = (
        int(kernel["RssAnon"].split()[0]) * 1024 / 1e6,
        _index_mb(status["embedding"]["index_vectors"]),
    )
    return {
        "minutes": (time.monotonic() - started_s) / 60,
        "events": status["log"]["head"],
        "memories": counted["rows"][0][0],
        "rss_mb": int(kernel["VmRSS"].split()[0]) * 1024 / 1e6,
        "own_mb": own_mb,
        "index_mb": index_mb,
        "rest_mb": own_mb - index_mb,
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": int(kernel["Threads"]),
        "log_wal_mb": wal_mb(home / "log.db-wal"),
        "views_wal_mb": wal_mb(*home.glob("views-*.db-wal")),
        "vectors_wal_mb": wal_mb(home / "embeddings.db-wal"),
        "connections": status["connections"],
    }


def _index_mb(vectors: int) -> float:
    """Return what so many vectors take of the memory: what the index holds beyond them is room that was
    never written to.
    """
    return (min(vectors, EXACT_MAX) * VECTOR_BYTES + vectors * BESIDE_VECTOR_BYTES) / 1e6


def _row(sample: Sample) -> str:
    return " ".join(
        f"{sample[name]:>{len(name) + 1},.{0 if float(sample[name]).is_integer() else 1}f}"
        for name in COLUMNS
    )


def _slopes(samples: list[Sample]) -> Iterator[str]:
    """Say of each column how it moved in the second half: a minute, and a thousand events."""
    half = samples[len(samples) // 2 :]
    for name in COLUMNS[3:]:
        values = [sample[name] for sample in half]
        by_minute, by_event = (
            np.polyfit([sample[x] for sample in half], values, 1)[0] for x in ("minutes", "events")
        )
        yield (
            f"{name:>16}  {min(values):8,.1f} to {max(values):8,.1f}  {by_minute:+9.3f} a minute "
            f" {by_event * 1000:+9.3f} a thousand events"
        )


def run(options: argparse.Namespace) -> list[Sample]:
    """Let the daemon work, and return what was seen of it."""
    samples: list[Sample] = []
    with (
        homes.directory() as place,
        homes.served(place / "home", options.model) as running,
        homes.connected(running),
    ):
        work = Work(running)
        parts = [_agent] * options.agents + [_follower, _vanisher, _inspector]
        threads = [
            threading.Thread(target=part, args=(work, random.Random(number)))  # noqa: S311
            for number, part in enumerate(parts)
        ]
        started_s = time.monotonic()
        for thread in threads:
            thread.start()
        print(" ".join(f" {name}" for name in COLUMNS))
        try:
            for number in range(ROWS):
                time.sleep(max(0, started_s + (number + 1) * options.minutes * 60 / ROWS - time.monotonic()))
                samples.append(_sample(work, started_s))
                print(_row(samples[-1]), flush=True)
        finally:
            work.is_over.set()
            for thread in threads:
                thread.join(PATIENCE_S)
        with work.client() as client:
            print("log ok:", msgspec.json.encode(client.call("log.verify")).decode()[:80])
        print("done:", dict(work.done), "refused:", dict(work.refused), sep="\n  ")
        print(running.output.read_text(encoding="utf-8")[-2_000:])
    return samples


def main() -> None:
    """Read the options, soak, and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.soak", description="Let a daemon work for long, and watch what it takes."
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument(
        "--model", default="none", help="the embedding model, `auto` for the one that is installed"
    )
    parser.add_argument("--agents", type=int, default=4)
    options = parser.parse_args()
    if not sys.platform.startswith("linux"):
        parser.error("it reads /proc, which only Linux has")
    print(machine().line())
    print("\n".join(_slopes(run(options))))


if __name__ == "__main__":
    main()
