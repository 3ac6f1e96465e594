"""The tool about one memory: everything that can be done with what has an id."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omegad.agents.tools.tool import Arguments, Fields, Limit, Reply, Session, Tool, brief, bullets, in_full, line, required, shown, without_empty

EdgeType = Literal["related", "evolved_from", "superseded_by", "contradicts", "evolves", "supersedes"]


class Memory(Arguments, frozen=True, kw_only=True):
    """Act on one memory by id: read it in full, correct, rate, relate or hide it. Nothing is lost: delete and supersede can be restored."""

    action: Literal["get", "edit", "delete", "supersede", "restore", "rate", "promote", "link", "unlink", "similar", "traverse", "history"]
    memory_id: str
    content: Annotated[str | None, Meta(description="edit: the new text")] = None
    target_id: Annotated[str | None, Meta(description="link, unlink: the other; supersede: what replaces it")] = None
    edge_type: EdgeType | None = None
    weight: Annotated[float, Meta(ge=0, le=1)] | None = None
    rating: Literal["helpful", "unhelpful", "outdated"] | None = None
    max_hops: Annotated[int, Meta(ge=1, le=5)] | None = None
    limit: Limit = 5
    reason: str | None = None


async def memory(session: Session, given: Memory) -> Reply:
    """Do what the action says."""
    match given.action:
        case "get":
            return await _get(session, given)
        case "similar":
            answer = await session.ask("memory.similar", memory_id=given.memory_id, limit=given.limit)
            found = [brief(one, session.project, similarity=round(one.similarity, 2)) for one in answer.results]
            return Reply(bullets(found) or "nothing is like it", {"results": found})
        case "traverse":
            return await _traverse(session, given)
        case "history":
            answer = await session.ask("memory.history", memory_id=given.memory_id, limit=100)
            events = [{"position": one.position, "event": one.tag, "at": one.recorded_at} for one in answer.events]
            return Reply("\n".join(f"{one['at']} {one['event']} (position {one['position']})" for one in events), {"events": events})
        case _:
            return await _change(session, given)


async def _get(session: Session, given: Memory) -> Reply:
    found = await session.ask("memory.get", memory_id=given.memory_id)
    fields = msgspec.json.decode(msgspec.json.encode(found))
    names = ("status", "project", "entity_id", "tags", "priority", "rating", "source", "referenced_date", "superseded_by", "contradicted_by")
    edges = [{"id": edge.memory_id, "type": edge.edge_type, "direction": edge.direction} for edge in found.edges]
    structured = {"id": found.memory_id, "type": found.event_type, "at": found.created_at, "content": found.content}
    structured |= without_empty({name: fields[name] for name in names} | {"metadata": fields["metadata"], "edges": edges})
    told = ", ".join(f"{name} {shown(structured[name])}" for name in names if name in structured)
    related = "".join(f"\n- {edge['direction']} {edge['type']} {edge['id']}" for edge in edges)
    head = f"{found.memory_id} [{found.event_type}, {found.created_at}; {told}]"
    return in_full(head, found.content, structured, related)


async def _traverse(session: Session, given: Memory) -> Reply:
    kinds = (given.edge_type,) if given.edge_type else ()
    graph = await session.ask("memory.traverse", memory_id=given.memory_id, max_hops=given.max_hops, edge_types=kinds, limit=given.limit + 1)
    nodes = [brief(node, session.project, hop=node.hop) for node in graph.nodes if node.hop]
    edges = [[edge.source_id, edge.edge_type, edge.target_id] for edge in graph.edges]
    text = "\n".join(filter(None, [bullets(nodes), *(" ".join(edge) for edge in edges)]))
    return Reply(text or "no edges lead from it", without_empty({"nodes": nodes, "edges": edges, "truncated": graph.truncated}))


_CHANGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # action: what it needs, and what it takes beside the id
    "edit": (("content",), ("content", "reason")),
    "delete": ((), ("reason",)),
    "restore": ((), ("reason",)),
    "promote": ((), ("reason",)),
    "supersede": (("target_id",), ("reason",)),
    "rate": (("rating",), ("rating", "reason")),
    "link": (("target_id",), ("target_id", "edge_type", "weight")),
    "unlink": (("target_id",), ("target_id", "edge_type")),
}


async def _change(session: Session, given: Memory) -> Reply:
    needs, takes = _CHANGES[given.action]
    required(given.action, **{name: getattr(given, name) for name in needs})
    fields: Fields = {name: getattr(given, name) for name in takes}
    if given.action == "supersede":
        fields["superseded_by"] = given.target_id
    answer: Any = await session.ask(f"memory.{given.action}", memory_id=given.memory_id, **fields)
    structured = {"memory_id": given.memory_id, "done": given.action} | without_empty(msgspec.to_builtins(answer))
    score = f"; its score is {answer.score}" if given.action == "rate" else ""
    about = f" ({line(str(given.target_id))})" if "target_id" in needs else ""
    return Reply(f"{given.action}: {given.memory_id}{about} done{score}", structured)


TOOLS = (Tool("omega_memory", Memory, memory),)
