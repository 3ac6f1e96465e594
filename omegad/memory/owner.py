"""Who said a memory: which person of the team, on which machine, by which agent. Nobody is named of what this
home says itself as long as it is in no team.
"""

from collections.abc import Iterable, Mapping

import msgspec

from omegad.log.projection import to_json
from omegad.storage.driver import Connection

VIEW = "owners"
"""The view that knows it."""

OWNED = (
    "memories AS m LEFT JOIN memory_owners AS w ON w.memory_id = m.node_id"
    " LEFT JOIN share_origins AS o ON o.origin = w.origin"
)
"""`memories AS m`, each with what `OWNER` says of it."""
OWNER = "o.person, o.machine, iif(o.origin IS NULL, NULL, w.agent), coalesce(NOT o.is_here, 0)"
"""The columns of person, machine and agent, and whether another home stored it, of `OWNED`."""

_OTHERS = """
SELECT w.memory_id, o.person, o.machine FROM memory_owners AS w JOIN share_origins AS o USING (origin)
WHERE w.memory_id IN (SELECT value FROM json_each(?)) AND NOT o.is_here
"""


class Home(msgspec.Struct, frozen=True):
    """A home of the team: whose it is, and on which machine."""

    person: str
    machine: str


def homes(connection: Connection) -> dict[str, Home]:
    """Return the homes of the team, this one among them, by origin; none where it is in none."""
    rows = connection.execute("SELECT origin, person, machine FROM share_origins")
    return {origin: Home(person, machine) for origin, person, machine in rows}


def elsewhere(connection: Connection, memory_ids: Iterable[str]) -> Mapping[str, str]:
    """Return who said those of some memories that another home stored, as "Grace, grace-desktop", by id."""
    rows = connection.execute(_OTHERS, (to_json(list(memory_ids)),))
    return {memory_id: f"{person}, {machine}" for memory_id, person, machine in rows}


def is_elsewhere(memory_id: str) -> str:
    """Return the condition in SQL that another home stored the memory whose id a column has; it is for that
    home to put it in order.
    """
    return (
        "EXISTS (SELECT 1 FROM memory_owners AS w JOIN share_origins AS o USING (origin)"
        f" WHERE w.memory_id = {memory_id} AND NOT o.is_here)"
    )
