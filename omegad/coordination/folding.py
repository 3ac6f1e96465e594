"""How decisions come by what the views show: by the same fold, on tables of the log's own file."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import LiteralString

from omegad.log.projection import Statement


@cache
def of_state(sql: LiteralString) -> LiteralString:
    """Return SQL on a view's tables, `coord_…`, as that on the decision state's, `state_…`."""
    return sql.replace("coord_", "state_")


def in_state(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Return a view's statements as those of the decision state."""
    return (Statement(of_state(sql), values) for sql, values in statements)
