"""The words of one file of views in memory, in step with it.

Which state of full text a reader sees is told by what FTS5 writes of its own structure with every change: of
that very state are the words that the reader gets, or it gets none. What changed since the state before is
read anew.
"""

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np

from omegad.index.postings import (
    COLUMN_SHIFT,
    ROW_SHIFT,
    Integers,
    Postings,
    Segment,
    distinct,
    segment,
    sorted_segment,
)
from omegad.runtime.kept import Kept, bytes_of
from omegad.runtime.precedence import bulk_gives_way
from omegad.storage.database import open_in_memory
from omegad.storage.driver import Connection
from omegad.storage.readers import check
from omegad.storage.transaction import snapshot
from omegad.views import kept

FEW = 500  # memories, up to which full text itself answers as fast
TOKENS_MAX = 8_000_000
"""Of all memories; beyond, full text itself is asked: 64 MB."""
CHANGED_MAX = 500  # memories, beyond which all are read anew
KEPT = "words 1"
"""What they are kept as, beside the views that they are of; of another shape they have another number."""
KEPT_FROM = 5_000  # memories, below which they are read as fast from full text
KEPT_SHARE = 20  # of that many memories one may have changed since they were kept, or all are read anew
STATES_MAX = 4  # states that are kept, for readers that are a moment behind
TEXTS_BYTES = 1_000_000  # of what is asked, and its tokens
ENTRY_BYTES = 300
VARINT_MORE, VARINT_BITS = 0x80, 7

_STATE = "SELECT block FROM memories_fts_data WHERE id IN (1, 10) ORDER BY id"
_LATEST = "SELECT coalesce(max(changed_position), 0) FROM memories"
_CHANGED = "SELECT id, changed_position FROM memories WHERE changed_position > ? ORDER BY 2 LIMIT +?"
_COLUMNS = ("content", "context", "tags", "lexemes")
_TEXTS = (
    f"SELECT rowid, {', '.join(_COLUMNS)} FROM memories_fts WHERE rowid IN (SELECT value FROM json_each(?))"
)
_PLACE = (
    f"doc << {ROW_SHIFT} | CASE col"
    + "".join(f" WHEN '{name}' THEN {place << COLUMN_SHIFT}" for place, name in enumerate(_COLUMNS))
    + " END | offset"
)
# As one text for each: the driver lets other threads in, and so waits for them, at each row that it reads.
_PLACES = f"SELECT term, json_group_array({_PLACE}) FROM memories_tokens GROUP BY term"


class State(NamedTuple):
    """What FTS5 says of itself: its structure, how many rows there are, and how many tokens these have."""

    structure: bytes
    memories: int
    tokens: int


class KeptWords(msgspec.Struct, frozen=True):
    """What is kept of words: of which state they are, the position up to which they are, and how long each
    array of each segment is.
    """

    structure: bytes
    latest: int
    lengths: list[list[int]]


class Read(NamedTuple):
    """Words that were read, the position up to which they are, and how many memories have changed since they
    were kept, None where they are not.
    """

    postings: Postings
    latest: int
    unkept: int | None


