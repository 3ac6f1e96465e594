"""The golden payloads: every shape that an event was ever released in, each in a file that is never written
again.

`tag@N.json` is the first file of a version; further shapes of it (a field came with a default) are
`tag@N.2.json`, `tag@N.3.json` and so on, in the order in which they came here. `SHA256SUMS` beside them has a
line for each, and only ever gains lines.
"""

import re
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.json"))
SUMS = GOLDEN / "SHA256SUMS"


def tag_in(path: Path) -> str:
    """Return the tag of the event that a golden file has."""
    return re.sub(r"(@[1-9][0-9]*)\.[1-9][0-9]*$", r"\1", path.stem)
