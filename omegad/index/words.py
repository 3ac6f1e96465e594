"""Find memories by their words: candidates by the terms that tell most, then the BM25 score of all terms for
each of them.

A term that thousands of memories have costs as many scores and changes the order little; so among all
memories, where rarer terms find enough, it does not choose candidates. It counts in their scores all the
same.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.index import terms
from omegad.index.filters import Filtered
from omegad.index.fulltext import FullText
from omegad.index.postings import Floats, Integers, are_among
from omegad.index.scope import Scope
from omegad.runtime.errors import Invalid
from omegad.storage.driver import Connection
from omegad.text.periods import Period

MATCHES_MAX = 1_000  # for the terms that choose, all together, unless fewer are found than are wanted
RARE = 250  # memories at most hold a rare term
SMOOTHING = (
    5  # memories that are taken to hold a word, and as many not to, so that few say little of how rare it is
)
ENOUGH = 0.5  # of those wanted; where the rarest terms find fewer, all terms are asked


class Words(msgspec.Struct, frozen=True):
    """What full text is asked: expressions of which any is to be found (one, for a phrase)."""

    terms: tuple[str, ...]


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """What the memories know of the terms of a question.

    `counts` says how many memories of all hold each term, and 1,001 of what more than a thousand hold;
    `latest` which those are, and `holders` which memories of those the question is about hold a rare one,
    both in ascending order; `rarity` is the inverse document frequency of each among these, negative where
    none holds it. `fulltext` says who holds what more than a thousand do; None where a connection has to be
    asked. `doubted` says of a term's text how doubtful it is, 0 to 1, that what the memories hold by that is
    what is meant.
    """

    counts: dict[str, int]
    latest: dict[str, Integers]
    holders: dict[str, Integers]
    rarity: dict[str, float]
    fulltext: FullText | None = None
    doubted: Mapping[str, float] = {}

    def coverage(self, rows: Sequence[int], connection: Connection) -> Floats:
        """Return the share of the terms, by their rarity, that each memory row holds: 0 to 1."""
        order = sorted(range(len(rows)), key=rows.__getitem__)
        asked, held = np.array(rows, np.int64)[order], np.zeros(len(rows))
        for term, rarity in self.rarity.items():
            if rarity > 0:
                held[order] += rarity * self._are_held(term, asked, connection)
        return held / (self._whole or 1.0)

    def rare_coverage(self, rows: Sequence[int]) -> Floats:
        """Return for each row the share of the terms that some memory holds, by their rarity, that it holds
        of those that are rare: 0 to 1.

        Unlike BM25 it does not sink with the length of a memory, which holds a rare word as well for saying
        much besides.
        """
        total = sum(rarity for rarity in self.rarity.values() if rarity > 0) or 1.0
        asked, held = np.array(rows, np.int64), np.zeros(len(rows))
        for term, holding in self.holders.items():
            held += are_among(asked, holding) * (max(0.0, self.rarity.get(term, 0.0)) / total)
        return held

    def unknown(self, texts: Collection[str] | None = None) -> float:
        """Return the share of the terms, by their rarity, that no memory holds, and what of others is
        doubted: 0 to 1; of those alone whose text is among *texts*.
        """
        lacking = (
            -rarity if rarity < 0 else rarity * self.doubted.get(terms.text_of(term), 0.0)
            for term, rarity in self.rarity.items()
            if (rarity < 0 or self.doubted) and (texts is None or terms.text_of(term) in texts)
        )
        return sum(lacking) / (self._whole or 1.0)

    def unheard(self) -> list[str]:
        """Return the terms that no memory holds."""
        return [terms.text_of(term) for term, rarity in self.rarity.items() if rarity < 0]

    @property
    def _whole(self) -> float:
        return sum(map(abs, self.rarity.values()))

    def _are_held(self, term: str, rows: Integers, connection: Connection) -> npt.NDArray[np.bool_]:
        if (holding := self.holders.get(term)) is not None:
            return are_among(rows, holding)
        latest = self.latest[term]
        held = are_among(rows, latest)
        if len(latest) > MATCHES_MAX and rows[0] < latest[0]:
            older = rows < latest[0]
            held[older] = (self.fulltext or FullText(connection)).holds(term, rows[older])
        return held


class Best(msgspec.Struct, frozen=True):
    """Memory rows, best first, and the BM25 scores (greater is better) of those whose scores are known by
    then, or of all that have any.
    """

    rows: list[int]
    scores: dict[int, float]
    is_complete: bool = False

    def joined(self, other: "Best") -> "Best":
        """Return these, and then those of another search that are not among them."""
        return Best(
            list(dict.fromkeys((*self.rows, *other.rows))), other.scores | self.scores, self.is_complete
        )


def of_phrase(text: str) -> Words | None:
    """Return what finds *text* as it stands; None where it has no word. Raises `Invalid` where it has too
    many.
    """
    if terms.words_of(text) > terms.WORDS_MAX:
        raise Invalid(
            f"a phrase has at most {terms.WORDS_MAX} words",
            hint="look for a part of it, or in mode keyword for any of its words",
        )
    phrase = terms.phrase(text)
    return Words((phrase,)) if phrase else None


def of_question(text: str, without: Collection[str] = (), *, is_met: bool = False) -> Words | None:
    """Return what finds any telling term of *text* but those *without*, in lower case; None where it has
    no other word. *is_met* says that other languages than English have been met.
    """
    told = terms.telling(text, is_met=is_met)
    telling = tuple(term for term in told if terms.text_of(term) not in without)
    return Words(telling) if telling else None


def completed(fulltext: FullText, words: Words, names: Collection[str]) -> Words:
    """Return the words with each term that nobody holds, and that is among some *names*, as the beginning of
    what somebody holds.

    What is asked for by the beginning of its name (`evt_1PQ`) is so found; a term that begins nothing stays
    as it is.
    """
    chosen = dict[str, None]()
    for term in words.terms:
        is_name = terms.text_of(term) in names and not fulltext.count(term, 1)
        begins = terms.beginning(term) if is_name else None
        chosen[begins if begins and fulltext.count(begins, 1) else term] = None
    return Words(tuple(chosen))


def counts(fulltext: FullText, words: Words) -> dict[str, int]:
    """Return how many memories hold each term, and 1,001 of what more than a thousand hold."""
    return {term: fulltext.count(term, MATCHES_MAX + 1) for term in words.terms}


def vocabulary(words: Words, scope: Scope, named: Period | None) -> Vocabulary:
    """Return what the memories in *scope* know of the words of a question; those of the time that is *named*
    tell nothing of it.

    Of a term that more than `MATCHES_MAX` hold the latest so many are looked at, and it is never unknown. The
    rarity is ln(1 + (N - n + s) / (n + s)): that of Robertson & Zaragoza, "The Probabilistic Relevance
    Framework" (2009), formula 3.3, with the 1 that keeps it positive for a term that most of the memories
    hold, as Lucene has it, and more smoothing.
    """
    latest = {term: scope.fulltext.latest(term, MATCHES_MAX + 1)[::-1] for term in words.terms}
    known = {term: len(rows) for term, rows in latest.items()}
    are_inside = scope.holds_of_found(np.concatenate(list(latest.values())))
    memories, holders, rarity, end = scope.count, dict[str, Integers](), dict[str, float](), 0
    for term, count in known.items():
        is_inside = are_inside[end : (end := end + count)]
        if count <= RARE:
            holders[term] = latest[term][is_inside]
        if named is None or not named.is_named_by(terms.text_of(term)):
            rarity[term] = rarity_of(memories, max(int(np.count_nonzero(is_inside)), count > MATCHES_MAX))
    return Vocabulary(counts=known, latest=latest, holders=holders, rarity=rarity, fulltext=scope.fulltext)


def rarity_of(memories: int, having: int) -> float:
    """Return how rare a term is that so many of some memories hold; below 0 where none does."""
    idf = math.log(1 + (max(memories, having) - having + SMOOTHING) / (having + SMOOTHING))
    return idf if having else -idf


def rarest(counts: Mapping[str, int], limit: int) -> set[str]:
    """Return the rarest terms that together find enough, and as many more as cost little."""
    found, total = set[str](), 0
    for term in sorted(counts, key=lambda term: counts[term]):
        if total >= limit and total + counts[term] > MATCHES_MAX:
            break
        found.add(term)
        total += counts[term]
    return found


def best(fulltext: FullText, words: Words, counts: Mapping[str, int], limit: int, among: Filtered) -> Best:
    """Return the best of the memories that pass a filter by the rarest terms, and where these find too
    few, by all.
    """
    is_rare = sum(counts.values()) <= MATCHES_MAX
    chosen = rarest(counts, limit)
    if len(chosen) < len(counts) and not is_rare:
        found = fulltext.best([term for term in counts if term in chosen], among, limit, limit, are_few=True)
        if len(found) >= limit * ENOUGH:
            return Best(list(found), {})
    scores = fulltext.best(words.terms, among, MATCHES_MAX if is_rare else limit, limit)
    return Best(list(scores)[:limit], scores, is_complete=is_rare)


def best_of_rows(fulltext: FullText, words: Words, rows: Sequence[int], limit: int) -> Best:
    """Return the best of some memory rows."""
    scores = fulltext.scores(words.terms, rows)
    ordered = sorted(scores, key=lambda row: (-scores[row], row))[:limit]
    return Best(ordered, {row: scores[row] for row in ordered})
