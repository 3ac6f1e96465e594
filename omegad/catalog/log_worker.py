"""The process that goes through the log beside the daemon: `python -m omegad.catalog.log_worker EMBEDDINGS
WORK`, which `views.workers` starts.

Takes its turn after everyone who is asked something, unless that is a moment of the past, and ends with the
daemon, whatever it is at.
"""

import gc
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec import Raw

import projections
from omegad.catalog import decision_state as state
from omegad.catalog.events import CODEC
from omegad.embedding.cache import FileLookup
from omegad.log import verifying
from omegad.log.folding import Progress
from omegad.log.inline import Inline, Vocabulary
from omegad.log.projection import Projection
from omegad.runtime import telemetry
from omegad.runtime.errors import OmegadError
from omegad.storage import pages, sealing
from omegad.storage.database import open_reader, translated
from omegad.views.applying import Lookup
from omegad.views.building import Builder, Order, PastOrder, Verification
from omegad.views.workers import Comparison, Failure, Measurement, Proof, Said, Work, read

NICENESS = 5


def main(embeddings: str, work: str) -> None:
    """Do *work* (JSON of one of `workers.Work`), with the vectors of a cache; standard output has a `Said`
    a line.
    """
    telemetry.configure("warning")
    sealing.receive(sys.stdin.fileno())
    threading.Thread(target=_end_with_daemon, daemon=True).start()
    gc.disable()  # in what a batch makes there are no cycles, and looking for them takes time
    wanted = read(work)
    if not isinstance(wanted, PastOrder):  # for which somebody waits
        with suppress(OSError):  # a service may not be allowed to
            os.nice(NICENESS)
    try:
        with FileLookup(Path(embeddings)) as vectors:
            found = done(
                wanted,
                projections.ALL,
                lambda one: vectors.find(*one),
                lambda done, total: _say(Said(done=done, total=total)),
            )
        _say(Said(found=Raw(msgspec.json.encode(found))))
    except OmegadError as error:
        _say(Said(failure=Failure(type(error).__name__, str(error), error.hint)))


def done(work: Work, of: Sequence[Projection], lookup: Lookup, tell: Progress) -> object:
    """Do *work* with projections, and what finds vectors; return what comes of it, as `Workers.done` does."""
    vocabulary, builder = Vocabulary(codec=CODEC, inline=Inline(state.ALL)), Builder(of, CODEC, lookup)
    match work:
        case Comparison():
            return tuple(verifying.compare(work.log, vocabulary, tell))
        case Proof():
            return verifying.verify(work.log, vocabulary, tell)
        case Measurement():
            with translated(), closing(open_reader(work.file)) as connection:
                return pages.parts(connection, work.file)
        case Verification():
            return builder.verify(work, tell)
        case PastOrder():
            return builder.make_past(work, tell)
        case Order():
            return builder.build(work, tell)


def _say(said: Said) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the daemon is gone, and the other thread about to say so
        os._exit(1)


def _end_with_daemon() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing more is ever written to it
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
