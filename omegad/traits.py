"""What a text shows of itself by rule: who speaks, whether it asks, gives a reason, or announces a change. Pure.

Views keep these beside a memory, so that ranking need not read its content. English; other languages show none of them.
"""

import re

import msgspec

READ_CHARACTERS = 16_384
BEGINNING_CHARACTERS = 600  # in which a change is announced
END_CHARACTERS = 40  # in which a question ends

_AUTHOR = re.compile(r"\s*([A-Z][\w.-]{1,30}):\s")
# Of small letters alone: `re` is slow where it minds none.
_REASON = re.compile(
    r"\b(?:because|so that|in order to|to (?:avoid|prevent|allow|make sure|keep|reduce)|due to|reasons?|otherwise|caused|turned out|since"
    r"|as it|which (?:broke|made|meant)|rationale|motivat\w+|could not|couldn't)\b",
)
_CHANGE = re.compile(
    r"\b(?:no longer|any ?more|instead of|rather than|replaced?|switched|moved (?:from|to|over)|migrated|upgraded|raised|lowered|changed|renamed"
    r"|dropped|removed|retired|deprecated|supersede[sd]|reverted|back to|now|since (?:version|release|v?\d)|from now on|from .{1,30} on|as of"
    r"|has been|is gone|new default|defaults? to)\b",
)


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """The author is the name before a colon that a text begins with, in lower case."""

    author: str | None
    is_question: bool
    gives_reason: bool
    announces_change: bool


def traits(text: str) -> Traits:
    """Read a text; of a long one the first 16,384 characters."""
    author, lower = _AUTHOR.match(text), text[:READ_CHARACTERS].lower()
    return Traits(
        author=author[1].lower() if author else None,
        is_question="?" in text[-END_CHARACTERS:],
        gives_reason=_REASON.search(lower) is not None,
        announces_change=_CHANGE.search(lower, 0, BEGINNING_CHARACTERS) is not None,
    )
