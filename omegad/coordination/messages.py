"""The messages that agents left for each other."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import MORE, Table, Verb
from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

_LIST = """
SELECT message_id, sender, to_session, to_project, text, memory_id, created_at, expires_us,
    (SELECT json_group_array(session_id) FROM (SELECT session_id FROM coord_message_deliveries AS d
      WHERE d.message_id = m.message_id ORDER BY 1))
FROM coord_messages AS m
WHERE (:session_id IS NULL OR to_session = :session_id
  OR (to_project = :project AND sender IS NOT :session_id))
AND (:session_id IS NOT NULL OR :project IS NULL OR to_project = :project)
ORDER BY id DESC LIMIT :limit
"""


class ListMessages(Query, frozen=True, kw_only=True, tag="message.list"):
    """List messages, the latest first: all of them, or those that a session, or a project, is to read."""

    session_id: Annotated[
        One | None, Meta(description="for this session, and for its project where that is given")
    ] = None
    project: Annotated[One | None, Meta(description="for this project")] = None
    limit: Annotated[int, Meta(ge=1, le=500, description="how many at most")] = 50


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message; `sender` is a session, None for a person; `delivered_to` are those that were shown it."""

    message_id: str
    sender: str | None
    to_session: str | None
    to_project: str | None
    text: str
    memory_id: str | None
    created_at: str
    expires_at: str
    delivered_to: list[str]


class MessagePage(ViewAnswer, frozen=True):
    """Messages, the latest first; `truncated` says that there are more."""

    messages: list[SentMessage]
    truncated: bool


def list_messages(connection: Connection, query: ListMessages, moment: Moment) -> MessagePage:
    """Read messages."""
    values = {"session_id": query.session_id, "project": query.project, "limit": query.limit + 1}
    rows = connection.execute(_LIST, values).fetchall()
    messages = [_message(row) for row in rows[: query.limit]]
    return MessagePage(
        messages=messages,
        truncated=len(rows) > query.limit,
        **moment.shown,
    )


def _message(row: Sequence[object]) -> SentMessage:
    *known, expires_us, delivered_to = row
    values = (*known, rfc3339(int(str(expires_us))), msgspec.json.decode(str(delivered_to)))
    return msgspec.convert(dict(zip(SentMessage.__struct_fields__, values, strict=True)), SentMessage)


METHODS = (
    QueryMethod(
        params=ListMessages,
        answer=MessagePage,
        views=("coord_messages",),
        read=list_messages,
        is_paged=True,
        verb=Verb(
            table=Table(
                "messages",
                (
                    ("WHEN", "{created_at:moment}"),
                    ("FROM", "{sender|a person}"),
                    ("TO", "{to_session}{to_project:project %s}"),
                    ("READ BY", "{delivered_to}"),
                    ("TEXT", "{text}"),
                ),
                none="none",
                warns=MORE,
            )
        ),
    ),
)
