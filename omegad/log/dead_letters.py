"""What those who act on events have set aside because they fail on it: durable, so that it can be listed,
and tried again.
"""

import msgspec

from omegad.log.event import Position
from omegad.storage.driver import Connection
from omegad.storage.transaction import writing

KEPT_MAX = 1_000
"""So many of each name; the oldest is let go of for another one."""
ERROR_CHARACTERS = 500

_COLUMNS = "name, position, is_slot, failed_at, tries, error"
_ADD = f"""
INSERT INTO set_aside ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
SET failed_at = excluded.failed_at, tries = tries + excluded.tries, error = excluded.error
"""
_BOUND = """
DELETE FROM set_aside WHERE name = ?1
AND position <= (SELECT position FROM set_aside WHERE name = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)
"""


class DeadLetter(msgspec.Struct, frozen=True):
    """An event, or a slot of time, that somebody failed on: how often, when last (microseconds since
    1970), and on what.
    """

    name: str
    position: Position
    is_slot: bool
    failed_at: int
    tries: int
    error: str


def add(connection: Connection, one: DeadLetter) -> None:
    """Keep it, in a transaction; where it is kept already, as what failed once more."""
    error = one.error[:ERROR_CHARACTERS].encode(errors="replace").decode()
    with writing(connection):
        connection.execute(_ADD, (one.name, one.position, one.is_slot, one.failed_at, one.tries, error))
        connection.execute(_BOUND, (one.name, KEPT_MAX))


def remove(connection: Connection, name: str, position: Position) -> None:
    """Keep it no more, in a transaction."""
    with writing(connection):
        connection.execute("DELETE FROM set_aside WHERE name = ? AND position = ?", (name, position))


def every(connection: Connection) -> list[DeadLetter]:
    """Return all that is set aside, by name and position."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM set_aside ORDER BY name, position")
    return [DeadLetter(name, position, bool(is_slot), *rest) for name, position, is_slot, *rest in rows]
