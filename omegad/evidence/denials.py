"""Whether a note of several sentences denies an older one: each of its sentences against each of the older one's.

What one sentence says is gone, moved, raised, of another version or of another length may be what one of the older note says is so.
Other than in a comparison of whole statements, the two may word the rest as they like; so they must be about the same by the words they
share or by how near the notes are. Pure.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from omegad.evidence.changes import KEY_LETTERS, Gone, Sentence, is_real, keys, read, uses
from omegad.evidence.measures import Quantity
from omegad.evidence.names import is_identifier
from omegad.evidence.scope import is_case, narrowing
from omegad.evidence.slots import are_of_a_kind
from omegad.evidence.wording import NEGATORS, stems

NEAR = 0.4
"""The cosine from which two notes are about the same where a sentence names the thing that both speak of."""

QUITE_NEAR = 0.5
"""The cosine from which they are about the same where all that tells it is a word of the subject."""

APART_MAX = 0.6
"""The share of what the sentences around two are about, of the fewer of them, below which these speak of different matters."""

SUBJECT_MIN = 0.5
"""The share of a subject's telling words that the older sentence has too."""

RIVALS_SHARED_MIN = 2
"""How many telling words two sentences share that name one of a kind each and say the rest alike."""

NAMED_MIN = 2
"""How many telling words two sentences share that name by themselves what they speak of."""

_PRONOUNS = stems("he she they who which")

_NOT_ALONE = stems("support add drop fix test also and or")
"""Words of statements that hold of several of a kind."""

_LEAST = stems("minimum oldest least only higher above newer drop dropped remove removed")
"""Words that turn a list of supported versions, of which several hold, into a bound."""

_BOUND = stems("minimum oldest lowest earliest least")
"""Words of a bound, whichever of them each of two notes has."""

_NOT = stems("not no without never")
DENIED_WORDS = 4
"""How many words after a denial it is about."""

DENIED_MIN = 2
"""How many telling words must be denied in the one and said in the other, beside one that both share."""

AFFIRMED_MIN = 0.6
"""The share of what the older sentence is about that the new one must be about as well."""


class Denial(NamedTuple):
    """What a sentence of the new note denies in one of the older, and whether it says outright that the thing is gone."""

    what: str
    new: str
    old: str
    is_outright: bool


class _Setting(NamedTuple):
    """What two notes have in common beside a thing that is gone, how near they are, and whether the new one speaks of nothing else."""

    shared: frozenset[str]
    near: float
    is_alone: bool


def denials(new: str, old: str, similarity: float | None) -> Iterator[Denial]:
    """Yield what a new note denies of an older one. `similarity` is their cosine; None where unknown, then shared words alone tell."""
    ours, theirs = read(new), read(old)
    known = {sentence.words for sentence in theirs}
    about_ours = frozenset[str]().union(*(sentence.about for sentence in ours))
    about_theirs = frozenset[str]().union(*(sentence.about for sentence in theirs))
    shared = about_ours & about_theirs
    near = similarity if similarity is not None else len(shared) / max(1, min(len(about_ours), len(about_theirs)))
    for one, other in product((sentence for sentence in ours if sentence.words not in known), theirs):
        if not is_real(one, other) or is_case(one.where - frozenset(other.plain)):
            continue
        for gone in one.gone:
            is_alone = about_ours <= keys(gone.name)
            yield from _gone(gone, (one, other), _Setting(shared - keys(gone.name), near, is_alone=is_alone))
        if not other.is_past and near >= NEAR:
            yield from _moved(one, other, near)
            yield from _quantity(one, other, near, are_apart=_are_apart((one, ours), (other, theirs)))
            yield from _version(one, other, near)
            yield from _affirmed(one, other, near)
            yield from _rival(one, other)


def _gone(gone: Gone, pair: tuple[Sentence, Sentence], setting: _Setting) -> Iterator[Denial]:
    """Yield that what the new sentence says is gone is what the older says is in use, where both may be about the same.

    An identifier of code need not be in use: it is the same thing wherever it is spoken of. The denial is outright where the thing is gone
    altogether or from what the older sentence is about, and no other matter of the new note may be meant.
    """
    one, other = pair
    near = setting.near
    if (not gone.is_outright and near < QUITE_NEAR) or any(theirs.name == gone.name for theirs in other.gone):
        return
    if not gone.is_outright and is_identifier(gone.name):
        if gone.name[0] in other.words:
            yield Denial("says is gone", one.text, other.text, is_outright=False)
    elif uses(other, gone.name):
        is_same, is_unscoped = bool(gone.about & other.about), not gone.about
        if is_same or (setting.shared and near >= NEAR / 2) or (is_unscoped and near >= NEAR):
            is_meant = bool(gone.about & other.subject) or (is_unscoped and (setting.is_alone or bool(setting.shared)))
            is_meant = is_meant and not narrowing(gone.about, other.about)
            yield Denial("says is gone", one.text, other.text, is_outright=gone.is_outright and near >= NEAR and is_meant)


