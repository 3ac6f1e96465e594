"""Which memories are so alike that one can stand for them, and what that one says. Pure.

The work is bounded: the words of a memory are compared with those of at most `LEADERS_MAX` clusters of at most `CLUSTER_MAX` members
each, and the statements of at most `VISITED_PER_WANTED` clusters for each one wanted, so that it grows with the number of memories and not
with its square.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain, combinations, islice
from math import ceil

import msgspec

from omegad.commands.content import clean
from omegad.evidence.contradiction import contradiction
from omegad.evidence.likeness import addition, words
from omegad.evidence.wording import content, details, polarity, sentences, terms

CLUSTER_MAX = 16
"""How many memories a cluster has at most; more that are alike make several."""

CLUSTER_SENTENCES_MAX = 64
"""How many sentences the memories of a cluster have together at most, so that what each adds can be told apart."""

LEADERS_MAX = 32
"""How many clusters are tried for a memory before it opens one of its own, those that share most of its rarest words."""

POSTINGS_MAX = 4_000
"""How many entries of the index of rarest words are read to choose these, those of the rarest and the latest first."""

VISITED_PER_WANTED = 2
"""How many clusters are searched for contradictions for each one that is wanted."""

SUMMARY_CHARACTERS_MAX = 8_000
CHARACTERS_MAX = 4_000
"""A longer memory is a document of its own, and is left as it is."""

CLOSING = "\N{HORIZONTAL ELLIPSIS} and {} more, see their ids"
REPEATED = "(said repeatedly)"
ROUNDING = 1e-9  # so that 0.55 * 100 is 55


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that may be compacted. `referenced_at` is in microseconds since 1970."""

    memory_id: str
    content: str
    event_type: str
    project: str | None = None
    entity_id: str | None = None
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    auto_tags: tuple[str, ...] = ()
    priority: int = 3
    confidence: float | None = None
    referenced_at: int | None = None


def clusters(members: Sequence[Member], threshold: float, size_min: int, limit: int) -> list[tuple[Member, ...]]:
    """Return the largest clusters of like memories, no memory in two of them; members keep the order they are given in.

    Any two members are of the same type, project and entity, have a word Jaccard of at least *threshold*, differ in no number, version,
    path, identifier or polarity, and do not contradict each other; members are given oldest first. A cluster has *size_min* to
    `CLUSTER_MAX` members.
    """
    scopes: defaultdict[Hashable, list[Member]] = defaultdict(list)
    for member in members:
        if len(member.content) <= CHARACTERS_MAX:
            scopes[_scope(member)].append(member)
    found = [cluster for scope in scopes.values() for cluster in _alike(scope, threshold) if len(cluster) >= size_min]
    found.sort(key=len, reverse=True)
    agreeing = (cluster for cluster in map(_agreeing, found[: VISITED_PER_WANTED * limit]) if len(cluster) >= size_min)
    return list(islice(agreeing, limit))


def summary(members: Sequence[Member]) -> str:
    """Return the text of the most central member, then what each of the others says that was not said yet.

    At most `SUMMARY_CHARACTERS_MAX` long: what does not fit is counted in a last line. It is never what one of the members says to the
    letter, so that each of them can be restored beside it.
    """
    central = _central(members)
    said, left_out = central.content, 0
    room = SUMMARY_CHARACTERS_MAX - len(f"\n{CLOSING.format(len(members))}")
    for member in members:
        unsaid = _unsaid(member.content, said)
        if unsaid and len(said) + 1 + len(unsaid) > room:
            left_out += 1
        elif unsaid:
            said = f"{said}\n{unsaid}"
    if left_out:
        said = f"{said}\n{CLOSING.format(left_out)}"
    if said in {member.content for member in members}:
        said = f"{said}\n{REPEATED}"
    return clean(said).text


