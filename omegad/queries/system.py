"""Questions about the service itself, and the word to stop it."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.queries.query import Query

PROTOCOL = 1


class Hello(Query, frozen=True, kw_only=True, tag="system.hello"):
    """Say who is calling; requests are then the same request when their client's name and request_id are."""

    protocol: int = PROTOCOL
    client: Annotated[str, Meta(max_length=256)] = ""


class Ping(Query, frozen=True, kw_only=True, tag="system.ping"):
    """Ask whether the service answers."""


class Status(Query, frozen=True, kw_only=True, tag="system.status"):
    """Ask how the service is."""


class Metrics(Query, frozen=True, kw_only=True, tag="system.metrics"):
    """Ask for the figures of the status in Prometheus' text format."""


class Shutdown(Query, frozen=True, kw_only=True, tag="system.shutdown"):
    """Ask the service to stop, once what runs has been answered."""


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
    mirror_vectors: int
    mirror_bytes: int
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
        f"omegad_mirror_vectors {status.embedding.mirror_vectors}",
        f"omegad_mirror_bytes {status.embedding.mirror_bytes}",
        f"omegad_embedding_backlog {status.embedding.backlog}",
    ]
    for name, view in status.views.items():
        lines += [f'omegad_view_position{{view="{name}"}} {view.position}', f'omegad_view_lag{{view="{name}"}} {view.lag}']
        lines.append(f'omegad_view_failed{{view="{name}"}} {int(view.state == "failed")}')
    lines += [f'omegad_reaction_lag{{reaction="{name}"}} {reaction.lag}' for name, reaction in status.reactions.items()]
    return "\n".join(lines) + "\n"
