"""Starts a process that goes through the whole log, hears how far it is, and ends it with whoever waits for
it.

It ends by itself with the daemon, whose end of its standard input closes then.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio.lowlevel
import msgspec
from msgspec import UNSET, Raw, UnsetType

from omegad.log.event import Position
from omegad.log.folding import Progress
from omegad.runtime import child, errors
from omegad.runtime.errors import OmegadError, StorageFailed, Unavailable
from omegad.storage import sealing
from omegad.views.building import Order, PastOrder, Verification

LINE_BYTES_MAX = 256 * 1024

T = TypeVar("T")


class Comparison(msgspec.Struct, frozen=True, tag="compare"):
    """The wish to know in what the decision state of a log is not what its events say."""

    log: Path


class Proof(msgspec.Struct, frozen=True, tag="prove"):
    """The wish to know whether a log is as it was written."""

    log: Path


class Measurement(msgspec.Struct, frozen=True, tag="measure"):
    """The wish to know how much of a database's file each of its tables and indexes takes."""

    file: Path


Work = Order | Verification | PastOrder | Comparison | Proof | Measurement


class Failure(msgspec.Struct, frozen=True):
    """An error of the catalogue, by the name of its class."""

    name: str
    message: str
    hint: str


class Said(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of what such a process says: how far it is, and in the end what it has built or found, or
    why it could not.
    """

    done: Position = 0
    total: Position = 0
    found: Raw | UnsetType = UNSET
    failure: Failure | None = None


def read(work: str) -> Work:
    """Read what the started process is to do."""
    found: Work = msgspec.json.decode(work, type=Work, dec_hook=lambda _, path: Path(path))
    return found


@dataclass(frozen=True)
class Workers:
    """What goes through the whole log beside those who ask something: processes that *command* starts, once
    *ready* has returned.
    """

    command: Sequence[str]
    ready: Callable[[], Awaitable[None]] = field(default=anyio.lowlevel.checkpoint, kw_only=True)

    async def done(self, work: Work, answer: type[T], tell: Progress) -> T:
        """Do *work*, and return what comes of it, which is of the type *answer*. Whoever is cancelled has
        stopped it. Raises what doing it does, and `Unavailable` where it ended otherwise.
        """
        arguments = [*self.command, msgspec.json.encode(work, enc_hook=str).decode()]
        last = Said()
        await self.ready()
        try:
            async with child.started(arguments, LINE_BYTES_MAX, sealing.handed()) as running:
                while (line := await running.output.readline()).endswith(b"\n"):
                    last = msgspec.json.decode(line, type=Said)
                    if last.total:
                        tell(last.done, last.total)
                status = await running.wait()
        except OSError as error:
            raise StorageFailed(f"no process can be started beside this one: {error.strerror}") from error
        if last.found is not UNSET:
            return msgspec.json.decode(last.found, type=answer)
        if last.failure is None:
            raise Unavailable(
                f"the process that goes through the log ended with status {status}",
                hint="ask again; the log of the daemon may say more",
            )
        kind: type[OmegadError] = getattr(errors, last.failure.name, Unavailable)
        raise kind(last.failure.message, hint=last.failure.hint)
