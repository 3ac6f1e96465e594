"""The memories nearest to a text that is about to be stored."""

from collections.abc import Mapping

import msgspec

from omegad.index import words
from omegad.index.active import active
from omegad.index.columns import Selection
from omegad.index.filters import Filtered
from omegad.index.fulltext import FullText
from omegad.index.vector_index import VectorIndex
from omegad.index.words import Words
from omegad.storage.driver import Connection

COUNT = 10
RELATED_COSINE = 0.45
"""From which cosine on two are related."""
READ_CHARACTERS = 2_000  # of a content, when it is searched for by its words


class Near(msgspec.Struct, frozen=True, kw_only=True):
    """A memory near to a text. `cosine` is None where it was found by words; `is_comparable` says that it
    is of the whole texts.
    """

    memory_id: str
    content: str
    event_type: str
    entity_id: str | None
    session_id: str | None
    cosine: float | None
    is_comparable: bool = True


def neighbours(
    connection: Connection,
    content: str,
    project: str | None,
    embedded: tuple[VectorIndex, bytes] | None,
    *,
    now_us: int,
    leave_out: str,
) -> list[Near]:
    """Return the nearest active memories of the same project: by meaning where the text could be embedded,
    else by words. The index is at the connection's moment.
    """
    rows: dict[int, float | None]
    if embedded is None:
        wanted = words.of_question(content[:READ_CHARACTERS])
        rows = dict.fromkeys(_holding(connection, wanted, project, now_us))
    else:
        index, vector = embedded
        selection = Selection(named={"project": frozenset([project])}, now_us=now_us)
        rows = dict(index.nearest(connection, vector, selection, COUNT + 1))
    return [one for one in _read(connection, rows) if one.memory_id != leave_out][:COUNT]


def titled(connection: Connection, title: str, project: str | None, *, now_us: int) -> list[Near]:
    """Return active memories of a project that hold a title, word by word."""
    found = _holding(connection, words.of_phrase(title), project, now_us)
    return _read(connection, dict.fromkeys(found))


def _read(connection: Connection, rows: Mapping[int, float | None]) -> list[Near]:
    sql = (
        "SELECT id, node_id, content, event_type, entity_id, session_id FROM memories WHERE id IN (SELECT"
        " value FROM json_each(?)) ORDER BY id"
    )
    details = {row[0]: row[1:] for row in connection.execute(sql, (str(list(rows)),))}
    names = ("memory_id", "content", "event_type", "entity_id", "session_id")
    return [
        Near(**dict(zip(names, known, strict=True)), cosine=rows[key])
        for key in rows
        if (known := details.get(key))
    ]


def _holding(connection: Connection, wanted: Words | None, project: str | None, now_us: int) -> list[int]:
    if wanted is None:
        return []
    filtered = Filtered(
        f"m.project IS ? AND {active(now='?')}",
        (project, now_us),
    )
    fulltext = FullText(connection)
    return words.best(fulltext, wanted, words.counts(fulltext, wanted), COUNT + 1, filtered).rows
