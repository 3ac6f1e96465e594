"""From what a person asks to what FTS5 is asked. Pure.

Raw text is an error in FTS5's language as often as not (`c++`, `foo-bar`, `file.py`, a quote), so every term
is quoted; what is joined by dots, dashes, slashes or underscores becomes a phrase and is found as it was
written.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from omegad.text.languages import Language, language_of
from omegad.text.stems import stem
from omegad.text.tokenizer import bigrams, camel_names, comparable, folded, humps, unspaced_runs

TERMS_MAX = 64
PARTS_MAX = 16  # words of a compound name that are looked for in a row; a longer one is looked for in parts
# That the terms of a question have, or a phrase: full text compares each with all that a memory has of it
WORDS_MAX = 256
STEMS_MAX = 32_768
RUN_KEPT_MAX = 64  # characters of a run whose stems are kept: a longer one is no word
BEGINNING_MIN = 4  # characters of a name that say which it is

_PART = re.compile(r"\S+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_WORD = re.compile(r"[^\W_]")
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_RUN = re.compile(r"[^\W_]+")
# The vowels of the scripts of India, which are signs beside the letters, are of the word as well.
_WHOLE_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0dff])+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_LINE = re.compile(r"(.*\w\.[A-Za-z]\w*):\d+(?::\d+)?")
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+(?:[-+.]?\w+)*)", re.IGNORECASE | re.ASCII)

# Words that a question is made of, and that say nothing about its answer.
STOP_WORDS = frozenset(
    """a about all am an and any are as at be been being but by can could did do does doing for from had has
    have having he her hers him his how i if in into is it its just many me might more most much my of on
    or our ours shall she should so some such tell than that the their theirs them then there these they
    this those to too us very was we were what when where which while who whom whose why will with would
    you your yours now currently nowadays still""".split()  # noqa: SIM905  words read as words
)


class _Stems(dict[str, tuple[str, ...]]):
    """The stems of each run of letters and digits met so far, those of its parts for a name: a look-up in
    a dictionary costs a tenth of a call.
    """

    def __missing__(self, run: str) -> tuple[str, ...]:
        if len(self) >= STEMS_MAX:
            self.clear()
        parts = map(folded, _HUMP.sub(" ", run).split())
        found = tuple(stem(part) for part in parts if part not in STOP_WORDS)
        if len(run) <= RUN_KEPT_MAX:
            self[run] = found
        return found


_STEMS = _Stems()


def telling(text: str, *, is_met: bool = False) -> tuple[str, ...]:
    """Return the terms of *text* that tell something, quoted, each an expression; all of them where none
    does. Where other languages have been met, what is short is sooner taken for one.
    """
    language = language_of(text, is_met=is_met)
    terms = _terms(asked(text, language))
    found = [term for term in terms if term.casefold() not in STOP_WORDS] or terms
    expressions = dict.fromkeys(expression for term in found for expression in _expressions(term, language))
    return tuple(_bounded(islice(expressions, TERMS_MAX)))


def asked(question: str, language: Language) -> str:
    """Return what a question asks about: in another language than English it is without that one's small
    words, which are no terms.
    """
    return question if language.is_english else language.without_small_words(question)


def stemmed(text: str) -> list[str]:
    """Return the telling words of *text* as stems, in order: names in their parts, and unspaced characters
    two by two at the end.
    """
    text = comparable(text)
    found = list(chain.from_iterable(map(_STEMS.__getitem__, _RUN.findall(text))))
    return (
        found if text.isascii() else [*found, *(pair for run in unspaced_runs(text) for pair in bigrams(run))]
    )


def stemmed_in(language: Language, text: str) -> list[str]:
    """Return the words of *text* as their stems in a language, names in their parts, and unspaced characters
    two by two at the end; of English as `stemmed`.
    """
    if language.is_english:
        return stemmed(text)
    text = comparable(text)
    words = _WHOLE_WORD.findall(_HUMP.sub(" ", text).lower())
    pairs = (pair for run in unspaced_runs(text) for pair in bigrams(run))
    return [*(folded(language.stem(word)) for word in words), *pairs]


def words_in_a_row(text: str) -> str:
    """Return the words of *text* in lower case, names in their parts, each between spaces."""
    return f" {' '.join(_RUN.findall(folded(_HUMP.sub(' ', comparable(text)))))} "


def text_of(expression: str) -> str:
    """Return the text that an expression of `telling` finds, in lower case."""
    return expression.lstrip("(")[1:].partition('"')[0].lower()


def texts_of(expression: str) -> list[str]:
    """Return the texts that an expression finds, any of which is enough."""
    return [text.replace('""', '"') for text in _QUOTED.findall(expression)]


def is_beginning(expression: str) -> bool:
    """Say whether an expression finds what begins with its text."""
    return expression.endswith("*")


def bare_version(term: str) -> str | None:
    """Return a version without the v that it may be written with; None for what is none."""
    found = _VERSION.fullmatch(term)
    return found[1] if found else None


def beginning(expression: str) -> str | None:
    """Return the expression that finds what begins with a term, from that of the term; None where it is
    too short to tell anything.
    """
    text = text_of(expression)
    return f"{_quoted(text)} *" if len(text) >= BEGINNING_MIN else None


def any_term(text: str) -> str | None:
    """Return the expression that finds texts with any telling term of *text*; None where it has no term at
    all.
    """
    return " OR ".join(telling(text)) or None


def phrase(text: str) -> str | None:
    """Return the expression that finds texts with the terms of *text* in a row; None where it has no term
    at all.
    """
    alike = comparable(text)
    if not _WORD.search(alike):
        return None
    return (
        _quoted(text)
        if alike == text
        else f"({_quoted(text)} OR {_quoted(alike)})"
        if _WORD.search(text)
        else _quoted(alike)
    )


def _terms(text: str) -> list[str]:
    stripped = (
        _EDGES.sub("", match.group()) for match in _PART.finditer(comparable(text).replace("\0", " "))
    )
    return list(
        dict.fromkeys(without_line(term.removesuffix("'s")) for term in stripped if _WORD.search(term))
    )


def without_line(term: str) -> str:
    """Return a file's name without the line, and the column, that follow it."""
    found = _LINE.fullmatch(term)
    return found[1] if found else term


