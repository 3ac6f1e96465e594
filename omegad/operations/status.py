"""Questions about the service itself, its log and its views, and the word to stop it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.event import Position
from omegad.log.verifying import LogReport
from omegad.reactions.contract import ReactionStatus
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.requests.verb import WATCH, AgentTool, Verb

PROTOCOL = 1
READ_MAX = 10_000
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
    """Which model embeds, and whether it can: absent, unloaded, ready or failed."""

    model: str | None
    state: str
    embedder_id: str | None
    index_vectors: int
    index_bytes: int
    backlog: int


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
    socket: str
    log: LogStatus
    views: dict[str, ViewStatus]
    reactions: dict[str, ReactionStatus]
    embedding: EmbeddingStatus
    degraded: list[str]
    spool: SpoolStatus
    self_check: SelfCheckStatus | None
    upkeep: UpkeepStatus | None = None
    files: dict[str, int]
    gateway_pid: int | None
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
            options=(WATCH,),
            examples=("omegad status --watch", "omegad status --no-spawn --json"),
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
)
