"""The claims of a text: its clauses, each in comparable terms, with what it says was replaced and how it is meant. English. Pure."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from omegad.evidence.prose import prose, without_aside
from omegad.evidence.replacement import Replacement, replacements
from omegad.evidence.standing import doubts, is_added, is_bygone, is_change_denied, is_told
from omegad.evidence.wording import EDGE, EMPTY, content, sentences, straight, terms, with_opposites

CLAIMS_MAX = 40
"""How many claims of a text are read."""

TERMS_MAX = 60
"""A longer clause is none: it is a table, a log or a listing."""

_REASON = re.compile(r"[,\s]\s*(?:because|since (?:it|they|we|the|its?)|so that|due to|in order to|which|as it|as they)\b.*", re.DOTALL)
_CLAUSE = re.compile(
    r""";\s+ | \s+[\u2014\u2013-]\s+ | \s+(?=but\s)
      | ,\s+(?=(?:and\s+|but\s+|so\s+)?(?:we|it|they|i|he|she|the|this|that|never|do|don't|always|you|there|our|my|use|please)\b)""",
    re.VERBOSE,
)
_OPENING = re.compile(
    r"""\s*(?:(?:correction|update|edit|actually|fix|fyi|note|btw|reminder|decision|preference|user\ preference)\s*[:,]\s*
      | (?:no|yes),\s+ | actually\s+)+""",
    re.VERBOSE,
)
_CORRECTION = re.compile(r"\s*(?:correction|update|edit)\s*[:,]|\s*actually\b")
_TIME = (
    r"(?:(?:the )?(?:start|end|beginning) of )?(?:today|yesterday|tomorrow|(?:this|last|next) \w+|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|monday|tuesday|wednesday|thursday|friday|v?\d[\w.-]*|release \S+|version \S+|sprint \S+)(?: \d{4}\b)?"
).replace(" ", r"\ ")  # it is part of a verbose pattern
_MARKER = re.compile(
    rf"""\b(?:from\ now\ on | as\ of\ (?:now|{_TIME})
      | (?:since|starting|starting\ (?:with|from|in|on)|effective)\ {_TIME}
      | no\ longer | not\ any\ ?more | any\ ?more | any\ longer | these\ days | going\ forward
      | (?<!right\ )(?<!for\ )now(?!\ and\ then)(?!\ that)(?!adays))\b,?""",
    re.VERBOSE,
)
_ENDED = re.compile(r"\bstopped \w+ing\b")


class Claim(NamedTuple):
    """One clause: as written in lower case, its terms without the words of time and change, what it replaces, and how it is meant.

    `known` are all its terms and their opposites; `names` are those that are written like names; `doubts` are what keeps it from telling what is so;
    `is_marked` says that it tells of a change.
    """

    text: str
    terms: tuple[str, ...]
    content: frozenset[str]
    known: frozenset[str]
    names: frozenset[str]
    replacements: tuple[Replacement, ...]
    doubts: frozenset[str]
    is_marked: bool
    is_correction: bool
    is_added: bool
    is_bygone: bool


@lru_cache(maxsize=64)
def claims(text: str) -> tuple[Claim, ...]:
    """Return the first claims of a text, in order. Questions claim nothing."""
    found: list[Claim] = []
    plain_text = straight(prose(text))
    names = _names(plain_text)
    for sentence in (" ".join(part.split()) for part in sentences(plain_text.casefold())):
        if sentence.rstrip("\"')] ").endswith(("?", "\N{FULLWIDTH QUESTION MARK}")):
            continue
        plain = _REASON.sub("", without_aside(sentence))
        is_correction = _CORRECTION.match(plain) is not None or (bool(found) and found[-1].is_correction)
        is_marked = is_correction or _MARKER.search(plain) is not None or _ENDED.search(plain) is not None
        for clause in _CLAUSE.split(_OPENING.sub("", plain)):
            said = tuple(term for term in terms(equated(_MARKER.sub(_kept, clause))) if term not in EMPTY or term == "is")
            if said and len(said) <= TERMS_MAX:
                found.append(_claim(clause, sentence, said, names)._replace(is_marked=is_marked, is_correction=is_correction))
    return tuple(found[:CLAIMS_MAX])


def equated(clause: str) -> str:
    """Write `port: 8080` and `port = 8080` as `port is 8080`."""
    return re.sub(r"(?<=\w)['\"`]?\s*(?::\s|\s=\s|=(?=[\w'\"]))\s*", " is ", clause)


def _claim(clause: str, sentence: str, said: tuple[str, ...], names: frozenset[str]) -> Claim:
    return Claim(
        text=clause,
        terms=said,
        content=frozenset(content(said)),
        known=with_opposites(terms(clause)),
        names=names,
        replacements=tuple(_meant(clause)),
        doubts=doubts(clause, sentence),
        is_marked=False,
        is_correction=False,
        is_added=is_added(clause),
        is_bygone=is_bygone(clause),
    )


def _names(text: str) -> frozenset[str]:
    """Return the terms of a text that are written like names: with a capital within a sentence."""
    words = (token.strip(EDGE) for sentence in sentences(text) for token in sentence.split()[1:])
    return frozenset(term for word in words if any(sign.isupper() or sign.isdigit() for sign in word) for term in terms(word))


def _meant(clause: str) -> Iterator[Replacement]:
    """Yield what a clause says was replaced, unless it denies or forbids that, or tells of one case in which one thing stood for another."""
    if not is_change_denied(clause):
        is_case = is_told(clause)
        yield from (change for change in replacements(clause) if change.is_outright or not is_case)


def _kept(marker: re.Match[str]) -> str:
    """Return what is left of a marker of change without its time: its negation."""
    return " not " if marker.group().startswith("no") and not marker.group().startswith("now") else " "
