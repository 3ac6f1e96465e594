"""What decisions know of theses: which there are, of which memories, and what evidence was given."""

from collections.abc import Iterator
from hashlib import blake2b

import msgspec

from omegad.knowledge.events import (
    ThesisEvidenced,
    ThesisEvidenceRetracted,
    ThesisResolved,
    ThesisRevised,
    ThesisStated,
)
from omegad.log.decision import Tables
from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement

NAME = "theses"
VERSION = 1
EVENTS = (ThesisStated, ThesisEvidenced, ThesisEvidenceRetracted, ThesisRevised, ThesisResolved)
SCHEMA = """
CREATE TABLE state_theses (
    thesis_id TEXT PRIMARY KEY,
    memory_id TEXT NOT NULL,
    version   INTEGER NOT NULL,
    project   TEXT,
    outcome   TEXT -- NULL while it is open
) STRICT, WITHOUT ROWID;
CREATE INDEX state_theses_by_memory ON state_theses (memory_id);
CREATE TABLE state_evidence (
    thesis_id   TEXT NOT NULL,
    evidence_id TEXT NOT NULL,
    version     INTEGER NOT NULL,
    origin      TEXT NOT NULL,
    weight      REAL NOT NULL,
    PRIMARY KEY (thesis_id, evidence_id)
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM state_theses ORDER BY thesis_id",
    "SELECT * FROM state_evidence ORDER BY thesis_id, evidence_id",
)


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case ThesisStated(thesis_id=thesis_id, memory_id=memory_id):
            yield Statement(
                "INSERT INTO state_theses VALUES (?, ?, 1, ?, NULL)", (thesis_id, memory_id, recorded.project)
            )
        case ThesisEvidenced() as given:
            values = (given.thesis_id, given.evidence_id, given.version, given.origin, given.weight)
            yield Statement("REPLACE INTO state_evidence VALUES (?, ?, ?, ?, ?)", values)
        case ThesisEvidenceRetracted(thesis_id=thesis_id, evidence_id=evidence_id):
            yield Statement(
                "DELETE FROM state_evidence WHERE thesis_id = ? AND evidence_id = ?", (thesis_id, evidence_id)
            )
        case ThesisRevised(thesis_id=thesis_id, memory_id=memory_id, version=version):
            yield Statement(
                "UPDATE state_theses SET memory_id = ?, version = ? WHERE thesis_id = ?",
                (memory_id, version, thesis_id),
            )
        case ThesisResolved(thesis_id=thesis_id, outcome=outcome):
            yield Statement("UPDATE state_theses SET outcome = ? WHERE thesis_id = ?", (outcome, thesis_id))
        case _:
            pass


class ThesisState(msgspec.Struct, frozen=True):
    """A thesis: the memory that says it, which version that is, and how it came out, None while it is
    open.
    """

    thesis_id: str
    memory_id: str
    version: int
    project: str | None
    outcome: str | None


def evidence_id(thesis_id: str, version: int, memory_id: str, origin: str) -> str:
    """Return the id of what a memory, said by *origin*, says of a version of a thesis: the same for the
    same.
    """
    said = "\0".join((thesis_id, str(version), memory_id, origin))
    return f"ev-{blake2b(said.encode(), digest_size=8).hexdigest()}"


class Theses(Tables):
    """Reads the tables."""

    def get(self, thesis_id: str) -> ThesisState | None:
        """Return what is known of a thesis, None where there is none of the id."""
        row = self._connection.execute(
            "SELECT * FROM state_theses WHERE thesis_id = ?", (thesis_id,)
        ).fetchone()
        return ThesisState(*row) if row else None

    def of_memory(self, memory_id: str) -> ThesisState | None:
        """Return the open thesis that a memory states, if it states one."""
        sql = "SELECT * FROM state_theses WHERE memory_id = ? AND outcome IS NULL ORDER BY thesis_id LIMIT 1"
        row = self._connection.execute(sql, (memory_id,)).fetchone()
        return ThesisState(*row) if row else None

    def has_evidence(self, thesis_id: str, evidence_id: str) -> bool:
        """Say whether a piece of evidence was given and not retracted."""
        sql = "SELECT 1 FROM state_evidence WHERE thesis_id = ? AND evidence_id = ?"
        return self._connection.execute(sql, (thesis_id, evidence_id)).fetchone() is not None

    def has_counted(self, thesis_id: str, version: int, origin: str) -> bool:
        """Say whether this origin has evidence that counts for or against a version of a thesis."""
        sql = "SELECT 1 FROM state_evidence WHERE thesis_id = ? AND version = ? AND origin = ? AND weight > 0"
        return self._connection.execute(sql, (thesis_id, version, origin)).fetchone() is not None
