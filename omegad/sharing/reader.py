"""Searching what a team holds, at the post, for who has no home: a page, a bot, somebody on another's
machine.

The post finds candidates, by words and by meaning; they are put into views of their own, in memory, and
ranked there as a home ranks. What needs all memories at once (how rare a word is, how many there are) is
counted at the post. What it lacks: sessions, so that nothing is told from what was said beside it; receipts,
so that strength is that of what was said and rated; edges, so that it neither widens nor shows conflicts;
time to live as each home sets it.
"""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated

import anyio.to_thread
import msgspec
import numpy as np
from msgspec import Meta

from omegad.embedding import catalogue
from omegad.embedding.cache import canonical, text_hash
from omegad.embedding.embedder import LoadedModel
from omegad.embedding.passages import passages
from omegad.index import terms, words
from omegad.index.scope import Scope
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.index.words import ENOUGH, RARE, Vocabulary, Words
from omegad.log.event import RecordedEvent
from omegad.memory.events import MemoryStored
from omegad.memory.types import MemoryTypes
from omegad.requests.query import One
from omegad.runtime.clock import Clock
from omegad.runtime.errors import Invalid, NotFound
from omegad.runtime.times import parse_time
from omegad.search.candidates import CANDIDATES, TOLD_WITHIN_US, Candidates, SearchRequest, put_together, span
from omegad.search.pipeline import Matches, QueryMemory, Sources, answers_of, looked_at
from omegad.search.question import Question, compared, understood
from omegad.search.results import Result
from omegad.sharing.post.reading import Count, Filter, HeldAtPost, Passage, Reading
from omegad.storage.database import open_scratch
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script, writing
from projections import fulltext, memories, owners, vectors

FOLDED_AT_ONCE = 1_000
FOLD_S = 30.0
"""How long a question lets facts be folded before it is answered without the rest."""
EMBEDDED_AT_ONCE = 32
EMBED_S = 10.0
PASSAGES_WANTED = 3  # of each memory that is wanted, since several of one may be near

_BY_WORDS = frozenset({"keyword", "phrase"})
_QUOTED = re.compile(r'"((?:[^"]|"")*)"(\s*\*)?')
_SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}
_SCORED = "SELECT rowid, -bm25(memories_fts, 1.0, 0.5, 0.5, 0.5) FROM memories_fts WHERE memories_fts MATCH ?"


class QueryTeam(QueryMemory, frozen=True, kw_only=True, tag="share.query"):
    """Find what a team holds, at the post, by meaning and by words."""

    agent: Annotated[One | None, Meta(description="stored by this agent")] = None


class TeamAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, as `memory.query` answers.

    `degraded` is "keyword" where meaning was not looked at, which `because` explains. `unembedded` counts the
    candidates without vectors, `unfolded` the facts that the answer does not know of yet, `more` the results
    that are left out because they hardly answer beside the first, `beyond` those that the limit leaves out.
    `nothing_of` is the time that the question names where nothing that it is asked of, and that holds, is of
    then. `approximate` says that vectors were found by an index, which may miss some.
    """

    results: list[Result]
    abstained: bool
    confidence: float
    floor: float
    degraded: str | None
    because: str | None
    unembedded: int
    unfolded: int
    more: int
    beyond: int
    nothing_of: str | None
    approximate: bool
    took_ms: float


class Model(msgspec.Struct, frozen=True):
    """An embedding model in memory, and whose vectors it makes."""

    embedder_id: str
    query_prefix: str
    session: LoadedModel
    passages: Callable[[str], tuple[str, ...]] = passages
    """What cuts a content into the texts that it embeds."""


def model_of(models_dir: Path, choice: str) -> Model | None:
    """Load the model that is installed; None where none is."""
    manifest = catalogue.installed(models_dir, choice)
    if manifest is None:
        return None
    from omegad.embedding.session import Session  # noqa: PLC0415  dear

    session = Session(catalogue.folder_of(models_dir, manifest.name), manifest)
    return Model(manifest.embedder_id, manifest.query_prefix, session, manifest.passages)


class Reader:
    """Answers questions about what one team holds."""

    def __init__(
        self, reading: Reading, model: Model | None, types: MemoryTypes, clock: Clock | None = None
    ) -> None:
        """Ask over *reading*; without a model by words alone."""
        self._reading = reading
        self._model = model if reading.has_vectors else None
        self._has_model = model is not None
        self._is_embedded = False  # all that there is, unless somebody else folds meanwhile
        self._types = types
        self._clock = clock or Clock()

    async def catch_up(self, fold_s: float = FOLD_S, embed_s: float = EMBED_S) -> int:
        """Fold what was told since somebody asked, and embed what has no vectors yet, the latest first, for
        so long; return how many facts are left.
        """
        until = time.monotonic() + fold_s
        while await self._reading.fold(FOLDED_AT_ONCE):
            self._is_embedded = False
            if time.monotonic() > until:
                break
        if self._model is not None and not self._is_embedded:
            until = time.monotonic() + embed_s
            while time.monotonic() < until:
                lacking = await self._reading.without_vectors(self._model.embedder_id, EMBEDDED_AT_ONCE)
                if not lacking:
                    self._is_embedded = True
                    break
                made = await anyio.to_thread.run_sync(
                    _embedded, self._model, {one.number: one.content for one in lacking}
                )
                await self._reading.keep(
                    self._model.embedder_id, made, {one.number: one.mark for one in lacking}
                )
        return await self._reading.unfolded()

    async def answer(self, query: QueryTeam) -> TeamAnswer:
        """Catch up, and find the best. Raises `Invalid` for what a post cannot be asked, and `NotFound` where
        nobody in the team is called as is asked for.
        """
        for name in ("session_id", "as_of", "whose", "widen"):
            if getattr(query, name):
                raise Invalid(
                    f"{name} cannot be asked of a post", hint="a home that shares with the team knows it"
                )
        if query.person is not None and query.person not in (people := await self._reading.people()):
            raise NotFound(
                f"nobody in the team is called {query.person}", hint=f"there are {', '.join(people)}"
            )
        started, now_us = time.perf_counter(), self._clock.now_us()
        unfolded = await self.catch_up()
        question, vector = understood(query.text, now_us), None
        if self._model is not None and query.mode not in _BY_WORDS:
            asked = canonical(self._model.query_prefix + compared(query.text))
            vector = await anyio.to_thread.run_sync(self._model.session.embed, asked)
        matches = await self._found(query, question, vector, now_us)
        self._is_embedded = self._is_embedded and not matches.unembedded
        because = None
        if query.mode not in _BY_WORDS and vector is None:
            because = (
                "no embedding model is installed here: `omegad model install`"
                if not self._has_model
                else "the post has no pgvector of 0.8 or later; once it has, `omegad share init` takes it up"
            )
        return TeamAnswer(
            results=matches.results,
            abstained=not matches.results,
            confidence=matches.confidence,
            floor=matches.floor,
            degraded="keyword" if because else None,
            because=because,
            unembedded=matches.unembedded,
            unfolded=unfolded,
            more=matches.more,
            beyond=matches.beyond,
            nothing_of=matches.nothing_of,
            approximate=vector is not None and self._reading.is_indexed,
            took_ms=round((time.perf_counter() - started) * 1e3, 3),
        )

    async def _found(
        self, query: QueryTeam, question: Question, vector: bytes | None, now_us: int
    ) -> Matches:
        among = _filter(query, now_us)
        period, limit = question.period, max(CANDIDATES, query.limit)
        dated = period.undated if period and vector is not None else ()
        wanted = (
            words.of_phrase(query.text) if query.mode == "phrase" else words.of_question(query.text, dated)
        )
        everything = inside = await self._reading.count({"now": now_us})
        if len(among) > 1:
            inside = await self._reading.count(among)
        known = dict[str, Count]()
        if wanted:
            wanted, known = await self._completed(wanted, question, among)
        scopes: list[Filter] = [among]
        is_any_of_then = False
        if period:
            scopes.append({**among, "from": period.start_us, "before": period.end_us + TOLD_WITHIN_US})
            start_us, end_us = span(period, is_whatever=question.asks_whatever)
            is_any_of_then = await self._reading.count({**among, "from": start_us, "before": end_us}) > 0
        cosine, by_words = dict[int, float](), dict[int, None]()
        for scope in scopes:
            if vector is not None and self._model is not None and query.mode != "phrase":
                near = await self._reading.nearest(
                    scope, self._model.embedder_id, vector, PASSAGES_WANTED * limit
                )
                cosine |= dict(list(near.items())[:limit])
            if wanted and not (query.mode == "semantic" and vector is not None):
                by_words |= dict.fromkeys(await self._by_words(scope, known, everything, limit))
        numbers = sorted({*cosine, *by_words})
        held = await self._reading.held(numbers)
        passages_ = (
            await self._reading.vectors(self._model.embedder_id, numbers)
            if self._model is not None and vector is not None
            else []
        )

        def ranked() -> Matches:
            with closing(open_scratch()) as connection:
                put(connection, held, passages_, "" if self._model is None else self._model.embedder_id)
                index, vectors = None, None
                if self._model is not None and vector is not None:
                    index = VectorIndexes(VectorIndex(self._model.embedder_id))
                    vectors = {self._model.embedder_id: vector}
                scope = Scope(connection, QueryMemory(text=query.text), now_us, index)
                scope.count = inside
                rows = [one.number for one in held]
                told = wanted if not (query.mode == "semantic" and vector is not None) else None
                scores, holding = _scored(connection, wanted, known, everything)
                sought = SearchRequest(
                    scope=scope,
                    vector=vectors,
                    index=index,
                    words=told,
                    vocabulary=_vocabulary(known, holding, inside, question),
                    period=period,
                    wanted=query.limit,
                    is_phrase=query.mode == "phrase",
                )
                candidates = _candidates(connection, rows, sought, scores if told else {})
                sources = Sources(vectors, index, self._types)
                seen = looked_at(connection, question, sought, candidates, sources)
                return answers_of(
                    connection, query, seen, sources, now_us, is_any_of=lambda _then: is_any_of_then
                )

        return await anyio.to_thread.run_sync(ranked)

    async def _completed(
        self, wanted: Words, question: Question, among: Filter
    ) -> tuple[Words, dict[str, Count]]:
        """Return the words with names that nobody holds as beginnings of what somebody does, as
        `words.completed`; and how many hold each.
        """
        begun = {
            term: begins
            for term in wanted.terms
            if terms.text_of(term) in question.proper and (begins := terms.beginning(term))
        }
        asked = [*wanted.terms, *begun.values()]
        counts = await self._reading.count_words(among, [_of_post(one) for one in asked], RARE)
        known = {term: counts[_of_post(term)] for term in asked}
        chosen = dict[str, None]()
        for term in wanted.terms:
            begins = begun.get(term)
            chosen[begins if begins and not known[term].known and known[begins].known else term] = None
        return Words(tuple(chosen)), {term: known[term] for term in chosen}

    async def _by_words(
        self, scope: Filter, known: Mapping[str, Count], everything: int, limit: int
    ) -> list[int]:
        counts = {term: count.known for term, count in known.items() if count.known}
        if not counts:
            return []
        rarity = {_of_post(term): max(_idf(everything, count), 0.01) for term, count in counts.items()}
        chosen, found = words.rarest(counts, limit), list[int]()
        for some in (chosen, counts.keys()):
            expression = " | ".join(f"({_of_post(term)})" for term in some)
            found = await self._reading.best_by_words(scope, expression, rarity, limit)
            if len(found) >= limit * ENOUGH or len(some) == len(counts):
                break
        return found


def put(
    connection: Connection, held: Sequence[HeldAtPost], found: Sequence[Passage], embedder_id: str
) -> None:
    """Make views, in an empty database, of memories as a home would have them, each in the row of its
    number.
    """
    for view in (memories, fulltext, owners, vectors):
        run_script(connection, view.SCHEMA)
    with writing(connection):
        hashes = dict[int, list[Passage]]()
        for passage in found:
            hashes.setdefault(passage.number, []).append(passage)
        for one in held:
            stored = _recorded(one)
            for view in (memories, fulltext, owners):
                for statement in view.project(stored):
                    connection.execute(statement.sql, statement.values)
            if one.number in hashes:
                said = hashes[one.number]
                connection.executemany(
                    "INSERT INTO memory_vectors (id, memory_id, embedder_id, chunk, text_hash, vector)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    [
                        (
                            each.number * 1024 + each.passage,
                            one.memory_id,
                            embedder_id,
                            each.passage,
                            each.text_hash,
                            each.vector,
                        )
                        for each in said
                    ],
                )
        connection.executemany(
            "INSERT OR IGNORE INTO share_origins VALUES (?, ?, ?, 0)",
            [(one.origin, one.person, one.machine) for one in held],
        )
        connection.executemany(
            "UPDATE memories SET rating = ?, repeated = ?, said_us = ?, used_us = ?, expires_us = ?"
            " WHERE id = ?",
            [
                (one.rating, one.repeated, one.said_us, one.said_us, one.expires_us, one.number)
                for one in held
            ],
        )


def _recorded(one: HeldAtPost) -> RecordedEvent:
    stored = MemoryStored(
        memory_id=one.memory_id,
        content=one.content,
        content_key="",
        event_type=one.event_type,
        entity_id=one.entity_id,
        tags=tuple(one.tags),
        auto_tags=tuple(one.auto_tags),
        priority=one.priority,
        metadata=msgspec.json.decode(one.metadata),
        referenced_at=one.referenced_us,
        source=one.source,
        confidence=one.confidence,
    )
    return RecordedEvent(
        position=one.number,
        event_id="",
        tag="memory.stored@2",
        recorded_at=one.created_us,
        occurred_at=one.created_us,
        tz_offset=0,
        origin=one.origin,
        hlc=0,
        session_id=None,
        project=one.project,
        client=one.agent,
        cause=None,
        trace=None,
        chain=b"",
        event=stored,
    )


def _embedded(model: Model, contents: Mapping[int, str]) -> list[Passage]:
    return [
        Passage(number, nth, text_hash(text), model.session.embed(canonical(text)))
        for number, content in contents.items()
        for nth, text in enumerate(model.passages(content))
    ]


def _filter(query: QueryTeam, now_us: int) -> Filter:
    given = {
        "now": now_us,
        "project": query.project,
        "entity_id": query.entity_id,
        "agent": query.agent,
        "types": query.event_types or None,
        "tags": query.tags or None,
        "people": None if query.person is None else [query.person],
        "since": None if query.since is None else parse_time(query.since, "since"),
        "until": None if query.until is None else parse_time(query.until, "until"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _of_post(expression: str) -> str:
    """Return a term's expression as PostgreSQL takes it."""
    ways = dict[str, None]()
    for text, begins in _QUOTED.findall(expression):
        found = [f"'{word}'" for word in text.translate(_SIGNS).split()]
        if found:
            ways[" <-> ".join(found) + (":*" if begins else "")] = None
    return " | ".join(f"({way})" for way in ways)


