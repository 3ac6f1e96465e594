"""Checks that an installed model works: `python -m omegad.embedding.check FOLDER` embeds a sentence and an
overlong text with it.
"""

import sys
from pathlib import Path

from omegad.embedding.catalogue import VECTOR_BYTES, read_manifest
from omegad.embedding.session import Session
from omegad.runtime.errors import ModelFailed

TEXTS = ("The deployment failed because the disk was full.", "word, " * 4096)


def problem(folder: Path) -> tuple[int, str]:
    """Return 0 where every vector has the right size, else 2 where the files are at fault, 1 where something
    is missing here; and why.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        return 2, f"{folder} holds no complete model\n"
    try:
        session = Session(folder, manifest)
    except ModelFailed as error:
        return 1, f"{error}\n"
    sizes = {len(session.embed(text)) for text in TEXTS} - {VECTOR_BYTES}
    return (2, f"its vectors have {sizes.pop()} bytes, not {VECTOR_BYTES}\n") if sizes else (0, "")


if __name__ == "__main__":
    code, why = problem(Path(sys.argv[1]))
    sys.stderr.write(why)
    sys.exit(code)
