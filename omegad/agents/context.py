"""What an agent should have before it when it begins, or goes on: the tiers of memory in order, within a
budget of tokens.

Identity comes first, then what the session is doing (working), what it left (session), what is known of the
matter (semantic), what happened lately (episodic), and how what is known hangs together (relational). Every
tier has a share that it may take at most.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from omegad import index
from omegad.agents.assembling import Line, Section, annotated, fit, shown_by, unchecked
from omegad.index.active import active
from omegad.index.vector_indexes import VectorIndexes, Vectors
from omegad.log.projection import to_json
from omegad.memory.types import MemoryTypes
from omegad.person import identity
from omegad.requests.method import Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import Verb
from omegad.runtime.clock import uuid7
from omegad.search import QueryMemory, Sources, search
from omegad.search.events import Returned
from omegad.session.events import How, MemorySurfaced
from omegad.session.shown_tokens import BYTES_OF_A_TOKEN
from omegad.storage.driver import Connection
from omegad.text.quoting import excerpt, inert, one_line

Tier = Literal["L6", "L1", "L2", "L4", "L3", "L5"]

VIEWS = ("identity", "edges", "audit", "conversations", *index.VIEWS)
"""Where `conflicts` has failed, a context says so, and is made without."""
TITLES: dict[Tier, str] = {
    "L6": "Identity",
    "L1": "Now",
    "L2": "This session and the last",
    "L4": "What is known",
    "L3": "Lately",
    "L5": "How it hangs together",
}
SHARES: dict[Tier, float] = {"L6": 0.4, "L1": 0.25, "L2": 0.3, "L4": 0.6, "L3": 0.3, "L5": 0.2}
"""What each tier may take of the budget; what one leaves is there for those after it."""
LINE_BYTES = 600
MESSAGES_MAX = 10  # the last of a session
SENTENCE_BYTES = 64
FOUND_MAX = 10

_GAP = "\n\n"

Values = dict[str, int | str | None]

_HERE = "(project IS :project OR (project IS NULL AND event_type IN ('constraint', 'user_preference')))"
_SAID = f"""
SELECT id, role, content FROM conversations WHERE session_id = :session_id AND role IN ('user', 'assistant')
ORDER BY id DESC LIMIT {MESSAGES_MAX}
"""
_FILES = (
    "SELECT id, file FROM coord_audit WHERE session_id = :session_id AND file IS NOT NULL ORDER BY id DESC"
    " LIMIT 20"
)
_LEFT = f"""
SELECT node_id, event_type || ': ' || content FROM memories WHERE {active("memories")} AND project IS :project
AND (session_id = :session_id OR event_type IN ('handoff', 'checkpoint')) ORDER BY created_us DESC, id DESC
  LIMIT 8
"""
_BEST = f"""
SELECT node_id, event_type || ': ' || content FROM memories WHERE {active("memories")} AND {_HERE}
AND event_type IN ('constraint', 'user_preference', 'decision', 'lesson_learned', 'error_pattern')
ORDER BY event_type = 'constraint' DESC, on_probation, contradicted_by IS NOT NULL, priority DESC,
  rating DESC, repeated DESC, access_count - surfaced DESC,
    created_us DESC, id DESC LIMIT 24
"""
_LATELY = f"""
SELECT node_id, substr(created_at, 1, 10) || ' ' || event_type || ': ' || content FROM memories
WHERE {active("memories")}
  AND project IS :project
AND event_type IN ('session_summary', 'task_completion', 'memory', 'decision')
  ORDER BY created_us DESC, id DESC LIMIT 12
"""
_EDGES = f"""
SELECT e.source_id, e.edge_type, e.target_id, m.content FROM edges AS e
  JOIN memories AS m ON m.node_id = e.target_id
WHERE e.source_id IN (SELECT value FROM json_each(:shown)) AND e.edge_type <> 'related' AND {active()}
  ORDER BY e.weight DESC, e.id LIMIT 8
