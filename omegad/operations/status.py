"""Questions about the service itself, its log and its views, and what its reactions failed on; its figures in
Prometheus' text format, version 0.0.4; and the word to stop it.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from omegad.log.dead_letters import DeadLetter
from omegad.log.event import Position
from omegad.log.verifying import LogReport
from omegad.reactions.contract import ReactionStatus
from omegad.reactions.runner import Runner
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.requests.verb import WATCH, AgentTool, Option, Verb
from omegad.rpc.peer import Call
from omegad.runtime.errors import Invalid, NotFound
from omegad.runtime.times import rfc3339
from omegad.sharing.standing import Standing

PROTOCOL = 1
READ_MAX = 10_000
LISTED_MAX = 1_000


Handler = Callable[..., Awaitable[object]]
"""Answers a request (its Struct, the call)."""

ProgressToken = Annotated[str | int, Meta(description="be sent `progress` notifications with this token")]


class Hello(Request, frozen=True, kw_only=True, tag="system.hello"):
    """Say who is calling; requests are then the same request when their client's name and request_id are."""

    protocol: Annotated[int, Meta(description="which version of the protocol it speaks")] = PROTOCOL
    client: Annotated[str, Meta(max_length=256, description="its name")] = ""


class Ping(Request, frozen=True, kw_only=True, tag="system.ping"):
    """Say whether the service answers."""


class Status(Request, frozen=True, kw_only=True, tag="system.status"):
    """Say how the service is, and name whatever is degraded."""


class Metrics(Request, frozen=True, kw_only=True, tag="system.metrics"):
    """Give the figures of the status in Prometheus' text format."""


class Shutdown(Request, frozen=True, kw_only=True, tag="system.shutdown"):
    """Stop the service, once what runs has been answered."""


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers."""

    protocol: int
    version: str
    build: str


class Pong(msgspec.Struct, frozen=True, kw_only=True):
    """That the service answers."""

    ok: bool
    version: str
    pid: int


class Exposition(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the status, in Prometheus' text format."""

    text: str


class Stopping(msgspec.Struct, frozen=True, kw_only=True):
    """That the service is about to stop."""

    ok: bool


class LogStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where the log ends, how large it is, and how many appends wait."""

    head: int
    bytes: int
    waiting: int


class ViewStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Where a view stands: live, catching_up, rebuilding or failed."""

    position: int
    lag: int
    state: str
    version: int
    error: str | None = None


class EmbeddingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Which model embeds, and whether it can: absent, unloaded, ready or failed; and the same of all
    that are installed and wanted, by name.
    """

    model: str | None
    state: str
    embedder_id: str | None
    index_vectors: int
    index_bytes: int
    backlog: int
    models: dict[str, str]


class SpoolStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How many hooks wait to be taken in, and how many were let go."""

    waiting: int
    lost: int


class SelfCheckStatus(msgspec.Struct, frozen=True, kw_only=True):
    """When log and views were proved last, in microseconds since 1970, how long that took, and what was
    wrong, in words.
    """

    at_us: int
    took_s: float
    problems: tuple[str, ...]


class UpkeepStatus(msgspec.Struct, frozen=True, kw_only=True):
    """When the store was put in order last, by the schedule or by hand, and how many memories were promoted,
    expired and marked as stale, and summaries made; `undone` says that it was taken back.
    """

    at: str
    by: str
    promoted: int
    compacted: int
    expired: int
    stale: int
    undone: bool


class RetentionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """For how many days the details of which kind of event are kept, whether they go by themselves (`is_on`),
    when the last were let go of, and up to which position those of each kind have gone.

    `begins_at` is when the first of what is over goes, where that has yet to come, and `waiting` how many
    events that was of each kind when it was last looked at; their payloads will be `waiting_bytes` less.

    Where the log cannot be read at once, it is as it was at `known_at`; without `is_known` it was not read
    since the start, and `days` and `is_on` alone say anything.
    """

    days: dict[str, int]
    is_on: bool
    ran_at: str | None
    begins_at: str | None
    waiting: dict[str, int]
    waiting_bytes: int
    through: dict[str, Position]
    is_known: bool = True
    known_at: str | None = None


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the service is. `degraded` names, in words, whatever is not as it should be; `files` has the
    bytes of each part.
    """

    version: str
    pid: int
    uptime_s: float
    home: str
    paused: str | None
    """Why nothing is kept of what hosts tell, None where it is."""
    sealed: str | None = None
    """Where the key is by which the home is sealed, None where it is plain."""
    socket: str
    log: LogStatus
    views: dict[str, ViewStatus]
    reactions: dict[str, ReactionStatus]
    embedding: EmbeddingStatus
    degraded: list[str]
    spool: SpoolStatus
    self_check: SelfCheckStatus | None
    upkeep: UpkeepStatus | None = None
    retention: RetentionStatus | None = None  # where everything is kept for ever
    share: Standing | None = None
    """How it stands with the team that is shared with, None where there is none, or that cannot be said at
    once.
    """
    files: dict[str, int]
    web_pid: int | None
    disk_free_bytes: int
    rss_bytes: int
    connections: int
    requests: int


class ReadLog(Request, frozen=True, kw_only=True, tag="log.read"):
    """Read events after a position."""

    after: Annotated[int, Meta(ge=0, description="begin after this position")] = 0
    limit: Annotated[int, Meta(ge=1, le=READ_MAX, description="how many events at most")] = 100


class FollowLog(Request, frozen=True, kw_only=True, tag="log.follow"):
    """Be sent every event after a position (by default, those to come) as `log.event` notifications, until
    the request is cancelled.
    """

    after: (
        Annotated[int, Meta(ge=0, description="begin after this position; with those to come when left out")]
        | None
    ) = None


class VerifyLog(Request, frozen=True, kw_only=True, tag="log.verify"):
    """Prove that the log is as it was written."""

    progress_token: ProgressToken | None = None


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """That there is no more to follow, because the service stops."""


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some events, fewer than asked for where they are large, and where the log ends."""

    events: list[msgspec.Raw]
    """Each a `LogEvent`."""
    head: Position


