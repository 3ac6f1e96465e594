"""What hooks left while no daemon answered: taken in by the order in which it happened, each once."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import structlog

from omegad.errors import Invalid, Overloaded, ShuttingDown, Unavailable
from omegad.hooks import DispatchHook
from omegad.json_text import flattened, mended
from omegad.storage import own_files
from omegad.storage.searching import holding

LOOK_EVERY_S = 1.0
FILE_BYTES_MAX = 16 * 1024 * 1024
ASIDE = "unreadable"
ASIDE_MAX = 100
LOST = "lost"
"""The file that has a byte for each hook that was let go: too large, more than the folder may hold, or set aside."""

Execute = Callable[[DispatchHook], Awaitable[object]]

_log = structlog.get_logger(__name__)
_decoder = msgspec.json.Decoder(DispatchHook)


class Spool:
    """The folder where hook processes leave a file each; `execute` takes in what one holds."""

    def __init__(self, folder: Path, is_home: Callable[[], bool] = lambda: True) -> None:
        """Read from *folder*, which need not exist, as long as *is_home* says that its home is the one whose log is written."""
        self._folder = folder
        self.is_home = is_home
        self._lock = anyio.Lock()
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

    async def run(self) -> None:
        """Take in what comes, for ever."""
        while True:
            await anyio.sleep(LOOK_EVERY_S)
            await self.drain()

    async def drain(self) -> None:
        """Take in all that is there. What cannot be taken in now stays, and `trouble` says why; what the service fails on is set aside."""
        try:
            own_files.check(self._folder)
            if self._names() and self.is_home():
                async with self._lock:
                    for name in self._names():
                        await self._take(self._folder / name)
            self.trouble = None
        except (OSError, Unavailable, Overloaded, ShuttingDown) as error:
            if self.trouble is None:
                _log.warning("spool.waits", error=repr(error))
            self.trouble = str(error)

    def remove_aside(self, pieces: Sequence[bytes]) -> None:
        """Remove what was set aside and has one of *pieces* in it, or cannot be read."""
        aside = self._folder / ASIDE
        for path in holding(aside.iterdir(), pieces) if own_files.is_own(aside) else ():
            path.unlink()

    def _names(self) -> list[str]:
        """Return the files that are whole, in the order in which they happened, which their names begin with."""
        try:
            return sorted(path.name for path in self._folder.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
        except FileNotFoundError:
            return []

    async def _take(self, path: Path) -> None:
        """Take in one file. Raises what it is not to blame for."""
        try:
            command = msgspec.structs.replace(await anyio.to_thread.run_sync(partial(_read, path)), is_spooled=True)
            await self.execute(command)
        except FileNotFoundError:
            return
        except (OSError, Unavailable, Overloaded, ShuttingDown):
            raise
        except Exception as error:  # noqa: BLE001  whatever the service fails on, those after it go on
            _log.warning("spool.set_aside", file=path.name, error=repr(error)[:200])
            await anyio.to_thread.run_sync(partial(_set_aside, path))
            return
        await anyio.to_thread.run_sync(partial(path.unlink, missing_ok=True))


def _read(path: Path) -> DispatchHook:
    if not path.is_file() or path.is_symlink() or path.stat().st_size > FILE_BYTES_MAX:
        raise Invalid("it is no file, or a large one")
    data = path.read_bytes()
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decoder.decode(flattened(mended(data)))


def _set_aside(path: Path) -> None:
    folder = path.parent / ASIDE
    own_files.make(folder)
    path.rename(folder / path.name)
    with (path.parent / LOST).open("ab") as lost:
        lost.write(b".")
    for old in sorted(folder.iterdir())[:-ASIDE_MAX]:
        old.unlink()
