"""The verb that takes in what was exported, or what another memory system wrote.

Each memory, and each edge between two, is a request of its own that is the same whenever it is sent: an
import that was interrupted goes on when it is run again, and one that was not changes nothing.
"""

import asyncio
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, TypeVar

from omegad.client.asynchronous import AsyncClient
from omegad.edge.cli import transfer
from omegad.edge.cli.connection import ANSWER_S, NAME, Answer, ask, ensure
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    counted,
    one_line,
    warn,
    write_fields,
    write_json,
)
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
from omegad.runtime.errors import NoAnswer, NoDaemon, OmegadError, ShuttingDown
from omegad.runtime.json_types import Fields
from omegad.runtime.times import EPOCH, MICROSECOND
from omegad.text.redaction import redact

LINK = "memory.link"
CARRY_OVER = "memory.carry_over"
AT_ONCE = 32  # which share the waits for the disk
PROBLEMS_SHOWN = 10
REFUSALS = frozenset({"refused", "invalid", "conflict", "not_found"})
ID_SHOWN = 80
OUTCOMES = ("stored", "duplicate", "already_imported", "refused")
DIGEST = re.compile(r"[0-9a-f]{16,128}")  # some systems name a memory by one of its text
COUNT = "SELECT count(*) FROM memories WHERE status = 'active'"

T = TypeVar("T")
THESIS = "thesis"
"""What in a memory's metadata says that it is one, and is to find its evidence."""


class Wanted(NamedTuple):
    """A memory that is asked to be stored: those that its metadata name, and what was counted of it."""

    asked: Fields
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
    path = transfer.given(arguments)
    check_kind(path)
    if arguments.format is None and path.is_file() and lines.is_export(path):
        transfer.import_log(arguments, instance, path)
        return 0
    taken = Import(sources.source_of(path, arguments.format))
    types = {*BUILT_IN, *config.load(instance.paths, instance.environ).event_types}
    steps = taken.in_steps(list(taken.requests(path, types)))
    count = sum(map(len, steps))
    report: Fields = {
        "format": taken.source.name,
        "found": count + taken.left_out.total(),
        "dry_run": arguments.dry_run,
    }
    if not arguments.dry_run:
        ensure(instance, makes_home=True)
        report["memories_before"] = _count(instance)
        try:
            with counted("importing") as progress:
                asyncio.run(taken.take_in(instance, steps, progress))
            report["memories_after"] = _count(instance)
        except OmegadError as error:
            if isinstance(error, (NoAnswer, NoDaemon, ShuttingDown)):
                error.hint = "run it again: it goes on where it stopped"
            warn(
                f"{sum(taken.outcomes.values())} of {count} memories were imported before this: run it again"
                " to go on"
            )
            raise
    report |= {
        "to_store": count,
        **taken.outcomes,
        "left_out": dict(taken.left_out),
        "by_type": dict(taken.types),
        "edges": len(taken.edges),
    }
    if not arguments.dry_run:
        report |= {"edges_drawn": taken.drawn, "counts_carried_over": taken.counted}
    report |= {"changed": dict(taken.changed), "not_kept": len(taken.lost)}
    _tell(arguments, report, taken)
    return 1 if taken.problems else 0


