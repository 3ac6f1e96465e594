"""Access to the files that agents name, which may lie on a disk that does not answer: on a few threads of its
own, and for a time.

What hangs is let go: its thread stays with it, which keeps nobody waiting and no process from its end, and
whoever names that folder until it answers again is refused at once. Of another disk than that of the home all
folders are one: it answers, or it does not.
"""

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePath
from queue import SimpleQueue
from typing import TypeVar

import anyio
import structlog

from omegad.runtime.errors import PathHangs

THREADS_MAX = 16
AT_ONCE = 2  # for one folder, so that one that hangs leaves threads to the others
PATIENCE_S = 2.0
MOUNTS = Path("/proc/self/mountinfo")  # which asks no disk; see proc_pid_mountinfo(5)
MOUNTS_S = 1.0  # for which what is mounted is taken to stay so

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class _Job:
    """What one thread is at, near a folder."""

    def __init__(self, work: Callable[[], object], near: str) -> None:
        self.work = work
        self.near = near
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.is_hanging = False


_Jobs = SimpleQueue[_Job]


class Reaching:
    """Reaches for files, and knows which folders do not answer. Nobody waits for longer than *patience_s*."""

    def __init__(self, home: Path | None = None, patience_s: float = PATIENCE_S) -> None:
        self._home = str(home or "/")
        self._patience_s = patience_s
        self._mounts: list[str] = []
        self._mounts_until = 0.0
        self._idle: list[_Jobs] = []
        self._count = 0
        self._busy: Counter[str] = Counter()
        self._hanging: Counter[str] = Counter()
        self._changed = asyncio.Event()

    @property
    def trouble(self) -> str | None:
        """Which folders do not answer, in words; None where all do."""
        names = sorted(self._hanging)
        more = f" and {len(names) - 3} more" if names[3:] else ""
        return (
            f"{', '.join(names[:3])}{more}: what lies there does not answer, and is left out"
            if names
            else None
        )

    async def reach(self, work: Callable[[], T], near: str | None) -> T:
        """Do *work*, which looks at files of a folder. Raises `PathHangs` where the folder does not answer
        in time, or has not before.
        """
        folder = self.disk(near or "/") or str(PurePath(near or "/"))
        with anyio.move_on_after(self._patience_s):
            while self._is_taken(folder):
                await self._changed.wait()
            found: list[T] = []
            job = _Job(lambda: found.append(work()), folder)
            self._begin(job)
            timer = job.loop.call_later(self._patience_s, self._give_up, job)
            job.done.add_done_callback(lambda _: timer.cancel())
            await asyncio.shield(job.done)
            return found[0]
        raise _hangs(folder)

    def disk(self, path: str) -> str:
        """Return where the disk is mounted that a path lies on, by its name alone; nothing for the disks
        that the home's path leads through.
        """
        if time.monotonic() >= self._mounts_until:
            self._mounts_until = time.monotonic() + MOUNTS_S
            with suppress(OSError):  # no such file on macOS, where each folder stands for itself
                points = (
                    re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), line.split()[4])
                    for line in MOUNTS.read_bytes().splitlines()
                )
                names = (point.decode("utf-8", "surrogateescape") for point in points)
                self._mounts = sorted(names, key=len, reverse=True)
        found = next((one for one in self._mounts if _is_in(path, one)), "/")
        return "" if _is_in(self._home, found) else found

    def _is_taken(self, folder: str) -> bool:
        if (
            any(PurePath(folder).is_relative_to(one) for one in self._hanging)
            or self._hanging.total() >= THREADS_MAX
        ):
            raise _hangs(folder)
        return self._busy[folder] >= AT_ONCE or (not self._idle and self._count >= THREADS_MAX)

    def _begin(self, job: _Job) -> None:
        self._busy[job.near] += 1
        if self._idle:
            self._idle.pop().put(job)
            return
        self._count += 1
        jobs: _Jobs = SimpleQueue()
        jobs.put(job)
        threading.Thread(target=self._work, args=(jobs,), name="reaching", daemon=True).start()

    def _give_up(self, job: _Job) -> None:
        if not job.done.done():
            job.is_hanging = True
            self._hanging[job.near] += 1
            _log.warning("files.no_answer", folder=job.near, seconds=self._patience_s)
            job.done.set_exception(_hangs(job.near))
            job.done.exception()  # whoever waited for it may be gone
            self._tell()

    def _work(self, jobs: _Jobs) -> None:
        while True:
            job = jobs.get()
            error = None
            try:
                job.work()
            except BaseException as raised:  # noqa: BLE001  whoever waits is told, whatever it is
                error = raised
            with suppress(RuntimeError):  # the loop is no more
                job.loop.call_soon_threadsafe(self._settle, jobs, job, error)

    def _settle(self, jobs: _Jobs, job: _Job, error: BaseException | None) -> None:
        self._idle.append(jobs)
        self._busy -= Counter((job.near,))
        if job.is_hanging:
            self._hanging -= Counter((job.near,))
            _log.info("files.answer_again", folder=job.near)
        elif error is not None:
            job.done.set_exception(error)
            job.done.exception()
        else:
            job.done.set_result(None)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _is_in(path: str, folder: str) -> bool:
    return folder in ("/", path) or path.startswith(f"{folder}/")


def _hangs(folder: str) -> PathHangs:
    return PathHangs(f"{folder[:200]}: what lies there does not answer")
