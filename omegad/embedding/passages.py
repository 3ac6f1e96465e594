"""Which texts of a memory are embedded: its content, in passages that the model can take in whole. Pure.

What is known about a memory (its day, project, tags) is left to full text: in front of a passage it draws all
vectors together.
"""

import msgspec

PASSAGE_CHARACTERS = 1_200
PASSAGES_MAX = 64  # of one memory; the words of the rest are still found by full text


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """A memory's text as vectors: whose, the hash of each passage, and the vector of the first."""

    embedder_id: str
    text_hashes: tuple[str, ...]
    vector: bytes
    is_whole: bool
    """Whether one vector stands for the whole text."""


def passages(content: str) -> tuple[str, ...]:
    """Return the texts to embed for a memory, in their order: cut at the last paragraph, line, sentence or
    word end that still fits, in this order of preference.
    """
    parts: list[str] = []
    while len(content) > PASSAGE_CHARACTERS and len(parts) < PASSAGES_MAX:
        window = content[:PASSAGE_CHARACTERS]
        ends = (
            found + len(mark)
            for mark in ("\n\n", "\n", ". ", " ")
            if (found := window.rfind(mark, PASSAGE_CHARACTERS // 2)) > 0
        )
        end = next(ends, PASSAGE_CHARACTERS)
        parts.append(content[:end])
        content = content[end:]
    return (*parts, content)[:PASSAGES_MAX]
