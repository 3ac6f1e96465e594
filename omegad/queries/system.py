"""Questions about the service itself, and the word to stop it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.method import ServiceMethod
from omegad.queries.query import Request

PROTOCOL = 1


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


class ReactionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Up to which position of the log (or which slot of time, where that is what it goes by) a reaction has done all there was to do."""

    position: int
    lag: int
    trouble: str | None = None


class EmbeddingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Which model embeds, and whether it can: absent, unloaded, ready or failed."""

    model: str | None
    state: str
    embedder_id: str | None
    index_vectors: int
    index_bytes: int
    backlog: int


class ServiceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the service is. `degraded` names, in words, whatever is not as it should be."""

    version: str
    pid: int
    uptime_s: float
    home: str
    socket: str
    log: LogStatus
    views: dict[str, ViewStatus]
    reactions: dict[str, ReactionStatus]
    embedding: EmbeddingStatus
    degraded: list[str]
    rss_bytes: int
    connections: int
    requests: int


def exposition(status: ServiceStatus) -> str:
    """Write the figures of a status as Prometheus' text format."""
    lines = [
        f"omegad_log_head {status.log.head}",
        f"omegad_log_bytes {status.log.bytes}",
        f"omegad_log_waiting {status.log.waiting}",
        f"omegad_uptime_seconds {status.uptime_s}",
        f"omegad_rss_bytes {status.rss_bytes}",
        f"omegad_connections {status.connections}",
        f"omegad_requests_total {status.requests}",
        f"omegad_degraded {len(status.degraded)}",
        f"omegad_index_vectors {status.embedding.index_vectors}",
        f"omegad_index_bytes {status.embedding.index_bytes}",
        f"omegad_embedding_backlog {status.embedding.backlog}",
    ]
    for name, view in status.views.items():
        lines += [f'omegad_view_position{{view="{name}"}} {view.position}', f'omegad_view_lag{{view="{name}"}} {view.lag}']
        lines.append(f'omegad_view_failed{{view="{name}"}} {int(view.state == "failed")}')
    lines += [f'omegad_reaction_lag{{reaction="{name}"}} {reaction.lag}' for name, reaction in status.reactions.items()]
    return "\n".join(lines) + "\n"


METHODS = (
    ServiceMethod(params=Hello, answer=Greeting),
    ServiceMethod(params=Ping, answer=Pong),
    ServiceMethod(params=Status, answer=ServiceStatus),
    ServiceMethod(params=Metrics, answer=Exposition),
    ServiceMethod(params=Shutdown, answer=Stopping),
)
