"""Deleted bytes leave the file and its write-ahead log, also those that were deleted before anybody saw to
it.
"""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from omegad.runtime.errors import StorageBusy
from omegad.storage import searching, wiping
from omegad.storage.database import open_reader, open_writer
from omegad.storage.searching import holding
from omegad.storage.transaction import snapshot
from omegad.storage.wiping import wipe
from tests.forking import ROOT

SAID = b"the door opens with 4711 0815"


@pytest.mark.parametrize("always_bytes", [0, wiping.ALWAYS_BYTES])
def test_nothing_is_left_of_what_was_deleted_without_care(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always_bytes: int
) -> None:
    monkeypatch.setattr(wiping, "ALWAYS_BYTES", always_bytes)
    path = tmp_path / "a.db"
    writer = open_writer(path, durable=False)
    writer.execute("PRAGMA secure_delete=OFF")
    writer.execute("CREATE TABLE said (text TEXT)")
    writer.executemany(
        "INSERT INTO said VALUES (?)", [(f"{SAID.decode()} {number}",) for number in range(500)]
    )
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    writer.execute("DELETE FROM said WHERE rowid % 3")
    writer.execute("DELETE FROM said")
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert holding([path], [SAID]) == {path: "database"}
    reader = open_reader(path)
    with snapshot(reader):
        reader.execute("SELECT count(*) FROM said").fetchone()
        writer.execute("INSERT INTO said VALUES ('else')")
        with pytest.raises(StorageBusy):
            wipe(writer, path, [SAID])
    wipe(writer, path, [SAID])
    assert holding(tmp_path.iterdir(), [SAID]) == {}
    assert writer.execute("SELECT text FROM said").fetchall() == [("else",)]
    reader.close()
    writer.close()


GROWN = """
import os, re, resource, sys
from pathlib import Path

from omegad.storage import database, wiping

def peak():
    status = Path("/proc/self/status")  # on Linux getrusage also counts what started the process
    if status.exists():
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

path = Path(sys.argv[1])
writer = database.open_writer(path, durable=False)
writer.execute("CREATE TABLE said (bytes BLOB)")
writer.executemany("INSERT INTO said VALUES (?)", ((os.urandom(2_000),) for _ in range(20_000)))
before = peak()
wiping.wipe(writer, path, [])
scratch = database.open_scratch()
scratch.execute("CREATE TABLE said AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000)"
                " SELECT randomblob(2000) AS bytes FROM n")
print((peak() - before) / path.stat().st_size)
"""


def test_neither_a_file_that_is_written_anew_nor_a_scratch_one_is_held_in_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWN, str(tmp_path / "a.db")], capture_output=True, check=True, cwd=ROOT
    )
    assert float(done.stdout) < 0.5, done.stdout  # of its size; VACUUM takes all of it
    assert {path.name for path in tmp_path.iterdir()} <= {"a.db", "a.db-wal", "a.db-shm"}


def test_what_a_killed_wipe_left_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writer = open_writer(path, durable=False)
    writer.execute("CREATE TABLE said (text TEXT)")
    (tmp_path / f"a.db{wiping.UNFINISHED}").write_bytes(SAID)
    wipe(writer, path, [SAID])
    assert holding(tmp_path.iterdir(), [SAID]) == {}
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    writer.close()


def test_who_writes_to_the_file_meanwhile_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.db"
    writer, other = open_writer(path, durable=False), open_writer(path, durable=False)
    writer.execute("CREATE TABLE said (text TEXT)")
    writer.execute("PRAGMA busy_timeout=50")
    monkeypatch.setattr(wiping, "truncate", lambda *_: True)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageBusy):
        wipe(writer, path, [])
    other.execute("ROLLBACK")
    wipe(writer, path, [])
    assert list(tmp_path.glob(f"*{wiping.UNFINISHED}*")) == []
    writer.close()
    other.close()


def test_a_file_that_cannot_be_read_may_hold_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {}
    for name in ("holds", "locked", "other"):
        (tmp_path / name).write_bytes(SAID if name == "holds" else b"else")
        names[name] = os.fsencode(tmp_path / name).hex()
    is_readable = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, mode: _refuse() if path.name == "locked" else is_readable(path, mode)
    )
    monkeypatch.setattr(
        "sys.stdin", io.StringIO(json.dumps({"files": list(names.values()), "pieces": [SAID.hex()]}))
    )
    searching.main()
    assert json.loads(capsys.readouterr().out) == {names["holds"]: "file", names["locked"]: "unread"}


def _refuse() -> NoReturn:
    raise PermissionError


@pytest.mark.parametrize("asked", [b"", b'{"files": ["6'])
def test_who_is_asked_by_somebody_who_is_killed_meanwhile_says_nothing(asked: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", searching.__file__], input=asked, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
