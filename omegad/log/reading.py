"""A log as it is read: its rows as events, or byte for byte."""

from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from omegad.log import chain, mending, requests
from omegad.log.codec import Codec
from omegad.log.decision import Cursor, Outcome, RequestKey
from omegad.log.erasure import CURSOR, UNDER_WAY, SearchTerms, candidates
from omegad.log.event import END, Envelope, Position, RecordedEvent
from omegad.log.folding import Part, Source
from omegad.log.mending import ClockMended, Mending
from omegad.runtime.clock import STEP_US, uuid7_after, uuid7_us
from omegad.runtime.errors import LogBroken, StorageCorrupt, StorageFailed
from omegad.storage import readers
from omegad.storage.driver import Connection, sqlite
from omegad.storage.readers import Limits, Readers, Turn

FORMAT = 2
AGED = "aged."
"""What the cursors begin with that have up to where the details of a kind of event were let go of."""
BATCH_BYTES_MAX = 8 * 1024 * 1024
TAIL_EVENTS_MAX = 1_024
TAIL_BYTES_MAX = 4 * 1024 * 1024  # of payloads as stored, all events together
SEARCHED = 5_000  # payloads that are looked through at once

UNLIMITED = Limits(86_400.0, 86_400.0, 86_400.0)
"""For who reads a log alone, and keeps nobody waiting."""

T = TypeVar("T")

_recorded: Callable[..., RecordedEvent] = RecordedEvent

_ENVELOPE = """
e.position, e.event_id, e.tag, e.recorded_at, e.occurred_at, e.tz_offset, e.origin, e.hlc, e.session_id,
e.project, e.client, e.cause, e.trace"""
_SELECT = (
    f"SELECT {_ENVELOPE}, e.chain, p.body FROM events AS e LEFT JOIN payloads AS p ON p.position = e.position"
)
_READ = f"{_SELECT} WHERE e.position > ? ORDER BY e.position LIMIT +?"
_READ_PART = f"""{_SELECT} WHERE e.position > ? AND e.position <= ?
AND (e.position = ? OR e.tag NOT IN ({{others}})) ORDER BY e.position LIMIT +?"""
READ_AT = f"{_SELECT} WHERE e.position IN (SELECT value FROM json_each(?)) ORDER BY e.position"
_RAW = f"""
SELECT {_ENVELOPE}, e.payload_hash, e.chain, p.salt, CAST(p.body AS BLOB) FROM events AS e LEFT
  JOIN payloads AS p ON p.position = e.position
WHERE e.position > ? ORDER BY e.position LIMIT +?
"""

_ROW_BYTES = 60  # its numbers, headers, and what the tree of pages takes for it

_SIZES = f"""
SELECT e.tag, count(*), coalesce(sum(octet_length(p.body)), 0),
  sum({_ROW_BYTES} + octet_length(e.event_id) + octet_length(e.tag) + octet_length(e.origin)
      + octet_length(e.payload_hash) + octet_length(e.chain) + coalesce(octet_length(e.session_id), 0)
      + coalesce(octet_length(e.project), 0) + coalesce(octet_length(e.client), 0)
      + coalesce(octet_length(e.trace), 0) + coalesce(octet_length(p.salt), 0))
FROM events AS e LEFT JOIN payloads AS p USING (position)
WHERE e.position > ? AND e.position <= ? GROUP BY e.tag
"""

_SINCE_SET_BACK = (
    "SELECT position FROM events WHERE position > ? AND event_id < ? ORDER BY position DESC LIMIT 1"
)
_LAST_AHEAD = (
    "SELECT position, event_id FROM events WHERE position > ? AND event_id > ? ORDER BY position DESC LIMIT 1"
)


class RawEvent(msgspec.Struct, frozen=True):
    """A row of the log as it is stored: what the chain covers, the chain, and the payload, None where it was
    erased.
    """

    envelope: Envelope
    chain: bytes
    salt: bytes | None
    body: bytes | None

    def recorded(self, codec: Codec) -> RecordedEvent:
        """Decode it."""
        return RecordedEvent(*self.envelope[:13], self.chain, codec.decode(self.envelope[2], self.body))


