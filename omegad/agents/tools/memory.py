"""The tool about one memory: everything that can be done with what has an id."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.agents.tools.tool import (
    Arguments,
    Limit,
    Reply,
    Session,
    Tool,
    brief,
    bullets,
    in_full,
    line,
    said_by,
    shown,
    without_empty,
)
from omegad.memory.events import EdgeType, Verdict
from omegad.memory.graph import SimilarAnswer
from omegad.memory.history import History
from omegad.memory.lifecycle import Rated
from omegad.memory.reading import MemoryDetail
from omegad.text.quoting import name

RELATING = frozenset({"supersede", "link", "unlink", "settle"})


class Memory(Arguments, frozen=True, kw_only=True):
    """Act on one memory by id: read it in full, correct, rate, relate or hide it. Nothing is lost: delete
    and supersede can be restored.
    """

    action: str
    memory_id: str
    content: Annotated[str | None, Meta(description="edit: the new text")] = None
    target_id: Annotated[
        str | None,
        Meta(description="link, unlink: the other; supersede: what replaces it; settle: the older"),
    ] = None
    edge_type: EdgeType | None = None
    weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    rating: Literal["helpful", "unhelpful", "outdated"] | None = None
    verdict: Annotated[Verdict | None, Meta(description="settle: what it is to the older")] = None
    max_hops: Annotated[int, Meta(ge=1, le=5)] | None = None
    limit: Limit = 5
    reason: str | None = None


def alike(answer: SimilarAnswer, session: Session, _given: Memory) -> Reply:
    """Show what is like a memory."""
    found = [brief(one, session.project, similarity=round(one.similarity, 2)) for one in answer.results]
    return Reply(bullets(found) or "nothing is like it", {"results": found})


def lived(answer: History, _session: Session, _given: Memory) -> Reply:
    """Show the events of a memory's life."""
    events = [
        without_empty({"position": one.position, "event": one.tag, "at": one.recorded_at, "by": said_by(one)})
        for one in answer.events
    ]
    by = [name(one["by"]) + ", " if "by" in one else "" for one in events]
    text = "\n".join(
        f"{one['at']} {one['event']} ({who}position {one['position']})"
        for one, who in zip(events, by, strict=True)
    )
    return Reply(text, {"events": events})


def whole(found: MemoryDetail, _session: Session, _given: Memory) -> Reply:
    """Show a memory in full."""
    fields = msgspec.json.decode(msgspec.json.encode(found))
    names = (
        "status",
        "project",
        "entity_id",
        "tags",
        "priority",
        "rating",
        "retrieval_count",
        "strength",
        "source",
        "person",
        "machine",
        "agent",
        "referenced_date",
        "superseded_by",
        "contradicted_by",
    )
    edges = [
        {"id": edge.memory_id, "type": edge.edge_type, "direction": edge.direction} for edge in found.edges
    ]
    structured = {
        "id": found.memory_id,
        "type": found.event_type,
        "at": found.created_at,
        "content": found.content,
    }
    structured |= without_empty(
        {one: fields[one] for one in names} | {"metadata": fields["metadata"], "edges": edges}
    )
    told = ", ".join(f"{one} {shown(structured[one])}" for one in names if one in structured)
    related = "".join(f"\n- {edge['direction']} {edge['type']} {edge['id']}" for edge in edges)
    head = f"{found.memory_id} [{found.event_type}, {found.created_at}; {told}]"
    return in_full(head, found.content, structured, related)


async def traverse(session: Session, given: Memory) -> Reply:
    """Show what the edges of a memory lead to, beside the memory itself."""
    kinds = (given.edge_type,) if given.edge_type else ()
    graph = await session.ask(
        "memory.traverse",
        memory_id=given.memory_id,
        max_hops=given.max_hops,
        edge_types=kinds,
        limit=given.limit + 1,
    )
    nodes = [brief(node, session.project, hop=node.hop) for node in graph.nodes if node.hop]
    edges = [[edge.source_id, edge.edge_type, edge.target_id] for edge in graph.edges]
    text = "\n".join(filter(None, [bullets(nodes), *(" ".join(edge) for edge in edges)]))
    return Reply(
        text or "no edges lead from it",
        without_empty({"nodes": nodes, "edges": edges, "truncated": graph.truncated}),
    )


def done(answer: msgspec.Struct, _session: Session, given: Memory) -> Reply:
    """Say that a memory was changed."""
    structured = {"memory_id": given.memory_id, "done": given.action} | without_empty(
        msgspec.to_builtins(answer)
    )
    score = f"; its score is {answer.score}" if isinstance(answer, Rated) else ""
    about = f" ({line(str(given.target_id))})" if given.action in RELATING else ""
    return Reply(f"{given.action}: {given.memory_id}{about} done{score}", structured)


TOOLS = (Tool("omega_memory", Memory, {"traverse": traverse}),)