def _moved(one: Sentence, other: Sentence, near: float) -> Iterator[Denial]:
    """Yield that a subject went over to a thing where the older sentence has the subject with another: `search moved to Y`, `search uses X`."""
    if not (one.becomes and one.subject and near >= QUITE_NEAR) or one.becomes in other.words:
        return
    if len(one.subject & other.subject) > SUBJECT_MIN * max(len(one.subject), len(other.subject)) and _tells_use(other):
        yield Denial("moves on", one.text, other.text, is_outright=False)


def _tells_use(sentence: Sentence) -> bool:
    return any(word in {"uses", "use", "runs", "run", "lives", "live", "is", "are"} for word in sentence.words) or ": " in sentence.text


def _are_apart(new: tuple[Sentence, Sequence[Sentence]], old: tuple[Sentence, Sequence[Sentence]]) -> bool:
    """Say whether two sentences stand among others of different matters; what they do not name themselves need not be the same then."""
    ours, theirs = (frozenset[str]().union(*(one.about for one in ones if one is not sentence)) for sentence, ones in (new, old))
    return bool(ours and theirs) and len(ours & theirs) < APART_MAX * min(len(ours), len(theirs))


def _quantity(one: Sentence, other: Sentence, near: float, *, are_apart: bool) -> Iterator[Denial]:
    """Yield that one quantity of the same differs: the unit is the same, the number another."""
    is_named = len((one.about & other.about) - _PRONOUNS) >= NAMED_MIN
    if not (one.quantities and other.quantities) or other.is_measured or (are_apart and not one.is_changed and not is_named):
        return
    numbers = {(quantity.number, quantity.unit) for quantity in other.quantities}
    for quantity in one.quantities:
        rivals = [theirs for theirs in other.quantities if theirs.unit == quantity.unit and theirs.number != quantity.number]
        if rivals and (quantity.number, quantity.unit) not in numbers and _is_same_measure(quantity, rivals, (one, other), near):
            yield Denial("gives another quantity", one.text, other.text, is_outright=False)


def _is_same_measure(quantity: Quantity, rivals: list[Quantity], pair: tuple[Sentence, Sentence], near: float) -> bool:
    one, other = pair
    common = one.about & other.about
    if not common:
        return False
    if quantity.instead:
        return any(theirs.number == quantity.instead for theirs in rivals)
    if one.is_changed and one.subject and not one.is_measured:
        return len(one.subject & other.about) >= SUBJECT_MIN * len(one.subject)
    if one.is_measured or len(rivals) != 1 or near < QUITE_NEAR or len(one.quantities) > 1:
        return False
    return _says_no_more(one, other)


def _says_no_more(one: Sentence, other: Sentence) -> bool:
    """Say whether one of two sentences is about nothing beside what the other is about."""
    ours, theirs = one.about | one.parts, other.about | other.parts
    return ours <= theirs or theirs <= ours


def _version(one: Sentence, other: Sentence, near: float) -> Iterator[Denial]:
    """Yield that the versions of one product differ, where the new sentence tells of a change or neither says more than the other."""
    if near < QUITE_NEAR:
        return
    names = {name for name, _ in one.versions} & {name for name, _ in other.versions}
    if not any({pair for pair in one.versions if pair[0] == name}.isdisjoint(other.versions) for name in names):
        return
    is_list = "support" in one.plain and not _LEAST & set(one.plain)
    is_bound = bool(_BOUND & set(one.plain)) and bool(_BOUND & set(other.plain))
    if one.is_changed or is_bound or (_says_no_more(one, other) and not is_list):
        yield Denial("gives another version", one.text, other.text, is_outright=False)


def _affirmed(one: Sentence, other: Sentence, near: float) -> Iterator[Denial]:
    """Yield that the new sentence says what the older one says is not so."""
    shared = one.about & other.about
    if near < QUITE_NEAR or _NOT & set(one.plain) or len(shared) < AFFIRMED_MIN * len(other.about):
        return
    after = (other.plain[place + 1 : place + 1 + DENIED_WORDS] for place, word in enumerate(other.plain) if word in _NOT)
    denied = frozenset[str]().union(*(keys(words) for words in after)) & other.about
    if len(denied & shared) >= DENIED_MIN and shared - denied:
        yield Denial("says after all", one.text, other.text, is_outright=False)


def _rival(one: Sentence, other: Sentence) -> Iterator[Denial]:
    """Yield that two sentences that say the same otherwise name each another one of a kind of which a project takes one."""
    ours, theirs = set(one.plain), set(other.plain)
    if (NEGATORS | _NOT_ALONE) & (ours | theirs):
        return
    for mine, yours in product(one.rivals - other.rivals, other.rivals - one.rivals):
        rest = other.about - {yours[:KEY_LETTERS]}
        if are_of_a_kind(mine, yours) and len(rest) >= RIVALS_SHARED_MIN and rest <= one.about:
            yield Denial("chooses another", one.text, other.text, is_outright=False)
            return
