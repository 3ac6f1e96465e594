"""Looks for bytes in files, in a process of its own: `python -I -S searching.py`, with JSON on standard input.

A process that closes a file lets go of every lock that it has on it, those of SQLite's connections too (sqlite.org/howtocorrupt.html,
"POSIX advisory locks"), after which another process may remove a write-ahead log that is in use. So the daemon opens no such file itself.
"""

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

HEADER = b"SQLite format 3\0"


def holding(paths: Iterable[Path], pieces: Sequence[bytes]) -> dict[Path, bool]:
    """Return those of *paths* that are files with one of *pieces* in them, each with whether it is a database of SQLite."""
    by_name = {os.fsencode(path).hex(): path for path in paths}
    if not by_name or not pieces:
        return {}
    asked = json.dumps({"files": list(by_name), "pieces": [piece.hex() for piece in pieces]})
    done = subprocess.run([sys.executable, "-I", "-S", __file__], input=asked.encode(), stdout=subprocess.PIPE, check=True)  # noqa: S603  this very file
    return {by_name[name]: is_database for name, is_database in json.loads(done.stdout).items()}


def _found(name: str, pieces: Sequence[bytes]) -> bool | None:
    """Say whether a file that has one of *pieces* is a database; None where it has none, is not there, or is no file."""
    try:
        path = Path(os.fsdecode(bytes.fromhex(name)))
        if not path.is_file() or path.stat().st_size == 0:
            return None
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data[: len(HEADER)] == HEADER if any(data.find(piece) >= 0 for piece in pieces) else None
    except FileNotFoundError:
        return None


def main() -> None:
    """Answer with the names that were found, as JSON."""
    asked = json.load(sys.stdin)
    pieces = [bytes.fromhex(piece) for piece in asked["pieces"]]
    found = {name: is_database for name in asked["files"] if (is_database := _found(name, pieces)) is not None}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
