"""Whether a text speaks for what another one says, against it, or only of the same matter.

Support needs positive proof: one sentence holds all that the other one says, in its order and as it is meant.
A text is against another by a rule that has a name. All else is unclear, and counts nowhere. What is judged
of a text is its first line, its title; support is looked for in all of its sentences.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile, islice, pairwise, takewhile
from typing import Literal, NamedTuple

from omegad.runtime.kept import Kept, bytes_of
from omegad.text.evidence.endings import endings, gives_up, is_unsure
from omegad.text.evidence.sense import Sense, Word, read, root
from omegad.text.evidence.statements import first_line, pieces
from omegad.text.evidence.word_lists import WORDS
from omegad.text.languages import language_of

Side = Literal["for", "against", "unclear"]
Kind = Literal[
    "restated",
    "reverted",
    "denied",
    "given up",
    "opposite",
    "another value",
    "places changed",
    "named as not",
]

TITLES_BYTES, SENTENCES_BYTES = 3_000_000, 1_000_000
"""How much memory titles take that were read, and sentences: what is near to one text is near to others."""

TITLE_SENTENCES = 2
TITLE_MIN, TITLE_MAX = 12, 200
"""A shorter title, in characters, may name anything; a longer one is not looked for."""

READ_CHARACTERS, READ_SENTENCES = 4_096, 40
"""In how much of a text support is looked for."""

ADDED_MAX = 3
"""How many words a sentence may add to the one that it says the opposite of."""

SPARE = 3
"""One in so many of the words around what two sentences differ in may be missing."""

VARIED_MAX = 2
"""In how many words two texts may differ that are variants of each other."""

PREFIXED_MIN = 4
"""From how many letters on a word has an opposite that is made of it."""


class Stance(NamedTuple):
    """A side, and by which rule; None where it is unclear."""

    side: Side
    kind: Kind | None = None


UNCLEAR = Stance("unclear")


class _Title(NamedTuple):
    """The first sentences of a text: words that say something, those asserted and those denied (what is both,
    in neither), the verbs that two sentences of one fact may differ in, and what else is read of them.
    `first` is the word that it begins with, `behind` those behind an "over", which may rank them lower,
    `bounded` those that only say how much at most or at least, `subject` the last word before a verb or a
    denial.
    """

    words: tuple[Word, ...]
    terms: Counter[str]
    asserted: frozenset[str]
    denied: frozenset[str]
    light: frozenset[str]
    light_denied: frozenset[str]
    denials: int
    folded: frozenset[str]
    is_denial: bool
    first: str
    behind: frozenset[str]
    bounded: frozenset[str]
    subject: str


def stance(new: str, old: str) -> Stance:
    """Return how a newer text stands to an older one."""
    if kind := contradiction(new, old):
        return Stance("against", kind)
    return Stance("for", "restated") if is_restated(new, old) else UNCLEAR


def contradiction(new: str, old: str) -> Kind | None:
    """Return by which rule an older text does not hold where a newer one does, None for none."""
    ours, theirs = first_line(new), first_line(old)
    if match := _REVERT.match(ours):
        titles = {_bare(match["title"]), _bare(match["quoted"] or "")}
        their_titles = {_bare(theirs), _bare(_AREA.sub("", theirs, count=1))}
        if any(len(title) >= TITLE_MIN for title in titles & their_titles):
            return "reverted"
    one, other = _TITLES[ours], _TITLES[theirs]
    shared = len(one.terms.keys() & other.terms.keys())
    kind = _sense_turned(one, other) if shared * 3 >= max(1, min(len(one.terms), len(other.terms))) else None
    if kind in _OF_DENIALS and is_unsure(ours) != is_unsure(theirs):
        kind = None
    return kind or given_up(new, old)


def taken_back(text: str) -> str:
    """Return the title of what a text reverts, "" where it reverts nothing that could be looked for."""
    match = _REVERT.match(first_line(text))
    title = _bare(match["quoted"] or match["title"]) if match else ""
    return title if TITLE_MIN <= len(title) <= TITLE_MAX else ""


def given_up(new: str, old: str) -> Kind | None:
    """Return "given up" where a newer text says that what an older one speaks of holds no more, or something
    else is in its place; None otherwise. Names, and most else that it says, must be in both.
    """
    return "given up" if gives_up(endings(first_line(new)), first_line(old)) else None


def _sense_turned(one: _Title, other: _Title) -> Kind | None:
    """Return by which rule the one says another thing than the other of the same."""
    return (
        (_changed_places(one, other) if one.denials and other.denials else None)
        or (_denies(one, other) if one.denials else None)
        or (_denies(other, one) if other.denials else None)
        or _opposite(one, other)
        or _another_value(one, other)
    )


def are_variants(one: str, other: str) -> bool:
    """Say whether two texts say the same but for a word or two, or their order: perhaps another value of the
    same thing.
    """
    ours, theirs = (_TITLES[first_line(text)] for text in (one, other))
    added, gone = (ours.terms - theirs.terms).total(), (theirs.terms - ours.terms).total()
    is_other = added or [word.term for word in ours.words] != [word.term for word in theirs.words]
    return bool(is_other) and added == gone <= VARIED_MAX


def read_title(text: str) -> None:
    """Read the title of a text, so that it is at hand when it is compared."""
    _ = _TITLES[first_line(text)]


_PAIRS = frozenset(
    pair
    for both in WORDS["opposites"]
    for one, other in [both.split("/")]
    for pair in ((one, other), (other, one), (root(one), root(other)), (root(other), root(one)))
)
_MEASURES = {
    root(name): (kind, names.partition("/")[0])
    for kind in ("durations", "sizes")
    for names in WORDS[kind]
    for name in names.split("/")
}
"""What a unit measures, and which one it is."""
_UNITS = _MEASURES.keys() | set(map(root, WORDS["units"]))
_SOLE = frozenset(map(root, WORDS["sole"]))
_PARTLY = frozenset(map(root, WORDS["partly"]))
_MEANT_ROOTS = frozenset(map(root, WORDS["meant"]))
_VERBS = frozenset(map(root, WORDS["states"] | WORDS["light"]))
_ONLY = root("only")
_BOUNDS = frozenset(map(root, WORDS["bounds"]))
_JOINED_BY = {"to", "of", "the", "a", "or", "and", "at"}
"""Between a number and its bound."""
_JOINING, _ARTICLES = {"and", "or"}, {"a", "an", "the"}
_NONE_AT_ALL = {"no", "nobody", "none"}
_PAST = {"was", "were"}
_NO_MORE = {"used", "to"}
_OF_DENIALS = ("denied", "named as not")
_PREFIXES = ("un", "in", "im", "ir", "il", "non", "non-", "dis")

_REVERT = re.compile(
    r"\W{0,8}(?:[\w()/., -]{1,40}!?:\s)?revert(?:s|ed|ing)?:?\s"
    r"(?P<title>(?:\"(?P<quoted>[^\"\n]+)\"(?=[:.,;]|\s-))?[^\n]+)",
    re.IGNORECASE,
)
_AREA = re.compile(r"[\w()/., -]{1,40}!?:\s")
_PULL = re.compile(r"(?:\s\(#\d+\))+")


def _bare(title: str) -> str:
    return _PULL.sub("", title).strip(" \"'.`").casefold()


_SENSES = Kept(read, SENTENCES_BYTES, lambda text, sense: bytes_of(text) + 700 + 120 * len(sense.words))


def _read_title(line: str) -> _Title:
    """Read the first sentences of a text; of code, a question or what lists something, nothing."""
    read_of = list[Sense]()
    for sentence, is_code in pieces(line):
        if is_code or sentence.rstrip().endswith(("?", ":")) or len(read_of) == TITLE_SENTENCES:
            break
        read_of.append(_SENSES[_PULL.sub("", sentence)])
    said = [word for sense in read_of for word in sense.words if not word.is_small]
    words = tuple([word for word in said if not word.is_light])
    light = [word for word in said if word.is_light]
    return _Title(
        words,
        Counter([word.term for word in words]),
        frozenset([word.term for word in words if not word.is_denied]),
        frozenset([word.term for word in words if word.is_denied]),
        frozenset([word.term for word in light]),
        frozenset([word.term for word in light if word.is_denied]),
        sum(sense.denials for sense in read_of),
        frozenset().union(*(sense.folded for sense in read_of)),
        any(sense.is_denial for sense in read_of),
        next((sense.words[0].term for sense in read_of if sense.words), ""),
        frozenset([word.term for sense in read_of for word in dropwhile(_is_no_over, sense.words)]),
        frozenset([term for sense in read_of for term in _bounded([word.term for word in sense.words])]),
        "".join([word.term for word in takewhile(_is_of_subject, said)][-1:]),
    )


def _bounded(said: Sequence[str]) -> Iterator[str]:
    """Yield the numbers of a sentence that have a bound right before them or right behind: "up to 5", "5 or
    more", where "we give up after 5" has none.
    """
    for at, term in enumerate(said):
        if _shape(term) == "word":
            continue
        ahead = [word for word in said[max(0, at - 3) : at] if word not in _JOINED_BY]
        behind = pairwise(said[at : at + 4])
        if _BOUNDS.intersection(ahead[-1:]) or any(
            word in _BOUNDS and before in _JOINED_BY for before, word in behind
        ):
            yield term


def _is_of_subject(word: Word) -> bool:
    return word.is_subject and not word.is_light and not word.is_denied


def _is_no_over(word: Word) -> bool:
    return word.term != "over"


_TITLES = Kept(_read_title, TITLES_BYTES, lambda line, title: bytes_of(line) + 3_400 + 150 * len(title.words))


def _changed_places(new: _Title, old: _Title) -> Kind | None:
    """Two things are ranked, and each is in the other one's place."""
    ahead, behind = new.asserted - new.denied, new.denied - new.asserted
    was_ahead, was_behind = old.asserted - old.denied, old.denied - old.asserted
    up, down = ahead & was_behind, behind & was_ahead
    is_turned = any(
        (one, other) in _PAIRS for one in ahead - was_ahead - up for other in was_ahead - ahead - down
    )
    if not up or not down or is_turned or new.is_denial or old.is_denial:
        return None
    around = old.terms.keys() - up - down
    return "places changed" if len(around - new.terms.keys()) <= len(around) // SPARE else None


