"""The process that goes through the log beside the daemon, and ends with it."""

import subprocess
import sys
from pathlib import Path

import msgspec

from omegad.views.workers import Comparison

PATIENCE_S = 60.0


def test_it_ends_without_a_word_where_the_daemon_that_it_tells_is_gone(tmp_path: Path) -> None:
    work = msgspec.json.encode(Comparison(tmp_path / "gone" / "log.db"), enc_hook=str)
    command = [
        sys.executable,
        "-P",
        "-m",
        "omegad.catalog.log_worker",
        str(tmp_path / "embeddings.db"),
        work.decode(),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 1
        assert process.stderr.read() == b""
