"""The verb that takes in what was exported, or what another memory system wrote.

Each memory, and each edge between two, is a request of its own that is the same whenever it is sent: an
import that was interrupted goes on when it is run again, and one that was not changes nothing.
"""

import asyncio
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

from omegad.client.asynchronous import AsyncClient
from omegad.edge.cli import transfer
from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import NAME, ask, ensure
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import one_line, warn, write_fields, write_json
from omegad.edge.cli.progress import counted
from omegad.edge.transfer import lines, sources
from omegad.edge.transfer.found import (
    EDGE_TYPES,
    ODD,
    UNREADABLE,
    Counts,
    Edge,
    Found,
    LeftOut,
    Other,
    Source,
    carry_over,
    expires_at,
    link,
    request,
)
from omegad.edge.transfer.log_file import Progress
from omegad.edge.transfer.reading import check_kind
from omegad.edge.transfer.references import references, renamed, steps
from omegad.memory.types import BUILT_IN
from omegad.runtime import config, digests
from omegad.runtime.digests import DigestKey
from omegad.runtime.errors import OmegadError
from omegad.runtime.json_types import Fields
from omegad.runtime.times import EPOCH, MICROSECOND
from omegad.text.redaction import redact

STORE = "memory.upsert"  # it has the time at which something was learned
LINK = "memory.link"
CARRY_OVER = "memory.carry_over"
AT_ONCE = 32  # which share the waits for the disk
PROBLEMS_SHOWN = 10
REFUSALS = frozenset({"refused", "invalid", "conflict", "not_found"})
ID_SHOWN = 80
DIGEST = re.compile(r"[0-9a-f]{16,128}")  # some systems name a memory by one of its text
COUNT = "SELECT count(*) FROM memories WHERE status = 'active'"

Request = Fields
T = TypeVar("T")
THESIS = "thesis"
"""What in a memory's metadata says that it is one, and is to find its evidence."""


class Wanted(NamedTuple):
    """A memory that is asked to be stored: those that its metadata name, and what was counted of it."""

    asked: Request
    names: frozenset[str]
    counts: Counts

    @property
    def source_id(self) -> str:
        """Their name for it."""
        return str(self.asked["metadata"]["imported"]["id"])

    @property
    def metadata(self) -> Fields:
        """What the other system keeps beside it."""
        return {name: value for name, value in self.asked["metadata"].items() if name != "imported"}


def run(arguments: Namespace, instance: Instance) -> int:
    """Take in a file, whatever it is."""
    if not arguments.file:
        raise WrongUsage("name a file")
    path = Path(arguments.file).expanduser()
    check_kind(path)
    if arguments.format is None and path.is_file() and lines.is_export(path):
        transfer.import_log(arguments, instance, path)
        return 0
    source = sources.source_of(path, arguments.format)
    tally = Tally()
    types = {*BUILT_IN, *config.load(instance.paths, instance.environ).event_types}
    requests = _named(list(_requests(path, source, types, tally)), source, tally)
    count = sum(map(len, requests))
    report: Fields = {"format": source.name, "found": tally.found, "dry_run": arguments.dry_run}
    if not arguments.dry_run:
        before = _count(instance)
        try:
            with counted("importing") as progress:
                ensure(instance)
                asyncio.run(_take_in(instance, source, requests, tally, progress))
        except OmegadError:
            warn(f"{tally.done} of {count} memories were imported before this: run it again to go on")
            raise
        report |= {"memories_before": before, "memories_after": _count(instance)}
    report |= {
        "to_store": count,
        **tally.outcomes,
        "left_out": dict(tally.left_out),
        "by_type": dict(tally.types),
    }
    report |= {"edges": len(tally.edges)} | ({} if arguments.dry_run else {"edges_drawn": tally.drawn})
    if not arguments.dry_run:
        report |= {"counts_carried_over": tally.counted}
    report |= {"changed": dict(tally.changed), "not_kept": len(tally.lost)}
    _tell(arguments, report, tally)
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
        self.counted = 0
        """How many memories came with what was counted of them."""
        self.changed = Counter[str]()
        """What has another word here."""
        self.lost: list[str] = []
        """What has no place here, or led to nothing."""
        self.gone: set[str] = set()
        """Their ids of what is left out."""

    def leave_out(self, one: LeftOut) -> None:
        """Count what is left out, and keep what is wrong with it, where something is."""
        self.left_out[one.why] += 1
        self.gone.add(one.source_id)
        if one.problem:
            self.problems.append(f"{one.source_id[:ID_SHOWN]}: {one.problem}")

    @property
    def done(self) -> int:
        """How many were sent and answered."""
        return sum(self.outcomes.values())