def _idf(everything: int, having: int) -> float:
    """Return what FTS5 weighs a term with that so many of all hold."""
    return max(1e-6, math.log((max(everything, having) - having + 0.5) / (having + 0.5)))


def _scored(
    connection: Connection, wanted: Words | None, known: Mapping[str, Count], everything: int
) -> tuple[dict[int, float], dict[str, frozenset[int]]]:
    """Return the BM25 scores of candidates, with terms as rare as they are among all that is held; and which
    hold each term.
    """
    scores, holding = dict[int, float](), dict[str, frozenset[int]]()
    if wanted is None:
        return scores, holding
    ((here,),) = connection.execute("SELECT count(*) FROM memories_fts").fetchall()
    for term in wanted.terms:
        holding[term] = frozenset()
        for text, begins in _QUOTED.findall(term):
            rows = connection.execute(_SCORED, (f'"{text}"{" *" if begins else ""}',)).fetchall()
            holding[term] |= {row for row, _ in rows}
            weight = _idf(everything, max(known[term].known, 1)) / _idf(here, len(rows))
            for row, score in rows:
                scores[row] = scores.get(row, 0.0) + score * weight
    return scores, holding


def _vocabulary(
    known: Mapping[str, Count], holding: Mapping[str, frozenset[int]], inside: int, question: Question
) -> Vocabulary:
    period = question.period
    return Vocabulary(
        counts={term: count.known for term, count in known.items()},
        latest={term: np.array(sorted(rows), np.int64) for term, rows in holding.items()},
        holders={
            term: np.array(sorted(count.numbers), np.int64)
            for term, count in known.items()
            if count.known <= RARE
        },
        rarity={
            term: words.rarity_of(inside, max(count.inside, count.known > words.MATCHES_MAX))
            for term, count in known.items()
            if period is None or not period.is_named_by(terms.text_of(term))
        },
    )


def _candidates(
    connection: Connection, rows: list[int], sought: SearchRequest, scores: Mapping[int, float]
) -> Candidates:
    cosine = dict[int, float]()
    if sought.vector is not None and sought.index is not None:
        cosine = sought.index.cosines_of(connection, sought.vector, rows)
    return put_together(rows, cosine, scores, sought.vocabulary.rare_coverage(rows), ({}, set()))
