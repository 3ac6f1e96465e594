"""A text as what can be compared: words, terms, statements, and the words on which its sense turns.

English first: words of other languages come through as they are, so that they agree only where they are
equal.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from omegad.text.evidence.word_lists import WORDS
from omegad.text.stems import LETTERS_MAX, STEMS_MAX, stem

COMPARED_CHARACTERS = 16_384
"""A longer text repeats or restates another only to the letter."""

TITLE_CHARACTERS = 400
"""How much of its first line is judged of a text."""

ENDING_MAX = 2
"""How many letters of a word its inflection may take for the stem to stand for it: `author` is not
`authorized`.
"""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_TOKEN = re.compile(r"`[^`\s]+`|\S+")
_FENCE = "```"
_CODE_INDENT = ("    ", "\t")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+|;\s+|(?<=[\u3002\uff01\uff1f\uff1b])")
_CLAUSE_END = re.compile(
    # Each run of spaces is tried once.
    r",\s+(?:and\s+)?|(?<!\s)\s+(?:(?:and|because|so|which)\s+|(?=\()|(?:--?|\u2013|\u2014)\s+)|:\s+",
    re.IGNORECASE,
)
CLAUSES_MAX = 32
_MARK = re.compile(r"^(?:[-*+\u2022]|#{1,6})\s+")
_STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."})
_OPENING, _CLOSING, _STOPS = "\"'([{", ".,;:!?\"')]}", ".,;:!?"
_DASHES = frozenset(("-", "--", "\u2013", "\u2014"))


_PAIRS = tuple((one, other) for pair in WORDS["opposed"] for one, other in [pair.split("/")])
_OVERRIDING_PHRASES = (
    "no longer",
    "any more",
    "used to ",
    "back out",
    "backs out",
    "backed out",
    "backing out",
    "roll back",
    "rolled back",
    "rolls back",
)


def words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded; `not` is a word of its own wherever it is
    contracted.
    """
    return _WORD.findall(_uncontracted(text).casefold())


def first_line(text: str) -> str:
    """Return what is judged of a text: its first line, its title."""
    return text[:TITLE_CHARACTERS].lstrip().partition("\n")[0]


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that two sets have in common, 0 to 1 (Jaccard 1901); 0 when neither has
    any.
    """
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of a text and the lines of its lists and code, in order as written, and of each
    whether it is code.
    """
    is_fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith(_FENCE):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith(_CODE_INDENT):
            yield line.rstrip(), True
        else:
            yield from ((piece, False) for part in _SENTENCE_END.split(line) if (piece := part.strip()))


def statements(text: str) -> list[tuple[str, ...]]:
    """Return what a text says, piece by piece, as terms; what differs in a number, name, code or word that
    counts differs here.
    """
    found = (((piece,) if is_code else terms(piece)) for piece, is_code in pieces(text))
    return [statement for statement in found if statement]


def openings(text: str) -> list[frozenset[tuple[str, ...]]]:
    """Return of each statement of a text what it says as a whole, and up to where a clause may end: at the
    first `CLAUSES_MAX` of its commas, colons, dashes, brackets, and words as `and` or `because`.
    """
    found = list[frozenset[tuple[str, ...]]]()
    for piece, is_code in pieces(text):
        if statement := (piece,) if is_code else terms(piece):
            ends = () if is_code else islice(_CLAUSE_END.finditer(piece), CLAUSES_MAX)
            found.append(frozenset([statement, *(terms(piece[: end.start()]) for end in ends)]))
    return found


def terms(sentence: str) -> tuple[str, ...]:
    """Return the terms of a sentence in order: stems of plain words that are not empty; numbers, paths,
    identifiers and signs as written.
    """
    plain = _uncontracted(_MARK.sub("", sentence.strip()))
    plain = plain[1:] if plain.startswith("A ") else plain
    asked = ("?",) if plain.endswith("?") else ()
    return (
        *(
            term
            for token in _TOKEN.findall(plain)
            if (term := _term(token) if len(token) <= LETTERS_MAX else token)
        ),
        *asked,
    )


def turns(added: frozenset[str], said: frozenset[str]) -> bool:
    """Say whether words that are added to what is *said* may deny or limit it, or oppose a word of it."""
    limits = not added.isdisjoint(WORDS["denials"]) or not added.isdisjoint(WORDS["limiting"])
    return limits or _oppose(added, said)


def is_opposite(one: frozenset[str], other: frozenset[str]) -> bool:
    """Say whether of two sets of words just one denies something, or each has a word whose opposite the
    other one has.
    """
    if one.isdisjoint(WORDS["denials"]) != other.isdisjoint(WORDS["denials"]):
        return True
    return _oppose(one - other, other - one)


def _oppose(ours: frozenset[str], theirs: frozenset[str]) -> bool:
    return any(
        (first in ours and second in theirs) or (second in ours and first in theirs)
        for first, second in _PAIRS
    )


def overrides(text: str, said: frozenset[str]) -> bool:
    """Say whether a text, with these words, speaks of taking something back or of putting something in its
    place.
    """
    folded = text.casefold()
    return not said.isdisjoint(WORDS["overriding"]) or any(phrase in folded for phrase in _OVERRIDING_PHRASES)


def _uncontracted(text: str) -> str:
    straight = text.translate(_STRAIGHT)
    return straight.replace("can't", "can not").replace("cannot", "can not").replace("n't", " not")


@lru_cache(maxsize=STEMS_MAX)
def _term(token: str) -> str:
    """Return the term of a token, empty for one that says nothing."""
    if len(token) > 1 and token[0] == token[-1] == "`":
        return token[1:-1]
    bare = token.lstrip(_OPENING).rstrip(_CLOSING)
    if not bare or token in _DASHES:
        return "" if token in _DASHES or not token.strip(_STOPS) else token
    is_plain = bare[0].isalpha() and bare.replace("-", "").replace("'", "").isalpha()
    if not is_plain or any(sign.isupper() for sign in bare[1:]) or (len(bare) == 1 and bare.isupper()):
        return bare
    word = bare.casefold()
    if word in WORDS["empty"]:
        return ""
    word = "every" if word == "each" else word
    root = stem(word)
    return root if len(word) - len(root) <= ENDING_MAX and not word.endswith("ed") else word
