"""What sessions were shown without asking: of which project, on which day, in which way; how much of it they
used afterwards, and about how many tokens it cost.
"""

from collections import defaultdict
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from omegad.requests import details
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import GONE, Table, Verb
from omegad.runtime.times import rfc3339
from omegad.session import story
from omegad.session.events import TO_JUDGE
from omegad.session.shown_tokens import TOKENS
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn, check

DAY_US = 86_400_000_000
SHOWN_MAX = 20_000
"""As many memories that were shown, the latest, are looked at."""

_SHOWN = f"""
SELECT substr(r.at, 1, 10), q.project, r.how, r.query_id, r.session_id, r.memory_id, q.id,
  coalesce({TOKENS}, 0)
FROM retrievals AS r JOIN retrieval_queries AS q ON q.id = r.id / 1024
  LEFT JOIN memories AS m ON m.node_id = r.memory_id
WHERE r.how NOT IN ('query', 'warning')
  AND r.session_id IS NOT NULL AND r.at >= :since AND (:project IS NULL OR q.project = :project)
ORDER BY r.id DESC LIMIT {SHOWN_MAX + 1}
"""
_PROMPTS = """
SELECT substr(created_at, 1, 10), project, count(*) FROM conversations
WHERE role = 'user' AND created_at >= :since AND (:project IS NULL OR project = :project) GROUP BY 1, 2
"""


class ReportShown(Query, frozen=True, kw_only=True, tag="session.report"):
    """Report what agents were shown without asking: by day, project and way, how much of it they used
    afterwards, and about how many tokens it cost.

    A memory is used where its session names it after that: to a tool, in a tool's result, or in what it says;
    what it was asked to judge is not. What was shown to no session, as to a person, is not counted; a
    briefing is, also where the agent began with `omega_welcome`, since no person asked for it.
    """

    days: Annotated[int, Meta(ge=1, le=366, description="how many days to look back")] = 7
    project: Annotated[One | None, Meta(description="of this project")] = None


class ShownUnasked(msgspec.Struct, frozen=True, kw_only=True):
    """What was shown on a day, in a project, in one way: how often, how many memories, how many of these were
    used by the session that was shown them, and about how many tokens they took. `prompts` counts all prompts
    of that day and project, for the way `prompt`, which is there also where none of them was shown anything.
    """

    day: str
    project: str | None
    how: str
    times: int
    memories: int
    used: int
    tokens: int
    prompts: int | None = None


class _Shown(NamedTuple):
    """A memory that a session was shown, at one time."""

    query_id: str
    session_id: str
    memory_id: str
    tokens: int
    is_used: bool


class ShownReport(ViewAnswer, frozen=True):
    """The latest day first, and what it all comes to; `truncated` says that what was shown before is not
    counted. From before `details_gone_until` nothing but briefings and reminders is, nor what was used by
    what was said, since details went whose time was over; None where all are kept.
    """

    shown: list[ShownUnasked]
    memories: int
    used: int
    tokens: int
    truncated: bool
    details_gone_until: str | None


def report(connection: Connection, query: ReportShown, moment: Moment) -> ShownReport:
    """Read the report."""
    since_us = moment.now_us - query.days * DAY_US
    values = {"since": rfc3339(since_us), "project": query.project}
    rows = connection.execute(_SHOWN, values).fetchall()
    prompts = {row[:2]: int(row[2]) for row in connection.execute(_PROMPTS, values)}
    shown_to: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        shown_to[row[4]][row[5]] = None
    named = dict[tuple[str, str], int]()
    for session_id, memory_ids in shown_to.items():
        check()
        places = story.last_named(connection, session_id, moment.position, memory_ids)
        named |= {(session_id, memory_id): place for memory_id, place in places.items()}
    groups: defaultdict[tuple[str, str | None, str], list[_Shown]] = defaultdict(list)
    for day, project, how, query_id, session_id, memory_id, position, tokens in rows[:SHOWN_MAX]:
        is_used = how not in TO_JUDGE and named[session_id, memory_id] > position
        groups[day, project, how].append(_Shown(query_id, session_id, memory_id, tokens, is_used))
    for day, project in prompts:
        _ = groups[day, project, "prompt"]  # where all was silence, too
    shown = [
        ShownUnasked(
            day=day,
            project=project,
            how=how,
            times=len({one.query_id for one in told}),
            memories=len(told),
            used=len({(one.session_id, one.memory_id) for one in told if one.is_used}),
            tokens=sum(one.tokens for one in told),
            prompts=prompts.get((day, project)) if how == "prompt" else None,
        )
        for (day, project, how), told in groups.items()
    ]
    return ShownReport(
        shown=sorted(shown, key=lambda one: (one.day, one.project or "", one.how), reverse=True),
        memories=sum(one.memories for one in shown),
        used=sum(one.used for one in shown),
        tokens=sum(one.tokens for one in shown),
        truncated=len(rows) > SHOWN_MAX,
        details_gone_until=details.gone_until(connection, "queries", "prompts", since_us=since_us),
        **moment.shown,
    )


METHODS = (
    QueryMethod(
        params=ReportShown,
        answer=ShownReport,
        views=(*story.VIEWS, details.VIEW),
        read=report,
        shows_queries=True,
        turn=Turn.LONG,
        verb=Verb(
            "report",
            table=Table(
                "shown",
                (
                    ("DAY", "{day}"),
                    ("PROJECT", "{project}"),
                    ("HOW", "{how}"),
                    ("TIMES", "{times}"),
                    ("PROMPTS", "{prompts}"),
                    ("MEMORIES", "{memories}"),
                    ("USED", "{used}"),
                    ("TOKENS", "{tokens}"),
                ),
                none="nothing was shown unasked",
                warns=GONE
                | {"truncated": "what was shown before that is not counted; --days looks back less far"},
                seldom=("PROMPTS",),
            ),
            examples=("omegad report", "omegad report --days 30 --project shop --json"),
        ),
    ),
)