"""


class AssembleContext(Query, frozen=True, kw_only=True, tag="context.assemble"):
    """Put together what an agent should have before it, tier by tier, identity first, within a budget of
    tokens.
    """

    budget_tokens: Annotated[
        int, Meta(ge=50, le=32_000, description="how many tokens it may take, counted as four bytes each")
    ] = 2_000
    session_id: Annotated[str, Meta(max_length=256, description="for which session")] | None = None
    project: Annotated[str, Meta(max_length=256, description="in which project")] | None = None
    query: (
        Annotated[
            str, Meta(max_length=8_192, description="what it is about; what matters always when left out")
        ]
        | None
    ) = None


class TierPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one tier gives: its text, the memories (or files, or `position N` of an event) that it is of,
    those of which the beginning alone stands beside another, and what it takes.
    """

    tier: Tier
    title: str
    text: str
    sources: list[str]
    review: list[str]
    tokens: int


class Context(ViewAnswer, frozen=True):
    """The parts in order, and all of them as one text."""

    parts: list[TierPart]
    text: str
    tokens: int
    budget_tokens: int


class PreparedContext(NamedTuple):
    """The vector of the question, None without one, and the known types."""

    vector: Vectors | None
    types: MemoryTypes


def assemble(
    connection: Connection,
    project: str | None,
    session_id: str | None,
    budget_tokens: int,
    *,
    now_us: int,
    found: Sequence[Line] = (),
) -> list[TierPart]:
    """Return the parts that there is something to tell in, in order; *found* stands for what matters
    always. Times are microseconds since 1970.
    """
    values: Values = {"now_us": now_us, "project": project, "session_id": session_id}
    parts, shown, left = list[TierPart](), set[str](), budget_tokens * BYTES_OF_A_TOKEN
    for tier, share in SHARES.items():
        values["shown"] = to_json(sorted(shown))
        lines = _lines(connection, tier, values, found)
        if tier in ("L4", "L3"):
            lines = [line for line in lines if line.source not in shown]
        section = Section(TITLES[tier], annotated(connection, lines, now_us, shown), tell=partial(_row, tier))
        most = min(left, int(share * budget_tokens * BYTES_OF_A_TOKEN))
        if part := fit(section, most, gap=_GAP, is_in_order=False):
            tokens = -(-len(f"{section.title}:\n{part.text}{_GAP}".encode()) // BYTES_OF_A_TOKEN)
            told = shown_by(part.lines, "briefing")
            one = TierPart(
                tier=tier,
                title=section.title,
                text=part.text,
                sources=[*told.get("briefing", ())],
                review=[*told.get("review", ())],
                tokens=tokens,
            )
            parts.append(one)
            shown.update(one.sources)
            left -= tokens * BYTES_OF_A_TOKEN
    return parts


def _lines(connection: Connection, tier: Tier, values: Values, found: Sequence[Line]) -> list[Line]:
    match tier:
        case "L6":
            return [Line(one.file, one.said) for one in identity.files(connection)]
        case "L1":
            return list(_working(connection, values))
        case "L2":
            return _rows(connection, _LEFT, values)
        case "L4":
            return list(found) or _rows(connection, _BEST, values)
        case "L3":
            return _rows(connection, _LATELY, values)
        case "L5":
            rows = connection.execute(_EDGES, values).fetchall()
            return [
                Line(target, f"{source} {edge_type} {target}: {content}")
                for source, edge_type, target, content in rows
            ]


def _working(connection: Connection, values: Values) -> Iterator[Line]:
    """Return what a session was asked for and said, the latest first, and the files that it worked on."""
    for position, role, content in connection.execute(_SAID, values):
        yield Line(f"position {position}", f"{'asked for' if role == 'user' else 'said'}: {content}")
    files = dict[str, int]()
    for position, file in connection.execute(_FILES, values):
        files.setdefault(file, position)
    if files:
        yield Line(f"position {max(files.values())}", f"files: {', '.join(files)}")


def _rows(connection: Connection, sql: str, values: Values) -> list[Line]:
    return [Line(*row) for row in connection.execute(sql, values)]


def _row(tier: Tier, line: Line, room: int) -> str:
    """Return a line as it is told: on one line, with the id by which there is more to be had; an identity
    whole, or cut.
    """
    if tier == "L6":
        return _cut(inert(line.text), room)
    text = _cut(one_line(line.text, LINE_BYTES), LINE_BYTES) + line.after
    return f"- {text}" if tier in ("L1", "L5") else f"- {line.source}: {text}"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text that takes *most* bytes at most; nothing where that is hardly a
    sentence.
    """
    data = text.encode()
    if len(data) < most:
        return text
    return (
        data[: most - SENTENCE_BYTES // 8].decode(errors="ignore").rstrip() + "…"
        if most > SENTENCE_BYTES
        else ""
    )


async def prepare(services: Services, query: AssembleContext, _context: RequestContext) -> PreparedContext:
    """Embed what it is about."""
    return PreparedContext(
        await services.embed_question(query.query) if query.query else None, services[MemoryTypes]
    )


def read(connection: Connection, query: AssembleContext, asked: PreparedContext, moment: Moment) -> Context:
    """Assemble one moment of the views."""
    found = list[Line]()
    if query.query:
        sought = QueryMemory(text=query.query, project=query.project, or_none=True, limit=FOUND_MAX)
        matches = search(
            connection,
            sought,
            Sources(asked.vector, moment.index_as(VectorIndexes) if asked.vector else None, asked.types),
            moment.now_us,
        )
        found = [
            Line(one.memory_id, f"{one.event_type}: {excerpt(one.content, one.passage)}")
            for one in matches.results
        ]
    warning = unchecked(connection)
    left = query.budget_tokens - (warned := -(-len(f"{warning}{_GAP}") // BYTES_OF_A_TOKEN) if warning else 0)
    parts = assemble(connection, query.project, query.session_id, left, now_us=moment.now_us, found=found)
    texts = [f"{part.title}:\n{part.text}" for part in parts]
    return Context(
        parts=parts,
        text=_GAP.join([warning, *texts] if warning and texts else texts),
        tokens=sum(part.tokens for part in parts) + (warned if texts else 0),
        budget_tokens=query.budget_tokens,
        **moment.shown,
    )


async def finish(
    services: Services, query: AssembleContext, found: Context, context: RequestContext
) -> Context:
    """Record which memories were put before the agent, without waiting for the disk."""
    for how, memories in _memories_in(query, found).items():
        event = MemorySurfaced(
            query_id=uuid7(services.clock),
            how=how,
            subject=query.query or query.project or "",
            results=tuple(Returned(memory_id=memory_id, score=0.0) for memory_id in memories),
            read_position=found.position,
            at=services.clock.now_us(),
            embedder_id=services.embedder_id_of(query.query) if query.query else None,
        )
        services.record(event, context, session_id=query.session_id, project=query.project)
    return found


def _memories_in(query: AssembleContext, found: Context) -> dict[How, list[str]]:
    """Return which memories a context shows how, each once."""
    told = dict.fromkeys(one for part in found.parts for one in part.sources if one.startswith("mem-"))
    begun = dict.fromkeys(one for part in found.parts for one in part.review if one not in told)
    ids: dict[How, list[str]] = {"prompt" if query.query else "briefing": [*told], "review": [*begun]}
    return {how: memories for how, memories in ids.items() if memories}


METHODS = (
    QueryMethod(
        params=AssembleContext,
        answer=Context,
        views=VIEWS,
        prepare=prepare,
        read=read,
        finish=finish,
        tells=lambda query, found: bool(_memories_in(query, found)),
        verb=Verb(says="{text}", examples=('omegad context assemble --project shop --query "the export"',)),
    ),
)
