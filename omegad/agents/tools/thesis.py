"""The tool about theses."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from omegad.agents.tools.tool import Arguments, Fields, Limit, Project, Reply, Session, Tool, line, required, without_empty

NEEDS: dict[str, tuple[str, ...]] = {
    "state": ("statement",),
    "evidence": ("thesis_id", "memory_id", "side"),
    "retract": ("thesis_id", "evidence_id"),
    "revise": ("thesis_id", "statement"),
    "predict": ("thesis_id", "probability"),
    "resolve": ("thesis_id", "outcome", "source"),
    "get": ("thesis_id",),
    "list": (),
}
TAKES: dict[str, tuple[str, ...]] = {
    "state": ("statement", "domain", "due", "criterion"),
    "evidence": ("thesis_id", "memory_id", "side", "why"),
    "retract": ("thesis_id", "evidence_id", "why"),
    "revise": ("thesis_id", "statement", "why"),
    "predict": ("thesis_id", "probability", "due", "criterion"),
    "resolve": ("thesis_id", "outcome", "source"),
}


class Thesis(Arguments, frozen=True, kw_only=True):
    """Beliefs that can turn out false: state one, name a memory as evidence for or against, predict and resolve; list or get them."""

    action: Literal["list", "get", "state", "evidence", "retract", "revise", "predict", "resolve"] = "list"
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


async def thesis(session: Session, given: Thesis) -> Reply:
    """Do what the action says."""
    required(given.action, **{name: getattr(given, name) for name in NEEDS[given.action]})
    if given.action == "list":
        answer = await session.ask("thesis.list", project=session.project_of(given.project), domain=given.domain, limit=given.limit)
        shown = [told(one) for one in answer.theses]
        return Reply("\n".join(one["line"] for one in shown) or "no theses", {"theses": shown})
    if given.action == "get":
        found = await session.ask("thesis.get", thesis_id=given.thesis_id)
        evidence = [
            without_empty(
                {
                    "evidence_id": one.evidence_id,
                    "side": one.side,
                    "echo": one.is_echo,
                    "memory_id": one.memory_id,
                    "content": line(one.content),
                    "why": one.why,
                }
            )
            for one in found.evidence[: given.limit]
            if one.retracted is None
        ]
        lines = [told(found)["line"], *(f"- {one['side']} {one['memory_id']}: {one['content']} ({one['evidence_id']})" for one in evidence)]
        return Reply("\n".join(lines), told(found) | without_empty({"criterion": found.criterion, "evidence": evidence}))
    fields: Fields = {name: getattr(given, name) for name in TAKES[given.action]}
    if given.action == "state":
        fields |= {"project": session.project_of(given.project), "prior": given.probability}
    if given.action in ("state", "revise"):
        fields["session_id"] = session.session_id
    done: Any = await session.ask(f"thesis.{given.action}", **fields)
    names = ("thesis_id", "memory_id", "evidence_id", "version")
    structured = without_empty({"done": given.action, "thesis_id": given.thesis_id} | {n: getattr(done, n) for n in names if hasattr(done, n)})
    return Reply(", ".join(f"{name} {value}" for name, value in structured.items()), structured)


def told(one: Any) -> Fields:  # noqa: ANN401  a thesis as a query answers it
    """Return a thesis in one line, the confidence never without its counts."""
    due = f", due {one.due[:10]}" if one.due and one.outcome is None else ""
    outcome = f", came out {one.outcome}" if one.outcome else ""
    return {
        "thesis_id": one.thesis_id,
        "line": f"{one.standing}: {one.confidence:.2f} ({one.counts}) {line(one.statement)} [{one.thesis_id}{due}{outcome}]",
    }


TOOLS = (Tool("omega_thesis", Thesis, thesis),)