def read(connection: Connection, codec: Codec, after: Position, limit: int) -> list[RecordedEvent]:
    """Return up to *limit* events after a position, in order; fewer where their payloads pass 8 MiB, but
    never none if there is one.
    """
    return _decoded(connection, codec, f"after position {after}", _READ, (after, limit))


def source(connection: Connection, codec: Codec, without: Sequence[str] = ()) -> Source:
    """Return what reads the parts of a log for a fold, without the events whose tag is in *without*.

    It raises `LogBroken` where an event is not there.
    """
    sql = _READ_PART.format(others=", ".join("?" * len(without)))

    def read_part(part: Part) -> list[RecordedEvent]:
        place = f"after position {part.after}"
        values = (part.after, part.through, part.through, *without, part.limit)
        found = _decoded(connection, codec, place, sql, values)
        if not found:
            raise LogBroken(f"the event at position {part.through} is missing")
        return found

    return read_part


def read_at(connection: Connection, codec: Codec, positions: Sequence[Position]) -> list[RecordedEvent]:
    """Return the events at *positions*, in order, and fewer as `read` does."""
    return _decoded(
        connection, codec, f"at one of {len(positions)} positions", READ_AT, (str(list(positions)),)
    )


def raw(connection: Connection, after: Position, limit: int) -> list[RawEvent]:
    """Return up to *limit* rows after a position as `read` does, byte for byte; what is not UTF-8 any more
    has lone surrogates in it.
    """
    factory = connection.text_factory
    connection.text_factory = lambda data: data.decode(errors="surrogateescape")
    try:
        rows = connection.execute(_RAW, (after, limit))
        return list(
            _bounded((RawEvent(row[:14], *row[14:]) for row in rows), lambda one: len(one.body or b""))
        )
    finally:
        connection.text_factory = factory


def chain_at(connection: Connection, position: Position) -> bytes | None:
    """Return the chain hash at a position, None where the log does not reach it."""
    row = connection.execute("SELECT chain FROM events WHERE position = ?", (position,)).fetchone()
    return row[0] if row else None


def position_at(connection: Connection, at_us: int, now_us: int | None = None) -> Position:
    """Return the position of the latest event that was recorded by *at_us*, 0 where none was; mended times in
    the log never decrease.

    Where the clock, which says *now_us*, was set back behind them, all that came since has one time. A moment
    since then is found by the clock's own time, with which the ids of events begin.
    """
    end = head(connection)
    if now_us is not None and end and at_us <= now_us < (latest_us := _recorded_at(connection, end)):
        found = connection.execute(
            _SINCE_SET_BACK, (_searched(connection, latest_us - 1), uuid7_after(at_us))
        ).fetchone()
        if found:
            return int(found[0])
    return _searched(connection, at_us)


def _searched(connection: Connection, at_us: int) -> Position:
    mendings, positions = mending.noted(connection), range(1, head(connection) + 1)
    return bisect_right(positions, at_us, key=lambda one: _recorded_at(connection, one, mendings))


def _recorded_at(connection: Connection, position: Position, mendings: Sequence[Mending] = ()) -> int:
    recorded_at, event_id = connection.execute(
        "SELECT recorded_at, event_id FROM events WHERE position = ?", (position,)
    ).fetchone()
    mended = next((one for one in mendings if one.first <= position < one.position), None)
    return int(recorded_at) if mended is None else mended.time_of(uuid7_us(event_id))


def stamped_ahead(connection: Connection, now_us: int) -> ClockMended | None:
    """Return what mends what a clock stamped that was ahead of what it says *now_us*, None where none was;
    the ids of events begin with its own time.
    """
    end = head(connection)
    right = _searched(connection, now_us)
    found = connection.execute(_LAST_AHEAD, (right, uuid7_after(now_us + STEP_US))).fetchone()
    if found is None:
        return None
    last, event_id = found
    from_us = uuid7_us(event_id)
    since = (
        connection.execute("SELECT event_id FROM events WHERE position = ?", (last + 1,)).fetchone()
        if last < end
        else None
    )
    right_us = _recorded_at(connection, right, mending.noted(connection)) if right else 0
    back_us = now_us if since is None else max(right_us, min(now_us, uuid7_us(since[0])))
    return ClockMended(
        first=right + 1,
        last=last,
        from_us=from_us,
        to_us=now_us,
        ahead_us=from_us - back_us,
        right_us=right_us,
    )