class Tokenizer:
    """What full text makes of a text, by a table in memory that is made as the one in the file is."""

    def __init__(self, connection: Connection) -> None:
        """Read from the views how full text is made."""
        (made,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'memories_fts'").fetchone()
        self._connection = open_in_memory()
        self._connection.execute(made)
        self._connection.execute(
            "CREATE VIRTUAL TABLE memories_tokens USING fts5vocab(memories_fts, instance)"
        )
        weakref.finalize(self, self._connection.close)
        self._lock = threading.Lock()
        self._known = Kept(
            partial(_tokens_of, self._connection, self._lock),
            TEXTS_BYTES,
            lambda text, found: bytes_of(text) + 8 * len(found) + ENTRY_BYTES,
        )

    def tokens(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text that is asked for, in order, as hashes."""
        return self._known[text]

    def places(self, rows: Sequence[tuple[object, ...]]) -> list[tuple[str, str]]:
        """Return the tokens of some rows of `_TEXTS`, each with its places, as JSON."""
        marks = ", ".join("?" * (1 + len(_COLUMNS)))
        insert = f"INSERT INTO memories_fts (rowid, {', '.join(_COLUMNS)}) VALUES ({marks})"
        with self._lock, snapshot(self._connection):
            self._connection.executemany(insert, rows)
            return self._connection.execute(_PLACES).fetchall()


class ResidentWords:
    """The words of one file of views. Safe to use from several reading threads."""

    def __init__(self, on_wanted: Callable[[], object] = lambda: None) -> None:
        """Start without any; `fill` reads them, and *on_wanted* is called from any thread where they are
        wanted.
        """
        self._on_wanted = on_wanted
        self._lock = threading.Lock()
        self._states: dict[bytes, Postings] = {}
        self._latest = 0
        self._unkept: int | None = None  # memories that have changed since the words were kept
        self._is_refused = False
        self.tokenizer: Tokenizer | None = None

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        latest = next(reversed(self._states.values()), None)
        return sum(one.size_bytes for one in latest.segments) if latest else 0

    def of(self, connection: Connection) -> Postings | None:
        """Return the words of the state of full text that a connection sees; None where they are not in
        memory.
        """
        state = _state(connection)
        with self._lock:
            if (found := self._states.get(state.structure)) is not None:
                return found
            if not self._states:
                if state.memories >= FEW and not self._is_refused:
                    self._on_wanted()
                return None
            return self._brought_to(connection, state)

    def fill(self, connection: Connection) -> None:
        """Read all words from full text, unless they are there, too few or too many."""
        state = _state(connection)
        if self._states or state.memories < FEW:
            return
        words = _whole(connection, state) if state.tokens <= TOKENS_MAX else None
        self._is_refused = words is None
        if words is not None:
            self._take(state, words, self.tokenizer or Tokenizer(connection))

    def fill_from_kept(self, connection: Connection) -> None:
        """Read the words that were kept, and what has changed since, where they are there and no words are in
        memory: in a twentieth of the time.
        """
        state = _state(connection)
        if self._states or state.memories < FEW or state.tokens > TOKENS_MAX:
            return
        if (found := kept.read(connection, KEPT)) is None:
            return
        told = msgspec.msgpack.decode(found[0], type=KeptWords)
        tokenizer = self.tokenizer or Tokenizer(connection)
        before = Read(_kept_postings(told, found[1]), told.latest, 0)
        words: Read | None = before
        if told.structure != state.structure:
            words = _brought(connection, state, tokenizer, before, _changed_most(state.memories))
        if words is not None and (words is not before or told.structure == state.structure):
            self._take(state, words, tokenizer)

    def to_keep(self) -> tuple[bytes, list[memoryview]] | None:
        """Return what is to be kept of the words for the next start, as its head and the arrays; None where
        what is kept does, or there are few.
        """
        with self._lock:
            if not self._states:
                return None
            (structure, postings), latest = list(self._states.items())[-1], self._latest
            is_kept = self._unkept is not None and self._unkept <= _changed_most(postings.count) // 2
            if is_kept or postings.count < KEPT_FROM:
                return None
            self._unkept = 0
        lengths = [[len(array) for array in one] for one in postings.segments]
        head = msgspec.msgpack.encode(KeptWords(structure, latest, lengths))
        arrays = [array for one in postings.segments for array in one if len(array)]
        return head, [np.ascontiguousarray(array).data.cast("B") for array in arrays]

    def _take(self, state: State, words: Read, tokenizer: Tokenizer) -> None:
        with self._lock:
            self.tokenizer = tokenizer
            self._latest, self._unkept = words.latest, words.unkept
            self._states = {state.structure: words.postings}

    def _brought_to(self, connection: Connection, state: State) -> Postings | None:
        """Return the words with what has changed up to what a connection sees; None where it is behind, or
        that cannot be told.
        """
        assert self.tokenizer is not None
        before = Read(list(self._states.values())[-1], self._latest, self._unkept)
        words = _brought(connection, state, self.tokenizer, before, CHANGED_MAX)
        if words is None:
            self._forget()
            return None
        if words is before:
            return None
        self._latest, self._unkept = words.latest, words.unkept
        kept = list(self._states.items())[1 - STATES_MAX :]
        self._states = dict([*kept, (state.structure, words.postings)])
        return words.postings

    def _forget(self) -> None:
        self._states = {}
        self._on_wanted()


def _changed_most(memories: int) -> int:
    """Return how many of some memories may have changed since words were kept."""
    return max(CHANGED_MAX, memories // KEPT_SHARE)


def _brought(
    connection: Connection, state: State, tokenizer: Tokenizer, before: Read, most: int
) -> Read | None:
    """Return words with what has changed since, up to the state that a connection sees; the same ones where
    it is behind them, and None where that cannot be told, or more than so many memories have changed.
    """
    changed = connection.execute(_CHANGED, (before.latest, most + 1)).fetchall()
    if not changed:
        is_behind = connection.execute(_LATEST).fetchone()[0] != before.latest
        return before if is_behind else None
    if len(changed) > most or state.tokens > TOKENS_MAX:
        return None
    rows = distinct(np.array([row for row, _ in changed], np.int64))
    texts = connection.execute(_TEXTS, (str(rows.tolist()),)).fetchall()
    new = sorted_segment(*_instances(tokenizer.places(texts)))
    postings = before.postings.changed(rows, new)
    if (postings.count, postings.tokens) != (state.memories, state.tokens):
        return None  # something was erased
    unkept = None if before.unkept is None else before.unkept + len(changed)
    return Read(postings, changed[-1][1], unkept)


def _kept_postings(told: KeptWords, found: bytearray) -> Postings:
    """Return the words that were kept, as all of their arrays behind each other."""
    lengths, each = list(chain.from_iterable(told.lengths)), len(Segment._fields)
    arrays = np.split(np.frombuffer(found, np.int64), np.cumsum(lengths)[:-1])
    return Postings([Segment(*arrays[start : start + each]) for start in range(0, len(arrays), each)])


def _whole(connection: Connection, state: State) -> Read | None:
    """Return all words, from full text."""
    (latest,) = connection.execute(_LATEST).fetchone()
    read = _read(connection, state.tokens)
    return None if read is None else Read(Postings([segment(*read)]), latest, None)


def _hashed(token: str) -> int:
    """Return the number that stands for a token, in every process."""
    return int.from_bytes(blake2b(token.encode(), digest_size=8).digest(), "little", signed=True)


def _tokens_of(connection: Connection, lock: threading.Lock, text: str) -> tuple[int, ...]:
    with lock, snapshot(connection):
        connection.execute("INSERT INTO memories_fts (content) VALUES (?)", (text,))
        found = connection.execute("SELECT term FROM memories_tokens ORDER BY offset").fetchall()
    return tuple(_hashed(term) for (term,) in found)


def _state(connection: Connection) -> State:
    (sizes,), (structure,) = connection.execute(_STATE).fetchall()
    count, *tokens = _integers(sizes) or [0]
    return State(structure, count, sum(tokens))


def _integers(packed: bytes) -> list[int]:
    """Return the integers that FTS5 has packed, seven bits to a byte, the first bits first."""
    found, value = list[int](), 0
    for byte in packed:
        value = value << VARINT_BITS | byte & ~VARINT_MORE
        if byte < VARINT_MORE:
            found.append(value)
            value = 0
    return found


def _read(connection: Connection, count: int) -> tuple[Integers, Integers, Integers, Integers] | None:
    """Return each distinct token, where its places begin and end, and the places; None where there are not so
    many as full text counts.
    """
    (is_reader,) = connection.execute("PRAGMA query_only").fetchone()
    connection.execute("PRAGMA query_only=OFF")  # for a table of its own, which goes with the snapshot
    try:
        connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.memories_tokens USING fts5vocab(main, memories_fts,"
            " instance)"
        )
    finally:
        connection.execute(f"PRAGMA query_only={is_reader}")
    decode = msgspec.json.Decoder(list[int]).decode
    tokens, ends, places, end = list[int](), list[int](), np.empty(count, np.int64), 0
    for number, (token, found) in enumerate(connection.execute(_PLACES)):
        check()
        bulk_gives_way(number)
        standing = decode(found)
        begin, end = end, end + len(standing)
        if end > count:
            return None
        places[begin:end] = standing
        tokens.append(_hashed(token))
        ends.append(end)
    ended = np.array(ends, np.int64)
    return (
        (np.array(tokens, np.int64), np.append(0, ended)[: len(ended)], ended, places)
        if end == count
        else None
    )


def _instances(found: Iterable[tuple[str, str]]) -> tuple[Integers, Integers]:
    """Return each token as often as it stands somewhere, and its places."""
    tokens, places = list[int](), list[int]()
    for token, standing in found:
        each = msgspec.json.decode(standing, type=list[int])
        places += each
        tokens += [_hashed(token)] * len(each)
    return np.array(tokens, np.int64), np.array(places, np.int64)
