"""What people put between `<private>` and `</private>`, taken out of JSON before anything keeps it.

Of the standard library alone, for those that import nothing else of omegad.
"""

import json
import re

MARK = b"[private]"
"""What stands in the place of it."""

# An angle bracket may be escaped, and more than once where JSON stands in a string of JSON.
_LESS, _MORE, _SLASH = rb"(?:<|\\{1,8}u003[cC])", rb"(?:>|\\{1,8}u003[eE])", rb"\\{0,8}/"
_NAME = rb"[pP][rR][iI][vV][aA][tT][eE]"
_OPENING = re.compile(_LESS + _NAME + _MORE)
_STEP = re.compile(
    rb"(?P<opening>" + _OPENING.pattern + rb")|(?P<closing>" + _LESS + _SLASH + _NAME + _MORE + rb")"
    rb'|(?P<end>")|\\.',
    re.DOTALL,
)


def without_private(data: bytes) -> bytes:
    """Return JSON in whose strings a mark stands for each part that is private: from `<private>`, in
    capitals or not, to its `</private>`, or to the end of the string where that is missing.
    """
    lowered = data.lower()
    if b"<private" not in lowered and b"u003cprivate" not in lowered:
        return data
    pieces: list[bytes] = []
    start = 0
    while opening := _OPENING.search(data, start):
        pieces += (data[start : opening.start()], MARK)
        start = _end(data, opening.end())
    return b"".join((*pieces, data[start:]))


def public_text(text: str) -> str:
    """Return a text without what is private in it."""
    data = json.dumps(text).encode()
    public: str = text if (found := without_private(data)) == data else json.loads(found)
    return public


def _end(data: bytes, start: int) -> int:
    """Return where what is private from *start* on ends."""
    depth = 1
    for step in _STEP.finditer(data, start):
        if step["end"]:
            return step.start()
        depth += bool(step["opening"]) - bool(step["closing"])
        if not depth:
            return step.end()
    return len(data)
