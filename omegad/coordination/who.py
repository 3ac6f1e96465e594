"""Which sessions are at work, and on what."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import MORE, WATCH, AgentTool, Table, Verb
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

SECOND_US = 1_000_000
DOING_CHARACTERS = 160
_OPEN = """
SELECT session_id, host, project, folder, started_at, last_us,
    (SELECT json_group_array(task_id || ' ' || title) FROM (
        SELECT task_id, title FROM coord_tasks WHERE owner = s.session_id AND status = 'claimed'
        ORDER BY claimed_at
    )),
    (SELECT text FROM coord_intents AS i WHERE i.session_id = s.session_id AND status = 'current'
      AND expires_us > :now_us),
    (SELECT substr(content, 1, 1000) FROM conversations AS c WHERE c.session_id = s.session_id
      AND role = 'user' ORDER BY id DESC LIMIT 1)
FROM agent_sessions AS s WHERE ended_at IS NULL AND (:project IS NULL OR project = :project)
  ORDER BY last_us DESC, session_id LIMIT :limit
"""


class Who(Query, frozen=True, kw_only=True, tag="session.who"):
    """Show the sessions that are open, the one heard of last first, and what they are on."""

    project: Annotated[One | None, Meta(description="of this project")] = None
    limit: Annotated[int, Meta(ge=1, le=500, description="how many at most")] = 100


class OpenSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session: when it began and was heard of last, that in seconds too, and its tasks, its intent, and
    what it was asked for last.
    """

    session_id: str
    host: str
    project: str | None
    folder: str | None
    since: str
    last_seen: str
    silent_s: int
    tasks: list[str]
    intent: str | None
    asked: str | None


class WhoPage(ViewAnswer, frozen=True):
    """The sessions that are open; `truncated` says that there are more."""

    sessions: list[OpenSession]
    truncated: bool


def who(connection: Connection, query: Who, moment: Moment) -> WhoPage:
    """Read the sessions that are open."""
    values = {"now_us": moment.now_us, "project": query.project, "limit": query.limit + 1}
    rows = connection.execute(_OPEN, values).fetchall()
    return WhoPage(
        sessions=[
            OpenSession(
                session_id=session_id,
                host=host,
                project=project,
                folder=folder,
                since=since,
                last_seen=rfc3339(last_us),
                silent_s=max(0, (moment.now_us - last_us) // SECOND_US),
                tasks=msgspec.json.decode(tasks, type=list[str]),
                intent=intent,
                asked=None if asked is None else " ".join(asked.split())[:DOING_CHARACTERS],
            )
            for session_id, host, project, folder, since, last_us, tasks, intent, asked in rows[: query.limit]
        ],
        truncated=len(rows) > query.limit,
        **moment.shown,
    )


METHODS = (
    QueryMethod(
        params=Who,
        answer=WhoPage,
        views=("conversations", "coord_tasks", "coord_intents"),
        read=who,
        verb=Verb(
            "who",
            table=Table(
                "sessions",
                (
                    ("SESSION", "{session_id}"),
                    ("HOST", "{host}"),
                    ("PROJECT", "{project}"),
                    ("SINCE", "{since:moment}"),
                    ("SILENT", "{silent_s:duration}"),
                    ("ON", "{tasks+intent|asked}"),
                ),
                none="none",
                warns=MORE,
            ),
            options=(WATCH,),
            examples=("omegad who --watch", "omegad who --project shop --json"),
        ),
        tool=AgentTool(
            "omega_coord who", by="coordinating.who", takes={"project": "session.project"}, limit=20
        ),
    ),
)