class RebuildViews(Request, frozen=True, kw_only=True, tag="views.rebuild"):
    """Build one view, or all and the decision state, again from the log beside the live ones, then swap."""

    name: Annotated[str | None, Meta(description="one view; all of them when left out")] = None
    progress_token: ProgressToken | None = None


class VerifyViews(Request, frozen=True, kw_only=True, tag="views.verify"):
    """Replay the log and compare it with one view, or all."""

    name: Annotated[str | None, Meta(description="one view; all of them when left out")] = None
    progress_token: ProgressToken | None = None


class ViewsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, for each view."""

    ok: bool
    views: dict[str, object]


class Metric(NamedTuple):
    """A family of figures: its name without the prefix, and one value, or one for each value of a label."""

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    values: float | Iterable[tuple[str, float]]
    label: str = ""


def exposition(status: ServiceStatus) -> str:
    """Write the figures of a status."""
    service = (
        Metric("build_info", "gauge", "1, of the version in the label.", [(status.version, 1)], "version"),
        Metric("uptime_seconds", "gauge", "Time since the start.", status.uptime_s),
        Metric("rss_bytes", "gauge", "Memory that is resident.", status.rss_bytes),
        Metric("connections", "gauge", "Clients that are connected.", status.connections),
        Metric("requests_total", "counter", "Requests since the start.", status.requests),
        Metric(
            "degraded",
            "gauge",
            "How much is not as it should be; the status says what.",
            len(status.degraded),
        ),
        Metric("web_up", "gauge", "Whether what speaks HTTP runs.", int(status.web_pid is not None)),
    )
    lines = []
    for metric in (*service, *_parts(status)):
        name = f"omegad_{metric.name}"
        lines += [f"# HELP {name} {metric.about}", f"# TYPE {name} {metric.kind}"]
        if isinstance(metric.values, int | float):
            lines.append(f"{name} {metric.values}")
        else:
            lines += [f'{name}{{{metric.label}="{value}"}} {figure}' for value, figure in metric.values]
    return "\n".join(lines) + "\n"


def _parts(status: ServiceStatus) -> Iterable[Metric]:
    log, embedding, check = status.log, status.embedding, status.self_check
    views, reactions = status.views.items(), status.reactions.items()
    return (
        Metric("log_head", "gauge", "The position of the last event.", log.head),
        Metric("log_events_total", "counter", "Events in the log, which only grows.", log.head),
        Metric("log_bytes", "gauge", "Size of the log and its write-ahead log.", log.bytes),
        Metric("log_waiting", "gauge", "Appends that wait.", log.waiting),
        Metric(
            "file_bytes",
            "gauge",
            "Size of a part's file and its write-ahead log.",
            status.files.items(),
            "part",
        ),
        Metric("disk_free_bytes", "gauge", "What is free where the home is.", status.disk_free_bytes),
        Metric(
            "view_position",
            "gauge",
            "Up to which event a view shows the log.",
            [(name, view.position) for name, view in views],
            "view",
        ),
        Metric(
            "view_lag",
            "gauge",
            "Events that a view does not show yet.",
            [(name, view.lag) for name, view in views],
            "view",
        ),
        Metric(
            "view_failed",
            "gauge",
            "Whether a view has failed.",
            [(name, int(view.state == "failed")) for name, view in views],
            "view",
        ),
        Metric(
            "reaction_lag",
            "gauge",
            "Events that a reaction has yet to see.",
            [(name, one.lag) for name, one in reactions],
            "reaction",
        ),
        Metric(
            "reaction_failing",
            "gauge",
            "Whether a reaction is in trouble.",
            [(name, int(one.trouble is not None)) for name, one in reactions],
            "reaction",
        ),
        Metric("spool_files", "gauge", "Hooks that wait to be taken in.", status.spool.waiting),
        Metric("spool_lost", "gauge", "Hooks that were let go.", status.spool.lost),
        Metric("index_vectors", "gauge", "Vectors held in memory.", embedding.index_vectors),
        Metric("index_bytes", "gauge", "Size of vectors and words in memory.", embedding.index_bytes),
        Metric("embedding_backlog", "gauge", "Memories that wait for their vectors.", embedding.backlog),
        Metric(
            "self_check_timestamp_seconds",
            "gauge",
            "When log and views were proved last; 0 for never.",
            check.at_us / 1e6 if check else 0,
        ),
        Metric("self_check_duration_seconds", "gauge", "How long that took.", check.took_s if check else 0),
        Metric("self_check_problems", "gauge", "What that found wrong.", len(check.problems) if check else 0),
    )


class ListSetAside(Request, frozen=True, kw_only=True, tag="reaction.list"):
    """List the events, and the slots of time, that a reaction failed on and set aside."""


class RetrySetAside(Request, frozen=True, kw_only=True, tag="reaction.retry"):
    """Try again what reactions failed on: all of it, what one of them did, or one event of it."""

    reaction: (
        Annotated[str, Meta(min_length=1, max_length=256, description="only what this reaction failed on")]
        | None
    ) = None
    position: Annotated[int, Meta(ge=0, description="only that event, or slot, of the reaction")] | None = (
        None
    )
    forget: Annotated[bool, Meta(description="try nothing, and let go of it")] = False
    request_id: (
        Annotated[str, Meta(min_length=1, max_length=256, description="the same id gives the first answer")]
        | None
    ) = None


class OneSetAside(msgspec.Struct, frozen=True, kw_only=True):
    """An event at a position of the log, or a slot of time, and what the reaction failed on there."""

    reaction: str
    position: int
    is_slot: bool
    failed_at: str
    tries: int
    error: str


class AllSetAside(msgspec.Struct, frozen=True, kw_only=True):
    """What is set aside: the first 1,000 of `total`, by reaction and position."""

    set_aside: list[OneSetAside]
    total: int


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """How many of them were done now, or let go of, and those that failed once more."""

    done: int
    forgotten: int
    failed: list[OneSetAside]


def handlers(runner: Runner) -> dict[type[msgspec.Struct], Handler]:
    """Return what answers each of the methods about what is set aside."""
    return {ListSetAside: partial(listed, runner), RetrySetAside: partial(retried, runner)}


async def listed(runner: Runner, _request: ListSetAside, _call: Call) -> AllSetAside:
    """List it."""
    found = await runner.set_aside()
    return AllSetAside(set_aside=_told(found), total=len(found))


async def retried(runner: Runner, request: RetrySetAside, call: Call) -> Retried:
    """Try what is meant again, one after the other. Raises `NotFound` where there is none, and storage
    errors where it cannot be tried now.
    """
    if request.position is not None and request.reaction is None:
        raise Invalid("whose position?", hint="name the reaction too; reaction.list shows what is set aside")
    meant = [
        one
        for one in await runner.set_aside()
        if request.reaction in {None, one.name} and request.position in {None, one.position}
    ]
    if not meant and request.reaction is not None:
        raise NotFound("nothing of that is set aside", hint="reaction.list shows what is")
    failed = []
    for one in meant:
        if request.forget:
            await runner.forget(one)
        elif left := await runner.retry(one):
            failed.append(left)
    call.peer.written = max(call.peer.written, runner.head)
    done = len(meant) - len(failed)
    return Retried(
        done=0 if request.forget else done,
        forgotten=done if request.forget else 0,
        failed=_told(failed),
    )


def _told(found: Sequence[DeadLetter]) -> list[OneSetAside]:
    return [
        OneSetAside(
            reaction=one.name,
            position=one.position,
            is_slot=one.is_slot,
            failed_at=rfc3339(one.failed_at),
            tries=one.tries,
            error=one.error,
        )
        for one in found[:LISTED_MAX]
    ]


METHODS = (
    ServiceMethod(params=Hello, answer=Greeting, verb=None),
    ServiceMethod(params=Ping, answer=Pong, verb=Verb(says="omegad {version} answers: process {pid}")),
    ServiceMethod(
        params=Status,
        answer=ServiceStatus,
        verb=Verb(
            "status",
            is_first=True,
            about="Show how the daemon is: log, views, model, and whatever is not as it should be",
            by="daemon.status",
            options=(
                WATCH,
                Option(
                    "growth", "show what the files grow by, by kind of event, and what takes how much", "flag"
                ),
            ),
            examples=("omegad status --watch", "omegad status --growth", "omegad status --no-spawn --json"),
        ),
        tool=AgentTool("omega_stats status", by="upkeep.service"),
    ),
    ServiceMethod(params=Metrics, answer=Exposition, verb=Verb(says="{text}")),
    ServiceMethod(params=Shutdown, answer=Stopping, verb=None),
    ServiceMethod(params=ReadLog, answer=LogPage, is_paged=True, verb=None),
    ServiceMethod(params=FollowLog, answer=Ended, verb=None),
    ServiceMethod(params=VerifyLog, answer=LogReport, verb=None),
    ServiceMethod(params=RebuildViews, answer=ViewsReport, verb=None),
    ServiceMethod(params=VerifyViews, answer=ViewsReport, verb=None),
    ServiceMethod(params=ListSetAside, answer=AllSetAside),
    ServiceMethod(params=RetrySetAside, answer=Retried, writes=True),
)
