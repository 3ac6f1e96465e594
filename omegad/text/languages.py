"""Which language a text is in, as far as it matters here, and which words in it say nothing. By script, and
in Latin letters by three letters at a time. Pure.

What tells nothing (names, codes, a word or two) counts as English.
"""

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import islice

import msgspec

from omegad.text.stems import stem_in

ENGLISH = "en"
OTHER = "und"
"""A language that is not told from others in its script."""
READ_CHARACTERS = 2_000
KEPT = 32  # texts whose languages are at hand: a question is looked at in several places
KEPT_WORDS = 4_096  # of which it is at hand what they tell
SHARE_MIN = 0.3  # of a text's words are of another script, where it is in another language
SIGNS_PER_WORD = 2  # of a script without spaces
WORDS_MAX = 48  # of a text, that tell its language in Latin letters
# Log-odds by its letters, from which on a text is not English: among texts in English, and where others have
# been met
FOREIGN, LIKELY = 2.5, 1.0
SHOUTED = 3  # words in capitals, where there are no others, that are no acronyms
STEP = 1 / 6  # of a log-odds, that a sign of a weight stands for

_SCRIPTS = {
    "ja": "\u3041-\u30ff\u31f0-\u31ff",
    "zh": "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "th": "\u0e01-\u0e7f",
    "ru": "\u0400-\u052f",
    "ar": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff",
    "ur": "\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2",
    "hi": "\u0900-\u097f",
    "bn": "\u0980-\u09ff",
    "el": "\u0370-\u03ff\u1f00-\u1fff",
    "he": "\u0590-\u05ff",
    OTHER: "\u0530-\u058f\u0700-\u074f\u0780-\u08ff\u0a00-\u0dff\u0e80-\u10ff\u1200-\u1cff\ua4d0-\uabff",
}
_BY_A_SIGN = ("ja", "ur")  # which write with Chinese and with Arabic signs as well
_UNSPACED = ("ja", "zh", "th")
_WORD = re.compile(r"(?<![\w./@$=-])[^\W\d_]+(?![\w/@=-])")  # no part of a path, an option or a name
_INVERTED = re.compile(
    r"(?<=[^\W\d_])-(?:t-)?(?=(?:je|tu|il|elle|on|ce|nous|vous|ils|elles)\b)", re.IGNORECASE
)
"""What joins a verb of French to who does it, in a question."""
_DOTTED = "i\u0307"
"""What Python makes of a capital i with a dot, as Turkish has it."""
_LANE = 32  # bits of each of the numbers that are beside each other in one
_IN_LANE = (1 << _LANE) - 1
_SIGNS = {language: re.compile(f"[{signs}]") for language, signs in _SCRIPTS.items()}
_NOT_LATIN = re.compile(f"[{''.join(_SCRIPTS.values())}]")


