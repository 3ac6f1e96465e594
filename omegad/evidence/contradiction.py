"""Whether a new text contradicts an older one, by what the texts say.

Four kinds of evidence, each between one statement of the new text and one of the old: the new names what it replaces, one denies what
the other affirms, they give one slot different values, or a preference is turned round. How near the texts are only scales what is found.
English; texts of other languages find no evidence. Questions state nothing. Pure.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from textwrap import shorten
from typing import NamedTuple

import msgspec

from omegad.evidence.denials import Denial, denials
from omegad.evidence.prose import prose, without_aside
from omegad.evidence.replacement import Replacement, context, is_in_use, replacements
from omegad.evidence.slots import are_rivals, differing, has_one_value
from omegad.evidence.wording import EMPTY, NEGATORS, OPPOSITES, content, sentences, stems, straight, terms

CHARACTERS_MAX = 4_000
STATEMENTS_MAX = 40
TERMS_MAX = 60

QUOTED_MAX = 120
"""How many characters of a statement a reason quotes."""

STRENGTH_MIN = 0.4
"""Weaker evidence is none."""

REPLACED = 0.95
REPLACED_ELSEWHERE = 0.6
DENIED = 0.85
OTHER_VALUE = 0.8
TURNED_PREFERENCE = 0.9
GONE = 0.85
CHANGED = 0.75

SHARED_MIN = 0.6
"""The share of terms that a claim and its denial have in common; of a change and what it may change, beside the names."""

CLAIM_TERMS_MIN = 2
"""How many terms a claim and its denial have at least in common, a pair of opposites counted once."""

CLAIMED_MIN = 0.8
"""The share of terms that a claim called wrong has in common with the older statement."""

MAIN_MIN = 0.5
"""The share of an older text that the contradicted statement must be for the whole text to be explicitly contradicted."""

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
      | no\ longer | not\ any\ ?more | any\ ?more | these\ days | going\ forward
      | (?<!right\ )(?<!for\ )now(?!\ and\ then)(?!\ that)(?!adays))\b,?""",
    re.VERBOSE,
)
_ENDED = re.compile(r"\bstopped \w+ing\b")
_PAST = re.compile(r"\bused to\b|\bwe (?:tried|considered|evaluated)\b|\bformerly\b|\bpreviously\b")
_CONDITION = stems("if when unless until except only while during after before for in on under at within outside whenever than")
_ORDER = stems("always never do not please avoid must should")
_IDLE = stems("do does always ever must should will can have also still even again long any more we")
_WRONG = re.compile(
    r"""(?:the\ |my\ |our\ )?(?:(?:earlier\ |old\ |previous\ )?(?:note|claim|memory|decision|statement|rule|advice|entry|fact)\ )?
        (?:that\ |about\ )?(?P<claim>.+?)\ (?:is|was)\ (?:now\ )?
        (?P<judgement>outdated|wrong|incorrect|obsolete|stale|not\ true|no\ longer\ (?:true|valid|correct))\b""",
    re.VERBOSE,
)
_VERBS = stems(
    """enable enabled disable allow deny forbid permit prohibit block accept reject work fail pass succeed start stop include exclude add
    remove increase decrease like dislike hate love prefer use avoid with without keep delete always never broken require"""
)
_PREDICATES = stems("is was want prefer like use need must keep run stay become turn set work do has")
_PREFERENCE = re.compile(
    r"""^(?P<who>.*?)\b(?:prefers?|preferred|likes?|wants?|chose|choose|favou?rs?|picks?)\s+
        (?P<more>.+?)\s+(?:over|to|rather\ than|instead\ of|more\ than)\s+(?P<less>.+)$""",
    re.VERBOSE,
)


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence that a new text contradicts an older one.

    `strength` is 0 to 1; `is_explicit` says that the new text itself says it changes or replaces something; `reason` tells a reader why.
    """

    strength: float
    is_explicit: bool
    reason: str


class _Statement(NamedTuple):
    """One clause: as written in lower case, its terms without the words of time and change, what it replaces, and whether it tells of change."""

    text: str
    terms: tuple[str, ...]
    content: frozenset[str]
    replacements: tuple[Replacement, ...]
    is_marked: bool
    is_correction: bool


def contradiction(new: str, old: str, similarity: float | None) -> Contradiction | None:
    """Return the strongest evidence that a new text contradicts an older one; None where there is none worth telling.

    `similarity` is the cosine of the two, None where it is unknown; then it is the share of their terms that the two statements have
    in common. Only the first 4,000 characters of each text are read.
    """
    ours, theirs = _statements(new[:CHARACTERS_MAX]), _statements(old[:CHARACTERS_MAX])
    if {one.terms for one in ours} <= {one.terms for one in theirs}:
        return None
    said = {one.terms for one in theirs}
    length = sum(len(one.terms) for one in theirs)
    found = [
        msgspec.structs.replace(one, strength=round(strength, 3), is_explicit=one.is_explicit and len(other.terms) >= MAIN_MIN * length)
        for statement in ours
        if statement.terms not in said or statement.is_correction
        for other in theirs
        for one in (_evidence(statement, other) if statement.replacements or statement.content & other.content else ())
        if (strength := one.strength * (0.5 + 0.5 * _nearness(statement, other, similarity))) >= STRENGTH_MIN
    ]
    found.extend(_denying(denial, old, similarity) for denial in denials(new[:CHARACTERS_MAX], old[:CHARACTERS_MAX], similarity))
    return max(found, key=lambda one: (one.is_explicit, one.strength), default=None)


def _denying(denial: Denial, old: str, similarity: float | None) -> Contradiction:
    strength = (GONE if denial.is_outright else CHANGED) * (0.5 + 0.5 * min(1.0, max(STRENGTH_MIN, similarity or 0.0)))
    is_explicit = denial.is_outright and len(denial.old) >= MAIN_MIN * len(old)
    reason = f"{denial.what}: {shorten(denial.new, QUOTED_MAX)!r} against {shorten(denial.old, QUOTED_MAX)!r}"
    return Contradiction(strength=round(strength, 3), is_explicit=is_explicit, reason=reason)


@lru_cache(maxsize=64)
def _statements(text: str) -> tuple[_Statement, ...]:
    found: list[_Statement] = []
    for sentence in (" ".join(part.split()) for part in sentences(straight(prose(text).casefold()))):
        if sentence.rstrip("\"')] ").endswith(("?", "\N{FULLWIDTH QUESTION MARK}")):
            continue
        plain = _REASON.sub("", without_aside(sentence))
        is_correction = _CORRECTION.match(plain) is not None or (bool(found) and found[-1].is_correction)
        is_marked = is_correction or _MARKER.search(plain) is not None or _ENDED.search(plain) is not None
        for clause in _CLAUSE.split(_OPENING.sub("", plain)):
            said = tuple(term for term in terms(_equated(_MARKER.sub(_kept, clause))) if term not in EMPTY or term == "is")
            if said and len(said) <= TERMS_MAX:
                found.append(_Statement(clause, said, frozenset(content(said)), tuple(replacements(clause)), is_marked, is_correction))
    return tuple(found[:STATEMENTS_MAX])


def _kept(marker: re.Match[str]) -> str:
    """Return what is left of a marker of change without its time: its negation."""
    return " not " if marker.group().startswith("no") and not marker.group().startswith("now") else " "


def _equated(clause: str) -> str:
    """Write `port: 8080` and `port = 8080` as `port is 8080`."""
    return re.sub(r"(?<=\w)['\"`]?\s*(?::\s|\s=\s|=(?=[\w'\"]))\s*", " is ", clause)


def _nearness(new: _Statement, old: _Statement, similarity: float | None) -> float:
    if similarity is not None:
        return min(1.0, max(0.0, similarity))
    return len(new.content & old.content) / max(1, min(len(new.content), len(old.content)))


def _evidence(new: _Statement, old: _Statement) -> Iterator[Contradiction]:
    if new.terms == old.terms or _PAST.search(old.text):
        return
    for replacement in new.replacements:
        yield from _replaced(new, old, replacement)
    yield from _declared_wrong(new, old)
    yield from _turned_preference(new, old)
    if not new.replacements and not old.replacements:
        yield from _denied(new, old)
    yield from _other_value(new, old)


def _found(what: str, new: _Statement, old: _Statement, strength: float, *, is_explicit: bool) -> Contradiction:
    reason = f"{what}: {shorten(new.text, QUOTED_MAX)!r} against {shorten(old.text, QUOTED_MAX)!r}"
    return Contradiction(strength=strength, is_explicit=is_explicit, reason=reason)


def _replaced(new: _Statement, old: _Statement, change: Replacement) -> Iterator[Contradiction]:
    """Yield that the new statement replaces what the old one says is used, where both may be about the same."""
    if old.replacements:
        undone = next((one for one in old.replacements if (change.old == one.new if change.old else change.new == one.old)), None)
        if undone is not None:
            yield _found("turns back", new, old, REPLACED, is_explicit=change.is_outright or new.is_marked)
        return
    if not change.old:
        rival = next((term for term in old.terms if any(are_rivals(term, name) for name in change.new) and is_in_use((term,), old.terms)), None)
        if rival is None:
            return
        change = change._replace(old=(rival,))
    if (set(change.new) <= old.content and change.new) or NEGATORS & set(old.terms):
        return
    ours, theirs = change.context, context(old.terms, (*change.old, *change.new))
    is_same_matter = theirs <= ours or (change.is_outright and ours <= theirs)
    if is_in_use(change.old, old.terms):
        if is_same_matter:
            yield _found("replaces", new, old, REPLACED, is_explicit=True)
        elif len(ours & theirs) / max(1, min(len(ours), len(theirs))) >= SHARED_MIN or ours <= theirs:
            yield _found("may replace", new, old, REPLACED_ELSEWHERE, is_explicit=False)


def _declared_wrong(new: _Statement, old: _Statement) -> Iterator[Contradiction]:
    if match := _WRONG.match(new.text):
        claim = frozenset(content(terms(_equated(match["claim"]))))
        if claim and len(claim & old.content) >= CLAIMED_MIN * len(claim | old.content):
            yield _found("calls wrong", new, old, REPLACED, is_explicit=True)


def _turned_preference(new: _Statement, old: _Statement) -> Iterator[Contradiction]:
    ours, theirs = _PREFERENCE.search(new.text), _PREFERENCE.search(old.text)
    if ours is None or theirs is None or content(terms(ours["who"])) != content(terms(theirs["who"])):
        return
    if _share(ours["more"], theirs["less"]) and _share(ours["less"], theirs["more"]):
        yield _found("prefers the reverse", new, old, TURNED_PREFERENCE, is_explicit=new.is_marked)


def _share(one: str, other: str) -> bool:
    ours, theirs = set(content(terms(one))), set(content(terms(other)))
    return bool(ours & theirs) and (ours <= theirs or theirs <= ours)


def _denied(new: _Statement, old: _Statement) -> Iterator[Contradiction]:
    """Yield that one statement denies what the other affirms, where neither says more than a word beside."""
    ours, theirs = new.content - _IDLE, old.content - _IDLE
    opposed = [(one, other) for one in ours - theirs for other in theirs - ours if (one, other) in OPPOSITES]
    if len(opposed) > 1 or not all(_is_predicated(one, new.terms) and _is_predicated(other, old.terms) for one, other in opposed):
        return
    matched = {term for pair in opposed for term in pair}
    negations = sum(term in NEGATORS and term not in matched for statement in (new, old) for term in statement.terms)
    if (negations + len(opposed)) % 2 == 0:
        return
    ours, theirs = ours - NEGATORS - matched, theirs - NEGATORS - matched
    shared, left = ours & theirs, ours ^ theirs
    if not shared or (ours - theirs and theirs - ours) or left & _CONDITION or len(shared) < SHARED_MIN * len(ours | theirs):
        return
    if len(shared) + len(opposed) < CLAIM_TERMS_MIN:
        return
    is_explicit = (len(left) <= 1 and new.is_marked) or (not left and _is_order_reversed(new, old))
    yield _found("denies", new, old, DENIED * len(shared | matched) / len(shared | matched | left), is_explicit=is_explicit)


def _is_predicated(term: str, statement: tuple[str, ...]) -> bool:
    """Say whether an opposite is what a statement says, and not a part of the name of what it speaks of."""
    start = statement.index(term)
    return "is" not in statement[start:] and (term in _VERBS or bool(_PREDICATES & set(statement[:start])))


def _is_order_reversed(new: _Statement, old: _Statement) -> bool:
    """Say whether both tell to do the same, one of them by `always`, `never`, `do not` and the like."""
    ours, theirs = terms(new.text), terms(old.text)
    return bool({ours[0], theirs[0]} & _ORDER) and _ordered(ours) == _ordered(theirs)


def _ordered(order: list[str]) -> str:
    return next((term for term in order if term not in _ORDER), "")


def _other_value(new: _Statement, old: _Statement) -> Iterator[Contradiction]:
    start, ours, theirs, end = differing(new.terms, old.terms)
    if has_one_value(start, (ours, theirs), end, is_marked=new.is_marked):
        yield _found("gives another value", new, old, OTHER_VALUE, is_explicit=new.is_marked)
