"""What hooks left while no daemon answered: taken in by the order in which it happened, each once.

It is taken in behind a daemon that answers: whoever says something at a hook waits for it, and whoever asks
is answered at once.
"""

import os
import re
import stat
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import msgspec
import structlog

from omegad.agents.hooks import DispatchHook
from omegad.runtime import sealed_notes
from omegad.runtime.errors import Invalid, Overloaded, ShuttingDown, Unavailable
from omegad.runtime.json_text import flattened, mended
from omegad.runtime.private import without_private
from omegad.storage import own_files, sealing
from omegad.storage.searching import holding

LOOK_EVERY_S = 1.0
BATCH_FILES = 32
BATCH_BYTES = 4 * 1024 * 1024
FILE_BYTES_MAX = 16 * 1024 * 1024
MANY = 100
"""From so many on, it is said how far they are taken in."""
SAY_EVERY_S = 5.0
PART = re.compile(r"\.\d{20}-[0-9a-f]{32}\.json")
NOTE = re.compile(r"\d{20}-[0-9a-f]{32}\.json")
PART_S = 60.0
"""A file that is older and not whole yet is of a hook that was killed."""
ASIDE = "unreadable"
ASIDE_MAX = 100
LOST = "lost"
"""The file that has a byte for each hook that was let go: too large, more than the folder may hold, not
written to its end, or set aside.

It is there before the first one, so that it can grow where no file can be made.
"""

Execute = Callable[[Sequence[DispatchHook]], Awaitable[Sequence[object]]]
NOT_NOW = (OSError, Unavailable, Overloaded, ShuttingDown)

_log = structlog.get_logger(__name__)
_decoder = msgspec.json.Decoder(DispatchHook)


class Taking(NamedTuple):
    """How many of many hooks are taken in."""

    done: int
    total: int


class Spool:
    """The folder where hook processes leave a file each; `execute` takes in what several hold, and returns
    what each comes to, or its exception.
    """

    def __init__(self, folder: Path, is_home: Callable[[], bool] = lambda: True) -> None:
        """Read from *folder*, which need not exist, as long as *is_home* says that its home is the one
        whose log is written.
        """
        self._folder = folder
        self.is_home = is_home
        self._lock = anyio.Lock()
        self._asked = anyio.Event()
        self._round = anyio.Event()
        self.taking: Taking | None = None
        """How far it is, where there are many to be taken in; None where there are not."""
        self.trouble: str | None = None
        """Why nothing is taken in now, in words; None while it is."""
        self.execute: Execute

    @property
    def lost(self) -> int:
        """How many hooks were let go."""
        try:
            return (self._folder / LOST).stat().st_size
        except OSError:
            return 0

    @property
    def waiting(self) -> int:
        """How many hooks wait to be taken in."""
        return len(self._names())

    def troubles(self) -> list[str]:
        """Say in words what waits, and what was let go."""
        found = [f"what hooks left in the spool waits: {self.trouble}"] if self.trouble else []
        if taking := self.taking:
            found.append(
                f"what hooks left in the spool is being taken in: {taking.done:,} of {taking.total:,}"
            )
        if lost := self.lost:
            seen = f"remove {self._folder / LOST} when you have seen it"
            found.append(
                f"{lost} hooks were let go, too large, too many, or not to be written or read: {seen}"
            )
        return found

    async def run(self) -> None:
        """Take in what comes, for ever."""
        while True:
            over, self._round, self._asked = self._round, anyio.Event(), anyio.Event()
            await self.drain()
            over.set()
            with anyio.move_on_after(LOOK_EVERY_S):
                await self._asked.wait()

    async def settled(self, within_s: float) -> bool:
        """Wait until what is there now is taken in by `run`, for *within_s* at most; say whether it is."""
        if not self._names():
            return True
        over = self._round
        self._asked.set()
        with anyio.move_on_after(within_s):
            await over.wait()
        return over.is_set()

    async def drain(self) -> None:
        """Take in all that is there. What cannot be taken in now stays, and `trouble` says why; what the
        service fails on is set aside.
        """
        try:
            own_files.check(self._folder)
            async with self._lock:
                if self.is_home():
                    await self._take_all(await anyio.to_thread.run_sync(self._tidied))
            self.trouble = None
        except NOT_NOW as error:
            if self.trouble is None:
                _log.warning("spool.waits", error=repr(error))
            self.trouble = str(error)
        finally:
            self.taking = None

    def remove_aside(self, pieces: Sequence[bytes]) -> None:
        """Remove what was set aside and has one of *pieces* in it, or cannot be read."""
        aside = self._folder / ASIDE
        if not own_files.is_own(aside):
            return
        for path in (*holding(aside.iterdir(), pieces), *_sealed_holding(aside, pieces)):
            path.unlink(missing_ok=True)

    def _names(self) -> list[str]:
        """Return the files that are whole, in the order in which they happened, which their names begin
        with.
        """
        try:
            return sorted(
                path.name
                for path in self._folder.iterdir()
                if path.suffix == ".json" and not path.name.startswith(".")
            )
        except FileNotFoundError:
            return []

    def _tidied(self) -> list[Path]:
        """Return the files that are whole; have the count of what is let go ready, and remove what hooks
        that were killed have left of theirs.
        """
        with suppress(OSError):  # where nothing can be made, what is there can be taken in all the same
            self._folder.mkdir(mode=0o700, exist_ok=True)
            _count(self._folder, 0)
            for part in own_files.named(self._folder, PART):
                if part.lstat().st_mtime < time.time() - PART_S:
                    part.unlink()
                    _count(self._folder)
        return [self._folder / name for name in self._names()]

    async def _take_all(self, paths: list[Path]) -> None:
        """Take in files, and tell how far that is where they are many. Raises what they are not to blame
        for.
        """
        total, said = len(paths), time.monotonic()
        if total >= MANY:
            _log.info("spool.taking_in", hooks=total)
        while paths:
            self.taking = Taking(total - len(paths), total) if total >= MANY else None
            if total >= MANY and time.monotonic() > said + SAY_EVERY_S:
                said = time.monotonic()
                _log.info("spool.taking_in", done=total - len(paths), of=total)
            del paths[: await self._take(paths[:BATCH_FILES])]
        if total >= MANY:
            _log.info("spool.taken_in", hooks=total)

    async def _take(self, paths: Sequence[Path]) -> int:
        """Take in the first files, which share a commit, and return how many. Raises what they are not to
        blame for.
        """
        found = await anyio.to_thread.run_sync(partial(_read, paths))
        hooks = [one for one in found if isinstance(one, DispatchHook)]
        outcomes = iter(await self.execute(hooks) if hooks else ())
        came_to = [next(outcomes) if isinstance(one, DispatchHook) else one for one in found]
        left = next(
            (one for one in came_to if isinstance(one, NOT_NOW) and not isinstance(one, FileNotFoundError)),
            None,
        )
        await anyio.to_thread.run_sync(partial(_put_away, list(zip(paths, came_to, strict=False))))
        if left:
            raise left
        return len(found)


