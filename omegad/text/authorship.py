"""What a text shows of itself by rule: who speaks, and whether it asks. Pure.

Views keep these beside a memory, so that ranking need not read its content.
"""

import re

import msgspec

END_CHARACTERS = 40  # in which a question ends

_AUTHOR = re.compile(r"\s*([A-Z][\w.-]{1,30}|user|assistant|human|agent|system|ai):\s")


class Authorship(msgspec.Struct, frozen=True, kw_only=True):
    """The author is the name, or the role in a chat, before a colon that a text begins with, in lower
    case.
    """

    author: str | None
    is_question: bool


def authorship(text: str) -> Authorship:
    """Read a text."""
    author = _AUTHOR.match(text)
    return Authorship(author=author[1].lower() if author else None, is_question="?" in text[-END_CHARACTERS:])
