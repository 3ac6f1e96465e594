"""The process that builds views beside the daemon: `python -m omegad.view_builder EMBEDDINGS ORDER`, as `omegad.views.workers` starts it.

Takes its turn after everyone who is asked something, and ends with the daemon, whatever it is at.
"""

import os
import sys
import threading
from functools import partial
from pathlib import Path

import msgspec

import projections
from omegad import telemetry
from omegad.embedding.lookup import FileLookup
from omegad.errors import OmegadError
from omegad.events import CODEC
from omegad.projection import Embedding
from omegad.views.building import Builder
from omegad.views.workers import Failure, Said, read_order

NICENESS = 5


def main(embeddings: str, order: str) -> None:
    """Carry out an order (JSON of an `Order`), with the vectors of a cache; standard output has a `Said` a line."""
    os.nice(NICENESS)
    telemetry.configure("warning")
    threading.Thread(target=_end_with_daemon, daemon=True).start()
    try:
        with FileLookup(Path(embeddings)) as vectors:
            builder = Builder(projections.ALL, CODEC, partial(_find, vectors))
            built = builder.build(read_order(order), lambda done, total: _say(Said(done=done, total=total)))
        _say(Said(built=built))
    except OmegadError as error:
        _say(Said(failure=Failure(type(error).__name__, str(error), error.hint)))


def _find(vectors: FileLookup, wanted: Embedding) -> bytes | None:
    return vectors.find(wanted.embedder_id, wanted.text_hash)


def _say(said: Said) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
    sys.stdout.buffer.flush()


def _end_with_daemon() -> None:
    os.read(sys.stdin.fileno(), 1)  # nothing is ever written to it
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
