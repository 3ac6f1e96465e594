"""The composition root: opens the files and puts the parts together.

The only module that knows the projections by name.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

import projections
from omegad.agents.hook_arrivals import HookArrivals
from omegad.agents.hooks.noting import Noted
from omegad.agents.spool import Spool
from omegad.catalog import decision_state as state
from omegad.catalog import reactions
from omegad.catalog.auditing import Auditing
from omegad.catalog.events import CODEC
from omegad.catalog.methods import ALL, SERVED
from omegad.catalog.service import Service
from omegad.embedding import cache
from omegad.embedding.cache import VectorLookup
from omegad.embedding.embedder import Embedder
from omegad.index.served import ServedIndex
from omegad.knowledge import lint_report
from omegad.log import event_log
from omegad.log.decision import DecisionState
from omegad.log.inline import Inline
from omegad.log.projection import Embedding
from omegad.log.sanitise import sanitise_new
from omegad.log.vocabulary import Vocabulary
from omegad.memory.embedding import EmbeddingBacklog
from omegad.memory.types import MemoryTypes
from omegad.memory.upkeep.consolidation import DailyUpkeep
from omegad.operations import files
from omegad.operations import status as set_aside
from omegad.operations.erasing import EraseMemory, Erasing
from omegad.operations.past import DiffLog, PastReader
from omegad.operations.self_check import SelfCheck
from omegad.operations.services import DaemonServices
from omegad.operations.system import SystemDispatch
from omegad.operations.vector_sweep import VectorSweep
from omegad.person.skill import language_of
from omegad.reactions.runner import Runner
from omegad.requests.method import Method, QueryMethod, RequestContext, Rules, ServiceMethod, Skills
from omegad.requests.query import PAGE_BYTES_MAX
from omegad.requests.running import RequestRunner
from omegad.rpc import endpoint
from omegad.rpc.server import Lane, Limits, Server
from omegad.runtime import config, descriptors, digests, pausing, supervisor
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config, Paths
from omegad.runtime.reaching import Reaching
from omegad.runtime.steadiness import Steadiness
from omegad.session.capture import Capture
from omegad.session.deliveries import DeliveriesExpiry
from omegad.session.liveness import Liveness
from omegad.storage.readers import Limits as ReadLimits
from omegad.storage.readers import Reading
from omegad.text.ingestion import noise, tagging
from omegad.text.redaction import key_names
from omegad.views import current, generation, log_check, past, workers
from omegad.views.erasing import PausedViews

READS = Lane("reads", of_connection=4, of_client=16)
PROOFS = Lane("proofs", of_connection=2, of_client=4)
CALL_TOOL = "tools.call"
READING = {CALL_TOOL, "log.read", "log.diff"}
PROVING = {"log.verify", "views.verify", "views.rebuild"}

VOCABULARY = Vocabulary(codec=CODEC, inline=Inline(state.ALL), state=DecisionState, sanitise=sanitise_new)
"""What the log of a home holds, and what of it decisions rely on."""

LOG_WORKER = (sys.executable, "-P", "-m", "omegad.catalog.log_worker")

RESERVED_DESCRIPTORS = (
    128  # of the home's files, what is read and run beside, and clients that are being refused
)

HOOKS_SHARE = 0.25  # of the time of a read: an agent waits for its hook


@dataclass(frozen=True)
class Daemon:
    """A home's service, put together and not yet running."""

    services: DaemonServices
    server: Server
    reactions: Runner
    backlog: EmbeddingBacklog
    system: SystemDispatch
    erasing: Erasing
    vector_sweep: VectorSweep
    auditing: Auditing
    stopping: anyio.Event

    async def run(self, tasks: TaskGroup, shutdown_s: float) -> None:
        """Keep every part going until `stopping` is set, then end in order: answers first, the log last."""
        await self.stopping.wait()
        supervisor.notify("STOPPING=1")
        self.system.end_following()
        self.erasing.end()
        await self.server.stop(shutdown_s)
        self.auditing.end()
        await self.services.log.drain()
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def composed(
    paths: Paths, settings: Config, clock: Clock, installed_us: int = 0
) -> AsyncIterator[Daemon]:
    """Open a home's files and put its parts together; close the files at the end of the block."""
    async with AsyncExitStack() as stack:
        vectors = await stack.enter_async_context(cache.opened(paths.embeddings))
        lookup = VectorLookup(vectors)
        stack.callback(lookup.close)
        files.remove_left(paths.log)
        log_check.check_there(paths.home, paths.log)
        limits = ReadLimits(
            settings.read_timeout_s * HOOKS_SHARE, settings.read_timeout_s, settings.report_timeout_s
        )
        log = await stack.enter_async_context(event_log.opened(paths.log, clock, VOCABULARY, limits=limits))
        if await log.is_erasing():  # by an earlier run: what it has left in the views nobody can tell
            generation.remove_all(paths.home)
        key = digests.opened(paths.digest_key)
        await log.key_imports(key.named)
        key_names(key.of)
        look_up = partial(_find, lookup)
        worker = (*LOG_WORKER, str(paths.embeddings))
        log_workers = workers.started_by(worker)
        views = await stack.enter_async_context(
            current.opened(
                paths.home,
                log,
                projections.ALL,
                look_up,
                Reading(settings.readers, limits),
                workers=log_workers,
            )
        )
        embedder = Embedder(
            vectors,
            models_dir=paths.models,
            choice=settings.model,
            idle_unload_s=settings.model_idle_unload_s,
        )
        services = DaemonServices(
            log=log,
            views=views,
            past=await stack.enter_async_context(
                past.opened(paths.home, log, views, projections.ALL, limits)
            ),
            near=ServedIndex(embedder),
            spool=Spool(paths.spool, partial(_is_there, paths.home, paths.home.stat())),
            rules=_rules(paths),
            skills=Skills(
                folders=config.skill_folders(settings, paths),
                language=language_of(settings.language, os.environ),
            ),
            clock=clock,
            query_timeout_s=settings.query_timeout_s,
            digests=key,
            of_nouns=_of_nouns(paths, settings, clock),
            steadiness=Steadiness(clock, log.recorded_at, installed_us),
            claims=settings.claims,
            task_guard=settings.task_guard,
            git_sync=settings.git_sync,
            home=str(paths.home),
            reaching=Reaching(paths.home),
            compare_state=partial(workers.compare, worker, paths.log),
            prove_log=partial(workers.prove, worker, paths.log),
        )
        vector_sweep = VectorSweep(log, vectors)
        erasing = Erasing(services, paths.home, vectors, vector_sweep, PausedViews(views, projections.ALL))
        yield _compose(services, paths, settings, erasing, vector_sweep)