def _requests(path: Path, source: Source, types: set[str], tally: Tally) -> Iterator[Wanted]:
    """Yield the request of each memory that the other system finds itself."""
    now_us = (datetime.now(UTC) - EPOCH) // MICROSECOND
    for one in sources.read(path, source):
        if isinstance(one, Edge):
            tally.edges.append(one)
            kind = source.edge_types.get(one.edge_type, one.edge_type)
            if kind not in EDGE_TYPES:
                tally.changed[f"edge {one.edge_type} → related"] += 1
            continue
        if isinstance(one, Other):
            tally.lost.append(f"{one.what}: {one.rows} rows")
            continue
        tally.found += 1
        if isinstance(one, LeftOut):
            tally.leave_out(one)
        elif (until := expires_at(one)) is not None and until <= now_us:
            tally.leave_out(LeftOut(one.source_id, "expired"))
        else:
            try:
                asked = request(one, source, types)
            except ODD as error:
                tally.leave_out(LeftOut(one.source_id, UNREADABLE, repr(error)[:200]))
                continue
            tally.types[str(asked["event_type"])] += 1
            if asked["event_type"] != one.event_type:
                tally.changed[f"type {one.event_type} → {asked['event_type']}"] += 1
            wanted = Wanted(asked, frozenset(), one.counts)
            tally.lost += _unkept(one, wanted)
            yield wanted


def _unkept(found: Found, wanted: Wanted) -> Iterator[str]:
    """Yield what of a memory has no room."""
    tags = [tag for tag in found.tags if tag.strip() not in wanted.asked["tags"]]
    if tags:
        yield f"{found.source_id[:ID_SHOWN]}: tags {', '.join(tags)}: too many, or too long"
    left = [name for name, value in found.metadata.items() if wanted.metadata.get(name) != value]
    if left:
        yield f"{found.source_id[:ID_SHOWN]}: {', '.join(left)} of its metadata: too large"


def _named(requests: list[Wanted], source: Source, tally: Tally) -> list[list[Wanted]]:
    """Return the requests with the memories that each names, in steps: what is named comes before."""
    ids = {one.source_id for one in requests}
    found = list[Wanted]()
    for one in requests:
        names = references(one.metadata, ids.__contains__) - {one.source_id}
        for name in sorted(
            references(one.metadata, lambda name: name in tally.gone or source.names(name)) - ids
        ):
            tally.lost.append(f"{one.source_id[:ID_SHOWN]}: names {name[:ID_SHOWN]}, which is not imported")
        asked = one.asked
        if names:  # with ids of ours in it, it is not the request that an earlier version made
            asked = asked | {"request_id": f"{asked['request_id']}-{len(names)}"}
        found.append(Wanted(asked, frozenset(names), one.counts))
    refers = {one.source_id: sorted(one.names) for one in found}
    step = steps(refers, [one.source_id for one in found if one.metadata.get(THESIS) is True])
    ordered = sorted(found, key=lambda one: step[one.source_id])
    return [list(together) for _, together in groupby(ordered, lambda one: step[one.source_id])]


async def _take_in(
    instance: Instance, source: Source, requests: Sequence[list[Wanted]], tally: Tally, progress: Progress
) -> None:
    async with AsyncClient(instance.paths.socket, name=NAME) as client:
        head = (await client.call("system.status"))["log"]["head"]
        key = digests.opened(instance.paths.digest_key)  # which the service has made, if nobody had
        every, taking = [one for step in requests for one in step], Taking(client, source, key, tally)

        async def store(wanted: Wanted) -> None:
            await taking.store(wanted, head)
            progress(tally.done, len(every), "memories")

        async def draw(asked: Request) -> None:
            await taking.draw(asked)
            progress(tally.drawn, len(drawn), "edges")

        for step in requests:
            await _each(step, store)
        await _each(taking.unfinished, taking.finish)
        await _each([one for one in every if one.counts != Counts()], taking.count)
        drawn = [asked for edge in tally.edges if (asked := link(edge, source, tally.ids))]
        tally.lost += [
            f"{edge.source_id[:ID_SHOWN]}: {edge.edge_type} {edge.target_id[:ID_SHOWN]}:"
            " one of both is not here"
            for edge in tally.edges
            if link(edge, source, tally.ids) is None
        ]
        await _each(drawn, draw)


async def _each(requests: Iterable[T], send: Callable[[T], Awaitable[None]]) -> None:
    waiting = iter(requests)

    async def work() -> None:
        for asked in waiting:
            await send(asked)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


