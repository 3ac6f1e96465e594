"""What tests speak in: events with sane defaults, a clock that steps, a model of paper, and a home that is
served in this process.
"""

import random
import re
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast
from unittest import mock

import anyio
import anyio.lowlevel
import msgspec
import numpy as np
from anyio import to_thread
from msgspec import Raw

import projections
from omegad import daemon
from omegad.catalog import log_worker
from omegad.coordination.events import (
    BranchClaimed,
    ClaimsContested,
    ClaimsReleased,
    ClaimsReported,
    FilesClaimed,
    IntentAnnounced,
    MessageDelivered,
    MessagePosted,
    TaskCreated,
)
from omegad.daemon import VOCABULARY, Daemon, composition
from omegad.embedding import catalogue
from omegad.embedding.cache import text_hash
from omegad.embedding.catalogue import MINILM, FileRecord, Manifest, Model
from omegad.knowledge.events import Side, ThesisEvidenced, ThesisStated
from omegad.log import event_log, verifying
from omegad.log.codec import tag_of
from omegad.log.decision import Decision, Outcome, Proposal
from omegad.log.erasure import PayloadErased
from omegad.log.event import Erased, Event, Excerpt, NewEvent, Position, RecordedEvent, Unknown
from omegad.log.event_log import EventLog
from omegad.log.folding import Progress
from omegad.log.projection import Embedding, Projection, schema
from omegad.log.verifying import LogReport
from omegad.memory.events import (
    EdgeType,
    MemoryContradicted,
    MemoryDeleted,
    MemoryEdited,
    MemoryEmbedded,
    MemoryErased,
    MemoryEvolved,
    MemoryExpired,
    MemoryLinked,
    MemoryPromoted,
    MemoryRated,
    MemoryRelated,
    MemoryRepeated,
    MemoryRestored,
    MemoryStored,
    MemorySuperseded,
    MemoryUnlinked,
    Relation,
)
from omegad.memory.upkeep import expiry
from omegad.person.events import (
    IdentityChanged,
    ProfileUpdated,
    SkillConfirmed,
    SkillImproved,
    SkillImproveFailed,
)
from omegad.reactions.contract import Reaction, Schedule
from omegad.reactions.runner import Pace, Runner
from omegad.rpc.peer import Call, Peer
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config, Paths
from omegad.search.events import MemoryQueried, Returned
from omegad.session.events import (
    CheckedRef,
    Delivery,
    GitPushChecked,
    How,
    MemorySurfaced,
    PromptSubmitted,
    SessionCompacted,
    SessionEnded,
    SessionStarted,
    SubagentEnded,
    ToolCalled,
    TurnEnded,
)
from omegad.storage.database import open_reader
from omegad.storage.driver import Connection
from omegad.storage.readers import Reading
from omegad.text.ingestion import rule_files
from omegad.views import current
from omegad.views.applying import Lookup
from omegad.views.current import Views
from omegad.views.workers import Work, Workers

START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
EMBEDDER = "paper-1"
DIMENSIONS = 384
T = TypeVar("T")
_PARSED = cache(rule_files._parsed)
PATIENCE_S = 60.0  # long enough for a busy machine; nothing waits so long unless the test fails


class FakeClock(Clock):
    """Goes forward by `step_us` each time it is asked, and anywhere when it is set."""

    def __init__(self, now_us: int = START_US, step_us: int = 1_000, seed: int = 1) -> None:
        self.us = now_us
        self.step_us = step_us
        self._random = random.Random(seed)  # noqa: S311  the same ids in every run

    def now_us(self) -> int:
        self.us += self.step_us
        return self.us

    def tz_offset_minutes(self) -> int:
        return 60

    def random_bits(self, bits: int) -> int:
        return self._random.getrandbits(bits)


def key_of(content: str, event_type: str = "memory") -> str:
    return sha256(f"{event_type} {content}".encode()).hexdigest()


