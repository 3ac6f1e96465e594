"""The rooms of nouns, and what is found in them: what is added to a noun is known by being in a module of its
room. A new noun is one word here.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import omegad

ROOMS = (
    "memory",
    "memory.upkeep",
    "search",
    "session",
    "knowledge",
    "person",
    "coordination",
    "sharing",
    "agents",
    "agents.hooks",
    "agents.tools",
    "operations",
)


def modules(ending: str = "") -> Iterator[ModuleType]:
    """Return the modules right in a room whose names have this ending, by room and name. No others are
    imported.
    """
    above = Path(omegad.__file__).parent
    for room in ROOMS:
        for found in iter_modules([str(above.joinpath(*room.split(".")))]):
            if found.name.endswith(ending) and not found.ispkg:
                yield import_module(f"omegad.{room}.{found.name}")
