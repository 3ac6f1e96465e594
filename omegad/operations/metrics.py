"""The figures of the status in Prometheus' text format, version 0.0.4."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from omegad.operations.status import ServiceStatus


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
        Metric(
            "gateway_up", "gauge", "Whether the gateway of MCP runs.", int(status.gateway_pid is not None)
        ),
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
        Metric("index_bytes", "gauge", "Size of the vectors held in memory.", embedding.index_bytes),
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
