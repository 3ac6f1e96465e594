"""What is worth telling an agent that has not asked. Pure.

A wrong line costs an agent that did not ask more than a missing one, which it can still ask for. So several
signs must agree, each with a floor of its own: on lines that were labelled one by one none of them alone, and
no weighing of them, told the useful ones from the others as well.
"""

from omegad.index.terms import stemmed
from omegad.search import Matches, Result
from omegad.session.shown_tokens import UNASKED_CHARACTERS
from omegad.text.quoting import excerpt

CONFIDENCE_MIN = 0.55
"""How probable it must be that one of the best results answers."""
COSINE_MIN = 0.5
"""How near in meaning a memory must be to the prompt by itself."""
WORDS_MIN, WORDS_ALONE_MIN = 18.0, 20.0
"""Which BM25 it must have among very many memories; and where there are no vectors."""
HALF, FEW = 100, 12
"""Among how many memories half of that is enough, since rareness says less; among fewer than `FEW` it says
nothing.
"""
SHARE_MIN = 0.6
"""What a result must have of the best one's score to be told beside it."""
SHARED_MIN = 3
"""How many telling words both must have: fewer may be words that the project uses everywhere."""
ADDED_MIN = 8
"""How many telling words it must have that the prompt does not: fewer repeat it, or are a mere title."""
NEW_MIN = 0.25
"""What part of the telling words that are told the prompt must lack: whose prompt it is may have told it."""
READ_CHARACTERS = 4_000  # of a memory, for its words


def worth_telling(prompt: str, found: Matches, *, by_meaning: bool) -> list[Result]:
    """Return those of the results of a search for a prompt, explained, that an agent is to be told of
    unasked.
    """
    if found.confidence < CONFIDENCE_MIN:
        return []
    cosine, words = (COSINE_MIN, WORDS_MIN) if by_meaning else (0.0, WORDS_ALONE_MIN)
    words *= found.memories / (found.memories + HALF) if found.memories >= FEW else 0.0
    said = frozenset(stemmed(prompt))
    return [
        one
        for one in found.results
        if (why := one.explanation) is not None
        and one.score >= found.confidence * SHARE_MIN
        and why.cosine >= cosine
        and why.bm25 >= words
        and _is_about_more(frozenset(stemmed(one.content[:READ_CHARACTERS])), said)
        and not _is_said(frozenset(stemmed(excerpt(one.content, one.passage)[:UNASKED_CHARACTERS])), said)
    ]


def _is_about_more(has: frozenset[str], said: frozenset[str]) -> bool:
    """Say whether the words that a memory has are about what was said, and say more."""
    return len(has & said) >= SHARED_MIN and len(has - said) >= ADDED_MIN


def _is_said(told: frozenset[str], said: frozenset[str]) -> bool:
    """Say whether the words that are told of a memory are as good as said."""
    return len(told - said) < len(told) * NEW_MIN
