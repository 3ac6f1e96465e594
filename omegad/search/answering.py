"""A search as it is asked and answered: the question embedded, one moment of the views searched, and what
was shown recorded.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from omegad.index import VIEWS
from omegad.index.filters import require_known
from omegad.index.vector_indexes import VectorIndexes, Vectors
from omegad.memory.edges import are_offers_shown
from omegad.memory.reading import are_there_any
from omegad.memory.types import MemoryTypes
from omegad.requests.method import Moment, QueryMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.clock import uuid7
from omegad.runtime.errors import Invalid
from omegad.search import results
from omegad.search.events import MemoryQueried, Returned
from omegad.search.model import RankingModel, fitted
from omegad.search.pipeline import BY_WORDS, Answer, Matches, NotEmbedded, QueryMemory, Sources, search
from omegad.search.ranking import RANKING_VERSION
from omegad.storage.driver import Connection


class PreparedQuestion(NamedTuple):
    """The question's vector, or what waits for it, None without one; the known types; when it came; the
    weights of what is found; and what tells how near it is to a passage word by word.
    """

    vector: Vectors | Callable[[], Vectors | None] | None
    types: MemoryTypes
    started: float
    model: RankingModel
    nearness: Callable[[str], float | None] | None = None


class SearchReading(NamedTuple):
    """What a search found, and of which moment."""

    matches: Matches
    moment: Moment
    is_degraded: bool
    started: float
    is_unchecked: bool = False


async def prepare(services: Services, query: QueryMemory, context: RequestContext) -> PreparedQuestion:
    """Embed the question, or begin to where that is quick, unless it is about words alone. After a start it
    waits for the index, without a reader that others need.
    """
    del context
    started = time.perf_counter()
    await services.index_begun()
    if query.mode in BY_WORDS:
        return PreparedQuestion(None, services[MemoryTypes], started, fitted())
    return PreparedQuestion(
        services.begin_question(query.text) or await services.embed_question(query.text),
        services[MemoryTypes],
        started,
        fitted(),
        services.nearness(query.text),
    )


def read(
    connection: Connection, query: QueryMemory, asked: PreparedQuestion, moment: Moment
) -> SearchReading:
    """Search one moment of the views; by words alone where no vector is at hand yet, since the backlog is
    computing them.
    """
    index, matches = moment.index_as(VectorIndexes), None
    if asked.vector is not None:
        with suppress(NotEmbedded):
            sources = Sources(asked.vector, index, asked.types, asked.model, asked.nearness)
            matches = search(connection, query, sources, moment.now_us)
    has_none = index is not None and asked.vector is not None and len(index) == 0
    is_degraded = matches is None or (has_none and are_there_any(connection))
    if matches is None or is_degraded:
        matches = search(connection, query, Sources(None, index, asked.types, asked.model), moment.now_us)
    if not matches.results:
        moment.require_current()
    is_told = is_degraded and query.mode not in BY_WORDS
    return SearchReading(matches, moment, is_told, asked.started)


def read_known(
    connection: Connection, query: QueryMemory, asked: PreparedQuestion, moment: Moment
) -> SearchReading:
    """Search as `read` does; raises `Invalid` for a blank text, and a person of whom nobody has heard. What
    was asked before is asked again without that.
    """
    if not query.text.strip():
        raise Invalid("text must not be empty")
    require_known(connection, query)
    found = read(connection, query, asked, moment)
    doubted = results.with_doubts(connection, found.matches.results, moment.now_us)
    return found._replace(
        matches=msgspec.structs.replace(found.matches, results=doubted),
        is_unchecked=not are_offers_shown(connection),
    )


async def finish(
    services: Services, query: QueryMemory, found: SearchReading, context: RequestContext
) -> Answer:
    """Make the answer, and record it without waiting for the disk."""
    matches, moment = found.matches, found.moment
    answer = Answer(
        results=matches.results,
        abstained=not matches.results,
        confidence=matches.confidence,
        floor=matches.floor,
        degraded="keyword" if found.is_degraded else None,
        unembedded=matches.unembedded,
        more=matches.more,
        beyond=matches.beyond,
        nothing_of=matches.nothing_of,
        unchecked=found.is_unchecked,
        query_id=uuid7(services.clock) if query.as_of is None else "",
        **moment.shown,
        took_ms=round((time.perf_counter() - found.started) * 1e3, 3),
    )
    event = MemoryQueried(
        query_id=answer.query_id,
        text=query.text,
        mode=query.mode,
        limit=query.limit,
        filters=query.named()
        | {name: True for name in ("or_others", "widen", "all") if getattr(query, name)},
        results=tuple(Returned(memory_id=result.memory_id, score=result.score) for result in answer.results),
        read_position=answer.position,
        at=moment.now_us,
        ranking_version=RANKING_VERSION,
        embedder_id=(
            None if answer.degraded or query.mode in BY_WORDS else services.embedder_id_of(query.text)
        ),
        abstained=answer.abstained,
        degraded=answer.degraded,
        took_us=round(answer.took_ms * 1e3),
        versions=moment.versions,
    )
    services.record(event, context, session_id=query.asked_in or query.session_id, project=query.project)
    return answer


METHODS = (
    QueryMethod(
        params=QueryMemory,
        answer=Answer,
        views=VIEWS,
        prepare=prepare,
        read=read_known,
        finish=finish,
        tells=lambda _query, _answer: True,
        verb=Verb(
            "query",
            by="memories.query",
            is_first=True,
            examples=(
                'omegad query "how do we deploy?"',
                'omegad query "connection reset by peer" --mode phrase --type error_pattern',
                'omegad query "retries" --since 2026-01-01 --limit 3 --explain',
            ),
        ),
    ),
)
