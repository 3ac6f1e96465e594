"""The tool about theses."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omegad.agents.tools.tool import (
    NOTHING_SHOWN,
    Arguments,
    Fields,
    Limit,
    Project,
    Reply,
    Session,
    Tool,
    line,
    without_empty,
)
from omegad.knowledge.theses import ThesisFound, ThesisList


class Thesis(Arguments, frozen=True, kw_only=True):
    """Beliefs that can turn out false: state one, name a memory as evidence for or against, predict and
    resolve; list or get them.
    """

    action: str = "list"
    thesis_id: str | None = None
    statement: str | None = None
    domain: str | None = None
    memory_id: str | None = None
    side: Literal["for", "against", "mentions"] | None = None
    why: str | None = None
    evidence_id: str | None = None
    probability: Annotated[float, Meta(ge=0, le=1)] | None = None
    due: str | None = None
    criterion: str | None = None
    outcome: Literal["yes", "no", "n/a"] | None = None
    source: Annotated[str | None, Meta(description="resolve: from where it is known")] = None
    limit: Limit = 10
    project: Project = None


def listed(answer: ThesisList, _session: Session, _given: Thesis) -> Reply:
    """Show theses, a line each."""
    shown = [summary(one) for one in answer.theses]
    return Reply("\n".join(one["line"] for one in shown) or "no theses", {"theses": shown})


def shown(found: ThesisFound, _session: Session, given: Thesis) -> Reply:
    """Show one thesis, and its evidence."""
    evidence = [
        without_empty(
            {
                "evidence_id": one.evidence_id,
                "side": one.side,
                "echo": one.is_echo,
                "memory_id": one.memory_id,
                "content": line(one.content) or NOTHING_SHOWN,
                "why": one.why,
            }
        )
        for one in found.evidence[: given.limit]
        if one.retracted is None
    ]
    lines = [
        summary(found)["line"],
        *(f"- {one['side']} {one['memory_id']}: {one['content']} ({one['evidence_id']})" for one in evidence),
    ]
    return Reply(
        "\n".join(lines), summary(found) | without_empty({"criterion": found.criterion, "evidence": evidence})
    )


def done(answer: msgspec.Struct, _session: Session, given: Thesis) -> Reply:
    """Say what was done, and the ids that there are now."""
    names = ("thesis_id", "memory_id", "evidence_id", "version")
    structured = without_empty(
        {"done": given.action, "thesis_id": given.thesis_id}
        | {name: getattr(answer, name) for name in names if hasattr(answer, name)}
    )
    return Reply(", ".join(f"{name} {value}" for name, value in structured.items()), structured)


def summary(one: Any) -> Fields:  # noqa: ANN401  a thesis as a query answers it
    """Return a thesis in one line, the confidence never without its counts."""
    due = f", due {one.due[:10]}" if one.due and one.outcome is None else ""
    outcome = f", came out {one.outcome}" if one.outcome else ""
    return {
        "thesis_id": one.thesis_id,
        "line": (
            f"{one.standing}: {one.confidence:.2f} ({one.counts}) {line(one.statement)}"
            f" [{one.thesis_id}{due}{outcome}]"
        ),
    }


TOOLS = (Tool("omega_thesis", Thesis),)
