"""What was learned, the best proved first."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.index.filters import Filters, Some, where
from omegad.memory.reading import COLUMNS, Memory, fields
from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import ViewAnswer
from omegad.requests.verb import Table, Verb
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

LESSON_TYPES = ("lesson_learned", "error_pattern")

ORDER = (
    "ORDER BY m.rating DESC, m.on_probation, m.repeated DESC, m.access_count - m.surfaced DESC,"
    " m.created_us DESC, m.id DESC"
)
BY_EVIDENCE = f"""
SELECT {COLUMNS} FROM memories AS m WHERE m.id IN (
    SELECT m.id FROM memories AS m WHERE {{condition}}
    {ORDER} LIMIT ?
)
{ORDER}
"""


class Lessons(Filters, frozen=True, kw_only=True, tag="memory.lessons"):
    """Show what was learned, the best proved first: by rating, then how often they were said again, then how
    often they were found, then the newest.

    Of one rating, those on probation come after the others.
    """

    event_types: Annotated[Some, Meta(description="of this type; of one of them when repeated")] = (
        LESSON_TYPES
    )
    limit: Annotated[int, Meta(ge=1, le=100, description="how many at most")] = 10


class LessonsAnswer(ViewAnswer, frozen=True):
    """Lessons that hold, best proved first."""

    lessons: list[Memory]


def lessons(connection: Connection, query: Lessons, moment: Moment) -> LessonsAnswer:
    """Read the active lessons that pass the filters; where these name no types, of `LESSON_TYPES`."""
    asked = query if query.event_types else msgspec.structs.replace(query, event_types=LESSON_TYPES)
    condition, values = where(asked, moment.now_us)
    rows = connection.execute(BY_EVIDENCE.format(condition=condition), (*values, query.limit)).fetchall()
    return LessonsAnswer(lessons=[Memory(**fields(row)) for row in rows], **moment.shown)


METHODS = (
    QueryMethod(
        params=Lessons,
        answer=LessonsAnswer,
        views=("memories",),
        read=lessons,
        turn=Turn.LONG,
        verb=Verb(
            table=Table(
                "lessons",
                (
                    ("RATING", "{rating}"),
                    ("REPEATED", "{repeated}"),
                    ("FOUND", "{retrieval_count}"),
                    ("ID", "{memory_id}"),
                    ("TYPE", "{event_type}"),
                    ("CONTENT", "{content}"),
                ),
                none="no lessons",
            ),
            examples=("omegad memory lessons --project shop",),
        ),
    ),
)
