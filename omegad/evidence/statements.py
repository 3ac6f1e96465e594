"""The statements of a text, in terms that are equal where two texts say the same.

Inflection, spelling and fillers carry nothing, but what may be a name is kept as it is written, a question is not what it asks, and I am
not you. Pure, and linear in the length of the text.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from omegad.evidence.markup import plain, without_code
from omegad.evidence.wording import EDGE, EMPTY, clauses, is_operator, sentences, stem, stems, straight, terms

ASKED = "?"
"""The term that ends a question."""

ROTATED_TERMS_MAX = 40
"""In a sentence of more terms than this, a phrase put at its beginning instead of its end goes unrecognised."""

NAMED_REACH = 3
"""How many words before a name the word for its kind may stand."""

_ALIKE = dict.fromkeys(stems("via through"), "with") | dict.fromkeys(stems("into inside within at"), "in")
_KEPT = stems("i you your me us my then there")
_FILLERS = EMPTY - _KEPT
_KINDS = stems(
    """library package module bucket table branch queue topic namespace script remote label class method function column directory folder metric
    variable flag command field index header filename env environment"""
)
_NAMING = stems("name call install import from pip npm make")
_BETWEEN = stems("is named called name a an the")
_ORDER = stems("then before after next finally until afterwards order priority sequence")
_OPENERS = frozenset(_ALIKE.get(term, term) for term in stems("in on at when if for with under during while since within inside outside per via"))
_STEPS = stems("then next finally afterwards first second third last after")


class Statement(NamedTuple):
    """What one sentence states: as terms, at which of them a clause other than its first begins, and as written."""

    terms: tuple[str, ...]
    breaks: frozenset[int]
    text: str

    def parts(self) -> list[tuple[str, ...]]:
        """Return the terms of each clause, without the `and` that it opens with."""
        ends = [*sorted(self.breaks), len(self.terms)]
        found = (self.terms[start:end] for start, end in pairwise([0, *ends]))
        return [part for one in found if (part := one[1:] if one[:1] == ("and",) else one)]


def statements(text: str) -> list[Statement]:
    """Return the statements of a text in order, fenced code left out."""
    found = (_statement(sentence) for sentence in sentences(plain(straight(without_code(text)))))
    return [one for one in found if one.terms]


def turned(statement: Sequence[str]) -> tuple[str, ...]:
    """Return the same for a statement and for it with the phrase at its end put first: `in CI tests run`, `tests run in CI`.

    A word of order, as `then` or `before`, forbids it.
    """
    said = tuple(statement)
    if len(said) > ROTATED_TERMS_MAX or _ORDER & set(said):
        return said
    return min((said[place:] + said[:place] for place, term in enumerate(said) if term in _OPENERS), default=said)


def has_order(all_statements: Sequence[Statement]) -> bool:
    """Say whether statements are steps of which one comes after another: `first ...`, `then ...`, or lines that assign values."""
    return any(one.terms[0] in _STEPS or "=" in one.terms for one in all_statements)


def _statement(sentence: str) -> Statement:
    said: list[str] = []
    breaks: set[int] = set()
    for clause in clauses(sentence):
        if said:
            breaks.add(len(said))
        said.extend(_ALIKE.get(term, term) for term in _terms(clause))
    if said and sentence.rstrip("\"')] ").endswith(("?", "\N{FULLWIDTH QUESTION MARK}")):
        said.append(ASKED)
    return Statement(tuple(said), frozenset(breaks), sentence)


def _terms(clause: str) -> Iterator[str]:
    """Yield the terms of a clause without its fillers, what may be names as written."""
    tokens = [token for token in clause.split() if token.strip(EDGE) or is_operator(token)]
    stemmed = [terms(token) for token in tokens]
    letters, ambiguous = _letters(tokens), _ambiguous(tokens)
    for place, token in enumerate(tokens):
        word = token.strip(EDGE)
        if place in letters:
            yield word
        elif is_operator(token):
            yield token
        elif _fills(stemmed, place):
            continue
        elif _is_named(stemmed, place):
            yield word
        elif _names_kind(stemmed, place) or stem(word.casefold()) in ambiguous or (place == 0 and word.endswith("ed")):
            yield word.casefold()
        else:
            yield from (term for term in stemmed[place] if term not in _FILLERS)


def _letters(tokens: Sequence[str]) -> frozenset[int]:
    """Return the places of single letters that name something and are no article or pronoun: `plan A`, `f(a, b)`."""
    single = {place: word for place, token in enumerate(tokens) if len(word := token.strip(EDGE)) == 1 and word.isalpha()}
    if set(single.values()) - set("aAI"):
        return frozenset(single)
    last = len(tokens) - 1
    return frozenset(place for place, word in single.items() if word != "I" and place and (place == last or word == "A"))


def _ambiguous(tokens: Sequence[str]) -> frozenset[str]:
    """Return the stems of which a clause has more than one form, which it tells apart: `error` over `errors`."""
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for token in tokens:
        word = token.strip(EDGE).casefold()
        forms[stem(word)].add(word)
    return frozenset(one for one, words in forms.items() if len(words) > 1)


def _fills(stemmed: Sequence[list[str]], place: int) -> bool:
    """Say whether a word says nothing: an article, a copula, or the `there` of `there is`."""
    if stemmed[place] == ["there"]:
        return stemmed[place + 1 : place + 2] == [["is"]]
    return all(term in _FILLERS for term in stemmed[place])


def _is_named(stemmed: Sequence[list[str]], place: int) -> bool:
    """Say whether a word may be the name of something: `package X`, `the branch is called X`, `import X`."""
    if any(term in _NAMING for one in stemmed[max(0, place - 1) : place] for term in one):
        return True
    before = next((one for one in reversed(stemmed[max(0, place - NAMED_REACH) : place]) if not _BETWEEN.issuperset(one)), [])
    return bool(_KINDS.intersection(before))


def _names_kind(stemmed: Sequence[list[str]], place: int) -> bool:
    """Say whether a word may be the name of what the word after it is: `the X library`."""
    return any(term in _KINDS for one in stemmed[place + 1 : place + 2] for term in one)