@dataclass
class Import:
    """What a file holds, and what has come of it so far."""

    source: Source
    left_out: Counter[str] = field(default_factory=Counter)
    gone: set[str] = field(default_factory=set)
    """Their ids of what is left out."""
    types: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    """What has another word here."""
    edges: list[Edge] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    ids: dict[str, str] = field(default_factory=dict)
    """Ours, by theirs."""
    unfinished: list[Wanted] = field(default_factory=list)
    """What was stored before some of what it names."""
    counted: int = 0
    """How many memories came with what was counted of them."""
    drawn: int = 0
    problems: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """What has no place here, or led to nothing."""
    client: AsyncClient = field(init=False)
    key: DigestKey = field(init=False)
    silence: asyncio.Timeout = field(init=False)
    """Ends it where nothing at all is answered for `ANSWER_S`."""
    head: int = 0
    """Where the log ended before: what stands up to there was imported earlier."""

    def requests(self, path: Path, types: set[str]) -> Iterator[Wanted]:
        """Yield the request of each memory that the other system finds itself, and note what else it has."""
        for one in sources.read(path, self.source):
            match one:
                case Edge(edge_type=kind):
                    self.edges.append(one)
                    if self.source.edge_types.get(kind, kind) not in EDGE_TYPES:
                        self.changed[f"edge {kind} → related"] += 1
                case Other():
                    self.lost.append(f"{one.what}: {one.rows} rows")
                case _:
                    wanted = self._wanted(one, types) if isinstance(one, Found) else one
                    if isinstance(wanted, Wanted):
                        yield wanted
                        continue
                    self.left_out[wanted.why] += 1
                    self.gone.add(wanted.source_id)
                    if wanted.problem:
                        self.problems.append(f"{wanted.source_id[:ID_SHOWN]}: {wanted.problem}")

    def _wanted(self, found: Found, types: set[str]) -> Wanted | LeftOut:
        """Return the request of a memory, having noted what of it has no room; or why it is left out."""
        until, now_us = expires_at(found), (datetime.now(UTC) - EPOCH) // MICROSECOND
        if until is not None and until <= now_us:
            return LeftOut(found.source_id, "expired")
        try:
            asked = request(found, self.source, types)
        except ODD as error:
            return LeftOut(found.source_id, UNREADABLE, repr(error)[:200])
        self.types[str(asked["event_type"])] += 1
        if asked["event_type"] != found.event_type:
            self.changed[f"type {found.event_type} → {asked['event_type']}"] += 1
        wanted = Wanted(asked, frozenset(), found.counts)
        if tags := [tag for tag in found.tags if tag.strip() not in wanted.asked["tags"]]:
            self.lost.append(f"{found.source_id[:ID_SHOWN]}: tags {', '.join(tags)}: too many, or too long")
        if left := [name for name, value in found.metadata.items() if wanted.metadata.get(name) != value]:
            self.lost.append(f"{found.source_id[:ID_SHOWN]}: {', '.join(left)} of its metadata: too large")
        return wanted

    def in_steps(self, requests: list[Wanted]) -> list[list[Wanted]]:
        """Return the requests with the memories that each names, in steps: what is named comes before."""
        ids = {one.source_id for one in requests}
        found = list[Wanted]()
        for one in requests:
            names = references(one.metadata, ids.__contains__) - {one.source_id}
            unknown = references(one.metadata, lambda name: name in self.gone or self.source.names(name))
            self.lost += [
                f"{one.source_id[:ID_SHOWN]}: names {name[:ID_SHOWN]}, which is not imported"
                for name in sorted(unknown - ids)
            ]
            asked = one.asked
            if names:  # with ids of ours in it, it is not the request that an earlier version made
                asked = asked | {"request_id": f"{asked['request_id']}-{len(names)}"}
            found.append(Wanted(asked, frozenset(names), one.counts))
        refers = {one.source_id: sorted(one.names) for one in found}
        step = steps(refers, [one.source_id for one in found if one.metadata.get(THESIS) is True])
        ordered = sorted(found, key=lambda one: step[one.source_id])
        return [list(together) for _, together in groupby(ordered, lambda one: step[one.source_id])]

    async def take_in(self, instance: Instance, steps: Sequence[list[Wanted]], progress: Progress) -> None:
        """Store the memories step by step, let them name what came later, carry over what was counted, and
        draw the edges. Raises `NoAnswer` where nothing at all is answered for `ANSWER_S`.
        """
        async with AsyncClient(instance.paths.socket, name=NAME) as self.client:
            try:
                async with asyncio.timeout(ANSWER_S) as self.silence:
                    await self._all_taken_in(instance, steps, progress)
            except TimeoutError:
                raise NoAnswer(f"nothing was answered for {ANSWER_S:g} s") from None

    async def _all_taken_in(
        self, instance: Instance, steps: Sequence[list[Wanted]], progress: Progress
    ) -> None:
        self.head = (await self._answered("system.status"))["log"]["head"]
        self.key = digests.opened(instance.paths.digest_key)  # which the service has made, if nobody had
        every = [one for step in steps for one in step]
        for step in steps:
            await _each(
                step, self._store, lambda: progress(sum(self.outcomes.values()), len(every), "memories")
            )
        await _each(self.unfinished, self._finish)
        await _each([one for one in every if one.counts != Counts()], self._count)
        links = [link(edge, self.source, self.ids) for edge in self.edges]
        self.lost += [
            f"{edge.source_id[:ID_SHOWN]}: {edge.edge_type} {edge.target_id[:ID_SHOWN]}:"
            " one of both is not here"
            for edge, asked in zip(self.edges, links, strict=True)
            if asked is None
        ]
        drawn = [asked for asked in links if asked]
        await _each(drawn, self._draw, lambda: progress(self.drawn, len(drawn), "edges"))

    async def _sent(self, method: str, asked: Fields, noted: list[str], what: str) -> Answer | None:
        """Return what is answered; None where what was sent is refused, and why that is of *what* is *noted*.
        The digest in its `request_id`, against which a guess of a secret could be held, is made with the key
        before.
        """
        named = asked | {"request_id": self.key.named(str(asked["request_id"]))}
        try:
            return await self._answered(method, **named)
        except OmegadError as error:
            if error.kind not in REFUSALS:
                raise
            is_late = method == CARRY_OVER and error.kind == "conflict"
            noted.append(f"{what}: {'others came before' if is_late else error}")
            return None

    async def _answered(self, method: str, **asked: object) -> Answer:
        """Return what is answered, and note that something was."""
        try:
            answer = await self.client.call(method, **asked)
        except OmegadError:
            self._hear()
            raise
        self._hear()
        return answer

    def _hear(self) -> None:
        self.silence.reschedule(asyncio.get_running_loop().time() + ANSWER_S)

    async def _store(self, wanted: Wanted) -> None:
        is_whole = wanted.names <= self.ids.keys()
        asked = wanted.asked | {"metadata": self._metadata(wanted)}
        answer = await self._sent(transfer.STORE, asked, self.problems, wanted.source_id[:ID_SHOWN])
        if answer is None:
            self.outcomes["refused"] += 1
            return
        is_new = answer["outcome"] == "stored"
        is_known = answer["position"] <= self.head
        self.outcomes["already_imported" if is_known else "stored" if is_new else "duplicate"] += 1
        self.ids[wanted.source_id] = answer["memory_id"]
        if not is_new and wanted.metadata:
            said = f"{answer['memory_id']} says that already, and keeps its own metadata"
            self.lost.append(f"{wanted.source_id[:ID_SHOWN]}: {said}")
        elif not is_whole:
            self.unfinished.append(wanted)

    async def _finish(self, wanted: Wanted) -> None:
        """Let a memory that was stored before what it names say our ids of that."""
        kept = ("content", "source", "timestamp", "confidence", "ack")
        await self._sent(
            transfer.STORE,
            {name: wanted.asked[name] for name in kept}
            | {
                "memory_id": self.ids[wanted.source_id],
                "metadata": self._metadata(wanted),
                "request_id": f"{wanted.asked['request_id']}-named",
            },
            self.lost,
            f"{wanted.source_id[:ID_SHOWN]}: names ids that are not ours",
        )

    async def _count(self, wanted: Wanted) -> None:
        """Carry over what was counted of a memory."""
        if (memory_id := self.ids.get(wanted.source_id)) is None:
            return
        asked = carry_over(memory_id, wanted.asked, wanted.counts, self.source)
        what = f"{wanted.source_id[:ID_SHOWN]}: what was counted of it"
        if await self._sent(CARRY_OVER, asked, self.lost, what):
            self.counted += 1

    async def _draw(self, asked: Fields) -> None:
        if await self._sent(LINK, asked, self.problems, f"an edge of {asked['memory_id']}"):
            self.drawn += 1

    def _metadata(self, wanted: Wanted) -> Fields:
        """Return the metadata of a memory, in which what has been stored has our ids.

        What has not, and is named by a digest, has one that is made with the key, as has the memory itself
        where its text holds a secret: no guess of the text can be held against that.
        """
        others = wanted.names | references(wanted.metadata, self.gone.__contains__)
        ids = {name: self.key.of(name.encode()).hex() for name in others if DIGEST.fullmatch(name)}
        ids |= {name: self.ids[name] for name in wanted.names if name in self.ids}
        imported = wanted.asked["metadata"]["imported"]
        if DIGEST.fullmatch(imported["id"]) and redact(wanted.asked["content"])[1]:
            imported = imported | {"id": self.key.of(imported["id"].encode()).hex()}
        return {**renamed(wanted.metadata, ids), "imported": imported}


async def _each(
    requests: Iterable[T], send: Callable[[T], Awaitable[None]], sent: Callable[[], None] = lambda: None
) -> None:
    """Send requests, some of them at once; *sent* is called after each."""
    waiting = iter(requests)

    async def work() -> None:
        for asked in waiting:
            await send(asked)
            sent()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


def _count(instance: Instance) -> int:
    """Return how many memories are active once the views show the whole log."""
    head = ask(instance, "system.status")["log"]["head"]
    return int(ask(instance, "audit.sql", sql=COUNT, min_position=head)["rows"][0][0])


def _tell(arguments: Namespace, report: Fields, taken: Import) -> None:
    if arguments.json:
        write_json(report | {"not_kept": taken.lost, "problems": taken.problems})
        return
    for said, those in (("not imported", taken.problems), ("not kept", taken.lost)):
        for one in those[:PROBLEMS_SHOWN]:
            warn(f"{said}: {one_line(one)}")
        if len(those) > PROBLEMS_SHOWN:
            warn(f"and {len(those) - PROBLEMS_SHOWN} more; --json names all")
    write_fields((name.replace("_", " "), _shown(value)) for name, value in report.items())


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count:,}" for name, count in value.items()) or "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
