"""Which language a text is in, as far as it matters here: English or another, and which words in it
say nothing. By script, by its small words, and where it has none by three letters at a time. Pure.

What tells nothing (names, codes, a word or two) counts as English.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources

import msgspec

from omegad.text.stems import stem_in

ENGLISH = "en"
OTHER = "und"
"""A language that is not told from others in its script."""
READ_CHARACTERS = 2_000
KEPT = 32  # texts whose languages are at hand: a question is looked at in several places
SHARE_MIN = 0.3  # of a text's words are of another script, where it is in another language
SIGNS_PER_WORD = 2  # of a script without spaces
ACCENTED = 0.5  # what a word with a letter that English lacks counts, beside a small word's 1
PLAIN_MIN = 0.1  # of a text's words are small words of another language, where there is but one
# Log-odds by its letters, from which on a text that small words do not tell is not English: among texts in
# English, and where others have been met
FOREIGN, LIKELY = 4.0, 0.5
DOUBTFUL = -0.5  # log-odds, below which a single small word tells nothing

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
_SIGNS = {language: re.compile(f"[{signs}]") for language, signs in _SCRIPTS.items()}
_NOT_LATIN = re.compile(f"[{''.join(_SCRIPTS.values())}]")
_ACCENT = re.compile(r"[\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]")


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


_ALL = {
    code: Language(code, frozenset(words.split()))
    for code, words in msgspec.json.decode(
        resources.files("omegad.text").joinpath("languages.json").read_bytes(), type=dict[str, str]
    ).items()
} | {code: Language(code, frozenset()) for code in (OTHER, "th")}
_LATIN = [code for code in _ALL if code not in _SCRIPTS]
_LETTERS = msgspec.json.decode(
    resources.files("omegad.text").joinpath("letters.json").read_bytes(), type=dict[str, float]
)
"""What each three letters of a word add to the log-odds that it is not English; `^` and `$` are its ends.
Fitted by `python -m tests.retrieval.letters`.
"""
_OF_ENGLISH = [ENGLISH]
_TOLD_BY: dict[str, list[str]] = {}
"""The languages in Latin letters that each small word tells. What English shares with another tells nothing,
nor does a single letter.
"""
for _code in _LATIN:
    for _word in _ALL[_code].small:
        _TOLD_BY.setdefault(_word, []).append(_code)
_TOLD_BY = {
    word: codes
    for word, codes in _TOLD_BY.items()
    if len(word) > 1 and (codes == _OF_ENGLISH or ENGLISH not in codes)
}


def codes() -> list[str]:
    """Return the codes of the languages that are told."""
    return [code for code in _ALL if code != OTHER]


def language(code: str) -> Language:
    """Return the language of a code that `codes` has."""
    return _ALL[code]


def language_of(text: str, *, is_met: bool = False) -> Language:
    """Return the language of a text: that of most of its words. Where other languages than English have been
    met, what small words do not tell is sooner taken for one.
    """
    return _language_of(text[:READ_CHARACTERS], LIKELY if is_met else FOREIGN)


@lru_cache(maxsize=KEPT)
def _language_of(text: str, foreign: float) -> Language:
    words = _WORD.findall(_INVERTED.sub(" ", text.lower()))
    if not text.isascii() and _NOT_LATIN.search(text):
        signs = {code: len(pattern.findall(text)) for code, pattern in _SIGNS.items()}
        unspaced = sum(signs[code] for code in _UNSPACED)
        latin = sum(word.isascii() for word in words)
        others: float = sum(_NOT_LATIN.search(word) is not None for word in words) if not unspaced else 0
        others += unspaced / SIGNS_PER_WORD
        if others >= SHARE_MIN * (others + latin):
            most = max(signs, key=signs.__getitem__)
            return _ALL[next((code for code in _BY_A_SIGN if signs[code]), most)]
    told = [codes for word in words if (codes := _TOLD_BY.get(word))]
    english = told.count(_OF_ENGLISH)
    if text.isascii() and english and english == len(told):
        return _ALL[ENGLISH]
    counts = Counter(code for codes in told if codes != _OF_ENGLISH for code in codes)
    best, small = max(counts.items(), key=lambda one: (one[1], -_LATIN.index(one[0])), default=(OTHER, 0))
    accented = 0 if text.isascii() else sum(_ACCENT.search(word) is not None for word in words)
    is_told = small + accented > 1 or (
        small == 1 and small >= PLAIN_MIN * len(words) and _foreign(words) > DOUBTFUL
    )
    if is_told and small + ACCENTED * accented > english:
        return _ALL[best]
    return _ALL[best if _foreign(words) > foreign * (1 + english) else ENGLISH]


def _foreign(words: Sequence[str]) -> float:
    """Return the log-odds that words in Latin letters are of another language than English."""
    marked = [f"^{word}$" for word in words]
    return sum(
        _LETTERS.get(word[start : start + 3], 0.0) for word in marked for start in range(len(word) - 2)
    )
