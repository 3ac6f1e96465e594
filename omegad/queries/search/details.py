"""What the stages of ranking ask about a candidate, read off its row and the question."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from omegad.lexemes import split_names
from omegad.memory_types import MemoryTypes
from omegad.queries.memory import ACCESS_COUNT
from omegad.queries.search.question import Question
from omegad.queries.search.ranking import DAY_US, Details
from omegad.queries.search.renewal import SHORT
from omegad.queries.search.terms import STOP_WORDS, bare_version
from omegad.storage.driver import Connection

READ_CHARACTERS = 16_384  # of a content, when it is searched for identifiers
PART_OF_NAME = 0.6  # what an identifier counts that is held as a part of another, or split in another way
OVERLAP_MAX = 2  # words in common with tags and project, beyond which more say nothing

_ROWS = f"""
SELECT m.id, m.event_type, m.project, m.expires_us, m.created_us, m.said_us, m.referenced_us, m.on_probation, m.rating, m.priority, m.characters,
       m.author, m.is_question, m.gives_reason, m.announces_change, m.tags, m.auto_tags, {ACCESS_COUNT}, m.repeated,
       (SELECT n.id FROM memories AS n WHERE n.node_id = m.contradicted_by AND n.status = 'active' AND n.on_probation <= m.on_probation)
FROM memories AS m WHERE m.id IN (SELECT value FROM json_each(?))
"""
_CONTENTS = f"SELECT id, substr(content, 1, {READ_CHARACTERS}) FROM memories WHERE id IN (SELECT value FROM json_each(?))"
_WORD = re.compile(r"[^\W_]+")
_OF_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


class Asked(msgspec.Struct, frozen=True):
    """A question, its telling words in lower case, and each of its identifiers in lower case, a version without its v, and as words in a row."""

    question: Question
    words: frozenset[str]
    identifiers: tuple[tuple[str, str], ...]


def asked(question: Question, text: str) -> Asked:
    """Prepare a question to be compared with many memories."""
    names = [bare_version(name) or name for name in question.identifiers]
    identifiers = tuple((name.lower(), _in_a_row(name)) for name in names)
    return Asked(question, frozenset(_words(text)) - STOP_WORDS, identifiers)


def details(connection: Connection, rows: Sequence[int], asked: Asked, types: MemoryTypes, now_us: int) -> dict[int, Details]:
    """Read what is known of each memory row; a row that is not there yet is left out."""
    ids = str(list(rows))
    contents: dict[int, str] = dict(connection.execute(_CONTENTS, (ids,))) if asked.identifiers else {}
    found = connection.execute(_ROWS, (ids,)).fetchall()
    return {row[0]: _details(row, asked, _identifiers_held(asked, contents.get(row[0], "")), types, now_us) for row in found}


def _details(row: tuple[Any, ...], asked: Asked, identifiers: float, types: MemoryTypes, now_us: int) -> Details:
    (_, event_type, project, expires_us, created_us, said_us, referenced_us, on_probation, rating, priority, characters) = row[:11]
    (author, is_question, gives_reason, announces_change, tags, auto_tags, access_count, repeated, denied_by) = row[11:]
    kind, period = types.of(event_type), asked.question.period
    spoken_us = created_us if referenced_us is None else referenced_us
    return Details(
        is_author_named=author in asked.question.names,
        is_question=bool(is_question),
        is_spoken=author is not None,
        characters=characters,
        identifiers=identifiers,
        is_in_period=period is not None and period.start_us <= spoken_us < period.end_us,
        gives_reason=asked.question.asks_why and bool(gives_reason),
        announces_change=bool(announces_change),
        overlap=min(OVERLAP_MAX, len(asked.words.intersection(_words(f"{tags} {auto_tags} {project or ''}")))) / OVERLAP_MAX,
        kind_weight=kind.weight,
        decays=kind.decays,
        is_permanent=expires_us is None and not on_probation,
        priority=priority,
        rating=rating,
        uses=repeated + max(0, rating),
        times_found=access_count,
        age_days=max(0, now_us - created_us) // DAY_US,
        idle_days=max(0, now_us - said_us) // DAY_US,
        on_probation=bool(on_probation),
        denied_by=denied_by if asked.question.tense == "now" else None,
        dated_us=said_us if referenced_us is None else referenced_us,
    )


def statements(connection: Connection, rows: Sequence[int], known: Mapping[int, Details]) -> list[str | None]:
    """Return, in the order of *rows*, the content of each that is short, and not a turn of a conversation; None for the others."""
    short = [row for row in rows if known[row].characters < SHORT and not known[row].is_spoken]
    sql = "SELECT id, content FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    contents: dict[int, str] = dict(connection.execute(sql, (str(short),))) if len(short) > 1 else {}
    return [contents.get(row) for row in rows]


def _identifiers_held(asked: Asked, content: str) -> float:
    """Return the share of the question's identifiers that a content holds; one that is part of a longer name counts for less."""
    if not asked.identifiers:
        return 0.0
    lowered = content.lower()
    parts = [words for name, words in asked.identifiers if not _stands_alone(name, lowered)]
    held = len(asked.identifiers) - len(parts)
    in_a_row = _in_a_row(content) if parts else ""
    return (held + PART_OF_NAME * sum(words in in_a_row for words in parts)) / len(asked.identifiers)


def _stands_alone(name: str, text: str) -> bool:
    """Say whether a text holds a name that is not a part of a longer one; the v before a version is no part of its name."""
    is_version = bare_version(name) is not None
    place = text.find(name)
    while place >= 0:
        start = place - (is_version and text[place - 1 : place] == "v")
        before, after = text[start - 1 : start], text[place + len(name) : place + len(name) + 1]
        if not ((before and before in _OF_NAMES) or (after and after in _OF_NAMES)):
            return True
        place = text.find(name, place + len(name))
    return False


def _in_a_row(text: str) -> str:
    """Return the words of a text in lower case, compound names in their parts, each between spaces."""
    return f" {' '.join(_words(split_names(text)))} "


def _words(text: str) -> list[str]:
    found: list[str] = _WORD.findall(text.lower())
    return found
