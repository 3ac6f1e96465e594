"""Words without their inflection, by the Snowball stemmers: that for English (Porter 2001), and those for the
other languages that PyStemmer knows.
"""

import threading
from contextlib import suppress
from functools import lru_cache

import Stemmer

LANGUAGE = "english"
OTHERS = {
    "ar": "arabic",
    "cs": "czech",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hi": "hindi",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pl": "polish",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}
"""The stemmers of the languages that are told, by their codes."""
STEMS_MAX = 16_384
"""How many stems are kept at hand; most words of a text occur again."""
LETTERS_MAX = 64
"""A longer run of letters is no word, and stays as it is."""


class _OfThread(threading.local):
    """A stemmer is not for two threads at once."""

    def __init__(self) -> None:
        self.stemmer = Stemmer.Stemmer(LANGUAGE, 0)  # caches nothing itself
        self.others: dict[str, Stemmer.Stemmer | None] = {}


_OF_THREAD = _OfThread()


def stem(word: str) -> str:
    """Return the stem of a case-folded word: `retries`, `retried` and `retry` are `retri`."""
    return word if len(word) > LETTERS_MAX else _stem(word)


@lru_cache(maxsize=STEMS_MAX)
def _stem(word: str) -> str:
    return str(_OF_THREAD.stemmer.stemWord(word))


def stem_in(code: str, word: str) -> str:
    """Return the stem of a word in lower case in another language than English; the word where its stemmer is
    not known.
    """
    if code not in OTHERS or len(word) > LETTERS_MAX:
        return word
    if code not in _OF_THREAD.others:
        with suppress(KeyError):
            _OF_THREAD.others[code] = Stemmer.Stemmer(OTHERS[code], 0)
    stemmer = _OF_THREAD.others.setdefault(code, None)
    return str(stemmer.stemWord(word)) if stemmer else word
