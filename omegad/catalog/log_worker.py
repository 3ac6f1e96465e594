"""The process that goes through the log beside the daemon: `python -m omegad.catalog.log_worker EMBEDDINGS
WORK`, which `views.workers` starts.

Takes its turn after everyone who is asked something, unless that is a moment of the past, and ends with the
daemon, whatever it is at.
"""

import os
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

import projections
from omegad.catalog import decision_state as state
from omegad.catalog.events import CODEC
from omegad.embedding.cache import FileLookup
from omegad.log.inline import Inline
from omegad.log.projection import Embedding
from omegad.log.verifying import compare
from omegad.log.verifying import verify as prove
from omegad.log.vocabulary import Vocabulary
from omegad.runtime import telemetry
from omegad.runtime.errors import OmegadError
from omegad.views.building import Builder
from omegad.views.past_building import PastOrder, make
from omegad.views.replay import Verification, verify
from omegad.views.workers import Comparison, Failure, Proof, Said, Work, read

NICENESS = 5


def main(embeddings: str, work: str) -> None:
    """Do *work* (JSON of one of `workers.Work`), with the vectors of a cache; standard output has a `Said`
    a line.
    """
    telemetry.configure("warning")
    threading.Thread(target=_end_with_daemon, daemon=True).start()
    wanted = read(work)
    if not isinstance(wanted, PastOrder):  # for which somebody waits
        with suppress(OSError):  # a service may not be allowed to
            os.nice(NICENESS)
    try:
        _say(_done(Path(embeddings), wanted))
    except OmegadError as error:
        _say(Said(failure=Failure(type(error).__name__, str(error), error.hint)))


def _done(embeddings: Path, work: Work) -> Said:
    vocabulary = Vocabulary(codec=CODEC, inline=Inline(state.ALL))
    if isinstance(work, Comparison):
        return Said(problems=tuple(compare(work.log, vocabulary, _tell)))
    if isinstance(work, Proof):
        return Said(proven=prove(work.log, vocabulary, _tell))
    with FileLookup(embeddings) as vectors:
        if isinstance(work, Verification):
            return Said(verified=verify(work, projections.ALL, CODEC, partial(_find, vectors), _tell))
        if isinstance(work, PastOrder):
            make(work, projections.ALL, CODEC, partial(_find, vectors), _tell)
            return Said(built={})
        return Said(built=Builder(projections.ALL, CODEC, partial(_find, vectors)).build(work, _tell))


def _tell(done: int, total: int) -> None:
    _say(Said(done=done, total=total))


def _find(vectors: FileLookup, wanted: Embedding) -> bytes | None:
    return vectors.find(wanted.embedder_id, wanted.text_hash)


def _say(said: Said) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the daemon is gone, and the other thread about to say so
        os._exit(1)


def _end_with_daemon() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written to it
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
