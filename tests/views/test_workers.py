"""The process that goes through the log beside the daemon, and ends with it."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from omegad.runtime.errors import StorageFailed
from omegad.storage import sealing
from omegad.views.workers import Comparison, Workers

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
        process.stdin.write(sealing.handed())
        process.stdin.flush()
        assert process.wait(PATIENCE_S) == 1
        assert process.stderr.read() == b""


async def test_it_is_started_when_what_it_reads_has_been_written(tmp_path: Path) -> None:
    program, order = tmp_path / "program", Comparison(tmp_path / "log.db")
    workers = Workers([str(program)])
    with pytest.raises(StorageFailed, match="no process can be started"):
        await workers.done(order, tuple[str, ...], lambda *_: None)

    async def write() -> None:
        program.write_text('#!/bin/sh\necho \'{"found": ["it is here"]}\'\n', encoding="utf-8")
        program.chmod(0o700)

    workers = Workers([str(program)], ready=write)
    assert await workers.done(order, tuple[str, ...], lambda *_: None) == ("it is here",)