class Taking:
    """Sends what a file holds, and keeps what came of it."""

    def __init__(self, client: AsyncClient, source: Source, key: DigestKey, tally: Tally) -> None:
        self._client = client
        self._source = source
        self._key = key
        self._tally = tally
        self.unfinished: list[Wanted] = []
        """What was stored before some of what it names."""

    async def store(self, wanted: Wanted, head: int) -> None:
        """Store a memory; what stands in the log by *head* was imported before."""
        tally, source_id = self._tally, wanted.source_id
        asked = wanted.asked | {"metadata": self._metadata(wanted)}
        is_whole = wanted.names <= tally.ids.keys()
        try:
            answer = await self._client.call(STORE, **_without_guesses(asked, self._key))
        except OmegadError as error:
            _expected(error)
            tally.outcomes["refused"] += 1
            tally.problems.append(f"{source_id[:ID_SHOWN]}: {error}")
            return
        is_new = answer["outcome"] == "stored"
        is_known = answer["position"] <= head
        tally.outcomes["already_imported" if is_known else "stored" if is_new else "duplicate"] += 1
        tally.ids[source_id] = answer["memory_id"]
        if not is_new and wanted.metadata:
            said = f"{answer['memory_id']} says that already, and keeps its own metadata"
            tally.lost.append(f"{source_id[:ID_SHOWN]}: {said}")
        elif not is_whole:
            self.unfinished.append(wanted)

    async def finish(self, wanted: Wanted) -> None:
        """Let a memory that was stored before what it names say our ids of that."""
        kept = ("content", "source", "timestamp", "confidence", "ack")
        params = {name: wanted.asked[name] for name in kept} | {
            "memory_id": self._tally.ids[wanted.source_id],
            "metadata": self._metadata(wanted),
            "request_id": f"{wanted.asked['request_id']}-named",
        }
        try:
            await self._client.call(STORE, **_without_guesses(params, self._key))
        except OmegadError as error:
            _expected(error)
            self._tally.lost.append(f"{wanted.source_id[:ID_SHOWN]}: names ids that are not ours: {error}")

    async def count(self, wanted: Wanted) -> None:
        """Carry over what was counted of a memory."""
        memory_id = self._tally.ids.get(wanted.source_id)
        if memory_id is None:
            return
        params = carry_over(memory_id, wanted.asked, wanted.counts, self._source)
        try:
            await self._client.call(
                CARRY_OVER, **params | {"request_id": self._key.named(str(params["request_id"]))}
            )
        except OmegadError as error:
            _expected(error)
            why = "others came before" if error.kind == "conflict" else str(error)
            self._tally.lost.append(f"{wanted.source_id[:ID_SHOWN]}: what was counted of it: {why}")
        else:
            self._tally.counted += 1

    async def draw(self, asked: Request) -> None:
        """Draw an edge."""
        try:
            await self._client.call(LINK, **asked | {"request_id": self._key.named(asked["request_id"])})
        except OmegadError as error:
            _expected(error)
            self._tally.problems.append(f"an edge of {asked['memory_id']}: {error}")
        else:
            self._tally.drawn += 1

    def _metadata(self, wanted: Wanted) -> Fields:
        """Return the metadata of a memory, in which what has been stored has our ids.

        What has not, and is named by a digest, has one that is made with the key: no guess of its text can be
        held against that.
        """
        others = wanted.names | references(wanted.metadata, self._tally.gone.__contains__)
        ids = {name: self._key.of(name.encode()).hex() for name in others if DIGEST.fullmatch(name)}
        ids |= {name: self._tally.ids[name] for name in wanted.names if name in self._tally.ids}
        return {**renamed(wanted.metadata, ids), "imported": wanted.asked["metadata"]["imported"]}


def _expected(error: OmegadError) -> None:
    """Raise an error again unless it is about what was sent."""
    if error.kind not in REFUSALS:
        raise error


def _without_guesses(asked: Request, key: DigestKey) -> Request:
    """Return a request in which nothing is a digest of the text as it is, against which a guess of a
    secret in it could be held.
    """
    keyed = asked | {"request_id": key.named(asked["request_id"])}
    imported = asked["metadata"]["imported"]
    if DIGEST.fullmatch(imported["id"]) and redact(asked["content"])[1]:
        keyed["metadata"] = asked["metadata"] | {
            "imported": imported | {"id": key.of(imported["id"].encode()).hex()}
        }
    return keyed


def _count(instance: Instance) -> int:
    """Return how many memories are active once the views show the whole log."""
    head = ask(instance, "system.status")["log"]["head"]
    return int(ask(instance, "audit.sql", sql=COUNT, min_position=head)["rows"][0][0])


def _tell(arguments: Namespace, report: Fields, tally: Tally) -> None:
    if arguments.json:
        write_json(report | {"not_kept": tally.lost, "problems": tally.problems})
        return
    for said, those in (("not imported", tally.problems), ("not kept", tally.lost)):
        for one in those[:PROBLEMS_SHOWN]:
            warn(f"{said}: {one_line(one)}")
        if len(those) > PROBLEMS_SHOWN:
            warn(f"and {len(those) - PROBLEMS_SHOWN} more; --json names all")
    write_fields((name.replace("_", " "), _shown(value)) for name, value in report.items())


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count:,}" for name, count in value.items()) or "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
