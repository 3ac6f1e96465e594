"""Many agents race for the same files while the daemon and some of them are killed: nobody holds what
another does, and nobody a half.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.claiming import FILES
from tests.acceptance.conftest import PATIENCE_S, Home
from tests.forking import ROOT

PROCESSES = 5


class Answer(NamedTuple):
    """What an agent was told."""

    session: str
    paths: list[str]
    position: int
    refusal: str
    ms: float


class Race:
    """Agents in some processes against one daemon."""

    def __init__(self, home: Home, folder: Path, agents: int, claims: int, pause_s: float) -> None:
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        self.home, self.folder, self._each = home, folder, (agents // PROCESSES, claims // agents, pause_s)
        self._started = 0
        self.answers: list[Answer] = []
        self.killed: list[str] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        for _ in range(PROCESSES):
            self._launch()

    def _launch(self) -> None:
        name = f"p{self._started}"
        self._started += 1
        command = [
            sys.executable,
            "-m",
            "tests.acceptance.claiming",
            str(self.home.socket),
            str(self.folder),
            name,
            *map(str, self._each),
        ]
        with self._output(name).open("wb") as output:
            self._processes[name] = subprocess.Popen(command, cwd=ROOT, stdout=output)

    def _output(self, name: str) -> Path:
        return self.folder / f"{name}.jsonl"

    def kill_agents(self) -> None:
        """Kill a process of agents, whatever they hold, and start another; a person lets go of what they
        held.
        """
        name = next(iter(self._processes))
        self._end(name, kill=True)
        self.killed += [f"{name}-{number}" for number in range(self._each[0])]
        for session_id in self.killed[-self._each[0] :]:
            self._release(session_id)
        self._launch()

    def _release(self, session_id: str) -> None:
        held = [claim["name"] for claim in self.home.call("claim.list", session_id=session_id)["claims"]]
        if held:
            self.home.call(
                "claim.release", paths=held, folder=str(self.folder), force=True, reason="it was killed"
            )

    def kill_daemon(self) -> None:
        self.home.kill()
        self.home.start()

    def finish(self, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        for name in list(self._processes):
            self._processes[name].wait(max(1.0, deadline - time.monotonic()))
            assert self._processes[name].returncode == 0
            self._end(name)

    def _end(self, name: str, *, kill: bool = False) -> None:
        process = self._processes.pop(name)
        if kill:
            process.kill()
        process.wait(PATIENCE_S)
        for line in self._output(name).read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):  # the last one of those that were killed may not
                told = json.loads(line)
                self.answers.append(
                    Answer(told["session"], told["paths"], told["position"], told["refusal"], told["ms"])
                )

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(PATIENCE_S)

    def check(self) -> int:
        """Fold the log by hand, claim by claim, and compare it with what agents were told; return how many
        claims were granted.
        """
        holders: dict[str, str] = {}
        granted: dict[int, tuple[str, set[str]]] = {}
        for event in self.home.events():
            data, session = event["data"], event["session_id"]
            if event["tag"] == "files.claimed@1":
                assert not set(data["paths"]) & set(holders), (
                    f"position {event['position']} grants what another holds"
                )
                holders |= dict.fromkeys(data["paths"], session)
                granted[event["position"]] = (
                    session,
                    {path for path, holder in holders.items() if holder == session},
                )
            elif event["tag"] == "claims.released@1":
                ended = [
                    path
                    for path, holder in holders.items()
                    if holder == session and (data.get("is_all") or path in data["paths"])
                ]
                assert data.get("is_all") or sorted(ended) == sorted(data["paths"])
                for path in ended:
                    del holders[path]
        for answer in self.answers:
            if answer.position:
                session, held = granted[answer.position]
                assert session == answer.session
                assert held >= set(answer.paths), "what was granted is all that was asked for"
            else:
                assert answer.refusal
        for session in self.killed:
            self._release(session)
        assert self.home.call("claim.list")["claims"] == [], "nobody is left who holds anything"
        self.home.check()
        return len(granted)


def run(race: Race, kills: int, every_s: float, within_s: float) -> None:
    """Let a race run, killing the daemon and agents in turns."""
    race.start()
    try:
        for number in range(kills):
            time.sleep(every_s)
            (race.kill_agents if number % 2 else race.kill_daemon)()
        race.finish(within_s)
    finally:
        race.stop()


def test_agents_that_race_for_files_never_hold_what_another_does(
    homes: Callable[..., Home], tmp_path: Path
) -> None:
    race = Race(homes().start(), tmp_path / "shop", agents=20, claims=600, pause_s=0.01)
    run(race, kills=2, every_s=1.0, within_s=PATIENCE_S)
    granted = race.check()
    assert len(race.answers) >= 600 - 30
    assert granted > len(FILES)
    assert any(answer.refusal for answer in race.answers)
