"""What the home's files grow by: events by kind, and how much of each file its tables and indexes take.

The files are read in a process of its own: one that closes a file lets go of the locks that SQLite has on it.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.operations.services import DaemonServices
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.rpc.peer import Call
from omegad.storage.pages import FileParts
from omegad.views.workers import Measurement

DAY_US = 86_400_000_000
COUNTED_AT_ONCE = 20_000
WAITING = "write-ahead log"
"""What was written and is not in its table's pages yet, and the room for that."""


class MeasureGrowth(Request, frozen=True, kw_only=True, tag="system.growth"):
    """Say what the log grew by lately, by kind of event, and what takes how much of each file."""

    days: Annotated[int, Meta(ge=1, le=366, description="how many days to look back")] = 14


class KindGrowth(msgspec.Struct, frozen=True, kw_only=True):
    """Events of one tag: how many there were, and the bytes of their payloads and, about, of their rows
    beside these.
    """

    tag: str
    events: int
    payload_bytes: int
    row_bytes: int


class PartSize(msgspec.Struct, frozen=True, kw_only=True):
    """What takes so many bytes of a file: a table, an index, what is free, or the ends of long rows."""

    file: str
    kind: str
    name: str
    bytes: int


class Grown(msgspec.Struct, frozen=True, kw_only=True):
    """What the log grew by within so many days, of which the log has `logged_days` and, where `is_whole`, no
    more; and what is in which file; the largest first.
    """

    days: int
    logged_days: float
    kinds: list[KindGrowth]
    parts: list[PartSize]
    is_whole: bool = False


class Growth:
    """Measures it."""

    def __init__(self, services: DaemonServices, embeddings: Path) -> None:
        self._services = services
        self._embeddings = embeddings

    async def measure(self, request: MeasureGrowth, _call: Call) -> Grown:
        """Count the events, and read the inner pages of the files."""
        log, now_us = self._services.log, self._services.clock.now_us()
        since_us = now_us - request.days * DAY_US
        after = await log.position_at(since_us, now_us)
        first = await log.read_at([after + 1])
        events, payloads, rows = Counter[str](), Counter[str](), Counter[str]()
        for start in range(after, log.head, COUNTED_AT_ONCE):
            for tag, many, payload, row in await log.sizes(start, start + COUNTED_AT_ONCE):
                events[tag] += many
                payloads[tag] += payload
                rows[tag] += row
        kinds = [
            KindGrowth(tag=tag, events=many, payload_bytes=payloads[tag], row_bytes=rows[tag])
            for tag, many in events.items()
        ]
        files = {"log": log.path, "views": self._services.views.file, "embeddings": self._embeddings}
        return Grown(
            days=request.days,
            logged_days=round((now_us - first[0].recorded_at) / DAY_US, 2) if first else 0.0,
            kinds=sorted(kinds, key=lambda one: -(one.payload_bytes + one.row_bytes)),
            parts=[
                one
                for name, path in files.items()
                for one in _parts(
                    name, path, await self._services.views.workers.done(Measurement(path), FileParts, _untold)
                )
            ],
            is_whole=after == 0,
        )


def _untold(_done: int, _total: int) -> None:
    pass


def _parts(name: str, path: Path, found: FileParts) -> list[PartSize]:
    rest = {"ends of long rows": found.overflow_bytes, "free": found.free_bytes, WAITING: _waiting(path)}
    sizes = [PartSize(file=name, kind=one.kind, name=one.name, bytes=one.bytes) for one in found.parts]
    sizes += [PartSize(file=name, kind="rest", name=what, bytes=many) for what, many in rest.items() if many]
    return sorted(sizes, key=lambda one: -one.bytes)


def _waiting(path: Path) -> int:
    with suppress(OSError):
        return path.with_name(f"{path.name}-wal").stat().st_size
    return 0


METHODS = (ServiceMethod(params=MeasureGrowth, answer=Grown, verb=None),)
