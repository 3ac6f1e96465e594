"""Who said each memory: in which home and by which agent it was stored, and whose that home is."""

from collections.abc import Iterator

from omegad.log.event import RecordedEvent
from omegad.log.projection import Statement
from omegad.memory.events import MemoryErased, MemoryStored
from omegad.sharing.events import FactsReceived, ShareJoined, ShareLeft, ShareRenewed

NAME = "owners"
VERSION = 1
EVENTS = (MemoryStored, MemoryErased, ShareJoined, ShareLeft, ShareRenewed, FactsReceived)

SCHEMA = """
CREATE TABLE memory_owners (
    memory_id TEXT PRIMARY KEY,
    origin    TEXT NOT NULL, -- of memory.stored
    agent     TEXT           -- the client that stored it
) STRICT, WITHOUT ROWID;

CREATE TABLE share_origins (
    origin  TEXT PRIMARY KEY,
    person  TEXT NOT NULL,
    machine TEXT NOT NULL,
    is_here INTEGER NOT NULL -- 1 for this home, which is here as long as it is in a team
) STRICT, WITHOUT ROWID;
"""
CANONICAL = (
    "SELECT * FROM memory_owners ORDER BY memory_id",
    "SELECT * FROM share_origins ORDER BY origin",
)
ERASED_BY = (MemoryErased,)

_OTHER = """
INSERT INTO share_origins VALUES (?, ?, ?, 0)
ON CONFLICT DO UPDATE SET person = excluded.person, machine = excluded.machine
"""


def project(recorded: RecordedEvent) -> Iterator[Statement]:
    match recorded.event:
        case MemoryStored(memory_id=memory_id):
            row = (memory_id, recorded.origin, recorded.client)
            yield Statement("INSERT INTO memory_owners VALUES (?, ?, ?)", row)
        case MemoryErased(memory_id=memory_id):
            yield Statement("DELETE FROM memory_owners WHERE memory_id = ?", (memory_id,))
        case ShareJoined(person=person, machine=machine):
            yield Statement(
                "INSERT OR REPLACE INTO share_origins VALUES (?, ?, ?, 1)", (recorded.origin, person, machine)
            )
        case ShareLeft():
            yield Statement("DELETE FROM share_origins WHERE is_here")
        case ShareRenewed(before=before):
            yield Statement(
                "INSERT OR REPLACE INTO share_origins SELECT ?, person, machine, 0 FROM share_origins WHERE"
                " is_here",
                (before,),
            )
        case FactsReceived(origins=origins):
            for one in origins:
                yield Statement(_OTHER, (one.origin, one.person, one.machine))