class Language(msgspec.Struct, frozen=True):
    """A language: its code (ISO 639-1), and the small words that say nothing of what a question is about."""

    code: str
    small: frozenset[str]

    @property
    def is_english(self) -> bool:
        """Whether the texts of it are English, or tell nothing."""
        return self.code == ENGLISH

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case; the word in English, whose stems full text finds."""
        return word if self.is_english or word in self.small else stem_in(self.code, word)

    def without_small_words(self, question: str) -> str:
        """Return a question without these words; as it is where nothing else is in it."""
        if self.code in _UNSPACED:
            asked = sorted((word for word in self.small if len(word) > 1), key=len, reverse=True)
            said = re.sub("|".join(asked), " ", question) if asked else question
        else:
            said = _WORD.sub(lambda word: " " if word[0].lower() in self.small else word[0], question)
        return said if _WORD.search(said) else question


class Letters(msgspec.Struct, frozen=True):
    """What three letters tell of a word's language, fitted by `python -m tests.retrieval.letters`: a sign for
    each of the languages, each next one `STEP` more.
    """

    languages: str
    told: dict[str, str]


_ALL = {
    code: Language(code, frozenset(words.split()))
    for code, words in msgspec.json.decode(
        resources.files("omegad.text").joinpath("languages.json").read_bytes(), type=dict[str, str]
    ).items()
} | {code: Language(code, frozenset()) for code in (OTHER, "th")}


def codes() -> list[str]:
    """Return the codes of the languages that are told."""
    return [code for code in _ALL if code != OTHER]


def language(code: str) -> Language:
    """Return the language of a code that `codes` has."""
    return _ALL[code]


def language_of(text: str, *, is_met: bool = False) -> Language:
    """Return the language of a text: that of most of its words. Where other languages than English have been
    met, what is short is sooner taken for one.
    """
    return _language_of(text[:READ_CHARACTERS], LIKELY if is_met else FOREIGN)


@lru_cache(maxsize=KEPT)
def _language_of(text: str, foreign: float) -> Language:
    if "-" in text:
        text = _INVERTED.sub(" ", text)
    if not text.isascii() and _NOT_LATIN.search(text):
        words = _WORD.findall(text)
        signs = {code: len(pattern.findall(text)) for code, pattern in _SIGNS.items()}
        unspaced = sum(signs[code] for code in _UNSPACED)
        latin = sum(word.isascii() for word in words)
        others: float = sum(_NOT_LATIN.search(word) is not None for word in words) if not unspaced else 0
        others += unspaced / SIGNS_PER_WORD
        if others >= SHARE_MIN * (others + latin):
            most = max(signs, key=signs.__getitem__)
            return _ALL[next((code for code in _BY_A_SIGN if signs[code]), most)]
    said = telling([word[0] for word in islice(_WORD.finditer(text), WORDS_MAX)])
    code, odds = _by_letters(said)
    # A small word of it that English lacks says as much as that the language was met.
    small = _ALL[code].small.intersection(said) - _ALL[ENGLISH].small if odds > LIKELY else ()
    return _ALL[code if small or odds > foreign else ENGLISH]


def telling(words: Sequence[str]) -> Sequence[str]:
    """Return which words tell their language, in lower case: those in capitals do not, unless all are."""
    said = [word for word in words if not word.isupper()] or (words if len(words) >= SHOUTED else ())
    return [word.lower().replace(_DOTTED, "i") for word in said]


def threes(word: str) -> Iterator[str]:
    """Yield what tells the language of a word in lower case: each three letters of it, `^` and `$` being its
    ends, the word, and each letter that English lacks.
    """
    marked = f"^{word}$"
    for start in range(len(word)):
        yield marked[start : start + 3]
    if len(word) > 1:
        yield marked
    if not word.isascii():
        yield from (letter for letter in word if not letter.isascii())


def _by_letters(words: Sequence[str]) -> tuple[str, float]:
    """Return the likeliest language beside English of words in Latin letters, and the log-odds that they are
    of any but English.
    """
    codes, _ = _letters()
    told = sum(map(_told, words))
    english, *others = (told >> place * _LANE & _IN_LANE for place in range(len(codes)))
    most = max(others)
    beside = math.log(sum(math.exp(STEP * (one - most)) for one in others) / len(others))
    return codes[1 + others.index(most)], STEP * (most - english) + beside


@lru_cache(maxsize=KEPT_WORDS)
def _told(word: str) -> int:
    _, told = _letters()
    return sum(told.get(three, 0) for three in threes(word))


@cache
def _letters() -> tuple[list[str], dict[str, int]]:
    """Return the languages in Latin letters, English first, and what each three letters tell of each: numbers
    beside each other in one, so that one sum adds up all.
    """
    path = resources.files("omegad.text").joinpath("letters.json")
    held = msgspec.json.decode(path.read_bytes(), type=Letters)
    return held.languages.split(), {
        three: int.from_bytes(signs.encode("utf-32-le"), "little") for three, signs in held.told.items()
    }
