"""Views that events have filled, as a file of them has them, for tests of what is read from them."""

from typing import Any

import projections
from omegad.embedding.cache import text_hash
from omegad.log.event import Event, RecordedEvent
from omegad.log.projection import Embedding, Projection, schema
from omegad.requests.method import Moment
from omegad.storage.transaction import run_script
from tests.builders import EMBEDDER, START_US, embedded, open_in_memory, recorded, stored, vector_of

DAY_US = 86_400_000_000
NOW_US = START_US + 60 * 60 * 1_000_000  # an hour into the day that the tests' events are of


class Shown:
    """Every view of one history, whose vectors are those of the texts that were stored."""

    def __init__(self) -> None:
        self.connection = open_in_memory()
        self.position = 0
        self.history: list[RecordedEvent] = []
        self.vectors: dict[str, bytes] = {}
        for projection in projections.ALL:
            run_script(self.connection, schema(projection))

    def show(self, *events: Event, **changes: Any) -> int:
        """Show events one after another; return the position of the last."""
        for event in events:
            self.position += 1
            self.history.append(recorded(event, self.position, **changes))
            for projection in projections.ALL:
                self.apply(projection, self.history[-1])
        return self.position

    def apply(self, projection: Projection, *events: RecordedEvent) -> None:
        """Show events in one view alone."""
        for one in events:
            if isinstance(one.event, projection.EVENTS):
                for sql, values in projection.project(one):
                    self.connection.execute(
                        sql, [self.vectors[v.text_hash] if isinstance(v, Embedding) else v for v in values]
                    )

    def store(
        self,
        memory_id: str,
        content: str = "",
        *,
        at: int | None = None,
        project: str | None = "p",
        session_id: str | None = "session-1",
        **changes: Any,
    ) -> int:
        """Store a memory without vectors; return its row."""
        where_from: dict[str, Any] = {"project": project, "session_id": session_id} | (
            {} if at is None else {"occurred_at": at}
        )
        return self.show(stored(memory_id, content or f"about {memory_id}", **changes), **where_from)

    def embed(self, memory_id: str, *texts: str, embedder_id: str = EMBEDDER) -> None:
        """Give a memory the vectors of some passages."""
        self.vectors |= {text_hash(text): vector_of(text) for text in texts}
        self.show(embedded(memory_id, *texts, embedder_id=embedder_id))

    def moment(self, now_us: int = NOW_US) -> Moment:
        return Moment(position=self.position, stale_by=0, now_us=now_us)

    def plan(self, sql: str, values: Any = ()) -> str:
        """Return how SQLite means to answer."""
        return "\n".join(row[3] for row in self.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