def _bounded(expressions: Iterable[str]) -> Iterator[str]:
    """Yield as many expressions as have no more than `WORDS_MAX` words, but never none if there is one."""
    left = WORDS_MAX
    for expression in expressions:
        yield expression
        left -= words_of(expression)
        if left <= 0:
            return


def words_of(text: str) -> int:
    """Return how many words full text takes a text, or an expression without operators, for."""
    return len(_RUN.findall(text))


def _expressions(term: str, language: Language) -> Iterator[str]:
    """Yield what a term of a question in some language is found by.

    That is itself, a long one in parts; for a compound name also its parts in a row, for a version also how
    it is written with a v or without, for a word in another language than English also its stem; without
    spaces each two of its characters.
    """
    if language.is_english and term.isascii() and term.isalpha() and term[1:].islower():
        yield _quoted(term)  # a plain word, as most are
        return
    parts = list(_RUN.finditer(term))
    if len(parts) > PARTS_MAX:
        for first in range(0, len(parts), PARTS_MAX):
            part = parts[first : first + PARTS_MAX]
            yield from _expressions(term[part[0].start() : part[-1].end()], language)
        return
    runs = tuple(unspaced_runs(term))
    if runs:
        for run in runs:
            yield from (_quoted(bigram) for bigram in bigrams(run))
        rest = "".join(sign if sign.isascii() else " " for sign in term)
        yield from (_quoted(part) for part in rest.split() if _WORD.search(part))
        return
    ways = [" ".join(humps(name)) for name in camel_names(term)]
    if bare := bare_version(term):
        ways.append(f"v{bare}" if bare == term else bare)
    if not term.isascii() and (plain := folded(term)) != term.lower():
        ways.append(plain)
    if not language.is_english and (root := folded(language.stem(term.lower()))) != folded(term):
        ways.append(root)
    yield f"({' OR '.join(_quoted(way) for way in (term, *ways))})" if ways else _quoted(term)


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""').replace("\0", " ") + '"'
