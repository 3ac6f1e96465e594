"""Words without their inflection, by the Snowball stemmer for English (Porter 2001)."""

import threading
from functools import lru_cache

import Stemmer

LANGUAGE = "english"
STEMS_MAX = 16_384
"""How many stems are kept at hand; most words of a text occur again."""
LETTERS_MAX = 64
"""A longer run of letters is no word, and stays as it is."""


class _OfThread(threading.local):
    """A stemmer is not for two threads at once."""

    def __init__(self) -> None:
        self.stemmer = Stemmer.Stemmer(LANGUAGE, 0)  # caches nothing itself


_OF_THREAD = _OfThread()


def stem(word: str) -> str:
    """Return the stem of a case-folded word: `retries`, `retried` and `retry` are `retri`."""
    return word if len(word) > LETTERS_MAX else _stem(word)


@lru_cache(maxsize=STEMS_MAX)
def _stem(word: str) -> str:
    return str(_OF_THREAD.stemmer.stemWord(word))