def stored(
    memory_id: str = "mem-1", content: str = "the build needs Python 3.12", **changes: Any
) -> MemoryStored:
    key = key_of(content, changes.get("event_type", "memory"))
    fields: dict[str, Any] = {
        "memory_id": memory_id,
        "content": content,
        "content_key": key,
        "event_type": "memory",
    }
    return MemoryStored(**fields | changes)


def evolved(
    memory_id: str = "mem-1", content: str = "the build needs Python 3.12\nand a compiler", **changes: Any
) -> MemoryEvolved:
    fields: dict[str, Any] = {"content_key": key_of(content), "wording": content, "similarity": 0.6}
    return MemoryEvolved(memory_id=memory_id, content=content, **fields | changes)


def edited(
    memory_id: str = "mem-1", content: str = "the build needs Python 3.13", **changes: Any
) -> MemoryEdited:
    return MemoryEdited(memory_id=memory_id, content=content, content_key=key_of(content), **changes)


def embedded(memory_id: str = "mem-1", *texts: str, embedder_id: str = EMBEDDER) -> MemoryEmbedded:
    hashes = tuple(text_hash(text) for text in texts or ("the build needs Python 3.12",))
    return MemoryEmbedded(memory_id=memory_id, embedder_id=embedder_id, text_hashes=hashes)


def repeated(memory_id: str = "mem-1", **changes: Any) -> MemoryRepeated:
    fields: dict[str, Any] = {"memory_id": memory_id, "likeness": "exact", "similarity": 1.0}
    return MemoryRepeated(**fields | changes)


def related(memory_id: str, *edges: tuple[str, float]) -> MemoryRelated:
    return MemoryRelated(memory_id=memory_id, related=relations(*edges))


def relations(*edges: tuple[str, float]) -> tuple[Relation, ...]:
    return tuple(Relation(memory_id=target, similarity=similarity) for target, similarity in edges)


def superseded(memory_id: str, superseded_by: str, reason: str = "says the same") -> MemorySuperseded:
    return MemorySuperseded(memory_id=memory_id, superseded_by=superseded_by, reason=reason)


def deleted(memory_id: str = "mem-1", reason: str | None = None) -> MemoryDeleted:
    return MemoryDeleted(memory_id=memory_id, reason=reason)


def contradicted(
    memory_id: str, contradicted_by: str, strength: float = 0.8, reason: str = "another value"
) -> MemoryContradicted:
    return MemoryContradicted(
        memory_id=memory_id, contradicted_by=contradicted_by, strength=strength, reason=reason
    )


def restored(memory_id: str = "mem-1", *, is_permanent: bool = False) -> MemoryRestored:
    return MemoryRestored(memory_id=memory_id, is_permanent=is_permanent)


def expired(memory_id: str = "mem-1", expired_at: int = START_US) -> MemoryExpired:
    return MemoryExpired(memory_id=memory_id, expired_at=expired_at)


def rated(memory_id: str = "mem-1", points: int = 1) -> MemoryRated:
    return MemoryRated(memory_id=memory_id, rating="helpful" if points > 0 else "outdated", points=points)


def promoted(memory_id: str = "mem-1") -> MemoryPromoted:
    return MemoryPromoted(memory_id=memory_id, evidence="explicit")


def linked(
    memory_id: str, target_id: str, edge_type: EdgeType = "related", weight: float = 1.0
) -> MemoryLinked:
    return MemoryLinked(memory_id=memory_id, target_id=target_id, edge_type=edge_type, weight=weight)


def unlinked(memory_id: str, target_id: str, *edge_types: EdgeType) -> MemoryUnlinked:
    return MemoryUnlinked(memory_id=memory_id, target_id=target_id, edge_types=edge_types)


def queried(*results: tuple[str, float], **changes: Any) -> MemoryQueried:
    found = tuple(Returned(memory_id=memory_id, score=score) for memory_id, score in results)
    fields: dict[str, Any] = {
        "query_id": "query-1",
        "text": "which Python?",
        "mode": "hybrid",
        "limit": 10,
        "filters": {},
        "results": found,
        "read_position": 1,
        "at": START_US,
        "ranking_version": 1,
        "embedder_id": EMBEDDER,
        "abstained": not found,
        "took_us": 900,
    }
    return MemoryQueried(**fields | changes)


