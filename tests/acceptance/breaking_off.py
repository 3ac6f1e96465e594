"""Breaks off the sealing of a home, and its opening, at one step after another, each in a copy, as `kill -9` would:
`python -m tests.acceptance.breaking_off HOME`. Prints how often which state was found after it.

A step is what the system is asked to do to a name, or to a file that is opened to be written.
"""

import os
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import msgspec

from omegad.agents.spool import NOTE
from omegad.log import reading
from omegad.operations import home_key, seal
from omegad.runtime.config import Paths, find_paths
from omegad.storage import own_files, sealing
from omegad.storage.database import open_reader
from omegad.storage.driver import sqlite

BROKEN = 137
NAMES = {"os.rename", "os.remove", "os.link", "os.truncate", "os.chmod"}
WORDS = [word.encode() for word in os.environ.get("OMEGAD_WORDS", "").split(",")]


def end_at(step: int) -> None:
    """End the process at a step from now."""
    left = step

    def look(event: str, about: tuple[object, ...]) -> None:
        nonlocal left
        if event in NAMES or (event == "open" and isinstance(about[2], int) and about[2] & 3):
            left -= 1
            if not left:
                os._exit(BROKEN)

    sys.addaudithook(look)


def broken_off(step: int, do: Callable[[Paths], None], paths: Paths) -> None:
    """Do it, as far as that step."""
    end_at(step)
    do(paths)


def of(home: Path) -> Paths:
    return find_paths({"OMEGAD_HOME": str(home)})


def key_of(home: Path) -> Path:
    """Return where the key of a sealed home is."""
    told = seal.told(of(home))
    assert told
    return Path(told.key_file)


def in_a_process(do: Callable[[], object]) -> int:
    """Return the status of a fork that does it."""
    if not (pid := os.fork()):
        try:
            do()
            os._exit(0)
        except BaseException:  # noqa: BLE001  a fork never returns
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def nothing(_done: int, _total: int, _what: str) -> None:
    """Tell nobody."""


def do_seal(paths: Paths) -> None:
    sqlite.seal()
    if seal.enter(paths) is None:
        key = sealing.new_key()
        name = str(paths.home.with_name(f"{paths.home.name}.{len(os.listdir(paths.home.parent))}.key"))  # noqa: PTH208
        told = home_key.kept(key, paths, key_file=name)
        sealing.hold(key)
        seal.seal_home(paths, told, nothing)


def do_unseal(paths: Paths) -> None:
    if seal.enter(paths) is not None:
        seal.unseal_home(paths, nothing)


def head_of(path: Path) -> bytes:
    """Return the chain at the end of a log."""
    with closing(open_reader(path)) as log:
        found: bytes = log.execute("SELECT chain FROM events ORDER BY position DESC LIMIT 1").fetchone()[0]
    return found


def look(paths: Paths, head: bytes, notes: int) -> str:
    """Start as a daemon would, and return the state that the home is found in: all is there, and all of it plain
    or sealed.
    """
    told = seal.enter(paths)
    assert head_of(paths.log) == head
    with closing(open_reader(paths.log)) as log:
        assert log.execute("SELECT count(*) FROM payloads").fetchone()[0] == reading.head(log)
    left = [
        path.name
        for path in paths.home.rglob("*")
        if path.name.endswith((".changed", ".plain", ".unfinished"))
    ]
    assert not left, left
    assert len(own_files.named(paths.spool, NOTE)) == notes
    said = [
        path.name
        for path in paths.home.rglob("*")
        if path.is_file() and any(word in path.read_bytes().lower() for word in WORDS)
    ]
    assert bool(said) == (told is None), said
    return "plain" if told is None else "sealed"


def main(home: Path) -> None:
    """Break off both."""
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place) / "head"
        assert not in_a_process(lambda: kept.write_bytes(head_of(home / "log.db")))
        head = kept.read_bytes()
    notes = len(own_files.named(home / "spool", NOTE))
    found: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        before = home
        for what, do in (("seal", do_seal), ("unseal", do_unseal)):
            found[what] = Counter()
            for step in count(1):
                copy = Path(place) / f"{what}{step}"
                shutil.copytree(before, copy, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
                status = in_a_process(lambda: broken_off(step, do, of(copy)))  # noqa: B023
                assert status in {0, BROKEN}, status
                key = key_of(before) if what == "unseal" and sealing.is_plain(copy / "log.db") else None
                if key:  # nothing needs it any more
                    key.rename(f"{key}.away")
                state = copy.with_name(f"{copy.name}.state")
                assert not in_a_process(lambda: state.write_text(look(of(copy), head, notes)))  # noqa: B023
                found[what][state.read_text()] += 1
                if not status:
                    break
                assert not in_a_process(lambda: do(of(copy))), "it can be done then"  # noqa: B023
                assert not in_a_process(lambda: state.write_text(look(of(copy), head, notes)))  # noqa: B023
                assert state.read_text() == ("sealed" if what == "seal" else "plain")
                shutil.rmtree(copy)
                if key:
                    Path(f"{key}.away").rename(key)
            before = copy
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
