"""The composition root: opens the files and puts the parts together, and runs them in one task group until
told to stop.

The only module that knows the projections by name.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import structlog
from anyio.abc import TaskGroup
from msgspec import Raw

import projections
from omegad import __version__
from omegad.agents.hook_arrivals import HookArrivals
from omegad.agents.hooks.delegated import Delegated
from omegad.agents.hooks.noting import Noted
from omegad.agents.hooks.unbriefed import Unbriefed
from omegad.agents.spool import LOOK_EVERY_S, Spool
from omegad.catalog import decision_state as state
from omegad.catalog import reactions
from omegad.catalog.auditing import Auditing
from omegad.catalog.events import CODEC
from omegad.catalog.methods import ALL, SERVED
from omegad.catalog.service import Service
from omegad.embedding import cache
from omegad.embedding.catalogue import E5_SMALL
from omegad.embedding.embedder import Embedder
from omegad.index.served import RecentVectors, ServedIndex
from omegad.knowledge import lint_report
from omegad.knowledge.ripple_reaction import Ripple
from omegad.log import event_log
from omegad.log.decision import DecisionState
from omegad.log.inline import Inline, Vocabulary
from omegad.log.sanitise import sanitise_new
from omegad.log.verifying import LogReport
from omegad.memory.embedding import EmbeddingBacklog
from omegad.memory.types import MemoryTypes
from omegad.memory.upkeep.consolidation import DailyUpkeep
from omegad.operations import files, seal
from omegad.operations import status as set_aside
from omegad.operations.erasing import EraseMemory, Erasing
from omegad.operations.past import DiffLog, PastReader
from omegad.operations.retention import ApplyRetention, Retention
from omegad.operations.self_check import SelfCheck
from omegad.operations.services import DaemonServices
from omegad.operations.system import Beside, SystemDispatch
from omegad.operations.vector_sweep import VectorSweep
from omegad.person.skill import language_of
from omegad.reactions.runner import Runner
from omegad.requests.method import QueryMethod, RequestContext, Rules, ServiceMethod, Skills
from omegad.requests.query import PAGE_BYTES_MAX
from omegad.requests.running import RequestRunner
from omegad.rpc import activation, endpoint
from omegad.rpc.peer import Call, Peer
from omegad.rpc.server import Lane, Limits, Server
from omegad.runtime import allocator, config, descriptors, digests, ending, pausing, supervisor, telemetry
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import BadConfiguration
from omegad.runtime.reaching import Reaching
from omegad.runtime.steadiness import Steadiness
from omegad.session.capture import Capture
from omegad.session.deliveries import DeliveriesExpiry
from omegad.session.liveness import Liveness
from omegad.sharing import credentials
from omegad.sharing import standing as sharing
from omegad.sharing.exchange import Exchange
from omegad.sharing.outgoing import AGENT
from omegad.storage.database import let_go_of_pages
from omegad.storage.readers import Limits as ReadLimits
from omegad.storage.readers import Reading
from omegad.text.ingestion import noise, tagging
from omegad.text.redaction import key_names
from omegad.views import current, generation, log_check, past
from omegad.views.erasing import PausedViews
from omegad.views.workers import Comparison, Proof, Workers

# What requests to a method share with others: readers, or a process that goes through the whole log.
READS = Lane("reads", of_connection=4, of_client=16)
PROOFS = Lane("proofs", of_connection=2, of_client=4)
CALL_TOOL = "tools.call"
READING = {CALL_TOOL, "log.read", "log.diff"}
PROVING = {"log.verify", "views.verify", "views.rebuild", "share.chains"}

VOCABULARY = Vocabulary(codec=CODEC, inline=Inline(state.ALL), state=DecisionState, sanitise=sanitise_new)
"""What the log of a home holds, and what of it decisions rely on."""

LOG_WORKER = (sys.executable, "-P", "-m", "omegad.catalog.log_worker")

RESERVED_DESCRIPTORS = (
    128  # of the home's files, what is read and run beside, and clients that are being refused
)

SWITCH_INTERVAL_S = (
    0.001  # so that a thread that computes does not keep the one that answers waiting for Python's usual 5 ms
)

INSTALLED_US = Path(__file__).stat().st_mtime_ns // 1_000

T = TypeVar("T")

_log = structlog.get_logger(__name__)

ENDING_S = 10.0
"""For what is under way when requests have had their time to end, and for closing the files."""

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
    exchange: Exchange
    stopping: anyio.Event

    async def run(self, tasks: TaskGroup, shutdown_s: float) -> None:
        """Keep every part going until `stopping` is set, then end in order: answers first, the log last."""
        await self.stopping.wait()
        supervisor.notify(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={(shutdown_s + ENDING_S) * 1e6:.0f}")
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
        vector_sweep = VectorSweep(log, vectors)
        beside = Workers((*LOG_WORKER, str(paths.embeddings)), ready=vector_sweep.write)
        views = await stack.enter_async_context(
            current.opened(
                paths.home,
                log,
                projections.ALL,
                lambda wanted: vectors.lookup.find(*wanted),
                Reading(settings.readers, limits),
                workers=beside,
            )
        )
        embedder, *multilingual = (
            Embedder(
                vectors, models_dir=paths.models, choice=choice, idle_unload_s=settings.model_idle_unload_s
            )
            for choice in (settings.model, *((E5_SMALL.name,) if settings.model == "auto" else ()))
        )
        services = DaemonServices(
            log=log,
            views=views,
            past=await stack.enter_async_context(
                past.opened(paths.home, log, views, projections.ALL, limits)
            ),
            near=ServedIndex(embedder, *multilingual),
            spool=Spool(paths.spool, partial(_is_there, paths.home, paths.home.stat())),
            rules=Rules(
                noise=noise.load(_existing(paths.home / "noise.toml")),
                tags=tagging.load(_existing(paths.home / "tags.toml")),
            ),
            skills=Skills(
                folders=config.skill_folders(settings, paths),
                language=language_of(settings.language, os.environ),
            ),
            clock=clock,
            query_timeout_s=settings.query_timeout_s,
            digests=key,
            of_nouns={
                **{kind: kind() for kind in (RecentVectors, Unbriefed, Delegated)},
                MemoryTypes: MemoryTypes.configured(settings.event_types),
                Liveness: Liveness(clock),
                HookArrivals: HookArrivals(str(paths.home), os.environ, is_on=settings.host_transcripts),
                Noted: Noted(is_on=settings.audit == "whole"),
            },
            steadiness=Steadiness(clock, log.recorded_at, installed_us),
            claims=settings.claims,
            task_guard=settings.task_guard,
            git_sync=settings.git_sync,
            home=str(paths.home),
            reaching=Reaching(paths.home),
            compare_state=partial(beside.done, Comparison(paths.log), tuple[str, ...]),
            prove_log=partial(beside.done, Proof(paths.log), LogReport),
        )
        yield _compose(services, paths, settings, vectors, vector_sweep)


def _compose(
    services: DaemonServices,
    paths: Paths,
    settings: Config,
    vectors: cache.VectorCache,
    vector_sweep: VectorSweep,
) -> Daemon:
    stopping = anyio.Event()
    paused_views = PausedViews(services.views, projections.ALL)
    erasing = Erasing(services, paths.home, vectors, vector_sweep, paused_views)
    retention = Retention(services, settings, paused_views)
    back = PastReader(services)
    requests = RequestRunner(
        services,
        ALL,
        back.query,
        services[MemoryTypes].check_named,
        fresh_wait_s=settings.fresh_wait_ms / 1e3,
    )
    backlog = EmbeddingBacklog(services.log, services.views, services.near, requests.execute)
    services.views.on_deferred = backlog.look_again
    services.near.catch_up = backlog.catch_up
    services.spool.execute = partial(requests.execute_all, context=RequestContext(client="spool"))
    # Made below
    check = SelfCheck(paths.self_check, lambda: system.problems(), services.clock.now_us)  # noqa: PLW0108
    runner = Runner(
        services.log,
        services.views,
        services.clock,
        requests.execute,
        (
            *(*reactions.ALL, Ripple(), Capture(is_on=settings.auto_capture)),
            *lint_report.recurring(settings.lint_days, services[MemoryTypes]),
            *((DailyUpkeep(),) if settings.upkeep else ()),
            *(backlog, check, DeliveriesExpiry(services.log, requests.execute), retention),
        ),
    )
    exchange = Exchange(services, partial(_erase_here, erasing), partial(credentials.connected, paths.share))
    system = SystemDispatch(
        services,
        paths,
        reactions=runner.status,
        backlog=backlog,
        beside=lambda: Beside(server.connections, server.requests, check.last),
        sharing=partial(sharing.standing, exchange, services.log),
        retention=retention.status,
    )
    beside = set_aside.handlers(runner) | sharing.handlers(exchange, services.log)
    beside |= {DiffLog: back.diff, EraseMemory: erasing.erase, ApplyRetention: retention.apply}
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
        lanes=dict.fromkeys(PROVING, PROOFS)
        | {name: READS for name, method in SERVED.items() if isinstance(method, QueryMethod)}
        | dict.fromkeys(READING, READS),
        brief=[
            name for name, method in SERVED.items() if isinstance(method, ServiceMethod) and name != CALL_TOOL
        ],
    )
    return Daemon(
        services, server, runner, backlog, system, erasing, vector_sweep, auditing, exchange, stopping
    )


async def _erase_here(erasing: Erasing, memory_id: str) -> None:
    """Erase what the team has erased. Raises `NotFound`."""
    request = EraseMemory(memory_id=memory_id, reason="it was erased for the team")
    await erasing.erase(request, Call("memory.erase", Raw(b"{}"), Peer(0, AGENT), _unheard))


async def _unheard(_method: str, _params: object) -> None:
    """Tell nobody."""


def _existing(path: Path) -> tuple[Path, ...]:
    return (path,) if path.exists() else ()


def _is_there(path: Path, opened: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), opened)
    except FileNotFoundError:
        return False


def serve(paths: Paths, settings: Config) -> None:
    """Serve a home in this process until it is told to stop.

    Raises `AlreadyRunning` where another process serves it, and storage errors where its files cannot be
    used.
    """
    telemetry.configure(settings.log_level, paths.daemon_log)
    for warning in config.unknown_variables():
        _log.warning("config.unknown_variable", warning=warning)
    os.umask(0o077)
    passed = activation.passed()
    endpoint.private_directory(paths.home, "OMEGAD_HOME")
    with endpoint.lock(paths.lock, paths.socket):
        if left := seal.broken_off(paths):
            _log.warning("seal.broken_off", unused_key=left.place)
        seal.enter(paths)
        run(partial(_serve, paths, settings, Clock(), passed))
    ending.leave()


def run(main: Callable[[], Awaitable[T]]) -> T:
    """Run *main* as a daemon runs: on its event loop, with its bounds on memory and on the wait for the
    interpreter.
    """
    allocator.know_structs()
    allocator.keep_small()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    return anyio.run(main, backend_options={"use_uvloop": True})


async def _serve(paths: Paths, settings: Config, clock: Clock, passed: Sequence[int]) -> None:
    async with composed(paths, settings, clock, INSTALLED_US) as daemon, anyio.create_task_group() as tasks:
        services = daemon.services
        parts: dict[str, Callable[[], Coroutine[object, object, None]]] = {
            "log": services.log.run,
            "views": services.views.run,
            "asof": services.past.run,
            "erasing": daemon.erasing.run,
            "vector_sweep": daemon.vector_sweep.run,
            "embedder": services.near.run,
            "words": partial(services.near.keep_words, services.views),
            "reactions": daemon.reactions.run,
            "sharing": daemon.exchange.run,
            "clock": services.steadiness.run,
            "signals": partial(_signals, daemon, paths),
            "watchdog": partial(supervisor.keep_alive, services.log.writer_answers),
            "memory": partial(allocator.keep_giving_back, let_go_of_pages),
            "home": partial(_leave_with_home, daemon),
        }
        running = set(parts)

        async def run_named(name: str) -> None:
            try:
                await parts[name]()
            finally:
                running.discard(name)

        async def end_in_time() -> None:
            await daemon.stopping.wait()
            ending.within(settings.shutdown_s + ENDING_S, lambda: running)

        for name in parts:
            tasks.start_soon(run_named, name, name=name)
        tasks.start_soon(end_in_time, name="end")
        with endpoint.listening(paths.socket, passed) as sock:
            await tasks.start(daemon.server.serve, sock)
            tasks.start_soon(services.spool.run, name="spool")
            _log.info(
                "daemon.ready",
                version=__version__,
                home=str(paths.home),
                socket=str(paths.socket),
                head=services.log.head,
            )
            supervisor.notify(f"READY=1\nSTATUS=Serves {paths.home}, {services.log.head} events")
            await daemon.run(tasks, settings.shutdown_s)
    _log.info("daemon.stopped")


async def _leave_with_home(daemon: Daemon) -> None:
    """End where the home was removed, with or without another in its place: what is appended to its log
    would be lost.
    """
    while daemon.services.spool.is_home():  # noqa: ASYNC110  nothing tells of it
        await anyio.sleep(LOOK_EVERY_S)
    _log.error("daemon.home_removed")
    daemon.stopping.set()


async def _signals(daemon: Daemon, paths: Paths) -> None:
    """End on SIGTERM or SIGINT, at once on a second one; read the log level again on SIGHUP."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        async for number in received:
            if number == signal.SIGHUP:
                try:
                    telemetry.configure(config.load(paths).log_level)
                except BadConfiguration as error:  # which changes nothing
                    _log.error("daemon.not_reloaded", error=str(error), hint=error.hint)
            elif daemon.stopping.is_set():
                os._exit(128 + number)  # what was acknowledged is on the disk already
            else:
                daemon.stopping.set()