def _compose(
    services: DaemonServices, paths: Paths, settings: Config, erasing: Erasing, vector_sweep: VectorSweep
) -> Daemon:
    stopping = anyio.Event()
    back = PastReader(services)
    requests = RequestRunner(
        services, ALL, back, services[MemoryTypes].check_named, fresh_wait_s=settings.fresh_wait_ms / 1e3
    )
    backlog = EmbeddingBacklog(services.log, services.views, services.near, requests.execute)
    services.views.on_deferred = backlog.look_again
    services.spool.execute = partial(requests.execute_all, context=RequestContext(client="spool"))
    # Made below
    check = SelfCheck(paths.self_check, lambda: system.problems(), services.clock.now_us)  # noqa: PLW0108
    letting_go = DeliveriesExpiry(services.log, requests.execute)
    runner = Runner(
        services.log,
        services.views,
        services.clock,
        requests.execute,
        (
            *reactions.ALL,
            Capture(is_on=settings.auto_capture),
            *lint_report.recurring(settings.lint_days, services[MemoryTypes]),
            *((DailyUpkeep(),) if settings.upkeep else ()),
            *(backlog, check, letting_go),
        ),
    )
    system = SystemDispatch(
        services,
        paths,
        counts=lambda: (server.connections, server.requests),
        reactions=runner.status,
        backlog=backlog,
        beside=lambda: (check.last, endpoint.holder(paths.gateway_lock)),
    )
    beside = set_aside.handlers(runner) | {DiffLog: back.diff, EraseMemory: erasing.erase}
    auditing = Auditing(services, partial(pausing.of_home, services.home), is_whole=settings.audit == "whole")
    service = Service(requests, system.handlers() | beside, stopping.set, auditing)
    limits = Limits(
        line_bytes_max=settings.line_bytes_max,
        connections_max=descriptors.room(settings.connections_max, RESERVED_DESCRIPTORS),
        requests_in_flight_max=settings.requests_in_flight_max,
    )
    server = Server(
        service.handle,
        limits,
        long_answers={name: PAGE_BYTES_MAX for name, method in SERVED.items() if method.is_paged},
        lanes={name: lane for name, method in SERVED.items() if (lane := _lane(method))},
        brief=[
            name for name, method in SERVED.items() if isinstance(method, ServiceMethod) and name != CALL_TOOL
        ],
    )
    return Daemon(services, server, runner, backlog, system, erasing, vector_sweep, auditing, stopping)


def _lane(method: Method) -> Lane | None:
    """Return what requests to a method share with others: readers, or a process that goes through the
    whole log.
    """
    if isinstance(method, QueryMethod) or method.name in READING:
        return READS
    return PROOFS if method.name in PROVING else None


def _of_nouns(paths: Paths, settings: Config, clock: Clock) -> dict[type, object]:
    """Return what nouns keep in the daemon, by its type."""
    return {
        MemoryTypes: MemoryTypes.configured(settings.event_types),
        Liveness: Liveness(clock),
        HookArrivals: HookArrivals(str(paths.home), os.environ, is_on=settings.host_transcripts),
        Noted: Noted(is_on=settings.audit == "whole"),
    }


def _rules(paths: Paths) -> Rules:
    """Load the rules of ingestion: the built-in ones, and those that the home adds."""
    return Rules(
        noise=noise.load(_existing(paths.home / "noise.toml")),
        tags=tagging.load(_existing(paths.home / "tags.toml")),
    )


def _existing(path: Path) -> tuple[Path, ...]:
    return (path,) if path.exists() else ()


def _find(lookup: VectorLookup, wanted: Embedding) -> bytes | None:
    return lookup.find(wanted.embedder_id, wanted.text_hash)


def _is_there(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        return False
