"""Which memories are so alike that one can stand for them, and what that one says. Pure.

The work is bounded: a memory is compared with at most `LEADERS_MAX` clusters of at most `CLUSTER_MAX` members
each, so that it grows with the number of memories and not with its square.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import chain, islice
from math import ceil

import msgspec

from omegad.memory.content import clean
from omegad.text.evidence.statements import is_opposite, jaccard, pieces, terms, words
from omegad.text.quoting import shortened

CLUSTER_MAX = 16
"""How many memories a cluster has at most; more that are alike make several."""

LEADERS_MAX = 32
"""How many clusters are tried for a memory before it opens one of its own, those that share most of its
rarest words.
"""

POSTINGS_MAX = 4_000
"""How many entries of the index of rarest words are read to choose these, those of the rarest and the
latest first.
"""

SUMMARY_CHARACTERS_MAX = 8_000
CHARACTERS_MAX = 4_000
"""A longer memory is a document of its own, and is left as it is."""

WEEK_MAX, WEEK_LINE_MAX = 40, 600

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
    week: str | None = None
    """The week of the session that it is the summary of, as 2026-W47; None for anything else."""


def weeks(members: Sequence[Member], before: str) -> list[tuple[Member, ...]]:
    """Return the summaries of sessions by project and week, of the weeks before one; a week of more than
    `WEEK_MAX` sessions makes several.
    """
    scopes: defaultdict[Hashable, list[Member]] = defaultdict(list)
    for member in members:
        if member.week is not None and member.week < before:
            scopes[member.week, member.project].append(member)
    return [
        tuple(scope[start : start + WEEK_MAX])
        for scope in scopes.values()
        for start in range(0, len(scope), WEEK_MAX)
    ]


def week_summary(members: Sequence[Member]) -> str:
    """Return what a week's sessions were, each in a line as long as there is room for in
    `SUMMARY_CHARACTERS_MAX`.
    """
    first, count = members[0], len(members)
    head = f"Week {first.week} of {first.project or 'no project'}: {count} session{'s' * (count > 1)}."
    room = min(WEEK_LINE_MAX, (SUMMARY_CHARACTERS_MAX - len(head)) // count - len("\n- "))
    lines = (shortened(member.content.partition("\n")[2] or member.content, room) for member in members)
    return clean("\n- ".join([head, *lines])).text


def clusters(
    members: Sequence[Member], threshold: float, size_min: int, limit: int
) -> list[tuple[Member, ...]]:
    """Return the largest clusters of like memories, no memory in two of them; members keep the order they are
    given in.

    Members are of one type, project and entity; each two have a word Jaccard of at least *threshold*, and
    are not opposite in polarity. A cluster has *size_min* to `CLUSTER_MAX` members.
    """
    scopes: defaultdict[Hashable, list[Member]] = defaultdict(list)
    for member in members:
        if len(member.content) <= CHARACTERS_MAX and member.week is None:
            scopes[member.event_type, member.project, member.entity_id].append(member)
    found = [
        cluster
        for scope in scopes.values()
        for cluster in _alike(scope, threshold)
        if len(cluster) >= size_min
    ]
    return sorted(found, key=len, reverse=True)[:limit]


def summary(members: Sequence[Member]) -> str:
    """Return the text of the member most like the others by word Jaccard, of several the last, then the
    sentences of each of the others that were not said yet.

    At most `SUMMARY_CHARACTERS_MAX` long: what does not fit is counted in a last line. It is never what one
    of the members says to the letter, so that each of them can be restored beside it.
    """
    bags = [frozenset(words(member.content)) for member in members]
    likeness = [round(sum(jaccard(bag, other) for other in bags), 9) for bag in bags]
    said = members[max(range(len(members)), key=lambda index: (likeness[index], index))].content
    known, left_out = set(_said(said)), 0
    room = SUMMARY_CHARACTERS_MAX - len(f"\n{CLOSING.format(len(members))}")
    for member in members:
        new = {
            statement: sentence
            for statement, sentence in _said(member.content).items()
            if statement not in known
        }
        unsaid = "\n".join(new.values())
        if unsaid and len(said) + 1 + len(unsaid) > room:
            left_out += 1
        elif unsaid:
            said, known = f"{said}\n{unsaid}", known | new.keys()
    if left_out:
        said = f"{said}\n{CLOSING.format(left_out)}"
    if said in {member.content for member in members}:
        said = f"{said}\n{REPEATED}"
    return clean(said).text


def _alike(members: Sequence[Member], threshold: float) -> list[tuple[Member, ...]]:
    """Put each memory into the first cluster all of whose members are like it, else into one of its own that
    it leads.

    Two sets of words whose Jaccard reaches the threshold share one of the rarest words of each (Chaudhuri,
    Ganti, Kaushik 2006: prefix filter), so leaders are looked up by these alone.
    """
    bags = [frozenset(words(member.content)) for member in members]
    frequencies = Counter(chain.from_iterable(bags))
    found: list[list[int]] = []
    leading: defaultdict[str, list[int]] = defaultdict(list)
    for index, bag in enumerate(bags):
        common_min = ceil(threshold * len(bag) - ROUNDING)
        rarest = sorted(bag, key=lambda word: (frequencies[word], word))[: len(bag) - common_min + 1]
        postings = islice(chain.from_iterable(reversed(leading[word]) for word in rarest), POSTINGS_MAX)
        shared = Counter(one for one in postings if len(found[one]) < CLUSTER_MAX)
        tried = (one for one, _ in shared.most_common(LEADERS_MAX))
        home = next(
            (one for one in tried if all(_is_like(bag, bags[other], threshold) for other in found[one])), None
        )
        if home is None:
            home = len(found)
            found.append([])
            for word in rarest:
                leading[word].append(home)
        found[home].append(index)
    return [tuple(members[index] for index in cluster) for cluster in found]


def _is_like(one: frozenset[str], other: frozenset[str], threshold: float) -> bool:
    return jaccard(one, other) >= threshold - ROUNDING and not is_opposite(one, other)


def _said(text: str) -> dict[Hashable, str]:
    """Return what a text says by what can be compared; one with code, which does not fall into sentences,
    is all of a piece.
    """
    return (
        {text.strip(): text} if "```" in text else {terms(sentence): sentence for sentence, _ in pieces(text)}
    )
