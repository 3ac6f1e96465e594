"""Looks for bytes in files, in a process of its own: `python -I -S searching.py`, with JSON on standard
input.

A process that closes a file lets go of every lock that it has on it, those of SQLite's connections too
(sqlite.org/howtocorrupt.html, "POSIX advisory locks"), after which another process may remove a write-ahead
log that is in use. So the daemon opens no such file itself.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

HEADER = b"SQLite format 3\0"
READ_BYTES = 1 << 20


Held = Literal["database", "file", "unread"]
"""How a file holds bytes: as a database of SQLite, as any other file, or perhaps, since it cannot be read."""


def holding(paths: Iterable[Path], pieces: Sequence[bytes]) -> dict[Path, Held]:
    """Return those of *paths* that are files with one of *pieces* in them, and those that cannot be read. A
    database that is sealed by the key that this process holds is looked into.
    """
    from omegad.storage import sealing  # noqa: PLC0415  which the other process can do without

    by_name = {os.fsencode(path).hex(): path for path in paths}
    if not by_name or not pieces:
        return {}
    asked: dict[str, object] = {"files": list(by_name), "pieces": [piece.hex() for piece in pieces]}
    if key := sealing.held():
        asked |= {"key": key.hex(), "paths": sys.path}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-S", __file__],
        input=json.dumps(asked).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return {by_name[name]: held for name, held in json.loads(done.stdout).items()}


def _held(path: Path, pieces: Sequence[bytes], key: bytes) -> Held | None:
    """Say how a file holds one of *pieces*; None where it does not, is not there, or is no file."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            if key:
                from omegad.storage.sealed_pages import plain  # noqa: PLC0415  seldom needed, and dear

                if (pages := plain(file, key)) is not None:
                    return "database" if any(piece in page for page in pages for piece in pieces) else None
                file.seek(0)
            # Read, not mapped: a database that is in use may become shorter at any moment, which ends whoever
            # has mapped it.
            data = beginning = file.read(READ_BYTES)
            overlap = max(map(len, pieces)) - 1
            while data:
                if any(piece in data for piece in pieces):
                    return "database" if beginning.startswith(HEADER) else "file"
                more = file.read(READ_BYTES)
                data = data[len(data) - min(overlap, len(data)) :] + more if more else b""
            return None
    except FileNotFoundError:
        return None
    except OSError:
        return "unread"


def main() -> None:
    """Answer with the names that were found, as JSON; with nothing where whoever asked was gone before the
    question was whole.
    """
    try:
        asked = json.load(sys.stdin)
    except ValueError:
        return
    pieces, key = [bytes.fromhex(piece) for piece in asked["pieces"]], bytes.fromhex(asked.get("key", ""))
    sys.path.extend(asked.get("paths", ()))
    found = {
        name: held
        for name in asked["files"]
        if (held := _held(Path(os.fsdecode(bytes.fromhex(name))), pieces, key))
    }
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(found))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
