"""The sessions of agents, open or over: what each did, what it was shown, and about how many tokens that
cost.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from omegad.requests import details
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import POSITION_MAX, One, Query, ViewAnswer
from omegad.requests.verb import GONE, MORE, Table, Verb
from omegad.runtime.errors import NotFound
from omegad.runtime.times import parse_time, rfc3339
from omegad.session.shown_tokens import TOKENS
from omegad.session.story import VIEWS
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

TEXT_CHARACTERS = 600
KINDS = ("tools", "queries", "prompts")
"""Of details that steps are told by."""

_SESSIONS = f"""
SELECT s.session_id, s.host, s.project, s.folder, s.model, s.started_at, s.last_us, s.ended_at, s.end_reason,
  s.prompts, s.turns, s.tool_calls,
  (SELECT count(*) FROM coord_audit AS a WHERE a.session_id = s.session_id AND a.status <> 'ok'),
  (SELECT count(*) FROM memories AS m WHERE m.session_id = s.session_id),
  count(r.id) + coalesce((SELECT times FROM retrievals_aged AS g WHERE g.session_id = s.session_id), 0),
  iif(s.session_id IN (SELECT session_id FROM retrievals_aged), NULL, coalesce(sum({TOKENS}), 0))
FROM (
    SELECT *, row_number() OVER (PARTITION BY host ORDER BY last_us DESC, session_id) AS place
    FROM agent_sessions WHERE {{condition}}
) AS s
LEFT JOIN retrievals AS r ON r.session_id = s.session_id LEFT JOIN memories AS m ON m.node_id = r.memory_id
WHERE s.place = 1 OR NOT :last_of_each
GROUP BY s.session_id ORDER BY s.last_us DESC, s.session_id LIMIT :limit
"""
_SHOWN = f"""
SELECT r.memory_id, substr(coalesce(m.content, ''), 1, :characters), group_concat(DISTINCT r.how), count(*),
  coalesce(sum({TOKENS}), 0), max(r.at)
FROM retrievals AS r LEFT JOIN memories AS m ON m.node_id = r.memory_id
WHERE r.session_id = :session_id GROUP BY r.memory_id ORDER BY max(r.id) DESC LIMIT :limit
"""
_STEPS = """
SELECT * FROM (
    SELECT id AS position, created_at AS at,
      CASE role WHEN 'user' THEN 'asked' WHEN 'assistant' THEN 'said' ELSE role END AS what,
      NULL AS name, NULL AS status, substr(content, 1, :characters) AS text, 0 AS memories
    FROM conversations WHERE session_id = :session_id
    UNION ALL
    SELECT id, created_at, iif(status = 'ok', 'ran', 'failed'), tool_name, status,
      substr(coalesce(input_summary, '') || iif(status = 'ok', '', ' → ' || coalesce(result_summary, '')), 1,
        :characters), 0
    FROM coord_audit WHERE session_id = :session_id
    UNION ALL
    SELECT id, created_at, 'stored', node_id, event_type, substr(content, 1, :characters), 1
    FROM memories WHERE session_id = :session_id
    UNION ALL
    SELECT id, at, 'shown', iif(took_us IS NULL, mode, 'query'), NULL, substr(text, 1, :characters), returned
    FROM retrieval_queries WHERE session_id = :session_id
) WHERE position > :after ORDER BY position LIMIT :limit
"""

_UNTOLD = f"""
SELECT min(at), max(at), coalesce(sum(is_stored), 0), coalesce(sum(returned), 0),
  iif(?1 IN (SELECT session_id FROM retrievals_aged), NULL, (
    SELECT coalesce(sum({TOKENS}), 0) FROM retrievals AS r LEFT JOIN memories AS m ON m.node_id = r.memory_id
    WHERE r.session_id = ?1))
FROM (
    SELECT created_at AS at, 1 AS is_stored, 0 AS returned FROM memories WHERE session_id = ?1
    UNION ALL SELECT at, 0, returned FROM retrieval_queries WHERE session_id = ?1
)
"""


class ListSessions(Query, frozen=True, kw_only=True, tag="session.list"):
    """List the sessions of agents, open or over, the one heard of last first, with what each was shown and
    about how many tokens that cost.
    """

    project: Annotated[One | None, Meta(description="of this project")] = None
    last_of_each: Annotated[bool, Meta(description="only the last one of each host")] = False
    limit: Annotated[int, Meta(ge=1, le=500, description="how many at most")] = 50


class GetSession(Query, frozen=True, kw_only=True, tag="session.get"):
    """Tell a session step by step: what was asked and said, what was run and failed, what was stored, and
    what it was shown.
    """

    session_id: Annotated[One, Meta(description="the session's id")]
    after: Annotated[int, Meta(ge=0, le=POSITION_MAX, description="only the steps after this position")] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000, description="how many steps at most")] = 300


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session. `failed` counts tool calls that did not go well, `stored` memories, `shown` memories that
    it was shown, again and again too; `shown_tokens` is about what these took: four bytes each, of the whole
    text for a query, of its beginning where it was shown unasked. None where it is not known any more which
    some of them were, since their time was over.
    """

    session_id: str
    host: str
    project: str | None
    folder: str | None
    model: str | None
    started_at: str
    last_seen: str
    ended_at: str | None
    end_reason: str | None
    prompts: int
    turns: int
    tool_calls: int
    failed: int
    stored: int
    shown: int
    shown_tokens: int | None