def erased(connection: Connection, through: Position) -> int:
    """Return how many payloads up to a position are erased."""
    found = connection.execute("SELECT count(*) FROM erasures WHERE position <= ?", (through,))
    return int(found.fetchone()[0])


def aged(connection: Connection) -> dict[str, Position]:
    """Return up to which position the details of each kind of event were let go of."""
    sql = "SELECT substr(name, ?), position FROM cursors WHERE name GLOB ? ORDER BY name"
    return dict(connection.execute(sql, (len(AGED) + 1, f"{AGED}*")).fetchall())


def taken_out(connection: Connection) -> int:
    """Return a number that changes whenever payloads are erased, or let go of because they aged."""
    return erased(connection, END) + sum(aged(connection).values())


def tagged(
    connection: Connection,
    tags: Sequence[str],
    after: Position,
    origin: str | None = None,
    through: Position = END,
    *,
    limit: int = -1,
) -> list[Position]:
    """Return the positions after *after*, up to *through*, of the events with one of *tags*, of one *origin*
    where it is named; the first *limit* of them, all where that is -1.
    """
    sql = (
        f"SELECT position FROM events WHERE position > ? AND position <= ? AND tag IN"
        f" ({', '.join('?' * len(tags))}) AND origin = coalesce(?, origin) ORDER BY position LIMIT ?"
    )
    return [position for (position,) in connection.execute(sql, (after, through, *tags, origin, limit))]


def caused(
    connection: Connection, causes: Sequence[Position], after: Position, through: Position
) -> list[Position]:
    """Return the positions after *after*, up to *through*, of the events that those at *causes* led to."""
    sql = (
        "SELECT position FROM events WHERE position > ? AND position <= ? AND cause IN (SELECT value FROM"
        " json_each(?)) ORDER BY position"
    )
    return [position for (position,) in connection.execute(sql, (after, through, str(list(causes))))]


def names_with(connection: Connection, text: str, after: Position, through: Position) -> list[str]:
    """Return the names of the columns of events' envelopes in which a text stands, of the events after
    *after*, up to *through*.
    """
    names = ("session_id", "project", "client", "trace")
    found = ", ".join(f"coalesce(max(instr({name}, ?1) > 0), 0)" for name in names)
    sql = f"SELECT {found} FROM events WHERE position > ?2 AND position <= ?3"
    row = connection.execute(sql, (text, after, through)).fetchone()
    return [name for name, is_there in zip(names, row, strict=True) if is_there]


def check_format(connection: Connection) -> None:
    """Raise `LogBroken` where a newer version has written the file."""
    found = connection.execute("SELECT format FROM identity").fetchone()[0]
    if found > FORMAT:
        raise LogBroken(
            f"log.db has format {found}, this version reads {FORMAT}", hint="install a newer omegad"
        )


def head(connection: Connection) -> Position:
    """Return the position of the latest event, 0 in an empty log."""
    return int(connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()[0])


def free_bytes(connection: Connection) -> int:
    """Return how many bytes of the file are free, which are filled again before it grows."""
    pages, size = (connection.execute(f"PRAGMA {of}").fetchone()[0] for of in ("freelist_count", "page_size"))
    return int(pages) * int(size)


def cursors(connection: Connection) -> dict[str, Cursor]:
    """Return every cursor by its name."""
    return {row[0]: Cursor(*row) for row in connection.execute("SELECT name, position, version FROM cursors")}


