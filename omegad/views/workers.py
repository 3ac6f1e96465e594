"""Starts a process that goes through the whole log, hears how far it is, and ends it with whoever waits for
it.

It ends by itself with the daemon, whose end of its standard input closes then.
"""

from asyncio import StreamReader
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from omegad.log.event import Position
from omegad.log.folding import Progress
from omegad.log.verifying import LogReport
from omegad.runtime import child, errors
from omegad.runtime.errors import OmegadError, StorageFailed, Unavailable
from omegad.views.building import Order, RebuiltView
from omegad.views.past_building import PastOrder
from omegad.views.replay import Verification, ViewReport

LINE_BYTES_MAX = 256 * 1024

Build = Callable[[Order, Progress], Awaitable[dict[str, RebuiltView]]]
"""Carries out an order. Whoever is cancelled has stopped it. Raises what `building.build` does, and
`Unavailable` where it ended otherwise.
"""
Verify = Callable[[Verification, Progress], Awaitable[dict[str, ViewReport]]]
"""Compares views with a replay, and is stopped, and raises, as `Build` does."""
MakePast = Callable[[PastOrder, Progress], Awaitable[None]]
"""Makes the views of an earlier moment, and is stopped, and raises, as `Build` does."""


class Workers(NamedTuple):
    """What goes through the whole log beside those who ask something."""

    build: Build
    verify: Verify
    make_past: MakePast


class Comparison(msgspec.Struct, frozen=True, tag="compare"):
    """The wish to know in what the decision state of a log is not what its events say."""

    log: Path


class Proof(msgspec.Struct, frozen=True, tag="prove"):
    """The wish to know whether a log is as it was written."""

    log: Path


Work = Order | Verification | PastOrder | Comparison | Proof


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
    built: dict[str, RebuiltView] | None = None
    verified: dict[str, ViewReport] | None = None
    problems: tuple[str, ...] | None = None
    proven: LogReport | None = None
    failure: Failure | None = None


def read(work: str) -> Work:
    """Read what the started process is to do."""
    found: Work = msgspec.json.decode(work, type=Work, dec_hook=lambda _, path: Path(path))
    return found


def started_by(command: Sequence[str]) -> Workers:
    """Do it in processes that *command* starts."""
    return Workers(
        build=partial(build, command), verify=partial(verify, command), make_past=partial(make_past, command)
    )


async def build(command: Sequence[str], order: Order, tell: Progress) -> dict[str, RebuiltView]:
    """Carry out *order* by the process that *command* starts."""
    built = (await _done(command, order, tell)).built
    assert built is not None
    return built


async def verify(command: Sequence[str], wanted: Verification, tell: Progress) -> dict[str, ViewReport]:
    """Compare views with a replay in the process that *command* starts."""
    verified = (await _done(command, wanted, tell)).verified
    assert verified is not None
    return verified


async def make_past(command: Sequence[str], order: PastOrder, tell: Progress) -> None:
    """Make the views of an earlier moment by the process that *command* starts."""
    await _done(command, order, tell)


async def compare(command: Sequence[str], log: Path, tell: Progress) -> tuple[str, ...]:
    """Say in what the decision state of a log is not what its events say. Raises `LogBroken`, and storage
    errors.
    """
    problems = (await _done(command, Comparison(log), tell)).problems
    assert problems is not None
    return problems


async def prove(command: Sequence[str], log: Path, tell: Progress) -> LogReport:
    """Say whether a log is as it was written, chain, file and decision state. Raises storage errors."""
    proven = (await _done(command, Proof(log), tell)).proven
    assert proven is not None
    return proven


async def _done(command: Sequence[str], work: Work, tell: Progress) -> Said:
    arguments = [*command, msgspec.json.encode(work, enc_hook=str).decode()]
    try:
        async with child.started(arguments, LINE_BYTES_MAX) as running:
            last = await _heard(running.output, tell)
            status = await running.wait()
    except OSError as error:
        raise StorageFailed(f"no process can be started beside this one: {error.strerror}") from error
    if all(said is None for said in (last.built, last.verified, last.problems, last.proven)):
        raise _error(last.failure, status)
    return last


async def _heard(output: StreamReader, tell: Progress) -> Said:
    last = Said()
    while (line := await output.readline()).endswith(b"\n"):
        last = msgspec.json.decode(line, type=Said)
        if last.total:
            tell(last.done, last.total)
    return last


def _error(failure: Failure | None, status: int) -> OmegadError:
    if failure is None:
        return Unavailable(
            f"the process that goes through the log ended with status {status}",
            hint="ask again; the log of the daemon may say more",
        )
    kind: type[OmegadError] = getattr(errors, failure.name, Unavailable)
    return kind(failure.message, hint=failure.hint)