def thesis_stated(thesis_id: str = "th-1", **changes: Any) -> ThesisStated:
    known: dict[str, Any] = {
        "memory_id": f"of {thesis_id}",
        "statement": "it holds",
        "domain": None,
        "prior": None,
        "due_at": None,
        "criterion": None,
    }
    return ThesisStated(thesis_id=thesis_id, **known | changes)


def evidenced(
    thesis_id: str, evidence_id: str, side: Side = "for", weight: float = 1.0, **changes: Any
) -> ThesisEvidenced:
    known: dict[str, Any] = {
        "version": 1,
        "memory_id": f"of {evidence_id}",
        "origin": evidence_id,
        "by": "hand",
    }
    known |= {"is_echo": False, "why": None, "similarity": None}
    return ThesisEvidenced(
        thesis_id=thesis_id, evidence_id=evidence_id, side=side, weight=weight, **known | changes
    )


def excerpt(head: str = "ls -l", tail: str = "") -> Excerpt:
    return Excerpt(
        head=head, tail=tail, bytes=len(head) + len(tail), sha256=sha256((head + tail).encode()).hexdigest()
    )


def tool_called(call_index: int = 1, **changes: Any) -> ToolCalled:
    fields: dict[str, Any] = {
        "tool_name": "Bash",
        "status": "ok",
        "call_index": call_index,
        "tool_use_id": f"toolu-{call_index}",
    }
    return ToolCalled(**fields | changes)


def delivery(delivery_id: str = "delivery-1", digest: str = "d1") -> Delivery:
    return Delivery(delivery_id=delivery_id, digest=digest)


def session_started(source: str = "startup", **changes: Any) -> SessionStarted:
    known: dict[str, Any] = {
        "host": "claude-code",
        "source": source,
        "model": "m-1",
        "folder": "/src/omegad",
        "delivery": delivery(),
    }
    return SessionStarted(**known | changes)


def prompt_submitted(text: str = "make it faster", **changes: Any) -> PromptSubmitted:
    known: dict[str, Any] = {"host": "claude-code", "prompt": excerpt(text), "delivery": delivery()}
    return PromptSubmitted(**known | changes)


def turn_ended(text: str | None = "it is faster", **changes: Any) -> TurnEnded:
    known: dict[str, Any] = {
        "host": "claude-code",
        "message": None if text is None else excerpt(text),
        "delivery": delivery(),
    }
    return TurnEnded(**known | changes)


def session_ended(after: Position = 0, **changes: Any) -> SessionEnded:
    known: dict[str, Any] = {
        "host": "claude-code",
        "reason": "logout",
        "after": after,
        "delivery": delivery(),
    }
    return SessionEnded(**known | changes)


def push_checked(*refs: CheckedRef, **changes: Any) -> GitPushChecked:
    known: dict[str, Any] = {
        "how": "command",
        "host": "codex",
        "remote": "origin",
        "verdict": "denied",
        "reason": "stale",
        "refs": refs,
    }
    return GitPushChecked(**{**known, "delivery": delivery()} | changes)


def identity_changed(
    file: str = "IDENTITY.md", content: str | None = "Terse.", revision: str | None = None
) -> IdentityChanged:
    return IdentityChanged(
        file=file,
        content=content,
        sha256=None if content is None else sha256(content.encode()).hexdigest(),
        revision=revision,
    )


def subagent_ended(text: str | None = "it is in db.py", **changes: Any) -> SubagentEnded:
    message = None if text is None else excerpt(text)
    known: dict[str, Any] = {
        "host": "claude-code",
        "agent_id": "a-1",
        "agent_type": "Explore",
        "message": message,
        "delivery": delivery(),
    }
    return SubagentEnded(**known | changes)


