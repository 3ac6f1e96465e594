"""What people put between `<private>` and `</private>`, taken out of JSON before anything keeps it.

Of the standard library alone, for those that import nothing else of omegad.
"""

import re

TYPE_CHECKING = False  # typing would be most of what importing costs
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Tag = tuple[int, int, bool]
    """Where a tag begins and ends, and whether it opens."""

MARK = b"[private]"
"""What stands in the place of it."""

NAME = b"private"
_BEFORE_CHARACTERS = 64
_SPACE = rb"(?:[ \t]|\\+[nrt]){0,9}"
# An angle bracket may be escaped, and more than once where JSON stands in a string of JSON; it may be an
# entity of HTML, and as wide as a Chinese character.
_BEFORE = re.compile(
    rb"(?:<|\\+u003c|&lt;|\xef\xbc\x9c|\\+uff1c)(\\*/|\xef\xbc\x8f|\\+uff0f)?" + _SPACE + rb"\Z"
)
_AFTER = re.compile(_SPACE + rb"(?:[\w-]{1,40}=[^<>]{0,200}?)?(?:>|\\+u003e|&gt;|\xef\xbc\x9e|\\+uff1e)")
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)("\s*+:?|\Z)', re.DOTALL)


def without_private(data: bytes) -> bytes:
    """Return JSON in whose strings a mark stands for each part that is private: from `<private>`, in
    capitals or not, to its `</private>`. Where that is missing it goes on to the end of the string, and
    where the opening is, it begins with the string. What opens in one string and is closed in a later one
    takes the values between along.
    """
    tags = list(_tags(data))
    if not tags:
        return data
    pieces, start, place = list[bytes](), 0, 0
    held: list[tuple[int, bytes]] = []
    """Values since one that was not closed, which go with it if a later one closes it: their place in
    *pieces*, and what they are then.
    """
    is_open = False
    for string in _STRING.finditer(data):
        first, last = string.span(1)
        own = place
        while place < len(tags) and tags[place][1] <= last:
            place += 1
        kept, opens, closes = _public(data, first, last, tags[own:place])
        if closes and is_open:
            for piece, hidden in held:
                pieces[piece] = hidden
        if opens or closes:
            held, is_open = [], opens
        elif is_open and not string[2].endswith(b":"):
            held.append((len(pieces) + 1, MARK))
        pieces += (data[start:first], kept)
        start = last
        if place == len(tags) and not is_open:
            break
    return b"".join((*pieces, data[start:]))


def public_text(text: str) -> str:
    """Return a text without what is private in it."""
    import json  # noqa: PLC0415  hooks do without it

    data = json.dumps(text).encode()
    public: str = text if (found := without_private(data)) == data else json.loads(found)
    return public


def _tags(data: bytes) -> "Iterator[Tag]":
    """Yield the tags of private parts, in their order."""
    lowered = data.lower()
    name = lowered.find(NAME)
    while name >= 0:
        end = name + len(NAME)
        before = _BEFORE.search(lowered[max(0, name - _BEFORE_CHARACTERS) : name])
        after = before and _AFTER.match(lowered, end)
        if before and after:
            start = name - len(before[0])
            while before[0][:1] == b"\\" and lowered[start - 1 : start] == b"\\":
                start -= 1
            yield start, after.end(), before[1] is None
        name = lowered.find(NAME, end)


def _public(data: bytes, first: int, last: int, tags: "Sequence[Tag]") -> tuple[bytes, bool, bool]:
    """Return what is public of the string between two places, whether a private part goes on behind it,
    and whether one began before it.
    """
    pieces, start, depth, is_closed_before = list[bytes](), first, 0, False
    for begin, end, is_opening in tags:
        if is_opening:
            if not depth:
                pieces += (data[start:begin], MARK)
            depth += 1
        elif depth:
            depth -= 1
        else:
            pieces, is_closed_before = [MARK], True
        start = end
    kept = b"".join(pieces if depth else (*pieces, data[start:last]))
    return kept, depth > 0, is_closed_before
