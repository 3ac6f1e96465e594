"""The verb that takes in what was exported, or what another memory system wrote.

Each memory, and each edge between two, is a request of its own that is the same whenever it is sent: an import that was interrupted goes on
when it is run again, and one that was not changes nothing.
"""

import asyncio
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from omegad.edge.cli import transfer
from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import NAME, ask, ensure
from omegad.edge.cli.place import Place
from omegad.edge.cli.printing import one_line, warn, write_fields, write_json
from omegad.edge.transfer import lines, sources
from omegad.edge.transfer.found import ODD, UNREADABLE, Edge, LeftOut, Source, expires_at, link, request
from omegad.edge.transfer.log_file import Progress
from omegad.edge.transfer.reading import check_kind
from omegad.rpc.async_client import AsyncClient
from omegad.runtime import digests
from omegad.runtime.digests import DigestKey
from omegad.runtime.errors import OmegadError
from omegad.runtime.times import EPOCH, MICROSECOND
from omegad.text.redaction import redact

STORE = "memory.upsert"  # it has the time at which something was learned
LINK = "memory.link"
AT_ONCE = 32  # which share the waits for the disk
PROBLEMS_SHOWN = 10
REFUSALS = frozenset({"refused", "invalid", "conflict", "not_found"})
ID_SHOWN = 80
DIGEST = re.compile(r"[0-9a-f]{16,128}")  # some systems name a memory by one of its text
COUNT = "SELECT count(*) FROM memories WHERE status = 'active'"

Request = dict[str, Any]


def run(arguments: Namespace, place: Place) -> int:
    """Take in a file, whatever it is."""
    if not arguments.file:
        raise WrongUsage("name a file")
    path = Path(arguments.file).expanduser()
    check_kind(path)
    if arguments.format is None and path.is_file() and lines.is_export(path):
        return transfer.import_log(arguments, place, path)
    source = sources.source_of(path, arguments.format)
    tally = Tally()
    requests = list(_requests(path, source, tally))
    report: dict[str, Any] = {"format": source.name, "found": tally.found, "dry_run": arguments.dry_run}
    if not arguments.dry_run:
        before = _count(place)
        try:
            with transfer.drawn("importing") as progress:
                ensure(place)
                asyncio.run(_take_in(place, source, requests, tally, progress))
        except OmegadError:
            warn(f"{tally.done} of {len(requests)} memories were imported before this: run it again to go on")
            raise
        report |= {"memories_before": before, "memories_after": _count(place)}
    report |= {"to_store": len(requests), **tally.outcomes, "left_out": dict(tally.left_out), "by_type": dict(tally.types)}
    report |= {"edges": len(tally.edges)} | ({} if arguments.dry_run else {"edges_drawn": tally.drawn})
    _tell(arguments, report, tally.problems)
    return 1 if tally.problems else 0


class Tally:
    """What has come of the memories of a file so far."""

    def __init__(self) -> None:
        self.found = 0
        self.left_out = Counter[str]()
        self.types = Counter[str]()
        self.outcomes = dict.fromkeys(("stored", "duplicate", "already_imported", "refused"), 0)
        self.problems: list[str] = []
        self.ids: dict[str, str] = {}
        """Ours, by theirs."""
        self.edges: list[Edge] = []
        self.drawn = 0

    def leave_out(self, one: LeftOut) -> None:
        """Count what is left out, and keep what is wrong with it, where something is."""
        self.left_out[one.why] += 1
        if one.problem:
            self.problems.append(f"{one.source_id[:ID_SHOWN]}: {one.problem}")

    @property
    def done(self) -> int:
        """How many were sent and answered."""
        return sum(self.outcomes.values())


def _requests(path: Path, source: Source, tally: Tally) -> Iterator[Request]:
    """Yield the request of each memory that the other system finds itself."""
    now_us = (datetime.now(UTC) - EPOCH) // MICROSECOND
    for one in sources.read(path, source):
        if isinstance(one, Edge):
            tally.edges.append(one)
            continue
        tally.found += 1
        if isinstance(one, LeftOut):
            tally.leave_out(one)
        elif (until := expires_at(one)) is not None and until <= now_us:
            tally.left_out["expired"] += 1
        else:
            try:
                asked = request(one, source)
            except ODD as error:
                tally.leave_out(LeftOut(one.source_id, UNREADABLE, repr(error)[:200]))
                continue
            tally.types[str(asked["event_type"])] += 1
            yield asked


async def _take_in(place: Place, source: Source, requests: Sequence[Request], tally: Tally, progress: Progress) -> None:
    async with AsyncClient(place.paths.socket, name=NAME) as client:
        head = (await client.call("system.status"))["log"]["head"]
        key = digests.opened(place.paths.digest_key)  # which the service has made, if nobody had

        async def store(asked: Request) -> None:
            await _store(client, asked, key, tally, head)
            progress(tally.done, len(requests), "memories")

        async def draw(asked: Request) -> None:
            try:
                await client.call(LINK, **asked | {"request_id": key.named(asked["request_id"])})
            except OmegadError as error:
                if error.kind not in REFUSALS:
                    raise
                tally.problems.append(f"an edge of {asked['memory_id']}: {error}")
                return
            tally.drawn += 1
            progress(tally.drawn, len(drawn), "edges")

        await _each(requests, store)
        drawn = [asked for edge in tally.edges if (asked := link(edge, source, tally.ids))]
        await _each(drawn, draw)


async def _each(requests: Iterable[Request], send: Callable[[Request], Awaitable[None]]) -> None:
    waiting = iter(requests)

    async def work() -> None:
        for asked in waiting:
            await send(asked)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


async def _store(client: AsyncClient, asked: Request, key: DigestKey, tally: Tally, head: int) -> None:
    source_id = asked["metadata"]["imported"]["id"]
    try:
        answer = await client.call(STORE, **_without_guesses(asked, key))
    except OmegadError as error:
        if error.kind not in REFUSALS:
            raise
        tally.outcomes["refused"] += 1
        tally.problems.append(f"{source_id[:ID_SHOWN]}: {error}")
    else:
        outcome = "already_imported" if answer["position"] <= head else "stored" if answer["outcome"] == "stored" else "duplicate"
        tally.outcomes[outcome] += 1
        tally.ids[source_id] = answer["memory_id"]


def _without_guesses(asked: Request, key: DigestKey) -> Request:
    """Return a request in which nothing is a digest of the text as it is, against which a guess of a secret in it could be held."""
    keyed = asked | {"request_id": key.named(asked["request_id"])}
    imported = asked["metadata"]["imported"]
    if DIGEST.fullmatch(imported["id"]) and redact(asked["content"])[1]:
        keyed["metadata"] = asked["metadata"] | {"imported": imported | {"id": key.of(imported["id"].encode()).hex()}}
    return keyed


def _count(place: Place) -> int:
    """Return how many memories are active once the views show the whole log."""
    head = ask(place, "system.status")["log"]["head"]
    return int(ask(place, "audit.sql", sql=COUNT, min_position=head)["rows"][0][0])


def _tell(arguments: Namespace, report: dict[str, Any], problems: list[str]) -> None:
    if arguments.json:
        write_json(report | {"problems": problems})
        return
    for problem in problems[:PROBLEMS_SHOWN]:
        warn(f"not imported: {one_line(problem)}")
    if len(problems) > PROBLEMS_SHOWN:
        warn(f"and {len(problems) - PROBLEMS_SHOWN} more; --json names all")
    write_fields((name.replace("_", " "), _shown(value)) for name, value in report.items())


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count:,}" for name, count in value.items()) or "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
