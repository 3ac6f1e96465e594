"""A daemon that is told to stop ends in its time, whatever hangs, and says what it has not waited for."""

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from omegad.daemon import composition
from omegad.embedding.catalogue import MINILM
from omegad.runtime.config import Config
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, refusal, until
from tests.embedding.fakes import put_model
from tests.forking import ROOT


def test_a_model_that_never_answers_keeps_no_daemon_from_its_end(
    homes: Callable[..., Home], tmp_path: Path
) -> None:
    home, mark = (
        homes(OMEGAD_MODEL="auto", XDG_CACHE_HOME=str(tmp_path), OMEGAD_SHUTDOWN_S="0.2"),
        tmp_path / "mark",
    )
    put_model(home.paths.models, MINILM)
    command = [sys.executable, "-m", "tests.acceptance.hanging", str(mark), "serve"]
    with home.output.open("ab") as output:
        home._process = subprocess.Popen(command, cwd=ROOT, env=home.environ, stdout=output, stderr=output)
    until(home.answers)
    refused = list[OmegadError]()
    waiting = threading.Thread(
        target=lambda: refused.append(refusal(lambda: home.call("memory.store", content="a")))
    )
    waiting.start()
    until(mark.exists)
    stored = home.call("memory.store", content="b", ack="durable")
    assert home.stop() == 0
    waiting.join(PATIENCE_S)
    assert [one.kind for one in refused] == ["shutting_down"]
    told = next(line for line in home.printed().splitlines() if "daemon.not_waited_for" in line)
    assert '"embedding"' in told
    assert "daemon.stopped" in home.printed()  # and its files were closed
    home.environ["OMEGAD_MODEL"] = "none"
    home.start()
    assert home.call("memory.get", memory_id=stored["memory_id"])["content"] == "b"
    assert [one["tag"].partition("@")[0] for one in home.events()].count("memory.stored") == 1


def test_what_does_not_end_in_time_is_named_and_left() -> None:
    script = (
        "import time; from omegad.runtime import ending; ending.within(0.01, lambda: {'views', 'log'});"
        " time.sleep(3600)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, timeout=PATIENCE_S, check=True
    )
    assert b"['log', 'views']" in ended.stdout + ended.stderr


def test_managers_wait_for_as_long_as_a_daemon_may_take() -> None:
    may_take_s = Config().shutdown_s + composition.ENDING_S
    unit = (ROOT / "systemd" / "omegad.service").read_text(encoding="utf-8")
    agent = (ROOT / "launchd" / "io.github.omegad.plist").read_text(encoding="utf-8")
    assert f"TimeoutStopSec={may_take_s + 5:.0f}\n" in unit
    assert f"<key>ExitTimeOut</key>\n  <integer>{may_take_s + 5:.0f}</integer>" in agent