class LogReader:
    """Reads a log and never writes to it, whoever else does. Make it with `opened`."""

    def __init__(self, path: Path, codec: Codec, reading_from: Readers) -> None:
        self.path = path
        self.codec = codec
        self._readers = reading_from
        self._end: Position = 0

    @property
    def head(self) -> Position:
        """The position of the latest event known to be there; `refresh` looks again."""
        return self._end

    async def refresh(self) -> Position:
        """Look where the log ends, and return it."""
        self._end = await self._readers.read(head)
        return self._end

    async def read(self, after: Position, limit: int, turn: Turn = Turn.USUAL) -> list[RecordedEvent]:
        """Return up to *limit* events after a position, in order; empty at the head. Raises `LogBroken`
        where they cannot be read.
        """
        return await self._read(
            lambda connection: read(connection, self.codec, after, limit), f"after position {after}", turn
        )

    async def read_at(self, positions: Sequence[Position], turn: Turn = Turn.USUAL) -> list[RecordedEvent]:
        """Return the events at *positions*, in order; fewer where they are large, but never none. Raises
        `LogBroken` as `read` does.
        """
        return await self._read(
            lambda connection: read_at(connection, self.codec, positions),
            f"at one of {len(positions)} positions",
            turn,
        )

    async def chain_at(self, position: Position) -> bytes | None:
        """Return the chain hash at a position (that of the empty log at 0), None beyond the head."""
        if position == 0:
            return chain.GENESIS
        return await self._readers.read(lambda connection: chain_at(connection, position))

    async def position_at(self, at_us: int, now_us: int) -> Position:
        """Return the position of the latest event that was recorded by *at_us*, microseconds since 1970; 0
        where none was.
        """
        return await self._readers.read(lambda connection: position_at(connection, at_us, now_us))

    async def stamped_ahead(self, now_us: int) -> ClockMended | None:
        """Return what mends what a clock stamped that was ahead of what it says now, None where none was."""
        return await self._readers.read(lambda connection: stamped_ahead(connection, now_us))

    async def erased(self, through: Position) -> int:
        """Return how many payloads up to a position are erased."""
        return await self._readers.read(lambda connection: erased(connection, through))

    async def sizes(self, after: Position, through: Position) -> list[tuple[str, int, int, int]]:
        """Return a span's tags, how many of each, and the bytes of payloads and, about, of rows beside."""
        return await self._readers.read(lambda c: c.execute(_SIZES, (after, through)).fetchall(), Turn.LONG)

    async def lengths(self, after: Position, through: Position) -> list[tuple[Position, int]]:
        """Return where events of that span have payloads, and their bytes, in order."""
        sql = "SELECT position, octet_length(salt) + octet_length(body) FROM payloads WHERE position > ?"
        sql += " AND position <= ? ORDER BY position"
        return await self._readers.read(lambda c: c.execute(sql, (after, through)).fetchall(), Turn.LONG)

    async def aged(self) -> dict[str, Position]:
        """Return up to which position the details of each kind of event were let go of."""
        return await self._readers.read(aged)

    async def free_bytes(self) -> int:
        """Return how much of the log's file is free."""
        return await self._readers.read(free_bytes)

    async def taken_out(self) -> int:
        """Return a number that changes whenever payloads are erased, or let go of."""
        return await self._readers.read(taken_out)

    async def tagged(
        self,
        tags: Sequence[str],
        after: Position,
        origin: str | None = None,
        through: Position = END,
        *,
        limit: int = -1,
    ) -> list[Position]:
        """Return what the function of this name does."""
        return await self._readers.read(
            lambda one: tagged(one, tags, after, origin, through, limit=limit), Turn.LONG
        )

    async def caused(self, positions: Sequence[Position]) -> list[Position]:
        """Return the positions, up to `head`, of the events that those at *positions* led to."""
        parts = [
            partial(caused, causes=positions, after=first, through=first + SEARCHED)
            for first in range(0, self.head, SEARCHED)
        ]
        return [position for part in parts for position in await self._readers.read(part, Turn.LONG)]

    async def names_with(self, text: str) -> list[str]:
        """Return the names of the columns of events' envelopes, which nothing changes, in which a text
        stands.
        """
        parts = [
            partial(names_with, text=text, after=first, through=first + SEARCHED)
            for first in range(0, self.head, SEARCHED)
        ]
        return sorted({name for part in parts for name in await self._readers.read(part, Turn.LONG)})

    async def cursors(self) -> dict[str, Cursor]:
        """Return, by name, how far those have come who act on events; a cursor moves with
        `Proposal.cursor`.
        """
        return await self._readers.read(cursors)

    async def answered(self, request: RequestKey) -> Outcome | None:
        """Return the first answer to a request, None where there was none; waits for no commit and no long
        read.

        Raises `Conflict` where it had other parameters, and storage errors.
        """
        return await self._readers.read(partial(requests.answered, request=request), Turn.FIRST)

    async def is_erasing(self) -> bool:
        """Say whether what an erasure removed may be in some file of the home still."""
        cursor = (await self.cursors()).get(CURSOR)
        return cursor is not None and cursor.position == UNDER_WAY

    async def erasable(self, terms: SearchTerms, after: Position) -> list[Position]:
        """Return, after a position and up to `head`, those of the payloads that `erasure.candidates`
        finds.
        """
        found, end = list[Position](), self.head
        for first in range(after, end, SEARCHED):  # in parts, none of which takes long
            part = partial(candidates, terms=terms, after=first, through=min(first + SEARCHED, end))
            found += await self._read(part, f"after position {first}", Turn.LONG)
        return found

    async def _read(self, work: Callable[[Connection], T], place: str, turn: Turn = Turn.USUAL) -> T:
        try:
            return await self._readers.read(work, turn)
        except StorageCorrupt as error:
            raise LogBroken(f"{self.path.name} is damaged {place}: {error}") from error


