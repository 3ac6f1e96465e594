"""What can still be read of JSON that is not quite right: text that was cut inside a character, and whose
request a line was.

Of the standard library alone, for those that import nothing else of omegad.
"""

import re

HALVES_MAX = 50_000  # replaced in one text; it takes some microseconds each, while others wait
DEPTH_MAX = 64  # of what no reader gives up on
ENDS_BYTES = 4_096  # of a line, which are searched for its id

# Plain characters, escapes that are no half of a surrogate pair, and whole pairs, as many as there are.
_WHOLE = re.compile(
    rb"(?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+",
    re.DOTALL,
)
_HALF = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_REPLACED = rb"\ufffd"
_STEP = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
_ID = (
    rb'"id"[ \t]*+:['
    rb' \t]*+(-?(?:0|[1-9][0-9]{0,39})|"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,512}+")'
)
_FIRST = re.compile(
    rb'[ \t]*+\{[ \t]*+(?:"(?:jsonrpc|method)"[ \t]*+:[ \t]*+"[^"\\]{0,256}+"[ \t]*+,[ \t]*+)*+'
    + _ID
    + rb"[ \t]*+[,}]"
)
_LAST = re.compile(rb",[ \t]*+" + _ID + rb"[ \t]*+\}[ \t\r\n]*+\Z")


def mended(data: bytes) -> bytes:
    """Return JSON in which the halves of surrogate pairs that stand alone, escaped or as bytes, are
    U+FFFD; whatever else is wrong stays so.
    """
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            try:
                data = (
                    data.decode("utf-8", "surrogatepass")
                    .encode("utf-16-le", "surrogatepass")
                    .decode("utf-16-le", "replace")
                    .encode()
                )
            except UnicodeDecodeError:
                return data
    if not _HALF.search(data):  # nor a whole pair
        return data
    pieces: list[bytes] = []
    start = 0
    for _ in range(HALVES_MAX):
        whole = _WHOLE.match(data, start)
        half = _HALF.match(data, whole.end()) if whole else None
        if not whole or not half:
            break
        pieces += (whole[0], _REPLACED)
        start = half.end()
    return b"".join((*pieces, data[start:])) if pieces else data


def flattened(data: bytes) -> bytes:
    """Return JSON in which null stands for what is nested deeper than `DEPTH_MAX`. Takes long for what is
    long.
    """
    pieces: list[bytes] = []
    start, depth = 0, 0
    for step in _STEP.finditer(data):
        if step[0] in {b"[", b"{"}:
            depth += 1
            if depth == DEPTH_MAX + 1:
                pieces += (data[start : step.start()], b"null")
        elif step[0] in {b"]", b"}"}:
            depth -= 1
            if depth == DEPTH_MAX:
                start = step.end()
    return b"".join((*pieces, data[start:])) if pieces and depth <= DEPTH_MAX else data


def id_in(line: bytes) -> bytes:
    """Return the id of a message that cannot be read as a whole, as JSON; null where it does not stand at
    its beginning or end, or is none.
    """
    found = _FIRST.match(line[:ENDS_BYTES]) or _LAST.search(line[-ENDS_BYTES:])
    number = mended(found[1]) if found else b"null"
    try:
        number.decode()
    except UnicodeDecodeError:
        return b"null"
    return number
