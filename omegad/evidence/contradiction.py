"""Whether a new text contradicts an older one, by what the texts say.

Several kinds of evidence, each between one claim of the new text and one of the old: the new names what it replaces, takes up again what the
old one replaced, denies what it affirms, ends it, gives one slot another value, or turns a preference round. What the new text only
supposes, plans, rejects or tells of others is no evidence; what it says of a narrower case is no explicit one. How near the texts are only
scales what is found. English; texts of other languages find no evidence. Questions state nothing. Pure.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, pairwise
from textwrap import shorten

import msgspec

from omegad.evidence.claims import Claim, claims, equated
from omegad.evidence.denials import Denial, denials
from omegad.evidence.replacement import Replacement, completed, context, is_in_use, is_path, place
from omegad.evidence.scope import is_case, narrowing
from omegad.evidence.slots import are_of_a_kind, are_rivals, differing, has_one_value, is_one_channel, is_predicate
from omegad.evidence.standing import WEAK, undone
from omegad.evidence.wording import NEGATORS, OPPOSITES, all_words, content, stem, stems, terms

CHARACTERS_MAX = 4_000

QUOTED_MAX = 120
"""How many characters of a claim a reason quotes."""

STRENGTH_MIN = 0.4
"""Weaker evidence is none."""

REPLACED = 0.95
REPLACED_ELSEWHERE = 0.6
TAKEN_UP = 0.8
DENIED = 0.85
OTHER_VALUE = 0.8
TURNED_PREFERENCE = 0.9
GONE = 0.85
CHANGED = 0.75

APART_MAX = 0.6
"""The share of the terms around two claims, of the fewer of them, below which these speak of different matters."""

NAMED_MIN = 2
"""How many terms two claims share that name by themselves what they speak of."""

SHARED_MIN = 0.6
"""The share of terms that a claim and its denial have in common; of a change and what it may change, beside the names."""

CLAIM_TERMS_MIN = 2
"""How many terms a claim and its denial have at least in common, a pair of opposites counted once."""

SHORT_TERMS = 4
"""How many terms a claim has at most to be about the same as another with which it shares a single one."""

CLAIMED_MIN = 0.8
"""The share of terms that a claim called wrong has in common with the older one."""

MAIN_MIN = 0.5
"""The share of an older text that the contradicted claim must be for the whole text to be explicitly contradicted."""

_CONDITION = stems("if when unless until except only while during after before for in on under at within outside whenever than")
_ORDER = stems("always never stop do not please avoid must should")
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


def contradiction(new: str, old: str, similarity: float | None) -> Contradiction | None:
    """Return the strongest evidence that a new text contradicts an older one; None where there is none worth telling.

    `similarity` is the cosine of the two, None where it is unknown; then it is the share of their terms that the two claims have in
    common. Only the first 4,000 characters of each text are read.
    """
    new, old = new[:CHARACTERS_MAX], old[:CHARACTERS_MAX]
    ours, theirs = claims(new), claims(old)
    if {one.terms for one in ours} <= {one.terms for one in theirs}:
        return None
    said = {one.terms for one in theirs}
    length = sum(len(one.terms) for one in theirs)
    found = [
        msgspec.structs.replace(one, strength=round(strength, 3), is_explicit=one.is_explicit and len(other.terms) >= MAIN_MIN * length)
        for claim in ours
        if claim.terms not in said or claim.is_correction
        for other in theirs
        for one in (_evidence(claim, other, are_apart=partial(_are_apart, (claim, ours), (other, theirs))) if _may_be_about(claim, other) else ())
        if (strength := one.strength * (0.5 + 0.5 * _nearness(claim, other, similarity))) >= STRENGTH_MIN
    ]
    found.extend(_denying(denial, old, similarity) for denial in denials(new, old, similarity))
    strongest = max(found, key=lambda one: (one.is_explicit, one.strength), default=None)
    if strongest is not None and strongest.is_explicit and undone(new) - frozenset(terms(old)):
        return msgspec.structs.replace(strongest, is_explicit=False)
    return strongest


def _denying(denial: Denial, old: str, similarity: float | None) -> Contradiction:
    strength = (GONE if denial.is_outright else CHANGED) * (0.5 + 0.5 * min(1.0, max(STRENGTH_MIN, similarity or 0.0)))
    is_explicit = denial.is_outright and len(denial.old) >= MAIN_MIN * len(old)
    reason = f"{denial.what}: {shorten(denial.new, QUOTED_MAX)!r} against {shorten(denial.old, QUOTED_MAX)!r}"
    return Contradiction(strength=round(strength, 3), is_explicit=is_explicit, reason=reason)


def _nearness(new: Claim, old: Claim, similarity: float | None) -> float:
    if similarity is not None:
        return min(1.0, max(0.0, similarity))
    return len(new.content & old.content) / max(1, min(len(new.content), len(old.content)))


def _may_be_about(new: Claim, old: Claim) -> bool:
    shared = len(new.content & old.content)
    return bool(new.replacements) or shared >= CLAIM_TERMS_MIN or (shared > 0 and min(len(new.content), len(old.content)) <= SHORT_TERMS)


def _are_apart(new: tuple[Claim, Sequence[Claim]], old: tuple[Claim, Sequence[Claim]]) -> bool:
    """Say whether two claims stand among others of different matters; what they do not name themselves need not be the same then."""
    ours, theirs = (frozenset[str]().union(*(one.content for one in ones if one is not claim)) for claim, ones in (new, old))
    return bool(ours and theirs) and len(ours & theirs) < APART_MAX * min(len(ours), len(theirs))


def _evidence(new: Claim, old: Claim, *, are_apart: Callable[[], bool]) -> Iterator[Contradiction]:
    doubts = new.doubts - old.known
    if new.terms == old.terms or old.is_bygone or doubts - WEAK:
        return
    for found in _told(new, old, are_apart=are_apart):
        yield msgspec.structs.replace(found, is_explicit=found.is_explicit and not doubts)


def _told(new: Claim, old: Claim, *, are_apart: Callable[[], bool]) -> Iterator[Contradiction]:
    for replacement in new.replacements:
        yield from _replaced(new, old, replacement)
    yield from _declared_wrong(new, old)
    yield from _turned_preference(new, old)
    yield from _taken_up(new, old)
    if not new.replacements and not old.replacements:
        yield from _denied(new, old)
        yield from _ended(new, old)
    for found in _other_value(new, old) if not new.is_added else ():
        is_named = sum(term[0].isalpha() for term in (new.content & old.content) - _CONDITION - _IDLE) >= NAMED_MIN
        if new.is_marked or is_named or not are_apart():
            yield found


def _found(what: str, new: Claim, old: Claim, strength: float, *, is_explicit: bool) -> Contradiction:
    reason = f"{what}: {shorten(new.text, QUOTED_MAX)!r} against {shorten(old.text, QUOTED_MAX)!r}"
    return Contradiction(strength=strength, is_explicit=is_explicit, reason=reason)


def _replaced(new: Claim, old: Claim, change: Replacement) -> Iterator[Contradiction]:
    """Yield that the new claim replaces what the old one says is used, where both may be about the same."""
    if old.replacements:
        back = next((one for one in old.replacements if (change.old == one.new if change.old else change.new == one.old)), None)
        if back is not None:
            is_same = not narrowing(change.context, back.context | old.content)
            yield _found("turns back", new, old, REPLACED, is_explicit=is_same and (change.is_outright or new.is_marked))
        return
    change = _with_rival(change, old)
    if not change.old or (set(change.new) <= old.content and change.new) or NEGATORS & set(old.terms):
        return
    change = completed(change, new.terms, old.terms)
    ours, theirs = change.context, context(old.terms, (*change.old, *change.new))
    narrower = narrowing(ours, theirs)
    if is_case(narrower):
        return
    is_near = not narrower or len(ours & theirs) / max(1, min(len(ours), len(theirs))) >= SHARED_MIN
    if is_in_use(change.old, old.terms):
        if not narrower and (theirs <= ours or change.is_outright):
            yield _found("replaces", new, old, REPLACED, is_explicit=True)
        elif is_near:
            yield _found("may replace", new, old, REPLACED_ELSEWHERE, is_explicit=False)
    elif change.is_outright and not narrower and is_path(change.old) and place(change.old, old.terms) is not None:
        yield _found("may replace", new, old, REPLACED_ELSEWHERE, is_explicit=False)


def _with_rival(change: Replacement, old: Claim) -> Replacement:
    """Return a change that names only what came with what the old claim has in use of its kind as what went."""
    if change.old:
        return change
    rivals = (term for term in old.terms if any(are_rivals(term, name) for name in change.new) and is_in_use((term,), old.terms))
    return change._replace(old=tuple(islice(rivals, 1)))


def _taken_up(new: Claim, old: Claim) -> Iterator[Contradiction]:
    """Yield that the new claim has in use what the old one says was replaced."""
    if new.replacements or new.is_bygone or (NEGATORS & set(new.terms)):
        return
    for change in old.replacements:
        if not change.old or not change.is_outright or not is_in_use(change.old, new.terms) or set(change.new) & new.content:
            continue
        ours, theirs = context(new.terms, change.old), change.context
        if ours <= theirs or (theirs <= ours and not is_case(narrowing(ours, theirs))):
            yield _found("takes up again", new, old, TAKEN_UP, is_explicit=False)
            return


def _declared_wrong(new: Claim, old: Claim) -> Iterator[Contradiction]:
    if match := _WRONG.match(new.text):
        claim = frozenset(content(terms(equated(match["claim"]))))
        if claim and len(claim & old.content) >= CLAIMED_MIN * len(claim | old.content):
            yield _found("calls wrong", new, old, REPLACED, is_explicit=True)


def _turned_preference(new: Claim, old: Claim) -> Iterator[Contradiction]:
    ours, theirs = _PREFERENCE.search(new.text), _PREFERENCE.search(old.text)
    if ours is None or theirs is None or content(terms(ours["who"])) != content(terms(theirs["who"])):
        return
    if _share(ours["more"], theirs["less"]) and _share(ours["less"], theirs["more"]):
        yield _found("prefers the reverse", new, old, TURNED_PREFERENCE, is_explicit=new.is_marked)


def _share(one: str, other: str) -> bool:
    ours, theirs = set(content(terms(one))), set(content(terms(other)))
    return bool(ours & theirs) and (ours <= theirs or theirs <= ours)


def _denied(new: Claim, old: Claim) -> Iterator[Contradiction]:
    """Yield that one claim denies what the other affirms, where neither says more than a word beside."""
    ours, theirs = new.content - _IDLE, old.content - _IDLE
    opposed = [(one, other) for one in ours - theirs for other in theirs - ours if (one, other) in OPPOSITES]
    if len(opposed) > 1 or not all(_is_predicated(one, new.terms) and _is_predicated(other, old.terms) for one, other in opposed):
        return
    matched = {term for pair in opposed for term in pair}
    negations = sum(term in NEGATORS and term not in matched for claim in (new, old) for term in claim.terms)
    if (negations + len(opposed)) % 2 == 0:
        return
    ours, theirs = ours - NEGATORS - matched, theirs - NEGATORS - matched
    shared, left = ours & theirs, ours ^ theirs
    if not shared or (ours - theirs and theirs - ours) or left & _CONDITION or len(shared) < SHARED_MIN * len(ours | theirs):
        return
    if len(shared) + len(opposed) < CLAIM_TERMS_MIN or _is_of_part(new, ours - theirs):
        return
    is_same = len(left) <= 1 and not narrowing(ours, theirs)
    is_explicit = (is_same and new.is_marked) or (not left and _is_order_reversed(new, old))
    yield _found("denies", new, old, DENIED * len(shared | matched) / len(shared | matched | left), is_explicit=is_explicit)


def _is_of_part(claim: Claim, own: frozenset[str]) -> bool:
    """Say whether a term of a claim's own tells which part or case it is about: `sessions of admins`, `in staging`, `test runs`."""
    return is_case(own) or any(before == "of" and term in own for before, term in pairwise(claim.terms))


