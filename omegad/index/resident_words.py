"""The words of one file of views in memory, in step with it.

Which state of full text a reader sees is told by what FTS5 writes of its own structure with every change: of
that very state are the words that the reader gets, or it gets none. What changed since the state before is
read anew.
"""

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from omegad.index.postings import (
    COLUMN_SHIFT,
    ROW_SHIFT,
    Integers,
    Postings,
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

FEW = 500  # memories, up to which full text itself answers as fast
TOKENS_MAX = 8_000_000
"""Of all memories; beyond, full text itself is asked: 64 MB."""
CHANGED_MAX = 500  # memories, beyond which all are read anew
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
        """Read all words, unless they are there, too few or too many."""
        state, (latest,) = _state(connection), connection.execute(_LATEST).fetchone()
        if self._states or state.memories < FEW:
            return
        read = _read(connection, state.tokens) if state.tokens <= TOKENS_MAX else None
        self._is_refused = read is None
        if read is None:
            return
        tokenizer = self.tokenizer or Tokenizer(connection)
        postings = Postings([segment(*read)])
        with self._lock:
            self.tokenizer = tokenizer
            self._latest = latest
            self._states = {state.structure: postings}

    def _brought_to(self, connection: Connection, state: State) -> Postings | None:
        """Return the words with what has changed up to what a connection sees; None where it is behind, or
        that cannot be told.
        """
        assert self.tokenizer is not None
        changed = connection.execute(_CHANGED, (self._latest, CHANGED_MAX + 1)).fetchall()
        if not changed:
            if connection.execute(_LATEST).fetchone()[0] == self._latest:
                self._forget()
            return None
        rows = distinct(np.array([row for row, _ in changed], np.int64))
        if len(changed) > CHANGED_MAX or state.tokens > TOKENS_MAX:
            self._forget()
            return None
        texts = connection.execute(_TEXTS, (str(rows.tolist()),)).fetchall()
        new = sorted_segment(*_instances(self.tokenizer.places(texts)))
        postings = list(self._states.values())[-1].changed(rows, new)
        if (postings.count, postings.tokens) != (state.memories, state.tokens):
            self._forget()  # something was erased
            return None
        self._latest = changed[-1][1]
        kept = list(self._states.items())[1 - STATES_MAX :]
        self._states = dict([*kept, (state.structure, postings)])
        return postings

    def _forget(self) -> None:
        self._states = {}
        self._on_wanted()


def _tokens_of(connection: Connection, lock: threading.Lock, text: str) -> tuple[int, ...]:
    with lock, snapshot(connection):
        connection.execute("INSERT INTO memories_fts (content) VALUES (?)", (text,))
        found = connection.execute("SELECT term FROM memories_tokens ORDER BY offset").fetchall()
    return tuple(hash(term) for (term,) in found)


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
        tokens.append(hash(token))
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
        tokens += [hash(token)] * len(each)
    return np.array(tokens, np.int64), np.array(places, np.int64)
