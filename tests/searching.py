"""Searching the views that events have filled, as the service does it, with a model of paper."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import msgspec

from omegad import search
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.memory.types import MemoryTypes
from omegad.search import Matches, QueryMemory, Result, Sources
from omegad.search.model import fitted
from omegad.search.question import compared
from tests.builders import EMBEDDER, START_US, stored, vector_of
from tests.shown import DAY_US as DAY_US  # noqa: PLC0414  an export
from tests.shown import Shown

Mode = Literal["hybrid", "semantic", "keyword", "phrase"]
MODES: tuple[Mode, ...] = get_args(Mode)
LATER_US = START_US + DAY_US


class Searched(Shown):
    """Every view of one history, searched with one index, as long as nobody asks for a new one.

    What would else be abstained from, or cut off, is answered, so that the tests see its order.
    """

    def __init__(self, types: MemoryTypes | None = None) -> None:
        super().__init__()
        self.index = VectorIndexes(VectorIndex(EMBEDDER))
        self.types = types or MemoryTypes({})
        self.model = msgspec.structs.replace(fitted(), floor=0.0)

    def put(
        self,
        memory_id: str,
        *texts: str,
        at: int | None = None,
        project: str | None = "p",
        session_id: str | None = None,
        **changes: Any,
    ) -> int:
        """Store a memory with the vectors of a passage for each text, in no session unless one is named;
        return its row.
        """
        where_from: dict[str, Any] = {"project": project, "session_id": session_id} | (
            {} if at is None else {"occurred_at": at}
        )
        row = self.show(stored(memory_id, " ".join(texts), **changes), **where_from)
        self.embed(memory_id, *texts)
        return row

    def sources(self, query: QueryMemory) -> Sources:
        vector = None if query.mode in {"keyword", "phrase"} else {EMBEDDER: vector_of(compared(query.text))}
        return Sources(vector, self.index if vector else None, self.types, self.model)

    def matches(self, text: str, now_us: int = LATER_US, **changes: Any) -> Matches:
        query = QueryMemory(text=text, **({"all": True} | changes))
        return search.search(self.connection, query, self.sources(query), now_us)

    def find(self, text: str, now_us: int = LATER_US, **changes: Any) -> list[Result]:
        return self.matches(text, now_us, **changes).results

    def found(self, text: str, now_us: int = LATER_US, **changes: Any) -> list[str]:
        """Return the ids of what is found, best first."""
        return ids(self.find(text, now_us, **changes))

    def plans(self, sql: str, values: Iterable[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of SQLite's plan: id, parent, unused, text."""
        rows: list[tuple[Any, ...]] = self.connection.execute(
            f"EXPLAIN QUERY PLAN {sql}", tuple(values)
        ).fetchall()
        return rows


def ids(found: Sequence[Any]) -> list[str]:
    return [one.memory_id for one in found]


def stages_of(result: Result) -> dict[str, float]:
    """Return what each stage contributed to a result that was asked for with `explain`."""
    assert result.explanation, "the query did not ask for explanations"
    return result.explanation.stages


def day(number: int) -> int:
    """Return the start of a day of the tests' history in microseconds since 1970: 0 is that of the first
    event.
    """
    return START_US + number * DAY_US
