"""A fault at a step of its own, in a process of its own: see `let_fail`, and `tests.forking`, which runs
omegad with one.

Steps are the changes of files, and what comes and goes on sockets: between two of them a crash leaves the
same behind, so that crashing at each is crashing at any moment. What SQLite does is met in its VFS, below
everything that it believes.
"""

import ctypes
import errno
import os
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from omegad.rpc.wire import Wire
from omegad.storage.checkpointer import Checkpointer
from omegad.storage.driver import sqlite

KILLED = 137
SECTOR = 512

How = Literal["kill", "power", "torn", "eio", "enospc"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong: at the step *at* (from 1; 0 for none) the process ends, or from it on *times* steps
    fail.

    kill: as `kill -9` before the step. torn: half of a write is done before. power: what was written and not
    synced is undone, in part or whole. eio, enospc: the system refuses the step. *only* counts no other steps
    than those whose names begin so; reads are counted where it says.
    """

    how: How = "kill"
    at: int = 0
    times: int = 1
    only: str = ""
    within: str
    """The folder whose files count."""
    trace: str
    """The file that the names of steps are written to, one a line."""
    checkpoint_after: int = 40
    """Rows after which the write-ahead logs are moved into the databases, so that few are enough."""
    switch: str = ""
    """A file that has every step fail while it is there."""
    clock: str = ""
    """A file that says by how many seconds the clock is wrong, and then for how many the machine slept,
    which may change at any time.
    """


class Steps:
    """Counts steps, and lets the fault happen."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.undo: dict[str, list[Callable[[], None]]] = {}
        """By file, how to take back what was not synced, latest last."""
        self._count = 0
        self._lock = threading.Lock()
        self._trace = os.open(fault.trace, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def fails(self, name: str, tear: Callable[[], object] | None = None) -> bool:
        """Take the step *name*: say whether it is to fail; do not return where the process is to end."""
        fault = self.fault
        if not name.startswith(
            fault.only or ("write", "sync", "truncate", "delete", "move", "link", "request", "answer")
        ):
            return False
        with self._lock:
            self._count += 1
            os.write(self._trace, f"{name}\n".encode())
            is_time = fault.at and fault.at <= self._count < fault.at + fault.times
            # Pathlib would count itself
            if not is_time and not (fault.switch and os.path.exists(fault.switch)):  # noqa: PTH110
                return False
            if fault.how in {"eio", "enospc"}:
                return True
            if fault.how == "torn" and tear:
                tear()
            if fault.how == "power":
                self._cut_power()
            os._exit(KILLED)

    def _cut_power(self) -> None:
        """Take back what no disk has to have kept: all of it, or any part of it."""
        choose = random.Random(self.fault.at)  # noqa: S311
        share = choose.choice((1.0, 0.5))
        for undos in list(self.undo.values()):
            for undo in reversed(list(undos)):
                if choose.random() < share:
                    undo()

    def error(self, path: object) -> OSError:
        """Return what the system says where a step fails."""
        code = errno.ENOSPC if self.fault.how == "enospc" else errno.EIO
        return OSError(
            code, os.strerror(code), os.fspath(path) if isinstance(path, str | os.PathLike) else None
        )

    def counts(self, path: object) -> bool:
        """Say whether *path* is in the folder whose files count."""
        return isinstance(path, str | os.PathLike) and str(Path(os.fspath(path)).absolute()).startswith(
            self.fault.within
        )


# ---- SQLite's VFS

_P = ctypes.c_void_p
_I = ctypes.c_int
_L = ctypes.c_int64
_OPEN = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)
_DELETE = ctypes.CFUNCTYPE(_I, _P, _P, _I)
_TRANSFER = ctypes.CFUNCTYPE(_I, _P, _P, _I, _L)  # xRead and xWrite
_TRUNCATE = ctypes.CFUNCTYPE(_I, _P, _L)
_SYNC = ctypes.CFUNCTYPE(_I, _P, _I)
_SIZE = ctypes.CFUNCTYPE(_I, _P, _P)

SQLITE_FULL = 13
IOERR = {"read": 266, "write": 778, "sync": 1034, "truncate": 1546, "delete": 2570}


class _Vfs(ctypes.Structure):
    _fields_ = (
        *(
            ("version", _I),
            ("file_bytes", _I),
            ("path_bytes_max", _I),
            ("next", _P),
            ("name", ctypes.c_char_p),
            ("data", _P),
        ),
        *(("open", _P), ("delete", _P)),
        ("rest", _P * 14),
    )


class _Methods(ctypes.Structure):
    _fields_ = (
        *(
            ("version", _I),
            ("close", _P),
            ("read", _P),
            ("write", _P),
            ("truncate", _P),
            ("sync", _P),
            ("size", _P),
        ),
        ("rest", _P * 12),
    )


class FailingVfs:
    """SQLite's own VFS, whose files fail."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        library = ctypes.CDLL(
            sys.modules[
                "_sqlite3" if sqlite.__name__ == "sqlite3" else f"{sqlite.__package__}._sqlite3"
            ].__file__
        )
        library.sqlite3_vfs_find.restype = _P
        self._original = library.sqlite3_vfs_find(None)
        self._vfs = _Vfs.from_buffer_copy(_Vfs.from_address(self._original))
        self._open_original, self._delete_original = _OPEN(self._vfs.open), _DELETE(self._vfs.delete)
        self._callbacks: list[object] = [_OPEN(self._open), _DELETE(self._delete)]
        self._methods: dict[int, _Methods] = {}
        self._names: dict[int, str] = {}
        self._vfs.name = b"failing"
        self._vfs.open, self._vfs.delete = (ctypes.cast(callback, _P) for callback in self._callbacks)  # type: ignore[arg-type]
        assert library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == 0

    def _code(self, kind: str) -> int:
        return SQLITE_FULL if self._steps.fault.how == "enospc" else IOERR[kind]

    def _open(self, _vfs: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        code = int(self._open_original(self._original, name, file, flags, out))
        methods = _P.from_address(file)
        if code == 0 and methods.value and name:
            path = ctypes.string_at(name).decode()
            if self._steps.counts(path):
                self._names[file] = path
                methods.value = ctypes.addressof(
                    self._methods.setdefault(methods.value, self._failing(methods.value))
                )
        return code

    def _delete(self, _vfs: int, name: int, sync: int) -> int:
        path = ctypes.string_at(name).decode()
        if self._steps.counts(path) and self._steps.fails(f"delete {Path(path).name}"):
            return self._code("delete")
        return int(self._delete_original(self._original, name, sync))

    # A callback for each method, which share what they close over
    def _failing(self, address: int) -> _Methods:  # noqa: C901
        if address in self._methods:
            return self._methods[address]
        methods = _Methods.from_buffer_copy(_Methods.from_address(address))
        read, write, truncate = _TRANSFER(methods.read), _TRANSFER(methods.write), _TRUNCATE(methods.truncate)
        sync, size = _SYNC(methods.sync), _SIZE(methods.size)
        steps, names = self._steps, self._names

        def before(file: int, amount: int, offset: int) -> None:
            """Remember how to take back what is written where."""
            found = _L()
            size(file, ctypes.addressof(found))
            length = max(0, min(amount, found.value - offset))
            old = ctypes.create_string_buffer(length + 1)
            if length:
                read(file, ctypes.addressof(old), length, offset)
            steps.undo.setdefault(names[file], []).append(
                lambda: _put_back(names[file], old.raw[:length], offset, found.value)
            )

        def on_read(file: int, buffer: int, amount: int, offset: int) -> int:
            if steps.fails(f"read {Path(names[file]).name}"):
                return self._code("read")
            return int(read(file, buffer, amount, offset))

        def on_write(file: int, buffer: int, amount: int, offset: int) -> int:
            if steps.fails(
                f"write {Path(names[file]).name}", lambda: write(file, buffer, amount // 2, offset)
            ):
                return self._code("write")
            if steps.fault.how == "power":
                before(file, amount, offset)
            return int(write(file, buffer, amount, offset))

        def on_truncate(file: int, length: int) -> int:
            if steps.fails(f"truncate {Path(names[file]).name}"):
                return self._code("truncate")
            if steps.fault.how == "power":
                before(file, 1 << 30, length)
            return int(truncate(file, length))

        def on_sync(file: int, flags: int) -> int:
            if steps.fails(f"sync {Path(names[file]).name}"):
                return self._code("sync")
            code = int(sync(file, flags))
            steps.undo.pop(names[file], None)
            return code

        made = (_TRANSFER(on_read), _TRANSFER(on_write), _TRUNCATE(on_truncate), _SYNC(on_sync))
        self._callbacks += [*made, read, write, truncate, sync, size]
        methods.read, methods.write, methods.truncate, methods.sync = (
            ctypes.cast(callback, _P) for callback in made
        )
        return methods


def _put_back(path: str, old: bytes, offset: int, size: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except FileNotFoundError:
        return
    os.pwrite(descriptor, old, offset)
    os.truncate(path, size)


# ---- names of files, and sockets

CALLS = {
    "rename": "move",
    "replace": "move",
    "unlink": "delete",
    "remove": "delete",
    "symlink": "link",
    "link": "link",
}
"""Functions of `os` that change names."""


def fail_names(steps: Steps) -> None:
    """Let the calls that change the names of files fail, and those that wait for the disk."""

    def failing(name: str, kind: str) -> Callable[..., Any]:
        original = getattr(os, name)

        def call(path: Any, *rest: Any, **named: Any) -> Any:
            concerned = [one for one in (path, *rest) if steps.counts(one)]
            if concerned and steps.fails(f"{kind} {Path(os.fspath(concerned[-1])).name}"):
                raise steps.error(path)
            return original(path, *rest, **named)

        return call

    for name, kind in CALLS.items():
        setattr(os, name, failing(name, kind))
    fsync = os.fsync

    def on_fsync(descriptor: int) -> None:
        if steps.fails("sync a descriptor"):
            raise steps.error(None)
        fsync(descriptor)

    os.fsync = on_fsync  # type: ignore[assignment]


def fail_sockets(steps: Steps) -> None:
    """Let connections break as something comes or goes."""

    def failing(name: str, kind: str) -> None:
        original = getattr(Wire, name)

        def call(wire: Wire, *rest: Any) -> None:
            if (kind == "request" or wire._outgoing) and steps.fails(kind):
                wire.abort()
            else:
                original(wire, *rest)

        setattr(Wire, name, call)

    failing("data_received", "request")
    failing("flush", "answer")


def set_clock(path: Path) -> None:
    """Let the time be wrong by what *path* says, and let the machine have slept for as long as it says."""
    right, counted = time.time_ns, time.clock_gettime_ns

    def said() -> tuple[int, int]:
        wrong_s, slept_s, *_ = [int(word) for word in path.read_text(encoding="ascii").split()] + [0, 0]
        return wrong_s, slept_s

    time.time_ns = lambda: right() + sum(said()) * 10**9
    time.clock_gettime_ns = lambda which: counted(which) + said()[1] * 10**9


def let_fail(fault: Fault) -> None:
    """Have this process meet *fault*."""
    steps = Steps(fault)
    _kept.append(FailingVfs(steps))
    fail_names(steps)
    fail_sockets(steps)
    Checkpointer.__init__.__defaults__ = (fault.checkpoint_after,)
    if fault.clock:
        set_clock(Path(fault.clock))


_kept: list[FailingVfs] = []
"""What SQLite knows by its address."""
