"""JSON of others, whose parts are looked at where they are used."""

from collections.abc import Callable
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Any JSON."""
Fields: TypeAlias = dict[str, Any]
"""A JSON object, or what is like one: a row of a database by its columns."""


def changed(value: Json, change: Callable[[str], str]) -> Json:
    """Return a value in which each text, keys among them, is as *change* returns it."""
    match value:
        case str():
            return change(value)
        case tuple() | list():
            return type(value)(changed(one, change) for one in value)
        case dict():
            return {changed(key, change): changed(one, change) for key, one in value.items()}
        case _:
            return value