def _scope(member: Member) -> Hashable:
    """Return what is equal for memories that may be compacted together: two texts differ in detail just where these differ."""
    details_and_polarity = (tuple(details(member.content)), tuple(polarity(terms(member.content))))
    return (member.event_type, member.project, member.entity_id, details_and_polarity)


def _alike(members: Sequence[Member], threshold: float) -> list[tuple[Member, ...]]:
    """Put each memory into the first cluster all of whose members are like it, else into one of its own that it leads.

    Two sets of words whose Jaccard reaches the threshold share one of the rarest words of each (Chaudhuri, Ganti, Kaushik 2006: prefix
    filter), so leaders are looked up by these alone.
    """
    bags = [words(member.content) for member in members]
    lengths = [len(sentences(member.content)) for member in members]
    frequencies = Counter(chain.from_iterable(bags))
    found: list[list[int]] = []
    leading: defaultdict[str, list[int]] = defaultdict(list)
    for index, bag in enumerate(bags):
        rarest = _rarest(bag, frequencies, threshold)
        postings = islice(chain.from_iterable(reversed(leading[word]) for word in rarest), POSTINGS_MAX)
        shared = Counter(one for one in postings if len(found[one]) < CLUSTER_MAX)
        roomy = (one for one, _ in shared.most_common(LEADERS_MAX) if _has_room([lengths[other] for other in found[one]], lengths[index]))
        home = next((one for one in roomy if all(_is_like(bag, bags[other], threshold) for other in found[one])), None)
        if home is None:
            home = len(found)
            found.append([])
            for word in rarest:
                leading[word].append(home)
        found[home].append(index)
    return [tuple(members[index] for index in cluster) for cluster in found]


def _rarest(bag: frozenset[str], frequencies: Counter[str], threshold: float) -> list[str]:
    common_min = ceil(threshold * len(bag) - ROUNDING)
    return sorted(bag, key=lambda word: (frequencies[word], word))[: len(bag) - common_min + 1]


def _is_like(one: frozenset[str], other: frozenset[str], threshold: float) -> bool:
    common = len(one & other)
    return common >= threshold * (len(one) + len(other) - common) - ROUNDING


def _has_room(lengths: Sequence[int], length: int) -> bool:
    """Say whether a cluster of memories of so many sentences takes another one."""
    return len(lengths) < CLUSTER_MAX and sum(lengths) + length <= CLUSTER_SENTENCES_MAX


def _agreeing(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """Return the members that contradict none of the others; what two of them both say is not looked at."""
    said = [{_statement(sentence): sentence for sentence in sentences(member.content)} for member in members]
    disputed: set[int] = set()
    for older, newer in combinations(range(len(members)), 2):
        new, old = _beyond(said[newer], said[older]), _beyond(said[older], said[newer])
        if new and old and contradiction(new, old, None):
            disputed |= {older, newer}
    return tuple(member for index, member in enumerate(members) if index not in disputed)


def _beyond(one: Mapping[tuple[str, ...], str], other: Mapping[tuple[str, ...], str]) -> str:
    return "\n".join(sentence for statement, sentence in one.items() if statement not in other)


def _central(members: Sequence[Member]) -> Member:
    """Return the member most like the others by word Jaccard; of several the last."""
    bags = [words(member.content) for member in members]
    likeness = [sum(len(bag & other) / max(1, len(bag | other)) for other in bags) for bag in bags]
    return members[max(range(len(members)), key=lambda index: (round(likeness[index], 9), index))]


def _unsaid(text: str, said: str) -> str:
    """Return the sentences of a text that another does not have, and of these what it does not contain; empty where it has them all."""
    if "```" in text:  # code does not fall into sentences
        return "" if text in said else text
    known = {_statement(sentence) for sentence in sentences(said)}
    new = [sentence for sentence in sentences(text) if _statement(sentence) not in known]
    return addition("\n".join(new), said) if new else ""


def _statement(sentence: str) -> tuple[str, ...]:
    return tuple(content(terms(sentence)))