class Tail:
    """A run of events without gaps that ends at the head, or nothing."""

    def __init__(self) -> None:
        self._events: deque[tuple[RecordedEvent, int]] = deque()
        self._size = 0

    def extend(self, events: Iterable[tuple[RecordedEvent, int]]) -> None:
        """Add the events of a commit, each with the bytes of its payload, and let go of the oldest beyond
        the bounds.
        """
        for recorded, size in events:
            self._events.append((recorded, size))
            self._size += size
        while self._events and (len(self._events) > TAIL_EVENTS_MAX or self._size > TAIL_BYTES_MAX):
            self._size -= self._events.popleft()[1]

    def after(self, position: Position, limit: int) -> list[RecordedEvent]:
        """Return up to *limit* events after a position, or nothing where the next one is not kept here."""
        if not self._events or self._events[0][0].position > position + 1:
            return []
        left = len(self._events) - (position + 1 - self._events[0][0].position)
        # By their places from the end, where those who follow are
        return [self._events[-place][0] for place in range(left, max(0, left - limit), -1)]

    def clear(self) -> None:
        """Forget everything."""
        self._events.clear()
        self._size = 0


@asynccontextmanager
async def opened(path: Path, codec: Codec, reader_count: int = 1) -> AsyncIterator[LogReader]:
    """Open the log at *path* to read it alone. Raises `StorageFailed` where there is none, `LogBroken`
    where a newer version wrote it.
    """
    if not await anyio.Path(path).exists():
        raise StorageFailed(f"there is no log at {path}")
    async with readers.opened(path, reader_count, UNLIMITED) as reading_from:
        log = LogReader(path, codec, reading_from)
        await reading_from.read(check_format)
        await log.refresh()
        yield log


def _decoded(
    connection: Connection, codec: Codec, place: str, sql: str, values: tuple[object, ...]
) -> list[RecordedEvent]:
    try:
        # Closed at once, also where a text is none: the driver hands the statement on, and a cursor that ends
        # later would set it back under its user.
        with closing(connection.execute(sql, values)) as found:
            rows = _bounded(found, lambda row: len(row[14] or ""))
            return [_recorded(*row[:14], codec.decode(row[2], row[14])) for row in rows]
    except sqlite.OperationalError as error:
        if "UTF-8" not in str(error):
            raise
        raise LogBroken(f"an event {place} is damaged: {error}") from error


def _bounded(rows: Iterable[T], size_of: Callable[[T], int]) -> Iterator[T]:
    size = 0
    for row in rows:
        yield row
        size += size_of(row)
        if size > BATCH_BYTES_MAX:
            return