def _read(paths: Sequence[Path]) -> list[DispatchHook | Exception]:
    """Return what the first of these files hold, or why they do not: as many as are read at once."""
    found, size = list[DispatchHook | Exception](), 0
    for path in paths:
        try:
            data = _bytes_of(path)
            size += len(data)
            found.append(msgspec.structs.replace(_decoded(data), is_spooled=True))
        except Exception as error:  # noqa: BLE001  whatever a file holds, those after it are read
            found.append(error)
        if size > BATCH_BYTES:
            break
    return found


def _bytes_of(path: Path) -> bytes:
    there = path.lstat()
    if not stat.S_ISREG(there.st_mode) or there.st_size > FILE_BYTES_MAX:
        raise Invalid("it is no file, or a large one")
    data, key = path.read_bytes(), sealing.held()
    if key and data.startswith(sealed_notes.MAGIC):
        return sealed_notes.opened(key, os.fsencode(path.name), data)
    return data


def _sealed_holding(folder: Path, pieces: Sequence[bytes]) -> Iterator[Path]:
    """Yield the files that are sealed and have one of *pieces* in them, or cannot be opened."""
    for path in own_files.named(folder, NOTE):
        try:
            data = _bytes_of(path)
        except (Invalid, ValueError):
            yield path
            continue
        if any(piece in data for piece in (*pieces, sealed_notes.MAGIC)):
            yield path


def _decoded(data: bytes) -> DispatchHook:
    data = without_private(data)
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decoder.decode(flattened(mended(data)))


def _put_away(came_to: Sequence[tuple[Path, object]]) -> None:
    """Remove files that are taken in, and set aside those that the service fails on; what can be taken in
    later stays.
    """
    for path, outcome in came_to:
        if not isinstance(outcome, Exception):
            path.unlink(missing_ok=True)
        elif not isinstance(outcome, NOT_NOW):
            _log.warning("spool.set_aside", file=path.name, error=repr(outcome)[:200])
            aside = path.parent / ASIDE
            own_files.make(aside)
            path.rename(aside / path.name)
            _count(path.parent)
            for old in sorted(aside.iterdir())[:-ASIDE_MAX]:
                old.unlink()


def _count(folder: Path, more: int = 1) -> None:
    """Count what is let go, also where the disk has no room for a byte."""
    file = os.open(
        folder / LOST, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        os.write(file, b"." * more)
    except OSError:
        os.ftruncate(file, os.fstat(file).st_size + more)
    finally:
        os.close(file)
