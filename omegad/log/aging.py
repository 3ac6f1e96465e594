"""What a home says of an event only for so long: when its time is over, what remains of it is put in place of
its payload, and an event says so, by which policy and of how many.

The chain covers that event, which has the hashes of what remains, and so they verify in place of what the
payloads' own events were hashed with. What remains is an event of its own class, which counts as the one that
it remains of.
"""

import secrets
from base64 import b64decode, b64encode
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import msgspec

from omegad.log import chain
from omegad.log.codec import Codec, tag_of
from omegad.log.event import Event, GivenName, MadeDigest, Position
from omegad.storage.driver import Connection

HASH_BYTES = 16
"""Of each hash, so many bytes stand in the event: nobody finds another payload that has the same."""

_NAME = "INSERT OR IGNORE INTO erasures VALUES (?)"
_WIPE = "DELETE FROM payloads WHERE position = ?"
_LEAVE = "INSERT INTO payloads VALUES (?, ?, ?)"
_UNNAME = "DELETE FROM erasures WHERE position = ?"
_SAID = (
    "SELECT e.position, p.body FROM events AS e JOIN payloads AS p USING (position) WHERE e.tag = ? AND"
    " e.position > ? ORDER BY e.position"
)
_BODY = "SELECT body FROM payloads WHERE position = ?"


class PayloadsAged(Event, frozen=True, kw_only=True, tag="payloads.aged@1"):
    """The details of one `kind` of event went, of those after the position `after` up to `through`, which
    were recorded more than so many `days` before.

    `steps` are from one position to the next, the first of them from `after`; `hashes` has the first 16 bytes
    of the hash of what remains at each, in base64, zeros where nothing does. `counts` are by tag; `freed` is
    how many bytes of payloads that is less.
    """

    kind: GivenName
    days: int
    after: Position
    through: Position
    steps: tuple[int, ...]
    hashes: MadeDigest
    counts: dict[GivenName, int]
    freed: int

    @property
    def left(self) -> Iterator[tuple[Position, bytes]]:
        """Where the events stand, in order, each with so much of the hash of what remains there."""
        raw = b64decode(self.hashes)
        for place, far in enumerate(accumulate(self.steps)):
            yield self.after + far, raw[HASH_BYTES * place : HASH_BYTES * (place + 1)]


class Remains(msgspec.Struct, frozen=True, gc=False):
    """What is left at a position: the salt and body of a payload, None where nothing is."""

    position: Position
    salt: bytes
    body: bytes | None

    @property
    def short_hash(self) -> bytes:
        """The hash of it, as `PayloadsAged` has it."""
        return short_hash(None if self.body is None else chain.payload_hash(self.salt, self.body))


def remains(position: Position, event: Event | None, codec: Codec) -> Remains:
    """Return what is left at a position where *event* is to stand, or nothing."""
    body = None if event is None else codec.encode(event)
    return Remains(position, secrets.token_bytes(chain.SALT_BYTES), body)


def short_hash(payload_hash: bytes | None) -> bytes:
    """Return so much of a hash as `PayloadsAged` has, zeros of none."""
    return bytes(HASH_BYTES) if payload_hash is None else payload_hash[:HASH_BYTES]


def written(after: Position, left: Sequence[Remains]) -> tuple[tuple[int, ...], str]:
    """Return what is *left* after a position as `steps` and `hashes` have it."""
    places = [after, *(one.position for one in left)]
    hashes = b64encode(b"".join(one.short_hash for one in left)).decode()
    return tuple(there - here for here, there in pairwise(places)), hashes


def replace(connection: Connection, left: Iterable[Remains]) -> None:
    """Put what remains in place of payloads, in the transaction that is open; the event that tells of it is
    part of it.
    """
    for one in left:
        at = (one.position,)
        connection.execute(_NAME, at)
        connection.execute(_WIPE, at)
        connection.execute(_UNNAME, at)  # it is not erased, and not to be counted among what is
        if one.body is not None:
            connection.execute(_LEAVE, (one.position, one.salt, one.body.decode()))


class AgedPayloads:
    """Of which payloads events say that they aged, and what is left of them. Of a log of any length it holds
    where such events are, and what the latest few of them say.
    """

    def __init__(self) -> None:
        self._ends: dict[str, list[Position]] = defaultdict(list)
        self._told: dict[str, list[tuple[Position, Position]]] = defaultdict(list)
        self._read = lru_cache(4)(_hashes)

    def add(self, at: Position, event: PayloadsAged) -> None:
        """Note one such event and where it stands; they are added in their order."""
        self._ends[event.kind].append(event.through)
        self._told[event.kind].append((at, event.after))

    def search(self, connection: Connection, after: Position) -> None:
        """Note all of them after a position."""
        for at, body in connection.execute(_SAID, (tag_of(PayloadsAged), after)):
            self.add(at, msgspec.json.decode(body, type=PayloadsAged))

    def stands_for(
        self, connection: Connection, position: Position, found: bytes | None, since: Position
    ) -> bool:
        """Say whether an event after *position*, and after *since*, says that what hashes to *found*, or
        nothing, is left there.
        """
        for kind, ends in self._ends.items():
            place = bisect_left(ends, position)
            while place < len(ends):
                at, after = self._told[kind][place]
                if after >= position:
                    break
                left = self._read(connection, at).get(position) if at > max(position, since) else None
                if left == short_hash(found):
                    return True
                place += 1
        return False


def _hashes(connection: Connection, at: Position) -> dict[Position, bytes]:
    row = connection.execute(_BODY, (at,)).fetchone()
    return dict(msgspec.json.decode(row[0], type=PayloadsAged).left) if row else {}
