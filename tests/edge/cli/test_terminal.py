"""What people see who sit at a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from typing import Self

import pytest

from omegad.embedding import catalogue
from tests.edge.cli.conftest import PATIENCE_S, ROOT, Command

COLUMNS = 100
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"  # the cursor


class Terminal:
    """Runs the command with a terminal for its output."""

    def __init__(self, command: Command, *arguments: str, **environ: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "omegad", *arguments],
            cwd=ROOT,
            env=command.environ
            | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": "40"}
            | environ,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self.raw = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *unused: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        os.close(self._ours)

    def read_until(self, text: str | None) -> str:
        """Return what is seen so far, as soon as *text* is in it, or the command has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while text is None or text not in self.seen():
            assert time.monotonic() < deadline, self.raw
            if not select.select([self._ours], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # how Linux tells that nobody is at the other end any more
                break
            self.raw += data.decode()
        return self.seen()

    def seen(self) -> str:
        return CONTROL.sub("", self.raw).replace("\r", "")

    def end(self) -> tuple[int, str]:
        """Wait for the command's end; return its status, and what was seen."""
        seen = self.read_until(None)
        return self.process.wait(PATIENCE_S), seen


def shown(command: Command, *arguments: str, **environ: str) -> str:
    with Terminal(command, *arguments, **environ) as terminal:
        status, seen = terminal.end()
    assert status == 0, seen
    return seen


def test_a_table_is_wrapped_to_the_terminal_and_scores_are_told_in_words(served: Command) -> None:
    words = [f"harbour{number}" for number in range(20)]
    served.store("The crane is out of order: " + " ".join(words), project="quay")
    seen = shown(served, "query", "crane order", "--project", "quay")
    assert "SCORE" in seen
    assert re.search(r"\d\.\d\d (likely|possible|unsure)", seen)
    assert [word for word in words if word not in seen] == []
    assert max(map(len, seen.splitlines())) <= COLUMNS
    assert re.search(
        r"^[01]\.\d{3}  mem-", served("query", "crane order", "--project", "quay").stdout, re.MULTILINE
    )


def test_a_narrow_terminal_cuts_no_id(served: Command) -> None:
    memory_id = served.store("The mooring lines are frayed", project="narrow")
    assert memory_id in shown(served, "list", "--project", "narrow", COLUMNS="40")


def test_what_others_stored_cannot_repaint_the_terminal(served: Command) -> None:
    said = (
        "\x1b[2J[bold red]not markup[/] \u061c \u200f \u202e backwards \x9b1m \x7f \u2066 \u200b \u2028"
        " \U000e0041"
    )
    served.store(said, project="hostile")
    for arguments in (["query", "backwards"], ["list"]):
        with Terminal(served, *arguments, "--project", "hostile", "--json") as terminal:
            _, seen = terminal.end()
        assert "\x1b[2J" not in terminal.raw
        assert not set("\u202e\x9b\x7f\u2066\u200b\u2028\U000e0041") & set(terminal.raw)
        assert (
            json.JSONDecoder().raw_decode(seen)[0][{"query": "results", "list": "memories"}[arguments[0]]][0][
                "content"
            ]
            == said
        )
    assert not set("\x9b\x7f\u202e") & set(served("log", "--json").stdout + served("log").stdout)
    for words in (("query", "not markup"), ("list",), ("sql", "SELECT content FROM memories")):
        assert not set("\x9b\x7f\u202e\u061c\u200f") & set(shown(served, *words))
    with Terminal(served, "export", "-") as terminal:
        status, seen = terminal.end()
    assert (status, "redirect it" in seen) == (2, True)
    assert "hostile" in served("export", "-").stdout
    with Terminal(served, "query", "backwards", "--project", "hostile") as terminal:
        _, seen = terminal.end()
    assert "[bold red]not markup[/]" in seen
    assert not {"\x1b[2J", "\u202e"} & set(re.findall(r"\x1b\[2J|\u202e", terminal.raw))


@pytest.mark.parametrize(("environ", "is_painted"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_can_be_refused(served: Command, environ: dict[str, str], *, is_painted: bool) -> None:
    with Terminal(served, "status", **environ) as terminal:
        assert terminal.end()[0] == 0
    assert ("\x1b[2m" in terminal.raw) is is_painted
    assert is_painted or "\x1b[" not in terminal.raw


def test_long_work_leaves_nothing_of_its_bar_behind(served: Command) -> None:
    served.store("something to build again")
    with Terminal(served, "rebuild") as terminal:
        status, seen = terminal.end()
    assert (status, terminal.raw.count(HIDDEN)) == (0, terminal.raw.count(SHOWN))
    assert "rebuilding" in seen
    assert "rebuilt all views" in seen


def test_the_status_is_watched_until_it_is_interrupted_and_the_terminal_is_left_clean(
    served: Command,
) -> None:
    with Terminal(served, "status", "--watch") as terminal:
        first = terminal.read_until("requests so far")
        assert "clients" in first
        served.store("seen by whoever watches")
        head = served.json("status")["log"]["head"]
        terminal.read_until(f"{head:,} events")
        terminal.process.send_signal(signal.SIGINT)
        status, seen = terminal.end()
    assert status == 130
    assert "Traceback" not in seen
    assert terminal.raw.rindex(SHOWN) > terminal.raw.rindex(HIDDEN)
    assert terminal.raw.endswith(f"\n{SHOWN}")


def test_watching_ends_with_the_daemon_and_starts_no_other(omegad: Command) -> None:
    omegad("start")
    with Terminal(omegad, "status", "--watch") as terminal:
        terminal.read_until("requests so far")
        omegad("stop")
        status, seen = terminal.end()
    assert status == 3
    assert "omegad: " in seen
    omegad("status", "--no-spawn", status=3)


def test_watching_needs_a_terminal_or_tells_programs_line_by_line(served: Command) -> None:
    assert "--json" in served("status", "--watch", status=2).stderr
    with served.begin("status", "--watch", "--json") as process:
        assert process.stdout
        assert '"pid":' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert (process.wait(PATIENCE_S), process.stderr.read() if process.stderr else "") == (130, "")


def test_who_asks_for_nothing_is_told_how_to_begin(omegad: Command) -> None:
    told = omegad().stdout
    assert "No daemon runs" in told
    assert "omegad store" in told
    assert omegad.json()["pid"] is None
    assert not omegad.home.exists()
    pid = omegad.json("start")["pid"]
    assert f"The daemon runs: process {pid}." in omegad().stdout
    assert (
        "model install"
        in omegad(XDG_CACHE_HOME=str(omegad.home), OMEGAD_SOCKET=str(omegad.paths.socket)).stdout
    )
    has_all = all(catalogue.installed(omegad.paths.models, model.name) for model in catalogue.USUAL)
    assert ("model install" in omegad().stdout) != has_all
