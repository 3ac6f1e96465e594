"""When two texts say the same, and when one says what the other does and more.

Pure, and linear in the length of the texts. A near-duplicate is only ever called one when numbers, versions, paths, identifiers and
polarity agree and no word that carries content differs, because acknowledged memories that were taken for duplicates by likeness alone
are memories lost.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from omegad.evidence.contradiction import contradiction
from omegad.evidence.markup import code, indents, is_numbered
from omegad.evidence.standing import doubts
from omegad.evidence.statements import ASKED, Statement, has_order, statements, turned
from omegad.evidence.wording import NEGATORS, TURNING, all_words, clauses, content, details, polarity, sentences, stems, terms

KEPT_MIN = 0.8
"""The share of an older statement's terms that a newer one keeps when it restates it."""

INSERTED_MAX = 0.5
"""How many terms, per term of the older statement, a newer one may put between them without saying something else."""

STATEMENTS_MAX = 64
"""Texts of more statements than this are not compared statement by statement: they neither restate nor are taken apart."""

_CHANGE = re.compile(
    r"""\b(?:instead|no\ longer|any\ ?more|used\ to|formerly|previously|outdated|obsolete|wrong|incorrect|untrue|false|deprecated|replaced|replaces
      |supersedes?|superseded|switched|migrated|reverted|renamed|dropped|abandoned|correction|contrary|rejected|declined|vetoed|postponed|forbidden|nobody
      |not\ true)\b|^\s*(?:update|actually)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_TAKEN_BACK = re.compile(
    r"\b(?:outdated|obsolete|(?:is|was|were)\s(?:wrong|incorrect|untrue|false)|not\strue|correction|said\snobody)\b", re.IGNORECASE
)
_LIMITING = stems("if when unless until whether except but only although though while whereas before after otherwise or not because which who")
_VERDICT = NEGATORS | stems(
    """was were reject forbid forbidden prohibit ban mistake wrong badly broken fail deprecate discourage drop abandon revert only must should would
    could maybe cannot false untrue unless"""
)


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
    if differ_in_detail(one, other) or code(one) != code(other) or indents(one) != indents(other):
        return False
    ours, theirs = statements(one), statements(other)
    if "".join(chain(*_terms(ours))) == "".join(chain(*_terms(theirs))):  # `data base` is `database`
        return True
    our_terms, their_terms = [turned(statement) for statement in _terms(ours)], [turned(statement) for statement in _terms(theirs)]
    if is_numbered(one) or is_numbered(other) or has_order(ours) or has_order(theirs):
        return our_terms == their_terms
    return sorted(our_terms) == sorted(their_terms)


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
    ours, theirs = statements(new), statements(old)
    if not theirs or not set(chain(*_terms(ours))) - set(chain(*_terms(theirs))):
        return False
    return all(any(_keeps(newer, older.terms) for newer in ours) for older in theirs)


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


def holds(older: str, newer: str) -> bool:
    """Say whether an older text says all that a newer one does, so that to store the newer as well would add nothing.

    Each sentence of the newer is one of the older, or a clause of one, or a run of its clauses, equal but for fillers, inflection and
    the place of phrases; every detail is there as often, code to the letter. What the older text denies elsewhere, it does not hold.
    """
    if newer.strip() == older.strip():
        return True
    if Counter(details(newer)) - Counter(details(older)) or not set(code(newer)) <= set(code(older)):
        return False
    if max(len(sentences(older)), len(sentences(newer))) > STATEMENTS_MAX or (indents(newer) and newer.strip() not in older):
        return False
    wanted, known = statements(newer), statements(older)
    is_ordered = is_numbered(newer) or has_order(wanted)
    are_held = _is_run(_terms(wanted), _terms(known)) if is_ordered else _are_held(wanted, known)
    return are_held and bool(wanted or code(newer)) and not _is_denied(newer, older)


def _terms(all_statements: Sequence[Statement]) -> list[tuple[str, ...]]:
    return [statement.terms for statement in all_statements]


def _is_run(wanted: Sequence[tuple[str, ...]], known: Sequence[tuple[str, ...]]) -> bool:
    """Say whether items follow each other in a sequence just so."""
    return any(list(known[start : start + len(wanted)]) == list(wanted) for start in range(len(known) - len(wanted) + 1))


def _are_held(wanted: Sequence[Statement], known: Sequence[Statement]) -> bool:
    """Say whether each statement is one that is known, or made up of known clauses that hold by themselves."""
    forms = {turned(one.terms) for one in known}
    whole = {(turned(one.terms), tuple(details(one.text))) for one in known}
    clause_run = [part for one in known for part in one.parts()]
    free = {turned(part) for one in known for part in _free_parts(one)}

    def is_made_up(parts: Sequence[tuple[str, ...]]) -> bool:
        if len(parts) == 1:
            return turned(parts[0]) in free - forms
        return _is_run(parts, clause_run) or (not _is_limited(parts) and all(len(part) > 1 and turned(part) in free for part in parts))

    return all((turned(one.terms), tuple(details(one.text))) in whole or is_made_up(one.parts()) for one in wanted)


def _free_parts(known: Statement) -> list[tuple[str, ...]]:
    """Return the clauses of a known statement that hold without the others: none limits them, none puts them in doubt."""
    parts = known.parts()
    if ASKED in known.terms or _is_limited(parts) or doubts(known.text, known.text) or any(_VERDICT.intersection(part) for part in parts[1:]):
        return []
    return parts


def _is_limited(parts: Sequence[tuple[str, ...]]) -> bool:
    return any(_LIMITING.intersection(part[:1]) for part in parts)


def _is_denied(newer: str, older: str) -> bool:
    """Say whether a text that has all statements of a newer one takes one of them back."""
    if _TAKEN_BACK.search(older) and not _TAKEN_BACK.search(newer):
        return True
    return contradiction(older, newer, None) is not None


def _keeps(statement: Statement, older: tuple[str, ...]) -> bool:
    """Say whether a newer sentence has the terms of an older one in order, near together, and with nothing turned about them."""
    newer = statement.terms
    if (ASKED in newer) != (ASKED in older):
        return False
    places = _places(newer, older)
    kept = [place for place in places if place is not None]
    if len(kept) < max(1, KEPT_MIN * len(older)) or places[0] is None or places[-1] is None:
        return False
    end = kept[-1] + 1
    if end - kept[0] - len(kept) > INSERTED_MAX * len(older) or _is_substituted(places):
        return False
    is_turned_after = newer[end : end + 1] == ("not",) or (len(newer) == end + 1 and newer[end] in TURNING)
    return polarity(newer[:end]) == polarity(older) and not is_turned_after and not _VERDICT.intersection(_rest(statement, end))


def _rest(statement: Statement, start: int) -> tuple[str, ...]:
    """Return what a statement goes on with in the same clause."""
    end = min((place for place in statement.breaks if place >= start), default=len(statement.terms))
    return statement.terms[start:end]


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
