"""Tries an installed model: `python -m omegad.embedding.trial FOLDER` loads it and embeds a sentence and
an overlong text.
"""

import sys
from pathlib import Path

from omegad.embedding.catalogue import VECTOR_BYTES, read_manifest
from omegad.embedding.session import Session
from omegad.runtime.errors import ModelFailed

TEXTS = ("The deployment failed because the disk was full.", "word, " * 4096)


def main(arguments: list[str]) -> int:
    """Return 0 where every vector has the right size, else say why not on standard error: return 2 where the
    files are at fault, 1 where something is missing here.
    """
    folder = Path(arguments[0])
    manifest = read_manifest(folder)
    if manifest is None:
        sys.stderr.write(f"{folder} holds no complete model\n")
        return 2
    try:
        session = Session(folder, manifest)
    except ModelFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for text in TEXTS:
        if (size := len(session.embed(text))) != VECTOR_BYTES:
            sys.stderr.write(f"its vectors have {size} bytes, not {VECTOR_BYTES}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
