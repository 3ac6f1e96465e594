"""Names that are spelled almost as others are: Muhammad and Muhhamed, Kate and Katie, Carl and Karl; and
slips in words: migartion for migration. Pure.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from omegad.text.tokenizer import folded

NAMES_MAX = 4  # of a question that are looked for in other spellings
WORDS_MAX = 100  # with a capital, of a text, that may be one
TRIED_MAX = 4  # of the likest words that are mostly written in lower case
LETTERS_MIN = 4  # of a name; shorter ones differ by a letter from too many
WORD_LETTERS_MIN = 6  # of a word that is none, likewise; one more where a letter is missing or too many
CONSONANTS_MIN = 4  # that tell which name it is, whichever its vowels
OTHER_VOWELS, A_LETTER_APART = 0.9, 0.6  # how far it is taken for the same
SOUNDS_KEPT = 4_096

_CAPITALISED = re.compile(r"\b[^\W\d_a-z]\w+")
_AS_IF = (("ph", "f"), ("th", "t"), ("c", "k"), ("q", "k"), ("z", "s"), ("y", "i"), ("w", "v"))
_DOUBLED = re.compile(r"(.)\1+")
_VOWELS = re.compile(r"(?<!^)[aeiou]+")


class Spelling(NamedTuple):
    """How a name is written otherwise, and how far, from 0 to 1, that is taken for the same name."""

    written: str
    likeness: float


def spellings(names: Collection[str], texts: Collection[str]) -> dict[str, Spelling]:
    """Return how some texts spell names, in lower case, that they do not hold: as what is most alike, and of
    that as what is in most of them. What more of them write in lower case is no name.
    """
    said = Counter[str]()
    for text in texts:
        said.update({word[0] for word in islice(_CAPITALISED.finditer(text), WORDS_MAX)})
    found = dict[str, Spelling]()
    for name in islice(names, NAMES_MAX):
        alike = ((likeness(name, word), count, word) for word, count in said.items())
        for share, count, word in nlargest(TRIED_MAX, (one for one in alike if one[0])):
            in_lower_case = re.compile(rf"\b{re.escape(word.lower())}\b")
            if sum(map(bool, map(in_lower_case.search, texts))) < count:
                found[name] = Spelling(word, share)
                break
    return found


def corrections(words: Collection[str], texts: Collection[str]) -> dict[str, Spelling]:
    """Return which word of some texts each of some words, in lower case, that they do not hold is a slip of;
    the most frequent, but no other form of the same word. Another letter is another word: "broker", "broken".
    """
    asked = [word for word in words if len(word) >= WORD_LETTERS_MIN][:NAMES_MAX]
    begins = "".join({word[0] for word in asked})
    likely = re.compile(rf"\b[{begins}][^\W\d_]{{{WORD_LETTERS_MIN - 2},}}\b") if asked else None
    said = Counter(word for text in texts if likely for word in likely.findall(text.lower()))
    found = dict[str, Spelling]()
    for word in asked:
        alike = (
            (count, other)
            for other, count in said.items()
            if other[0] == word[0]
            and abs(len(other) - len(word)) <= 1
            and not (other.startswith(word) or word.startswith(other))
            and _is_slip(word, other)
        )
        if likeliest := max(alike, default=None):
            found[word] = Spelling(likeliest[1], A_LETTER_APART)
    return found


def respelled(text: str, spelled: Mapping[str, Spelling]) -> str:
    """Return a text with names written in other spellings, but where they are a part of another name."""
    for name, spelling in spelled.items():
        text = re.sub(
            rf"(?<![\w./:@-]){re.escape(name)}(?![\w/@-]|[.:]\w)", spelling.written, text, flags=re.IGNORECASE
        )
    return text


def likeness(one: str, other: str) -> float:
    """Return how far a name is taken for another, from 0 to 1: 1 where both sound the same."""
    if _sound(one[:2])[:1] != _sound(other[:2])[:1] or min(len(one), len(other)) < LETTERS_MIN:
        return 0.0
    first, second = _sound(one), _sound(other)
    if first == second:
        return 1.0
    if (first[-1:] == "a") != (second[-1:] == "a"):  # Maria and Mario, Paula and Paul
        return 0.0
    with_any_vowels = _VOWELS.sub("*", first)
    is_alike = with_any_vowels == _VOWELS.sub("*", second)
    if is_alike and len(with_any_vowels) - with_any_vowels.count("*") >= CONSONANTS_MIN:
        return OTHER_VOWELS
    return A_LETTER_APART if _is_a_letter_apart(first, second) else 0.0


@lru_cache(SOUNDS_KEPT)
def _sound(name: str) -> str:
    name = folded(name)
    for written, heard in _AS_IF:
        name = name.replace(written, heard)
    return _DOUBLED.sub(r"\1", name)


def _is_slip(word: str, other: str) -> bool:
    """Say whether two letters stand the other way round, or one is missing or too many."""
    if len(word) == len(other):
        return sorted(word) == sorted(other) and _is_a_letter_apart(word, other)
    return len(word) > WORD_LETTERS_MIN and _is_a_letter_apart(word, other)


def _is_a_letter_apart(one: str, other: str) -> bool:
    """Say whether a letter is missing, added or another, or two stand the other way round."""
    short, long = sorted((one, other), key=len)
    if len(long) > len(short) + 1:
        return False
    pairs = zip(short, long, strict=False)
    at = next((place for place, (first, second) in enumerate(pairs) if first != second), len(short))
    after, swapped = long[at + 1 :], long[at + 1 : at + 2] + long[at : at + 1] + long[at + 2 :]
    return after in {short[at:], short[at + 1 :]} or short[at:] == swapped
