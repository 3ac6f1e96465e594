"""Proof that the log is as it was written: the file sound, every link of the chain computed again, the
inline projections equal to a replay.
"""

from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import msgspec

from omegad.log import chain, erasure, reading
from omegad.log.aging import AgedPayloads
from omegad.log.codec import tag_of
from omegad.log.erasure import PayloadErased
from omegad.log.event import END, Position, RecordedEvent
from omegad.log.folding import Part, Source
from omegad.log.inline import Vocabulary, failure
from omegad.log.reading import RawEvent
from omegad.runtime.errors import StorageCorrupt
from omegad.storage.database import open_reader, open_scratch, translated
from omegad.storage.driver import Connection
from omegad.storage.transaction import snapshot

VERIFY_CHUNK = 5_000
PROBLEMS_MAX = 20

_ERASURES = (
    "SELECT e.position, p.body FROM events AS e JOIN payloads AS p USING (position) WHERE e.tag = ? AND"
    " e.position > ? ORDER BY e.position"
)

_ERASED = tag_of(PayloadErased)
_decode = msgspec.json.Decoder(PayloadErased).decode


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the log verifies: how many events did, the chain after them (hex), and the first position that
    does not.

    `problems` says what else is wrong, in words: with the file, or with an inline projection that is not what
    the events say.
    """

    ok: bool
    events: int
    head_hash: str
    first_bad: Position | None = None
    problems: tuple[str, ...] = ()


class Erasures:
    """Which payloads events say were erased, or aged. The log is searched for such events only once a payload
    is missing, and each part of it once.
    """

    def __init__(self) -> None:
        self._named: dict[Position, tuple[Position, str]] = {}
        self._aged = AgedPayloads()
        self._searched_to: Position = 0

    def excuse(self, connection: Connection, position: Position, found: bytes | None) -> bool:
        """Say whether a later event says that the payload at *position* was erased, or aged, and that what
        hashes to *found*, or nothing, is left of it.
        """
        if self._stands_for(connection, position, found):
            return True
        self._search(connection)
        return self._stands_for(connection, position, found)

    def _stands_for(self, connection: Connection, position: Position, found: bytes | None) -> bool:
        erased_at, _ = self._named.get(position, (0, ""))
        return erasure.stands_for(self._named, position, found) or self._aged.stands_for(
            connection, position, found, erased_at
        )

    def _search(self, connection: Connection) -> None:
        for at, body in connection.execute(_ERASURES, (_ERASED, self._searched_to)):
            self._named |= erasure.named_by(at, _decode(body))
        self._aged.search(connection, self._searched_to)
        self._searched_to = connection.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()[0]


class ChainCheck:
    """Verifies the chain part by part, from the first event or from where *link* is the chain."""

    def __init__(self, position: Position = 0, link: bytes = chain.GENESIS) -> None:
        self.report = LogReport(ok=True, events=position, head_hash=link.hex())
        self._erasures = Erasures()

    def verify(self, connection: Connection, limit: int) -> list[RawEvent]:
        """Verify up to *limit* events more; return those that do, which are none at the end and after one
        that does not.
        """
        link, position = bytes.fromhex(self.report.head_hash), self.report.events
        good: list[RawEvent] = []
        for row in reading.raw(connection, position, limit) if self.report.ok else ():
            found = self._linked(connection, link, row)
            if found is None or row.envelope[0] != position + 1 or found != row.chain:
                self.report = LogReport(
                    ok=False, events=position, head_hash=link.hex(), first_bad=position + 1
                )
                return good
            link, position = found, position + 1
            good.append(row)
        self.report = msgspec.structs.replace(self.report, events=position, head_hash=link.hex())
        return good

    def _linked(self, connection: Connection, link: bytes, row: RawEvent) -> bytes | None:
        """Return the chain after a row, None where its payload is neither what its event was hashed with nor
        what an erasure left of it.
        """
        try:
            found = None if row.body is None else chain.payload_hash(row.salt or b"", row.body)
            linked = chain.link(link, row.envelope)
        except (UnicodeEncodeError, TypeError, AttributeError, OverflowError):
            return None  # a value of a kind that the log never writes
        is_whole = found is not None and found == row.envelope[13]
        return linked if is_whole or self._erasures.excuse(connection, row.envelope[0], found) else None


def verify(path: Path, vocabulary: Vocabulary, progress: Callable[[int, int], None]) -> LogReport:
    """Check the file at *path*, the whole chain and the inline projections; *progress* is told how many
    events of how many.

    It is read in parts, between which whoever checkpoints it does so.
    """
    check = ChainCheck()
    try:
        with translated(), closing(open_reader(path)) as log:
            with snapshot(log):
                rows = log.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})").fetchall()
            problems = [f"the file is damaged: {found}" for (found,) in rows if found != "ok"]
            problems += _verify(check, log, vocabulary, progress)
    except StorageCorrupt as error:
        failed = msgspec.structs.replace(check.report, first_bad=check.report.events + 1)
        return msgspec.structs.replace(failed, ok=False, problems=(str(error),))
    return msgspec.structs.replace(
        check.report, ok=check.report.ok and not problems, problems=tuple(problems)
    )


def compare(path: Path, vocabulary: Vocabulary, progress: Callable[[int, int], None]) -> list[str]:
    """Say, in words, which inline projections are not what the events say; *progress* is told how many
    events of how many are shown.
    """
    with translated(), closing(open_reader(path)) as log:
        read = reading.source(log, vocabulary.codec, vocabulary.inline.other_tags(vocabulary.codec))
        return _replay(log, vocabulary, read, progress)


def _verify(
    check: ChainCheck, log: Connection, vocabulary: Vocabulary, progress: Callable[[int, int], None]
) -> list[str]:
    """Verify the chain to the head, and show every event that verifies to a replica."""

    def rows(count: int = VERIFY_CHUNK) -> list[RawEvent]:
        with nullcontext() if log.in_transaction else snapshot(log):
            return check.verify(log, count)

    others = {*vocabulary.inline.other_tags(vocabulary.codec)}

    def read(part: Part) -> list[RecordedEvent]:
        found = rows(min(VERIFY_CHUNK, part.through - part.after))
        asked_for = [row for row in found if row.envelope[2] not in others or row is found[-1]]
        return [row.recorded(vocabulary.codec) for row in asked_for]

    again = reading.source(log, vocabulary.codec, vocabulary.inline.other_tags(vocabulary.codec))
    before = reading.erased(log, END)
    problems = _replay(log, vocabulary, read, progress)
    while rows():
        progress(check.report.events, check.report.events)
    while problems and check.report.ok and before != (before := reading.erased(log, END)):
        problems = _replay(log, vocabulary, again, progress)
    return problems


def _replay(
    log: Connection, vocabulary: Vocabulary, read: Source, progress: Callable[[int, int], None]
) -> list[str]:
    """Show the log to a replica of the inline projections; say, in words, which of them fail, or differ at
    its end.

    What came meanwhile is shown at the moment at which they are compared: with details that went, whether
    they were read before or after, goes the event that says so. Of an erasure nothing is shown.
    """
    inline = vocabulary.inline
    with closing(open_scratch()) as replica:
        fold = inline.replica(replica)

        def show() -> Position:
            end = reading.head(log)
            ends = dict.fromkeys(fold.projections, end)
            fold.catch_up(replica, read, lambda: ends, progress)
            return end

        show()
        with snapshot(log):
            end, live = show(), inline.digests(log)
        failed = [failure(mark) for mark in fold.marks.values() if mark.failed_position is not None]
        if failed or any(mark.position != end for mark in fold.marks.values()):
            return failed
        replayed = inline.digests_of_replica(replica)
        return [
            f"the inline projection {name!r} is not what the {end} events say: it has {digest.rows} rows, a"
            f" replay {replayed[name].rows}"
            for name, digest in live.items()
            if digest != replayed[name]
        ]