def session_compacted(after: Position = 0, **changes: Any) -> SessionCompacted:
    known: dict[str, Any] = {"host": "claude-code", "trigger": "auto", "after": after, "delivery": delivery()}
    return SessionCompacted(**known | changes)


def profile_updated(**facts: str | None) -> ProfileUpdated:
    return ProfileUpdated(facts={**facts})


def files_claimed(*paths: str, worktree: str = "/src/shop", **changes: Any) -> FilesClaimed:
    known: dict[str, Any] = {
        "repository": "/src/shop/.git",
        "worktree": worktree,
        "paths": paths or ("a.py",),
        "how": "edit",
    }
    return FilesClaimed(**known | changes)


def branch_claimed(ref: str = "refs/heads/main", **changes: Any) -> BranchClaimed:
    return BranchClaimed(**{"repository": "/src/shop/.git", "ref": ref} | changes)


def claims_released(*paths: str, how: str = "released", **changes: Any) -> ClaimsReleased:
    where = (
        {"repository": "/src/shop/.git", "worktree": "/src/shop"}
        if paths or "refs" in changes
        else {"is_all": True}
    )
    return ClaimsReleased(**{"how": how, "reason": how, "paths": paths, **where} | changes)  # type: ignore[arg-type]


def claims_contested(*paths: str, **changes: Any) -> ClaimsContested:
    known: dict[str, Any] = {
        "how": "shell",
        "holder": "session-2",
        "repository": "/src/shop/.git",
        "worktree": "/src/shop",
        "paths": paths,
    }
    return ClaimsContested(**known | changes)


def claims_reported(count: int = 1) -> ClaimsReported:
    return ClaimsReported(count=count)


def surfaced(*memory_ids: str, how: How = "briefing", **changes: Any) -> MemorySurfaced:
    results = tuple(Returned(memory_id=memory_id, score=0.5) for memory_id in memory_ids)
    known: dict[str, Any] = {
        "query_id": "surfaced-1",
        "how": how,
        "subject": "omegad",
        "results": results,
        "read_position": 1,
        "at": START_US,
        "embedder_id": None,
    }
    return MemorySurfaced(**known | changes)


def skill_improved(skill: str = "search", lesson: str = "look by email too", **changes: Any) -> SkillImproved:
    return SkillImproved(skill=skill, lesson=lesson, **{"confirmation": f"{skill}: {lesson}"} | changes)


def skill_failed(skill: str = "gone", lesson: str = "retry", **changes: Any) -> SkillImproveFailed:
    known: dict[str, Any] = {"reason": "not_found", "confirmation": f"{skill} failed"}
    return SkillImproveFailed(skill=skill, lesson=lesson, **known | changes)


def skill_confirmed(*outcomes: Position) -> SkillConfirmed:
    return SkillConfirmed(outcomes=outcomes)


def task_created(task_id: str = "task-1", title: str = "move billing", **changes: Any) -> TaskCreated:
    known: dict[str, Any] = {"description": None, "priority": 3, "capability": None, "depends_on": ()}
    return TaskCreated(task_id=task_id, title=title, **known | changes)


def message_posted(message_id: str = "msg-1", text: str = "rebase first", **changes: Any) -> MessagePosted:
    known: dict[str, Any] = {
        "to_session": None,
        "to_project": "/src/omegad",
        "memory_id": None,
        "expires_at": START_US + 86_400_000_000,
    }
    return MessagePosted(message_id=message_id, text=text, **known | changes)


def message_delivered(*message_ids: str, intents_of: tuple[str, ...] = ()) -> MessageDelivered:
    return MessageDelivered(message_ids=message_ids, intents_of=intents_of)


def intent_announced(text: str = "split the ledger", *paths: str, **changes: Any) -> IntentAnnounced:
    known: dict[str, Any] = {"paths": paths or ("src/ledger/*.py",), "expires_at": START_US + 3_600_000_000}
    return IntentAnnounced(text=text, **known | changes)


def memory_erased(memory_id: str = "mem-1", reason: str | None = None) -> MemoryErased:
    return MemoryErased(memory_id=memory_id, reason=reason)


