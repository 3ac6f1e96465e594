"""What can be watched from outside: figures that Prometheus reads, log records that hold nothing of what
is remembered, and proof once a week.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from omegad.operations.self_check import EVERY_US, SelfCheck
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.edge.hook.conftest import fire
from tests.forking import ROOT

SAMPLE = re.compile(r'([a-z_]+)(?:\{([a-z_]+)="([^"\\\n]*)"\})? (-?[0-9.e+]+)')
PHRASE = "quetzal umbrella"


def test_every_figure_is_named_and_described_as_prometheus_has_it(daemon: Home) -> None:
    daemon.call("memory.store", content="one event")
    kinds: dict[str, str] = {}
    told: dict[tuple[str, str], float] = {}
    described: set[str] = set()
    for line in daemon.call("system.metrics")["text"].splitlines():
        match line.split(" ", 3):
            case ["#", "HELP", name, about]:
                assert name not in described
                assert about.endswith(".")
                described.add(name)
            case ["#", "TYPE", name, kind]:
                assert name in described, "the help comes before"
                kinds[name] = kind
            case _:
                sample = SAMPLE.fullmatch(line)
                assert sample, line
                assert list(kinds)[-1] == sample[1], "a family is in one piece"
                told[sample[1], sample[3] or ""] = float(sample[4])
    for name, kind in kinds.items():  # what `promtool check metrics` asks for
        assert name.startswith("omegad_")
        assert name.endswith("_total") == (kind == "counter"), name
        assert not re.search(r"milli|micro|_ms$|_kb$|_mb$|minutes|hours|gauge|counter", name), name
    assert kinds.keys() == {name for name, _ in told}
    assert told["omegad_log_events_total", ""] >= 1
    assert told["omegad_file_bytes", "views"] > 0
    assert told["omegad_disk_free_bytes", ""] > 0
    assert {"lint", "self_check"} <= {label for name, label in told if name == "omegad_reaction_lag"}


def test_log_records_hold_nothing_of_what_is_said(homes: Callable[..., Home]) -> None:
    home = homes(OMEGAD_LOG_LEVEL="debug")
    fire(home, "UserPromptSubmit", prompt=f"first {PHRASE}")
    (home.path / "spool" / "00000000000000000001-bad.json").write_text(f'{{"event": 7, "payload": "{PHRASE}"')
    home.start()
    stored = home.call(
        "memory.store",
        content=f"We chose the {PHRASE} for rain",
        metadata={"why": PHRASE},
        tags=[PHRASE.replace(" ", "-")],
    )
    for method, params in (
        ("memory.query", {"text": PHRASE, "mode": "semantic"}),
        ("memory.query", {"text": PHRASE, "limit": PHRASE}),
        ("memory.store", {"content": f"{PHRASE} again", "event_type": PHRASE}),
        ("memory.edit", {"memory_id": stored["memory_id"], "content": f"{PHRASE} once more"}),
        ("memory.delete", {"memory_id": PHRASE}),
        (
            "tool.record",
            {
                "session_id": "s",
                "tool_name": "Bash",
                "status": "error",
                "tool_input": {"command": PHRASE},
                "result": PHRASE,
            },
        ),
        ("audit.sql", {"query": f"SELECT '{PHRASE}' FROM nowhere"}),
        ("no.such.method", {"text": PHRASE}),
    ):
        with suppress(OmegadError):
            home.call(method, **params)
    with home.raw() as raw:
        raw.say(f'{{"jsonrpc": "2.0", "id": 1, "method": "{PHRASE}"'.encode())
    fire(
        home,
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": PHRASE},
        tool_response=PHRASE,
        tool_use_id="t-1",
    )
    assert home.stop() == 0
    assert "daemon.ready" in home.printed()
    assert "quetzal" not in home.printed().lower()


async def test_the_weekly_check_is_made_once_and_remembered_and_what_it_finds_is_trouble(
    tmp_path: Path,
) -> None:
    now_us, found = [EVERY_US], [["a view is not what the log says"], [], None]

    async def prove() -> list[str] | None:
        return found.pop(0)

    def check() -> SelfCheck:
        return SelfCheck(tmp_path / "check", prove, lambda: now_us[0], after_s=0)

    assert await check().sweep()
    again = check()
    assert "a view is not what the log says" in (again.trouble or "")
    assert not again.is_due()
    assert await again.sweep()
    assert len(found) == 2
    now_us[0] += EVERY_US
    well = check()
    assert await well.sweep()
    assert (well.trouble, check().trouble) == (None, None)
    now_us[0] += EVERY_US
    put_off = check()
    assert await put_off.sweep()
    assert not put_off.is_due(), "it is tried again after a while"
    assert check().is_due()
    (tmp_path / "check").write_text("{")
    assert check().is_due()


def test_what_the_last_check_found_is_in_the_status(home: Home) -> None:
    (home.path / "self-check.json").write_text(
        json.dumps({"at_us": 9_000_000, "took_s": 1.5, "problems": ["the log is not what it was"]})
    )
    status = home.start().call("system.status")
    assert status["self_check"] == {
        "at_us": 9_000_000,
        "took_s": 1.5,
        "problems": ["the log is not what it was"],
    }
    assert any("the log is not what it was" in trouble for trouble in status["degraded"])


def test_a_command_that_is_newer_has_the_daemon_replaced_unless_it_may_not(home: Home) -> None:
    first = home.start().process.pid
    script = "import omegad; omegad.__version__ = '99.0'; from omegad.edge.cli import main; main()"

    def status(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, "status", "--json", *options]
        return subprocess.run(
            command,
            env=home.environ | {"HOME": str(home.path)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )

    forbidden = status("--no-spawn")
    assert json.loads(forbidden.stdout)["pid"] == first
    assert "older than this omegad" in forbidden.stderr
    assert json.loads(status().stdout)["pid"] != first
    assert home.process.wait(PATIENCE_S) == 0
    home.call("system.shutdown")
    until(lambda: not home.socket.exists())
