"""What is worth telling an agent that has not asked. Pure.

A wrong line costs an agent that did not ask more than a missing one, which it can still ask for. So four signs
must agree, each with a floor of its own: on labelled lines none of them alone, and no weighing of them, told
useful ones from others as well.
"""

import math

from omegad.index.terms import stemmed
from omegad.search.pipeline import Matches, Result

CONFIDENCE_MIN = 0.5
"""How probable it must be that one of the best results answers."""
COSINE_MIN = 0.55
"""How near in meaning a memory must be to the prompt by itself."""
WORDS_MIN = 2.0
"""How much of the prompt's words it must hold: in words that no other memory holds, of which each counts 1."""
ADDED_MIN = 8
"""How many telling words it must have that the prompt does not: fewer repeat it, or are a mere title."""
READ_CHARACTERS = 4_000  # of a memory, for its words


def worth_telling(prompt: str, found: Matches) -> list[Result]:
    """Return those of the results of a search for a prompt, explained, that an agent is to be told of
    unasked; none of what was found by words alone.
    """
    if found.confidence < CONFIDENCE_MIN:
        return []
    said, sole = frozenset(stemmed(prompt)), math.log1p((found.memories - 0.5) / 1.5)
    return [
        one
        for one in found.results
        if (why := one.explanation) is not None
        and why.cosine >= COSINE_MIN
        and why.bm25 >= WORDS_MIN * sole
        and len(frozenset(stemmed(one.content[:READ_CHARACTERS])) - said) >= ADDED_MIN
    ]
