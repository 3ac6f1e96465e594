"""`greedy`: hooks, each a process as hosts run it, while one client asks all it can on 64 connections; and
the same hooks where nobody asks.

One after another, a prompt, the start of a session, and an edit of a file that another session holds, which
must be stopped. Somebody else pings. The daemon has the notes of some years, with a model where one is
installed. A hook that goes on without the daemon has not been answered.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import msgspec

from omegad.client.blocking import Client
from omegad.embedding.catalogue import MINILM, installed
from omegad.runtime.config import find_paths
from tests.bench import homes, texts
from tests.bench.figures import Effort, Report, Timer, of_calls
from tests.bench.greed import KINDS
from tests.bench.homes import PATIENCE_S, Running

MEMORIES = 3_000
PING_EVERY_S = 0.01
SETTLE_S = 1.0  # for the greed to be under way
GOAL = "p99 <= 150 ms"
HOOK_CLIENT = Path(__file__).parents[2] / "omegad" / "hook_client.py"
HELD, PROJECT = "exporter.py", texts.PROJECTS[0]
KINDS_OF_HOOKS = ("held edit", "prompt", "session start")
ANSWERED = {"held edit": "stopped", "session start": "briefed"}
"""What shows that the daemon has answered: a prompt is told nothing, since the vectors of the notes stand
in for the model's own.
"""


class Host:
    """Runs hooks as an agent's host does, of sessions in one folder."""

    def __init__(self, running: Running, folder: Path, questions: Sequence[str]) -> None:
        self._environ = {
            "OMEGAD_HOME": str(running.paths.home),
            "HOME": str(running.paths.home),
            "CLAUDE_PROJECT_DIR": str(folder),
        }
        self._folder = folder
        self._questions = cycle(questions)
        self._numbers = count(1)

    def hook(self, kind: str, session_id: str | None = None) -> dict[str, str]:
        """Run a hook, and return what its host reads."""
        session_id = session_id or f"session-{next(self._numbers)}"
        match kind:
            case "prompt":
                return self._run("UserPromptSubmit", session_id, prompt=next(self._questions))
            case "session start":
                return self._run("SessionStart", session_id, source="startup")
            case _:
                call = {"file_path": str(self._folder / HELD), "old_string": "a", "new_string": "b"}
                return self._run(
                    "PreToolUse",
                    session_id,
                    tool_name="Edit",
                    tool_input=call,
                    tool_use_id=f"{session_id}-edit",
                )

    def _run(self, event: str, session_id: str, **fields: object) -> dict[str, str]:
        said = {"session_id": session_id, "cwd": str(self._folder), "hook_event_name": event} | fields
        with TemporaryFile() as stdin:
            stdin.write(msgspec.json.encode(said))
            stdin.seek(0)
            command = [sys.executable, "-I", "-S", str(HOOK_CLIENT), event]
            done = subprocess.run(
                command,
                env=self._environ,
                stdin=stdin,
                stdout=subprocess.PIPE,
                check=True,
                timeout=PATIENCE_S,
            )
        return json.loads(done.stdout)["hookSpecificOutput"] if done.stdout else {}


class Measured(NamedTuple):
    """How long hooks took by their kind, how many of each were answered as they must be, and how long
    pings took.
    """

    hooks: dict[str, Timer]
    right: dict[str, int]
    pings: Timer


def run(effort: Effort, report: Report) -> None:
    """Measure where nobody else asks, and beside each kind of greed."""
    manifest, each = installed(find_paths().models, MINILM.name), effort.pick(40, 12)
    model, embedder_id = (MINILM.name, manifest.embedder_id) if manifest else ("none", homes.INSTANT_ID)
    with homes.directory() as place:
        notes = texts.notes(effort.pick(MEMORIES, 1_000), "there")
        homes.make_home(place / "home", notes, embedder_id)
        (place / PROJECT / ".git").mkdir(parents=True)
        with homes.served(place / "home", model) as running, homes.connected(running):
            host = Host(
                running, place / PROJECT, [note.question for note in notes if note.project == PROJECT]
            )
            for kind in KINDS_OF_HOOKS:  # the model is loaded, and the file claimed
                host.hook(kind, "holder")
            time.sleep(SETTLE_S)
            idle = _measured(host, running, each)
            _report("nobody else", idle, None, "", report)
            for kind in KINDS:
                host.hook("prompt", "holder")
                with _greed(running, kind) as said:
                    beside = _measured(host, running, each)
                _report(kind, beside, idle, said[0], report)


def _measured(host: Host, running: Running, each: int) -> Measured:
    found = Measured({kind: Timer() for kind in KINDS_OF_HOOKS}, dict.fromkeys(KINDS_OF_HOOKS, 0), Timer())
    is_over = threading.Event()
    pinging = threading.Thread(target=_ping, args=(running, found.pings, is_over))
    pinging.start()
    try:
        for _ in range(each):
            for kind in KINDS_OF_HOOKS:
                with found.hooks[kind].lap():
                    told = host.hook(kind)
                found.right[kind] += (
                    told.get("permissionDecision") == "deny"
                    if kind == "held edit"
                    else "additionalContext" in told
                )
    finally:
        is_over.set()
        pinging.join()
    return found


def _ping(running: Running, timer: Timer, is_over: threading.Event) -> None:
    with Client(running.paths.socket, timeout_s=PATIENCE_S) as client:
        while not is_over.wait(PING_EVERY_S):
            with timer.lap():
                client.call("system.ping")


@contextmanager
def _greed(running: Running, kind: str) -> Iterator[list[str]]:
    """Have a client ask all it can for the block's duration; what it says at its end is in the list."""
    said = [""]
    command = [sys.executable, "-m", "tests.bench.greed", str(running.paths.socket), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout
        try:
            assert process.stdout.readline() == b"asking\n"
            time.sleep(SETTLE_S)
            yield said
        finally:
            began = time.perf_counter()
            output, _ = process.communicate(timeout=PATIENCE_S)
            answers, lost = msgspec.json.decode(output, type=tuple[int, int])
            said[0] = (
                f"the client had {answers:,} answers and lost {lost} connections; ended in"
                f" {time.perf_counter() - began:.1f} s"
            )


def _report(beside: str, found: Measured, idle: Measured | None, note: str, report: Report) -> None:
    for kind, timer in found.hooks.items():
        right = f"; {found.right[kind]} of {len(timer.ms)} {ANSWERED[kind]}" if kind in ANSWERED else ""
        floors = {"where nobody else asks": of_calls("", idle.hooks[kind].ms).median} if idle else {}
        report(
            of_calls(
                f"{kind}, beside {beside}", timer.ms, goal=GOAL, floors=floors, note=f"{_high(timer)}{right}"
            )
        )
    floors = {"where nobody else asks": of_calls("", idle.pings.ms).median} if idle else {}
    report(
        of_calls(
            f"another's ping, beside {beside}",
            found.pings.ms,
            floors=floors,
            note="; ".join(filter(None, (_high(found.pings), note))),
        )
    )


def _high(timer: Timer) -> str:
    ordered = sorted(timer.ms)
    return f"p99 {ordered[round(0.99 * (len(ordered) - 1))]:.1f} ms, max {ordered[-1]:.1f} ms"