def erased(*positions: Position, reason: str = "asked for") -> PayloadErased:
    return PayloadErased(positions=positions, reason=reason)


def recorded(event: Event | Unknown | Erased, position: Position = 1, **changes: Any) -> RecordedEvent:
    """Give an event the place in a log that it would have, were the log nothing but such events."""
    at = START_US + position * 1_000_000
    tag = event.tag if isinstance(event, Unknown | Erased) else tag_of(type(event))
    fields: dict[str, Any] = {
        "position": position,
        "event_id": f"event-{position}",
        "tag": tag,
        "recorded_at": at,
        "occurred_at": at,
        "tz_offset": 60,
        "origin": "origin",
        "hlc": position,
        "session_id": "session-1",
        "project": "/src/omegad",
        "client": "test",
        "cause": None,
        "trace": None,
        "chain": blake2b(position.to_bytes(8, "big"), digest_size=32).digest(),
        "event": event,
    }
    return RecordedEvent(**fields | changes)


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a proposal of the tests."""

    position: Position = 0
    word: str = ""


def proposal(
    *events: Event | NewEvent, session_id: str | None = "session-1", word: str = "", **changes: Any
) -> Proposal:
    """Propose *events* as they are, whatever the guards say."""
    new = tuple(
        one if isinstance(one, NewEvent) else NewEvent(event=one, session_id=session_id) for one in events
    )
    return Proposal(
        decide=lambda _guards, _now_us: Decision(events=new, answer=Written(word=word)), **changes
    )


@asynccontextmanager
async def running_log(path: Path, clock: Clock | None = None) -> AsyncIterator[EventLog]:
    """Open a log and keep it committing for the block's duration."""
    async with (
        event_log.opened(path, clock or FakeClock(), VOCABULARY) as log,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(log.run)
        yield log
        await log.drain()


async def append(log: EventLog, *events: Event | NewEvent, **changes: Any) -> Outcome:
    return await log.append(proposal(*events, **changes))


def proof(log: EventLog, tell: Callable[[int, int], None] = lambda *_: None) -> LogReport:
    """Prove a log."""
    return verifying.verify(log.path, log._vocabulary, tell)


async def everything(log: EventLog) -> list[RecordedEvent]:
    """Read the whole log."""
    found: list[RecordedEvent] = []
    while part := await log.read(len(found), 1_000):
        found += part
    return found


def vector_of(text: str) -> bytes:
    """Return a unit vector to which each word of a text contributes a direction of its own: texts that
    share words are near.
    """
    total = np.zeros(DIMENSIONS)
    for word in re.findall(r"\w+", text.casefold()) or [""]:
        seed = int.from_bytes(blake2b(word.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        total += np.random.default_rng(seed).standard_normal(DIMENSIONS)
    return bytes((total / np.linalg.norm(total)).astype("<f4").tobytes())


@dataclass(frozen=True)
class WorkersHere(Workers):
    """Go through the log for any projections, on a thread of this process."""

    all_of: Sequence[Projection]
    lookup: Lookup

    async def done(self, work: Work, answer: type[T], tell: Progress) -> T:
        del answer
        return cast("T", await to_thread.run_sync(log_worker.done, work, self.all_of, self.lookup, tell))


def opened_views(
    home: Path, log: EventLog, all_of: Sequence[Projection], lookup: Lookup | None = None
) -> AbstractAsyncContextManager[Views]:
    """Open a home's views, with one reader."""
    lookup = lookup or look_up
    return current.opened(home, log, all_of, lookup, Reading(1), workers=WorkersHere((), all_of, lookup))


def look_up(wanted: Embedding) -> bytes:
    """Give every vector wanted, the same for the same text."""
    return vector_of(wanted.text_hash)


class FakeModel:
    """Embeds by `vector_of`; waits, or fails, when told to."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.failing = False
        self.same = False
        """Whether it takes every text for the same."""

    def embed(self, text: str) -> bytes:
        failing = self.failing  # before anybody can see that it was asked
        self.texts.append(text)
        assert self.may_go_on.wait(PATIENCE_S)  # on the worker's thread, as a slow model
        if failing:
            raise RuntimeError("out of luck")
        return vector_of("" if self.same else text)


def put_model(models_dir: Path, embedder_id: str = EMBEDDER, model: Model = MINILM) -> None:
    """Lay an installed model into a folder, as far as the catalogue looks."""
    folder = catalogue.folder_of(models_dir, model.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / catalogue.GRAPH).write_bytes(b"graph")
    manifest = Manifest(
        name=model.name,
        embedder_id=embedder_id,
        pooling="mean",
        tokens_max=256,
        query_prefix="",
        dimensions=DIMENSIONS,
        precision="int8",
        builder_version=catalogue.builder_version(model.format),
        files={catalogue.GRAPH: FileRecord("", 5)},
        source=model.source,
        format=model.format,
        verified=True,
    )
    (folder / catalogue.MANIFEST).write_bytes(msgspec.json.encode(manifest))


def paths_in(folder: Path) -> Paths:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return Paths(home=home, socket=home / "run" / "omegad.sock", models=folder / "models")


class Caller:
    """A client of the service, without a socket between."""

    def __init__(self, service: Daemon, name: str = "") -> None:
        self.peer = Peer(1, name)
        self.told: list[tuple[str, Any]] = []
        self._service = service

    async def call(self, method: str, /, **params: object) -> Any:
        """Call a method as a client would, and return its result as one would read it."""
        call = Call(method, Raw(msgspec.json.encode(params)), self.peer, self._notify)
        return msgspec.json.decode(msgspec.json.encode(await self._service.server._handler(call)))

    async def _notify(self, method: str, params: object) -> None:
        self.told.append((method, msgspec.json.decode(msgspec.json.encode(params))))


class Served(NamedTuple):
    """A home that is being served in this process."""

    daemon: Daemon
    caller: Caller

    def other(self, name: str = "") -> Caller:
        return Caller(self.daemon, name)

    async def caught_up(self) -> Position:
        """Wait until every view that has not failed shows the whole log, answered queries and what follows
        from events included; return its end.
        """
        log, views = self.daemon.services.log, self.daemon.services.views
        with anyio.fail_after(PATIENCE_S):
            while True:
                await anyio.lowlevel.checkpoint()  # what is told behind an answer is proposed in it
                await log.settled()
                head = log.head
                failed = {
                    name for name, one in views.driver.checkpoints.items() if one.failed_position is not None
                }
                await views.wait_for(head, views.driver.checkpoints.keys() - failed)
                await until(partial(_have_followed, self.daemon.reactions, head))
                if log.head == head:
                    return head

    async def expire(self, schedule: Schedule = expiry) -> None:
        """Let the expiry, or another schedule, have its next slot, whatever the time."""
        runner = self.daemon.reactions
        await until(lambda: runner.progress[schedule.NAME].position)
        await runner.run_slot(schedule, runner.progress[schedule.NAME].position + 1)

    async def worked_off(self) -> None:
        """Wait until no memory lacks its vectors."""
        with anyio.fail_after(PATIENCE_S):
            await self.caught_up()
            while await self.daemon.services.views.read(_lacking):
                await anyio.sleep(0.01)
                await self.caught_up()


def _have_followed(runner: Runner, position: Position) -> bool:
    """Say whether all reactions to events have done what follows up to a position, or wait something out."""
    progress = [runner.progress[one.NAME] for one in runner._reactions if isinstance(one, Reaction)]
    return all(one.position >= position or one.waiting for one in progress)


def _lacking(connection: Connection) -> int:
    sql = (
        "SELECT count(*) FROM memories WHERE status != 'deleted' AND node_id NOT IN (SELECT memory_id FROM"
        " memory_vectors)"
    )
    found: int = connection.execute(sql).fetchone()[0]
    return found


@asynccontextmanager
async def served(
    paths: Paths, clock: Clock, settings: Config | None = None, *, audits_all: bool = False
) -> AsyncIterator[Served]:
    """Serve a home without its socket; everything else is as in the daemon. Unless it *audits_all*, nothing
    is told of reads behind their answers, which would move positions.
    """
    settings = msgspec.structs.replace(
        _patient(settings or Config()),
        audit="whole" if audits_all else "changes",
        host_transcripts=False,  # those of whoever runs the tests
    )
    async with (
        _composed_here(paths, settings, clock) as service,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(service.services.log.run)
        tasks.start_soon(service.services.views.run)
        tasks.start_soon(service.services.past.run)
        tasks.start_soon(service.services.near.run)
        tasks.start_soon(service.services.near.keep_words, service.services.views)
        tasks.start_soon(service.vector_sweep.run)
        views = service.services.views
        views.workers = WorkersHere((), projections.ALL, views._lookup)
        service.reactions.pace = Pace(retry_s=0.02, retry_max_s=0.1, sweep_s=0.02)
        tasks.start_soon(service.reactions.run)
        yield Served(service, Caller(service))
        await service.services.log.drain()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _composed_here(paths: Paths, settings: Config, clock: Clock) -> AsyncIterator[Daemon]:
    """Put a service together that proves its log on threads of this process."""
    async with AsyncExitStack() as stack:
        here = WorkersHere((), projections.ALL, look_up)
        with mock.patch.object(composition, "Workers", return_value=here), rules_read_once():
            service = await stack.enter_async_context(daemon.composed(paths, settings, clock))
        yield service


@contextmanager
def rules_read_once() -> Iterator[None]:
    """Parse no file of rules again that has not changed: the built-in ones take as long as all else that a
    daemon does to start.
    """
    with mock.patch.object(rule_files, "_parsed", _PARSED):
        yield


def _patient(settings: Config) -> Config:
    """Let nothing be answered otherwise because the machine is busy, unless the test has set how long to
    wait.
    """
    patient = {
        "fresh_wait_ms": 20_000,
        "query_timeout_s": 20.0,
        "read_timeout_s": 60.0,
        "report_timeout_s": 60.0,
    }
    untouched = {
        name: value for name, value in patient.items() if getattr(settings, name) == getattr(Config(), name)
    }
    return msgspec.structs.replace(settings, **untouched)


async def events_of(it: Served, *kinds: type) -> list[Any]:
    """Return what has happened of some kinds, when all that follows from it is shown."""
    await it.caught_up()
    return [one.event for one in await everything(it.daemon.services.log) if isinstance(one.event, kinds)]


async def until(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Wait for what announces no change."""
    with anyio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(0.002)


@asynccontextmanager
async def threads_ended() -> AsyncIterator[None]:
    """Wait in the end for the threads that began in the block: that of a connection that failed has a last
    word for the event loop.
    """
    before = set(threading.enumerate())
    yield
    await until(lambda: not any(thread.daemon for thread in set(threading.enumerate()) - before))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Interrupt a block that computes for longer, even one that never gives the event loop a turn.

    What counts is the processor time of this process: others that keep the machine busy make nothing late.
    """

    def expire(_number: int, _frame: object) -> None:
        raise TimeoutError(f"not over after {seconds} s")

    before = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def show(projection: Projection, events: Sequence[RecordedEvent]) -> Connection:
    """Show events in one projection, in a database of its own."""
    connection = open_in_memory()
    connection.executescript(schema(projection))
    for one in events:
        if isinstance(one.event, projection.EVENTS):
            for sql, values in projection.project(one):
                connection.execute(
                    sql, [look_up(value) if isinstance(value, Embedding) else value for value in values]
                )
    return connection


def open_in_memory() -> Connection:
    connection = open_reader(Path(":memory:"))
    connection.execute("PRAGMA query_only=OFF")
    return connection


def rows(connection: Connection, sql: str, *values: object) -> list[tuple[Any, ...]]:
    return connection.execute(sql, values).fetchall()