def _is_predicated(term: str, said: tuple[str, ...]) -> bool:
    """Say whether an opposite is what a claim says, and not a part of the name of what it speaks of."""
    start = said.index(term)
    return "is" not in said[start:] and (term in _VERBS or bool(_PREDICATES & set(said[:start])))


def _is_order_reversed(new: Claim, old: Claim) -> bool:
    """Say whether both tell to do the same, one of them by `always`, `never`, `do not` and the like."""
    ours, theirs = terms(new.text), terms(old.text)
    return bool({ours[0], theirs[0]} & _ORDER) and _ordered(ours) == _ordered(theirs)


def _ordered(order: list[str]) -> str:
    return next((term for term in order if term not in _ORDER), "")


def _ended(new: Claim, old: Claim) -> Iterator[Contradiction]:
    """Yield that the new claim says that what the old one begins with is so no longer: `we no longer pin X`, `we pin X to 3`."""
    ended = tuple(term for term in new.terms if term not in NEGATORS | _IDLE)
    began = tuple(term for term in old.terms if term not in _IDLE)
    if not new.is_marked or "not" not in new.terms or NEGATORS & set(began) or not len(began) > len(ended) >= CLAIM_TERMS_MIN:
        return
    if began[: len(ended)] == ended:
        yield _found("says has ended", new, old, DENIED, is_explicit=True)


