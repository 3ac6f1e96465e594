"""When two texts say the same, and when one says what the other does and more.

Pure, and linear in the length of the texts. A near-duplicate is only ever called one when numbers, versions, paths, identifiers and
polarity agree and no word that carries content differs, because acknowledged memories that were taken for duplicates by likeness alone
are memories lost.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from omegad.evidence.wording import TURNING, all_words, clauses, content, details, polarity, sentences, stems, terms

KEPT_MIN = 0.8
"""The share of an older statement's terms that a newer one keeps when it restates it."""

INSERTED_MAX = 0.5
"""How many terms, per term of the older statement, a newer one may put between them without saying something else."""

ROTATED_TERMS_MAX = 40
"""In a sentence of more terms than this, a phrase put at its beginning instead of its end goes unrecognised."""

STATEMENTS_MAX = 64
"""Texts of more statements than this are not compared statement by statement: they neither restate nor are taken apart."""

_CHANGE = re.compile(
    r"""\b(?:instead|no\ longer|any\ ?more|used\ to|formerly|previously|outdated|obsolete|wrong|incorrect|untrue|false|deprecated|replaced|replaces
      |supersedes?|superseded|switched|migrated|reverted|renamed|dropped|abandoned|correction|contrary)\b|^\s*(?:update|actually)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ALIKE = dict.fromkeys(stems("via through"), "with") | dict.fromkeys(stems("into inside within at"), "in")


def words(text: str) -> frozenset[str]:
    """Return the distinct words of a text, case-folded, with straight apostrophes."""
    return frozenset(all_words(text))


def jaccard(one: str, other: str) -> float:
    """Return the share of distinct words that two texts have in common, 0 to 1 (Jaccard 1901); 0 when neither has any."""
    ours, theirs = words(one), words(other)
    return len(ours & theirs) / len(ours | theirs) if ours | theirs else 0.0


def differ_in_detail(one: str, other: str) -> bool:
    """Say whether two texts name different numbers, versions, paths or identifiers, or one denies what the other affirms."""
    return details(one) != details(other) or polarity(terms(one)) != polarity(terms(other))


def says_the_same(one: str, other: str) -> bool:
    """Say whether two texts make the same statements: equal but for fillers, inflection, spelling and the place of whole phrases.

    Every word that is not known to be empty counts, so that in doubt, and in other languages, texts say different things.
    """
    if differ_in_detail(one, other):
        return False
    ours, theirs = _statements(one), _statements(other)
    if "".join(map("".join, ours)) == "".join(map("".join, theirs)):  # `data base` is `database`
        return True
    return sorted(map(_turned, ours)) == sorted(map(_turned, theirs))


def restates(new: str, old: str) -> bool:
    """Say whether a text keeps the statements of an older one and adds to them.

    Each older sentence is found, in its order and with its polarity, within one newer sentence; a word may be left out but not
    put in another's place; all details of the older text are in the newer one, which may have more.
    """
    if _CHANGE.search(new) and not _CHANGE.search(old):
        return False
    if Counter(details(old)) - Counter(details(new)):
        return False
    if max(len(sentences(new)), len(sentences(old))) > STATEMENTS_MAX:
        return False
    ours, theirs = _statements(new), _statements(old)
    if not theirs or not set(chain(*ours)) - set(chain(*theirs)):
        return False
    return all(any(_holds(newer, older) for newer in ours) for older in theirs)


def addition(new: str, old: str) -> str:
    """Return the sentences and clauses of a text that an older one does not contain, as written; all of it where nothing can be told apart."""
    if "```" in new:  # code does not fall into sentences
        return new
    said, asked = sentences(old), sentences(new)
    if max(len(said), len(asked)) > STATEMENTS_MAX:
        return new
    known = [tuple(content(terms(part))) for sentence in said for part in (sentence, *clauses(sentence)[:STATEMENTS_MAX])]
    left: list[str] = []
    for sentence in asked:
        parts = clauses(sentence)[:STATEMENTS_MAX]
        first_new = next((index for index, part in enumerate(parts) if not _is_known(part, known)), None)
        if first_new is not None:
            left.append(sentence[_start(sentence, parts, first_new) :])
    return "\n".join(left) if left else new


def _statements(text: str) -> list[tuple[str, ...]]:
    found = (tuple(_ALIKE.get(term, term) for term in content(terms(sentence))) for sentence in sentences(text))
    return [statement for statement in found if statement]


def _turned(statement: tuple[str, ...]) -> tuple[str, ...]:
    """Return the same tuple for a statement and for it with its end moved to its beginning: `in CI tests run`, `tests run in CI`."""
    if len(statement) > ROTATED_TERMS_MAX:
        return statement
    return min(statement[start:] + statement[:start] for start in range(len(statement)))


def _holds(newer: tuple[str, ...], older: tuple[str, ...]) -> bool:
    """Say whether a newer sentence has the terms of an older one in order, near together, and with nothing turned about them."""
    places = _places(newer, older)
    kept = [place for place in places if place is not None]
    if len(kept) < max(1, KEPT_MIN * len(older)) or places[0] is None or places[-1] is None:
        return False
    end = kept[-1] + 1
    if end - kept[0] - len(kept) > INSERTED_MAX * len(older) or _is_substituted(places):
        return False
    is_turned_after = newer[end : end + 1] == ("not",) or (len(newer) == end + 1 and newer[end] in TURNING)
    return polarity(newer[:end]) == polarity(older) and not is_turned_after


def _places(newer: Sequence[str], older: Sequence[str]) -> list[int | None]:
    """Return where each term of the older statement stands in the newer one, each after the one before; None where it is not there."""
    where: dict[str, list[int]] = {}
    for place in range(len(newer) - 1, -1, -1):
        where.setdefault(newer[place], []).append(place)
    found: list[int | None] = []
    start = 0
    for term in older:
        ahead = where.get(term, [])
        while ahead and ahead[-1] < start:
            ahead.pop()
        found.append(ahead.pop() if ahead else None)
        start = start if (last := found[-1]) is None else last + 1
    return found


def _is_substituted(places: Sequence[int | None]) -> bool:
    """Say whether something stands where a term of the older statement is missing."""
    last, is_missing = None, False
    for place in places:
        if place is None:
            is_missing = True
            continue
        if is_missing and last is not None and place != last + 1:
            return True
        last, is_missing = place, False
    return False


def _is_known(part: str, known: Sequence[tuple[str, ...]]) -> bool:
    wanted = tuple(content(terms(part.removeprefix("and "))))
    return any(_is_within(wanted, statement) and polarity(wanted) == polarity(statement) for statement in known)


def _is_within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return f"\0{chr(0).join(part)}\0" in f"\0{chr(0).join(whole)}\0" if part else False


def _start(sentence: str, parts: Sequence[str], wanted: int) -> int:
    """Return where a clause of a sentence starts in it."""
    start = 0
    for part in parts[:wanted]:
        start = sentence.index(part, start) + len(part)
    return sentence.index(parts[wanted], start)