def _denies(one: _Title, other: _Title) -> Kind | None:
    """One denies what the other asserts, nothing but that, and speaks of all that the other one speaks of."""
    denied = one.denied - one.asserted
    is_all = not denied and bool(one.light_denied and other.light)  # "does not work" denies "works"
    if is_all and (one.denials % 2 == 0 or other.denials % 2 == 1 or _names_another(one)):
        return None
    hit = denied & other.asserted
    if (
        (not hit and not is_all)
        or _is_of_another(one, other)
        or (hit and hit <= other.behind)  # "fish over bash"
        or denied - other.terms.keys()
        or (one.first in _PARTLY and other.first in _PARTLY)
        or all(WORDS["when"] & folded for folded in (one.folded, other.folded, one.folded ^ other.folded))
        or _is_conditional(one) != _is_conditional(other)
    ):
        return None
    not_theirs = other.denied - other.asserted
    if other.denials and (not_theirs & denied or not not_theirs & one.asserted):
        return None
    said = _without_the_exempt(one, other)
    around = [word for word in said if word.term not in hit and not word.is_denied]
    if not around:
        return "denied" if len(hit) > 1 or "nobody" in one.folded else None
    missing = [word for word in around if word.term not in one.terms]
    spare = len(around) // SPARE
    if _NONE_AT_ALL & one.folded and _in_order(one, other):
        spare = max(spare, len(hit) // 2)  # what holds of none holds of no special one
        around = said
    if any(word.names for word in missing) or around[0] in missing or len(missing) > spare:
        return None
    is_other = any(not word.is_denied and word.term not in other.asserted for word in one.words)
    return "named as not" if is_other and _names_another(one) else "denied"


def _is_of_another(one: _Title, other: _Title) -> bool:
    """Say whether a sentence speaks of somebody else: what a customer no longer uses, we may use."""
    is_told = not {"we", "from"}.isdisjoint(one.folded)  # "Jonas took over the duty from Maria"
    return not is_told and bool(one.subject) and one.subject not in other.terms


def _without_the_exempt(one: _Title, other: _Title) -> list[Word]:
    """Return the words of a sentence that one which denies it has to speak of.

    Nobody is none of anybody, whoever the sentence names; no and never are of any number, however many it
    begins with and how long after.
    """
    words = list(other.words)
    if not (_NONE_AT_ALL | {"never"}) & one.folded or "longer" in one.folded:
        return words
    at = next((at for at, word in enumerate(words) if word.term in one.denied), 0)
    ahead, rest = words[:at], words[at:]
    if "nobody" in one.folded and (not one.light_denied or one.light_denied & other.light):
        ahead = []
    elif ahead and (ahead[0].term.isdigit() or ahead[0].term in _PARTLY):
        ahead = ahead[1:]
    return ahead + [word for word in rest if not word.term.isdigit() and word.term not in _UNITS]


def _in_order(one: _Title, other: _Title) -> bool:
    """Say whether a sentence asserts all that the other one denies, in its order."""
    rest = iter([word.term for word in other.words if not word.is_denied])
    return all(word.term in rest for word in one.words if word.is_denied)


def _names_another(title: _Title) -> bool:
    """Say whether a sentence may name something in the place of what it denies."""
    return any(word.names and not word.is_denied for word in title.words) or "than" in title.folded


def _opposite(new: _Title, old: _Title) -> Kind | None:
    """The same is said with a word for its opposite."""
    if min(len(new.terms.keys() - old.terms.keys()), len(old.terms.keys() - new.terms.keys())) > 1:
        return None
    added, gone = new.terms - old.terms, old.terms - new.terms
    # Its opposite is of the pairs, or made of it.
    pair = next(
        (
            (one, other)
            for one in gone
            for other in added
            if (one, other) in _PAIRS
            or (
                min(len(one), len(other)) >= PREFIXED_MIN
                and any(one == prefix + other or other == prefix + one for prefix in _PREFIXES)
            )
        ),
        None,
    )
    if (
        pair is None
        or _tells_which(pair[1], new)
        or _tells_which(pair[0], old)
        or new.denials % 2 != old.denials % 2
        or _is_conditional(new) != _is_conditional(old)
    ):
        return None
    missing, extra, shared = gone.keys() - {pair[0]}, added.keys() - {pair[1]}, new.terms & old.terms
    names = {word.term for word in (*new.words, *old.words) if word.names}
    if new.asserted & old.denied - old.asserted or new.denied - new.asserted & old.asserted:
        return None
    if (extra and missing) or (extra | missing) & names or len(extra) > ADDED_MAX:
        return None
    if len(missing) > max(1, len(shared) // SPARE) or old.words[0].term in missing:
        return None
    return "opposite" if ("than" in new.folded) == ("than" in old.folded) else None


def _tells_which(term: str, title: _Title) -> bool:
    """Say whether a word stands ahead of the last one of a subject: "small caches expire" are no others."""
    subject = [word.term for word in title.words if word.is_subject]
    return len(subject) < len(title.words) and term in subject[:-1]


def _another_value(new: _Title, old: _Title) -> Kind | None:
    """The same is said of one thing with another number, or with another name where there is but one.

    A number in the subject says which thing it is; a bound may hold beside another one.
    """
    lengths = {len(one.words) - one.terms[_ONLY] for one in (new, old)}
    if new.denials or old.denials or len(lengths) > 1 or old.first in WORDS["any_one"]:
        return None
    if _is_conditional(new) or _is_conditional(old):
        return None
    added, gone = (
        [term for term in (one - other).elements() if term != _ONLY]
        for one, other in ((new.terms, old.terms), (old.terms, new.terms))
    )
    shared = (new.terms & old.terms).keys() - _UNITS
    is_numbered = len({_shape(term) for term in shared}) > 1
    if len(added) == len(gone) == 1 and is_numbered and _is_another_unit(added[0], gone[0]):
        return "another value"
    if (
        len(added) != 1
        or len(gone) != 1
        or not shared
        or (added[0] in new.bounded and gone[0] in old.bounded)
    ):
        return None
    values = [word for word in (*new.words, *old.words) if word.term in {*added, *gone}]
    are_numbers = len({_shape(word.term) for word in values}) == 1 and _shape(added[0]) != "word"
    is_other = not any(word.is_subject for word in values) if are_numbers else shared & _SOLE
    return "another value" if is_other else None


def _is_another_unit(one: str, other: str) -> bool:
    """Say whether two units measure the same, and differ."""
    (kind, unit), (other_kind, other_unit) = _MEASURES.get(one, ("", "")), _MEASURES.get(other, ("", ""))
    return bool(kind) and kind == other_kind and unit != other_unit


def _shape(term: str) -> str:
    if not any(sign.isdigit() for sign in term) or term[:1] == "#":
        return "word"
    return "time" if ":" in term else "number"


def _is_conditional(title: _Title) -> bool:
    """Say whether it holds under a condition; "never without" is one, too."""
    is_required = "without" in title.folded and title.denials > 1
    return is_required or not WORDS["conditions"].isdisjoint(title.folded)


def is_restated(one: str, other: str) -> bool:
    """Say whether a sentence of one text holds the first one of the other, one way round or the other."""
    ours, theirs = _senses(one), _senses(other)
    return any(_repeats(said, first) for first in theirs[:1] for said in ours) or any(
        _repeats(said, first) for first in ours[:1] for said in theirs
    )


def _repeats(long: tuple[str, Sense], short: tuple[str, Sense]) -> bool:
    """Say whether one sentence holds another; in another language than English, and nothing more, since none
    of the words are known that doubt or limit something there.
    """
    (said, sense), (_, other) = long, short
    return _holds(sense, other) and (
        sense.folded <= other.folded or language_of(said, is_met=True).is_english
    )


def _senses(text: str) -> list[tuple[str, Sense]]:
    found = ((one, _SENSES[one]) for one, is_code in pieces(text[:READ_CHARACTERS]) if not is_code)
    return list(islice(((one, sense) for one, sense in found if len(sense.words) > 1), READ_SENTENCES))


def _says(words: Sequence[Word], said: Iterable[Word]) -> bool:
    """Say whether words are among others in their order, and none of them is one of more in a list: what A
    and B did need not be what B did.
    """
    rest = iter(words)
    is_first = True
    for one in said:
        between = list[Word]()
        for word in rest:
            if (word.term, word.is_denied) == (one.term, one.is_denied):
                break
            between.append(word)
        else:
            return False
        if _is_listed(between, is_first=is_first):
            return False
        is_first = False
    tail = [word.term for word in islice(rest, 2)]
    return not (tail[:1] == ["and"] and tail[1:] and _shape(tail[1]) == "number")


def _is_listed(between: Sequence[Word], *, is_first: bool) -> bool:
    """Say whether words that one sentence has and another leaves out are joined to the words around them."""
    ends = [at for at, word in enumerate(between) if word.term in _JOINING]
    if not ends or all(word.is_small for word in between):
        return False
    is_ahead = all(word.term in _ARTICLES for word in between[ends[-1] + 1 :])
    is_clause = any(word.term in _VERBS for word in between)
    return (is_ahead and not is_clause) or (ends[0] == 0 and not is_first)


def _holds(long: Sense, short: Sense) -> bool:
    """Say whether one sentence says all that another one says, in its order, and simply says it."""
    is_same_mood = not long.is_question and not short.is_question and long.denials == short.denials
    is_same_time = _PAST.isdisjoint(long.folded) == _PAST.isdisjoint(short.folded)
    turned = long.folded ^ short.folded
    if not is_same_mood or not is_same_time or turned & WORDS["hedges"] or turned >= _NO_MORE:
        return False
    said = [word for word in short.words if not word.is_small or word.term in _MEANT_ROOTS]
    is_said = len(said) > 1 and _says(long.words, said)
    if not is_said or WORDS["whole"].isdisjoint(long.folded):
        return is_said
    whole, part = ([word.term for word in one.words if not word.is_small] for one in (long, short))
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))
