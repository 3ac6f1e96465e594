"""Which texts of a memory are embedded: its content, in passages that the model can take in whole. Pure.

What is known about a memory (its day, project, tags) is left to full text: in front of a passage it draws all
vectors together.
"""

import re
from itertools import chain

import msgspec

PASSAGE_CHARACTERS = 1_200
PASSAGES_MAX = 64  # of one memory; the words of the rest are still found by full text
SHORT_CHARACTERS = 120  # up to which sentences are put together; one of up to twice as many is left whole
SHORT_CHARACTERS_MAX = 600  # to which that grows in long texts, lest they have more passages
SHORT_PASSAGES_MAX = 128
SIGN_CHARACTERS = 3  # of an alphabet, that a sign of Chinese, Japanese or Korean says as much as

_ENDS = ("\n\n", "\n", ". ", " ")
_ENDS_OF_ALL = ("\n\n", "\n", "\u3002", "\u0964", "\u06d4", ". ", "? ", "! ", " ")
# Where a sentence or line ends
SENTENCE_END = re.compile(
    r"(?<=[.!?;:])\s+|(?<=[\u3002\uff01\uff1f\uff1b\u0964\u06d4\u061f])\s*|(?<!\s)\s*\n\s*"
)
_SIGNS = re.compile(r"[\u3001-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")


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
    return _cut(content, PASSAGE_CHARACTERS, _ENDS, PASSAGES_MAX)


def short_passages(content: str) -> tuple[str, ...]:
    """Return the same for the model for all languages: a sentence, or short ones together, and shorter still
    in signs that say as much as several letters. What a passage says beside the answer hides it where no word
    is shared.
    """
    said = letters(content)
    fitting = min(SHORT_CHARACTERS_MAX, max(SHORT_CHARACTERS, 2 * said // SHORT_PASSAGES_MAX))
    together, whole = (
        max(1, most * len(content) // (said or 1)) for most in (fitting, max(fitting, 2 * SHORT_CHARACTERS))
    )
    parts, start, end = list[str](), 0, 0
    for until in (*(match.end() for match in SENTENCE_END.finditer(content)), len(content)):
        if until - start > together and end > start:
            parts.append(content[start:end])
            start = end
        end = until
    parts.append(content[start:])
    cut = (
        _cut(one, together, _ENDS_OF_ALL, SHORT_PASSAGES_MAX) if len(one) > whole else (one,) for one in parts
    )
    return tuple(chain.from_iterable(cut))[:SHORT_PASSAGES_MAX]


def letters(text: str) -> int:
    """Return how many characters of an alphabet say as much as a text."""
    return len(text) + (SIGN_CHARACTERS - 1) * sum(map(len, _SIGNS.findall(text)))


def _cut(content: str, most: int, ends: tuple[str, ...], count: int) -> tuple[str, ...]:
    parts: list[str] = []
    while len(content) > most and len(parts) < count:
        window = content[:most]
        found = (place + len(mark) for mark in ends if (place := window.rfind(mark, most // 2)) > 0)
        end = next(found, most)
        parts.append(content[:end])
        content = content[end:]
    return (*parts, content)[:count]