def _other_value(new: Claim, old: Claim) -> Iterator[Contradiction]:
    start, ours, theirs, end = differing(new.terms, old.terms)
    if has_one_value(start, (ours, theirs), end, is_marked=new.is_marked):
        yield _found("gives another value", new, old, OTHER_VALUE, is_explicit=new.is_marked)
    elif new.is_marked and not end:
        are_names = bool(ours and theirs) and set(ours) <= new.names and set(theirs) <= old.names
        are_alike = are_names or (_are_many(ours, new) and _are_many(theirs, old))
        is_rival = len(start) > 1 and len(ours) == len(theirs) == 1 and are_of_a_kind(ours[0], theirs[0])
        are_alike = are_alike or is_rival
        if is_rival or is_one_channel(start, (ours, theirs)) or (are_alike and is_predicate(start, (ours, theirs))):
            yield _found("gives another value", new, old, OTHER_VALUE, is_explicit=are_alike)
        elif are_names and len(start) > 1 and start[-1] == "use":  # several can be used, so it only may be so
            yield _found("may give another value", new, old, OTHER_VALUE, is_explicit=False)


def _are_many(value: Sequence[str], claim: Claim) -> bool:
    """Say whether a value is a noun in the plural: `IDs are integers`."""
    return len(value) == 1 and any(word.endswith("s") and stem(word) == value[0] != word for word in all_words(claim.text))
