"""What each candidate shows of being the answer: a row of numbers, most of them between 0 and 1, which the
model weighs.

What is scaled is scaled by the best of the candidates, because BM25 has no scale of its own, and a cosine's
depends on the model. So a feature says which candidate is the best, and not whether it is any good: that is
for `confidence`.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.embedding.passages import PASSAGE_CHARACTERS, passages
from omegad.index.columns import AUTHOR, TRAITS, TextTraits
from omegad.index.terms import bare_version, stemmed, words_in_a_row
from omegad.index.vector_indexes import VectorIndexes
from omegad.index.words import SMOOTHING
from omegad.memory.strength import USES, strengths
from omegad.memory.types import MemoryTypes
from omegad.runtime.kept import Kept, bytes_of
from omegad.search.candidates import TOLD_WITHIN_US, Candidates, SearchRequest
from omegad.search.question import Question
from omegad.storage.driver import Connection
from omegad.storage.readers import check
from omegad.text.periods import Period

Array = npt.NDArray[np.float64]

MATCHING = ("meaning", "words", "rare_words", "near_words", "session_meaning", "session_words")
"""The cosine of the nearest passage, BM25, and the share of the rare words; BM25 of the memories right
before and after it in its session; how much more than its own the best cosine and BM25 in its session are.
"""

TOLD = ("author", "brief", "long", "asks", "answers")
"""Whether the question names who said it; how far a turn of a conversation falls short of `FULL` characters;
by how many e-folds it exceeds a passage. Of turns, as long as the question is English: whether it ends in a
question; BM25 of the question that it follows at once.
"""

SHOWN = ("identifiers", "coverage", "in_a_row", "period", "first_person", "dated", "wishes")
"""How many of the question's file names, paths, versions, codes and compound names it holds; which of its
words, by their rarity among all that the question is about, one passage of it holds; which neighbouring words
stand beside each other there; whether it is of the time that is named, or was told right after that. Of
turns, as long as the question is English: whether somebody says "I" or "we" in it; whether it says a time;
whether it says what somebody likes or avoids, where advice is asked for.
"""

PRIOR = ("type", "priority", "rating", "strength", "probation")
"""The type's weight as a power of 2; the priority beside 3; the ratings, of which a bad one counts twice;
how present it is by use and age (`memory/strength.py`), 0 to 1; whether it was captured unasked.
"""

EARLY = (*MATCHING, *TOLD)
"""What is known of all candidates, before any is read."""

FEATURES = (*EARLY, *SHOWN, *PRIOR)
IDENTIFIERS, PERIOD = SHOWN.index("identifiers"), SHOWN.index("period")
MEANING, COVERAGE = FEATURES.index("meaning"), FEATURES.index("coverage")
HELD = 3  # of what is shown, that which is held of the question

READ_CHARACTERS = 4_000  # of a content, when words are looked for in it
WORDS_BYTES, SAYS_BYTES, IN_A_ROW_BYTES = 8_500_000, 1_000_000, 500_000  # of texts, for the next question
ENTRY_BYTES = 500  # of a text and what is made of it, beside what they say
FULL = 200  # characters, beyond which a memory does not say more by being longer
LENGTHS = (
    90.0,
    1_100.0,
)  # characters: what candidates of short texts, and of long ones, have in the (geometric) mean
LIGHTLY = 1  # memories that are taken to hold a word, and as many not to
PART_OF_NAME = 0.6  # what an identifier counts that is held as a part of another, or split in another way
NEAR = 0.4  # a cosine of what has to do with the question
TOLD_LATER = 0.75  # what it counts that it was said within a day after the time that is named
RATING_MAX = 4  # either way, beyond which another rating changes nothing

_TRAITS = f"SELECT m.id, {TRAITS} FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?))"
_ROWS = f"""
SELECT m.id, m.priority, m.rating, m.on_probation, coalesce(m.referenced_us, m.said_us),
  {AUTHOR}, m.session_id,
  substr(m.content, 1, {READ_CHARACTERS}), {USES}
FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?)) ORDER BY m.id
"""


class _Rows(NamedTuple):
    """Rows of `_ROWS`, by column; times in microseconds since 1970."""

    id: Sequence[int]
    priority: Sequence[int]
    rating: Sequence[int]
    on_probation: Sequence[int]
    said_us: Sequence[int]
    author: Sequence[str | None]
    session_id: Sequence[str | None]
    text: Sequence[str]
    event_type: Sequence[str]
    uses: Sequence[int]
    created_us: Sequence[int]
    used_us: Sequence[int]


_FIRST_PERSON = re.compile(r"\b(?:I|we|We)\b")
_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|(?:last|next|this) (?:night|morning|afternoon|evening|week"
    r"|weekend|month|year|spring|summer|fall|autumn|winter)|(?:(?:last|next|this) )?(?:mon|tues|wednes|thurs"
    r"|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|november|december"
    r"|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_WISH = re.compile(
    r"\bI(?:['\u2019]d)?(?: [a-z]+(?:['\u2019]t)?){0,2} (?:prefer|like(?! to)|dislike|love|hate|enjoy|avoid"
    r"|refuse|rather|stand|tolerate)\b|\b(?:always|never|aversion|preference|allergic|allergy)\b",
    re.IGNORECASE,
)
_OF_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


class MemoryFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """What a memory shows: the features `SHOWN` and `PRIOR`, when it was said, in microseconds since 1970,
    and in which session; and what it says, as far as words are looked for in it.

    `is_spoken` says that it is a turn of a conversation rather than a statement of how things are.
    """

    features: Array
    said_us: int
    session_id: str | None
    is_spoken: bool
    text: str

    @property
    def is_then(self) -> bool:
        """Whether it is of the time that the question names, or was told right after that."""
        return bool(self.features[PERIOD] > 0)


class Observed(NamedTuple):
    """What a search looked at before it chose; `features` are of the shape (rows, `FEATURES`), `length`
    says how long the texts are.
    """

    question: Question
    sought: SearchRequest
    candidates: Candidates
    rows: list[int]
    features: Array
    shown: dict[int, MemoryFeatures]
    length: float

    @property
    def then(self) -> set[int]:
        """The rows of those that are of the time that the question names, or were told right after that."""
        return {row for row, one in self.shown.items() if one.is_then} if self.question.period else set()


def matching(known: Candidates, question: Question) -> Array:
    """Return the features `MATCHING` of all candidates: shape (candidates, 6)."""
    # What is near to a question that asks for little but a time is so by chance.
    near = 0.0 if question.period is None else 1.0 if question.asks_whatever else NEAR
    own = [_scaled(known.cosine, near), _scaled(known.bm25)]
    # Nor does it tell anything what stands beside words that ask for whatever there was.
    near_words = np.zeros(len(known.ids)) if question.asks_whatever else _scaled(known.near_bm25)
    best = [np.zeros(int(known.session.max(initial=0)) + 1) for _ in own]
    for values, most in zip(own, best, strict=True):
        np.maximum.at(most, known.session, values)
    beyond = [most[known.session] - values for values, most in zip(own, best, strict=True)]
    return np.stack([*own, known.rare, near_words, *beyond], axis=1)


def told(
    connection: Connection, known: Candidates, question: Question, index: VectorIndexes | None
) -> tuple[Array, float]:
    """Return the features `TOLD` of all candidates, shape (candidates, 5), and how long their texts are: from
    0 for short ones to 1 for long ones.
    """
    traits = _traits(connection, known, question, index)
    lengths, (low, high) = np.log1p(traits.characters), np.log1p(LENGTHS)
    mean = float(lengths.mean()) if len(lengths) else 0.0
    has_turns = question.language.is_english and not question.asks_whatever
    asks = traits.is_turn * traits.is_question * float(has_turns)
    answers = _scaled(known.bm25)[known.before] * asks[known.before] * traits.is_turn * (known.before >= 0)
    brief = traits.is_turn * np.maximum(0.0, 1 - lengths / math.log1p(FULL))
    beyond = np.log(np.maximum(traits.characters, PASSAGE_CHARACTERS) / PASSAGE_CHARACTERS)
    features = np.stack([traits.is_by_them, brief, beyond, asks, answers], axis=1, dtype=np.float64)
    return features, min(1.0, max(0.0, (mean - low) / (high - low)))


def _traits(
    connection: Connection, known: Candidates, question: Question, index: VectorIndexes | None
) -> TextTraits:
    """Return the traits of the candidates' texts: from the arrays beside the vectors, and from the file for
    those that have no vector.
    """
    traits = (
        TextTraits.nothing(len(known.ids)) if index is None else index.text_traits(known.ids, question.names)
    )
    if traits.is_known.all():
        return traits
    left = str(known.ids[~traits.is_known].tolist())
    for row, characters, is_question, author in connection.execute(_TRAITS, (left,)):
        place = known.ids.searchsorted(row)
        for array, value in zip(
            traits, (True, characters, author is not None, is_question, author in question.names), strict=True
        ):
            array[place] = value
    return traits


def shown(
    connection: Connection,
    rows: Sequence[int],
    question: Question,
    rarity: Mapping[str, float],
    *,
    types: MemoryTypes,
    now_us: int,
) -> dict[int, MemoryFeatures]:
    """Return what some memory rows show; *rarity* is how much each term of the question tells.

    A row that is not there yet is left out.
    """
    read = connection.execute(_ROWS, (str(list(rows)),)).fetchall()
    if not read:
        return {}
    found = _Rows(*zip(*read, strict=True))
    period = question.period
    of_then = np.array([0.0 if period is None else _in_period(period, said_us) for said_us in found.said_us])
    if question.asks_whatever and of_then.max() == 1:
        of_then[of_then == TOLD_LATER] = 0.0  # what was said then is asked for, and is there
    speaks = question.language.is_english
    says = [
        _SAYS[text] if speaks and author is not None else (False, False, False)
        for author, text in zip(found.author, found.text, strict=True)
    ]
    features = np.column_stack(
        [
            _held(question, rarity, found.text),
            of_then,
            np.array(says, np.float64) * (1, 1, question.asks_advice),
            *_typed(found, types),
            strengths([row[-4:] for row in read], types, now_us),
            found.on_probation,
        ]
    )
    return {
        row: MemoryFeatures(
            features=shows, said_us=said_us, session_id=session_id, is_spoken=author is not None, text=text
        )
        for row, shows, said_us, session_id, author, text in zip(
            found.id, features, found.said_us, found.session_id, found.author, found.text, strict=True
        )
    }


def telling(rarity: Mapping[str, float], memories: int) -> dict[str, float]:
    """Return how much each term tells of the candidates, from `Vocabulary.rarity` among so many memories: as
    that, with less smoothing, since it does not say whether any of them is good.
    """
    return {
        term: math.log1p((memories - having + LIGHTLY) / (having + LIGHTLY))
        for term, value in rarity.items()
        for having in [max(0.0, (memories + 2 * SMOOTHING) / math.exp(abs(value)) - SMOOTHING)]
    }


def _held(question: Question, rarity: Mapping[str, float], texts: Sequence[str]) -> Array:
    """Return what each text holds of the question: identifiers, words in one passage, neighbouring words."""
    asked = {word: place for place, word in enumerate(dict.fromkeys(question.words))}
    of_time = {*stemmed(" ".join(question.period.told_from_now))} if question.period else set[str]()
    pairs = {
        asked[word] * len(asked) + asked[following]
        for word, following in pairwise(question.words)
        if word not in of_time and following not in of_time
    }
    known = [_WORDS[text] for text in texts]
    lengths = np.array([len(each.ids) for each in known])
    text, ids = np.repeat(np.arange(len(texts)), lengths), np.concatenate([each.ids for each in known])
    begins_at = lengths.cumsum() - lengths
    parts = np.array([len(each.begins_at) for each in known])
    in_parts, in_a_row = np.zeros((int(parts.sum()), len(asked))), np.zeros(len(texts))
    if asked and len(ids):
        wanted = np.array([hash(word) for word in asked])
        order = wanted.argsort()
        found = order[np.minimum(wanted[order].searchsorted(ids), len(asked) - 1)]
        places = (wanted[found] == ids).nonzero()[0]
        found, text = found[places], text[places]
        part = text
        if len(in_parts) > len(texts):
            starts = np.concatenate([each.begins_at for each in known]) + begins_at.repeat(parts)
            part = starts.searchsorted(places, side="right") - 1
        in_parts[part, found] = 1.0
        beside = ((places[1:] - places[:-1] == 1) & (text[1:] == text[:-1])).nonzero()[0]
        held = {
            *zip(
                text[beside].tolist(), (found[beside] * len(asked) + found[beside + 1]).tolist(), strict=True
            )
        }
        for place, pair in held:
            in_a_row[place] += pair in pairs
    # A word that the name of a time is made of has no rarity: it tells nothing.
    rare = dict[str, float]()
    for term, value in rarity.items():
        for word in stemmed(term):
            rare[word] = max(value, rare.get(word, 0.0))
    weight = np.array([rare.get(word, 0.0) for word in asked])
    named = {name.lower(): words_in_a_row(name) for name in question.identifiers}
    identified = [_identifiers(named, text) for text in texts] if named else np.zeros(len(texts))
    covered = np.maximum.reduceat(in_parts @ weight, parts.cumsum() - parts) / (weight.sum() or 1.0)
    return np.column_stack([identified, covered, in_a_row / (len(pairs) or 1)])


class _Words(NamedTuple):
    """The telling words of a text in order, as hashes, and at which of them each of its passages begins."""

    ids: npt.NDArray[np.int64]
    begins_at: npt.NDArray[np.intp]


def _words(text: str) -> _Words:
    check()
    said, begins_at = list[str](), list[int]()
    for passage in passages(text):
        begins_at.append(len(said))
        said += stemmed(passage)
    return _Words(np.fromiter(map(hash, said), np.int64, len(said)), np.array(begins_at))


def _says(text: str) -> tuple[bool, ...]:
    """Return whether a turn of a conversation says "I" or "we", a time, and what somebody likes or avoids."""
    spoken = text.partition(":")[2]  # a month may be the name of who speaks
    return tuple(said.search(spoken) is not None for said in (_FIRST_PERSON, _DATED, _WISH))


_WORDS = Kept(_words, WORDS_BYTES, lambda text, words: bytes_of(text) + words.ids.nbytes + ENTRY_BYTES)
_SAYS = Kept(_says, SAYS_BYTES, lambda text, _: bytes_of(text) + ENTRY_BYTES)
_IN_A_ROW = Kept(
    words_in_a_row, IN_A_ROW_BYTES, lambda text, row: bytes_of(text) + bytes_of(row) + ENTRY_BYTES
)


def _typed(rows: _Rows, types: MemoryTypes) -> Iterator[Sequence[float]]:
    """Yield the features "type", "priority" and "rating", each of all rows."""
    weights = {kind: math.log2(types.of(kind).weight) for kind in {*rows.event_type}}
    yield [weights[kind] for kind in rows.event_type]
    yield [priority - 3.0 for priority in rows.priority]
    bounded = (max(-RATING_MAX, min(RATING_MAX, rating)) for rating in rows.rating)
    yield [2.0 * rating if rating < 0 else rating for rating in bounded]


def _in_period(period: Period, said_us: int) -> float:
    if period.start_us <= said_us < period.end_us:
        return 1.0
    return TOLD_LATER if period.end_us <= said_us < period.end_us + TOLD_WITHIN_US else 0.0


def _identifiers(named: Mapping[str, str], text: str) -> float:
    """Return the share of some identifiers, each with its words in a row, that a text holds; one that is part
    of a longer name counts for less.
    """
    check()
    lowered = text.lower()
    parts = [words for name, words in named.items() if not _stands_alone(name, lowered)]
    # Of ASCII the words in a row are parts of the text as it stands, and most texts lack one.
    likely = [
        words for words in parts if not text.isascii() or all(word in lowered for word in words.split())
    ]
    in_a_row = _IN_A_ROW[text] if likely else ""
    return (len(named) - len(parts) + PART_OF_NAME * sum(words in in_a_row for words in likely)) / len(named)


def _stands_alone(name: str, text: str) -> bool:
    """Say whether a text holds a name that is not a part of a longer one; the v before a version is no
    part of its name.
    """
    place = text.find(name)
    is_version = place >= 0 and bare_version(name) is not None
    while place >= 0:
        start = place - (is_version and text[place - 1 : place] == "v")
        before, after = text[start - 1 : start], text[place + len(name) : place + len(name) + 1]
        if not ((before and before in _OF_NAMES) or (after and after in _OF_NAMES)):
            return True
        place = text.find(name, place + len(name))
    return False


def _scaled(values: Array, least: float = 0.0) -> Array:
    scaled: Array = np.maximum(0.0, values) / (values.max(initial=least) or 1.0)
    return scaled
