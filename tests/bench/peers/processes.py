"""What processes cost, as Linux counts it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

TICKS_S = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


def cpu_ms(pids: Iterable[int]) -> float:
    """Return the processor time of processes, of those they started, and of those of them that ended, in
    milliseconds.
    """
    return sum(_ticks(pid) for pid in _with_children(pids)) * 1e3 / TICKS_S


def resident_mb(pids: Iterable[int]) -> float:
    """Return the memory that processes and those they started occupy, in units of 1,000,000 bytes."""
    return sum(_resident_kib(pid) for pid in _with_children(pids)) * 1024 / 1e6


def files_mb(folder: Path, *, but: Iterable[Path] = ()) -> float:
    """Return the sizes of the files in *folder*, but for those below some, in units of 1,000,000 bytes."""
    left_out = tuple(f"{one}{os.sep}" for one in but)
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if not str(path).startswith(left_out)) / 1e6


def children(pid: int) -> list[int]:
    """Return the processes that a process started."""
    lists = (PROC / str(pid) / "task").glob("*/children")
    return [int(child) for one in lists for child in _text(one).split()]


def _with_children(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        yield pid
        yield from _with_children(children(pid))


def _ticks(pid: int) -> int:
    # The name, which is in brackets, can hold anything; of what follows, 12 to 15 are times.
    return sum(map(int, _text(PROC / str(pid) / "stat").rpartition(")")[2].split()[11:15]))


def _resident_kib(pid: int) -> int:
    lines = _text(PROC / str(pid) / "status").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # it ended meanwhile
        return ""
