"""omegad with a model that never answers: `python -m tests.acceptance.hanging MARK serve` makes the file MARK
once it was asked.
"""

import sys
import time
from pathlib import Path

from omegad.edge.cli import main
from omegad.embedding import embedder
from omegad.embedding.catalogue import Manifest

FOR_EVER_S = 3_600.0


class Hanging:
    def embed(self, _text: str) -> bytes:
        Path(mark).touch()
        time.sleep(FOR_EVER_S)
        return b""


def _load(folder: Path, manifest: Manifest) -> embedder.LoadedModel:
    del folder, manifest
    return Hanging()


mark = sys.argv.pop(1)
embedder._load_session = _load
raise SystemExit(main())