class SessionList(ViewAnswer, frozen=True):
    """Sessions; `truncated` says that there are more."""

    sessions: list[Session]
    truncated: bool


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What happened: `asked`, `said`, by a `subagent`, `ran`, `failed`, `stored` or `shown`. `name` is the
    tool, the memory, or how it was shown (`query`, `briefing` and so on); `memories` is how many.
    """

    position: int
    at: str
    what: str
    name: str | None
    status: str | None
    text: str
    memories: int


class ShownMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that a session was shown: how it begins, in which ways, how often, and about how many tokens
    that cost in all.
    """

    memory_id: str
    text: str
    how: str
    times: int
    tokens: int
    last: str


class WholeSession(Session, frozen=True, kw_only=True):
    """A session with its steps, first to last, and what it was shown, the latest first; `truncated` says that
    there are more steps. What steps before `details_gone_until` said, and what they showed, may be gone,
    since their time was over; None where nothing is.
    """

    steps: list[Step]
    shown_memories: list[ShownMemory]
    truncated: bool
    details_gone_until: str | None
    position: int
    stale_by: int


def list_sessions(connection: Connection, query: ListSessions, moment: Moment) -> SessionList:
    """Read sessions."""
    values: dict[str, object] = {
        "project": query.project,
        "last_of_each": query.last_of_each,
        "limit": query.limit + 1,
    }
    found = _read(connection, "(:project IS NULL OR project = :project)", values)
    return SessionList(sessions=found[: query.limit], truncated=len(found) > query.limit, **moment.shown)


def _read(connection: Connection, condition: str, values: dict[str, object]) -> list[Session]:
    names = Session.__struct_fields__
    rows = connection.execute(_SESSIONS.format(condition=condition), values)
    told: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in rows]
    return [Session(**{**one, "last_seen": rfc3339(one["last_seen"])}) for one in told]


def _untold(connection: Connection, session_id: str) -> list[Session]:
    """Return a session that memories or queries name, and of which no host has told."""
    row = connection.execute(_UNTOLD, (session_id,)).fetchone()
    if row[0] is None:
        return []
    told: dict[str, Any] = {
        **dict.fromkeys(("project", "folder", "model", "ended_at", "end_reason")),
        **dict.fromkeys(("prompts", "turns", "tool_calls", "failed"), 0),
        **dict(zip(("started_at", "last_seen", "stored", "shown", "shown_tokens"), row, strict=True)),
    }
    return [Session(session_id=session_id, host="", **told)]


def get_session(connection: Connection, query: GetSession, moment: Moment) -> WholeSession:
    """Read one session; raises `NotFound`."""
    known: dict[str, object] = {"session_id": query.session_id, "last_of_each": False, "limit": 1}
    found = _read(connection, "session_id = :session_id", known) or _untold(connection, query.session_id)
    if not found:
        moment.require_current("there is no such session")
        raise NotFound(f"there is no session {query.session_id[:80]}", hint="session.list names them")
    values: dict[str, object] = {
        "session_id": query.session_id,
        "characters": TEXT_CHARACTERS,
        "after": query.after,
        "limit": query.limit + 1,
    }
    steps = connection.execute(_STEPS, values).fetchall()
    shown = connection.execute(_SHOWN, values).fetchall()
    return WholeSession(
        **msgspec.structs.asdict(found[0]),
        steps=[Step(**dict(zip(Step.__struct_fields__, row, strict=True))) for row in steps[: query.limit]],
        shown_memories=[
            ShownMemory(**dict(zip(ShownMemory.__struct_fields__, row, strict=True)))
            for row in shown[: query.limit]
        ],
        truncated=len(steps) > query.limit,
        details_gone_until=details.gone_until(
            connection, *KINDS, since_us=parse_time(found[0].started_at, "started_at")
        ),
        **moment.shown,
    )


METHODS = (
    QueryMethod(
        params=ListSessions,
        answer=SessionList,
        views=(*VIEWS, details.VIEW),
        read=list_sessions,
        shows_queries=True,
        turn=Turn.LONG,
        verb=Verb(
            table=Table(
                "sessions",
                (
                    ("SESSION", "{session_id}"),
                    ("HOST", "{host}"),
                    ("PROJECT", "{project}"),
                    ("LAST SEEN", "{last_seen:moment}"),
                    ("CALLS", "{tool_calls}"),
                    ("FAILED", "{failed}"),
                    ("STORED", "{stored}"),
                    ("SHOWN", "{shown}"),
                    ("TOKENS", "{shown_tokens}"),
                ),
                none="none",
                warns=MORE,
            ),
            examples=("omegad session list --project shop", "omegad session list --last-of-each"),
        ),
    ),
    QueryMethod(
        params=GetSession,
        answer=WholeSession,
        views=(*VIEWS, details.VIEW),
        read=get_session,
        shows_queries=True,
        turn=Turn.LONG,
        verb=Verb(
            table=Table(
                "steps",
                (
                    ("POSITION", "{position}"),
                    ("WHEN", "{at:moment}"),
                    ("WHAT", "{what}"),
                    ("BY", "{name}"),
                    ("TEXT", "{text}"),
                ),
                none="nothing happened in it",
                warns=MORE | GONE,
            ),
            examples=("omegad session get s-1", "omegad session get s-1 --after 4711 --limit 50"),
        ),
    ),
)
