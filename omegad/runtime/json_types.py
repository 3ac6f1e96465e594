"""JSON of others, whose parts are looked at where they are used."""

from typing import Any, TypeAlias

Json: TypeAlias = Any
"""Any JSON."""
Fields: TypeAlias = dict[str, Any]
"""A JSON object, or what is like one: a row of a database by its columns."""
