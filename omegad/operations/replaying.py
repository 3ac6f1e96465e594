"""What if: logged queries asked again, each as it was asked and at the moment of the log where it was, and
once more with something otherwise: without a memory, with other weights, with another embedder.

One copy of the views goes forward through the log, in a database of no name that is gone with the process,
and each question is asked when its position is reached. The log and the cache of vectors are read, whoever
writes them; nothing of the home is written.

A memory is taken away for those answers alone that held it: to the others it is as it was, so that they stay
the same to the letter.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from omegad import index
from omegad.embedding import catalogue
from omegad.embedding.cache import FileLookup, canonical, text_hash
from omegad.embedding.catalogue import Manifest, folder_of
from omegad.embedding.embedder import ComparesWords, LoadedModel
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes, Vectors
from omegad.log import reading
from omegad.log.codec import Codec, tag_of
from omegad.log.event import Event, Position, RecordedEvent
from omegad.log.projection import Projection, Statement
from omegad.memory.events import (
    MemoryEdited,
    MemoryEmbedded,
    MemoryErased,
    MemoryEvolved,
    MemoryStored,
)
from omegad.memory.types import MemoryTypes
from omegad.operations.past import changed
from omegad.operations.replay_report import JUDGING, Ids, Question, Replayed, difference, judge
from omegad.requests.method import Moment
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, ModelFailed, ModelMissing, Stale
from omegad.runtime.times import parse_time
from omegad.search import answering
from omegad.search.answering import PreparedQuestion
from omegad.search.events import MemoryQueried, QueryAged
from omegad.search.model import RankingModel, fitted
from omegad.search.pipeline import BY_WORDS, QueryMemory
from omegad.search.question import compared
from omegad.storage.database import open_untouched
from omegad.storage.driver import Connection
from omegad.storage.transaction import snapshot
from omegad.views.building import Builder, take_out

VIEWS = (*index.VIEWS, "edges")
"""What a search reads."""
READ_AT_ONCE = 500  # events
LAST_POSITION = 2**62
_DEFERRED = """
SELECT v.id, v.chunk, v.text_hash, v.embedder_id, m.content FROM deferred AS d
CROSS JOIN memory_vectors AS v ON v.id BETWEEN d.position * 1024 AND d.position * 1024 + 1023
JOIN memories AS m ON m.node_id = v.memory_id WHERE v.vector IS NULL
"""
Progress = Callable[[int, int, str], None]
"""Is told how much of how much is done, and what is counted."""


def load(folder: Path, manifest: Manifest) -> LoadedModel:
    """Load an installed model."""
    from omegad.embedding.session import Session  # noqa: PLC0415  which loads what few need

    return Session(folder, manifest)


class Home(NamedTuple):
    """The home whose log it is, and what is needed to read it."""

    paths: Paths
    settings: Config
    codec: Codec
    projections: Sequence[Projection]
    load: Callable[[Path, Manifest], LoadedModel] = load


class Wanted(NamedTuple):
    """Which questions: the latest *limit* of those asked *since* and *until* a time or a position, of a
    *project*; what is not asked *within_s* seconds is left out.
    """

    since: str | None = None
    until: str | None = None
    project: str | None = None
    limit: int = 1_000
    within_s: float = 600.0


Passages = Callable[[str], tuple[str, ...]]
"""Cuts a content into the texts to embed."""


class Otherwise(NamedTuple):
    """What is to be otherwise: *without* these memories, with other weights, with the model of this name, or
    `none`; what is None stays as it was.
    """

    without: frozenset[str] = frozenset()
    weights: RankingModel | None = None
    embedder: str | None = None


class EmbeddedAtOnce:
    """The projection of vectors, had every text also been embedded by one model when it was said."""

    def __init__(self, vectors: Projection, embedder_id: str, passages: Passages) -> None:
        self._vectors, self._passages = vectors, passages
        self._embedder_id = embedder_id
        self.NAME, self.VERSION, self.SCHEMA = vectors.NAME, vectors.VERSION, vectors.SCHEMA
        self.CANONICAL = vectors.CANONICAL
        self.EVENTS: tuple[type[Event], ...] = (MemoryStored, *vectors.EVENTS)
        self.ERASED_BY = (MemoryErased,)

    def project(self, recorded: RecordedEvent) -> Iterator[Statement]:
        """Return the statements of an event, and of the embedding of what it says."""
        event = recorded.event
        if isinstance(event, MemoryEmbedded) and event.embedder_id == self._embedder_id:
            return
        yield from self._vectors.project(recorded)
        if isinstance(event, MemoryStored | MemoryEvolved | MemoryEdited):
            embedded = MemoryEmbedded(
                memory_id=event.memory_id,
                embedder_id=self._embedder_id,
                text_hashes=tuple(map(text_hash, self._passages(event.content))),
            )
            yield from self._vectors.project(msgspec.structs.replace(recorded, event=embedded))


class Models:
    """The models that are installed, loaded when they are needed."""

    def __init__(self, home: Home) -> None:
        found = (catalogue.installed(home.paths.models, model.name) for model in catalogue.ALL)
        self._manifests = {manifest.embedder_id: manifest for manifest in found if manifest}
        self._home = home
        self._loaded: dict[str, LoadedModel] = {}
        self._questions: dict[tuple[str, str], bytes | None] = {}

    def __contains__(self, embedder_id: str | None) -> bool:
        """Say whether the models are here that make these vectors."""
        return embedder_id is not None and all(one in self._manifests for one in embedder_id.split("+"))

    def named(self, name: str) -> str:
        """Return the embedder id of a model; raises `ModelMissing`."""
        there = {manifest.name: embedder_id for embedder_id, manifest in self._manifests.items()}
        if name not in there:
            raise ModelMissing(
                f"the model {name[:80]!r} is not installed; there is {', '.join(('none', *there))}",
                hint="`omegad model list` shows the models, `omegad model install NAME` installs one",
            )
        return there[name]

    def passages(self, embedder_id: str) -> Passages | None:
        """Return what cuts a content into the texts that a model embeds, None where the model is not here."""
        manifest = self._manifests.get(embedder_id)
        return manifest.passages if manifest else None

    def question(self, embedder_ids: str, text: str) -> Vectors | None:
        """Return the vectors of a question, None where a model fails on it."""
        vectors = dict[str, bytes]()
        for embedder_id in embedder_ids.split("+"):
            if (key := (embedder_id, text)) not in self._questions:
                prefix = self._manifests[embedder_id].query_prefix
                self._questions[key] = self.embed(embedder_id, prefix + compared(text))
            if (vector := self._questions[key]) is None:
                return None
            vectors[embedder_id] = vector
        return vectors

    def nearness(self, embedder_ids: str, text: str) -> Callable[[str], float | None]:
        """Return what says how near a question is to a passage word by word, by the model for all languages;
        None without one that can.
        """
        asked = canonical(compared(text))
        found = (
            self._loaded.get(one) for one in embedder_ids.split("+") if self._manifests[one].is_multilingual
        )
        model = next((one for one in found if isinstance(one, ComparesWords)), None)
        return lambda passage: None if model is None else model.nearness(asked, canonical(passage))

    def index(self, embedder_ids: str) -> VectorIndexes:
        """Return an empty index of models that are here."""
        return VectorIndexes(
            *(
                VectorIndex(one, is_multilingual=self._manifests[one].is_multilingual)
                for one in embedder_ids.split("+")
            )
        )

    def embed(self, embedder_id: str, text: str) -> bytes | None:
        """Return the vector of a text, None where the model fails on it, or is not here. Raises `ModelFailed`
        for a model that cannot be loaded.
        """
        if (manifest := self._manifests.get(embedder_id)) is None:
            return None
        # The runtime and the tokenizer raise bare Exceptions
        try:
            if embedder_id not in self._loaded:
                folder = folder_of(self._home.paths.models, manifest.name)
                self._loaded[embedder_id] = self._home.load(folder, manifest)
            return self._loaded[embedder_id].embed(canonical(text))
        except Exception as error:
            if embedder_id not in self._loaded:
                raise ModelFailed(f"the model {manifest.name} cannot be loaded: {error}") from error
            return None


class Asking:
    """Asks questions of the views as they stand, with the indexes that this takes."""

    def __init__(self, home: Home, models: Models, views: Sequence[Projection], otherwise: Otherwise) -> None:
        self._types = MemoryTypes.configured(home.settings.event_types)
        self._models = models
        self._views = views
        self._otherwise = otherwise
        self._indexes: dict[tuple[str, bool], VectorIndexes] = {}

    def embedder_id(self, question: Question) -> str | None:
        """Return the model that a question was asked with, None where it is not here."""
        return question.event.embedder_id if question.event.embedder_id in self._models else None

    def both(self, connection: Connection, question: Question) -> tuple[Ids, Ids]:
        """Return the memories that answer a question, best first: as it was asked, and otherwise."""
        without, weights, embedder = self._otherwise
        embedder_id, model = self.embedder_id(question), weights or fitted()
        before = after = self._ask(connection, question, embedder_id, fitted())
        if embedder is not None and question.event.mode not in BY_WORDS:
            embedder_id = None if embedder == "none" else self._models.named(embedder)
        if weights or embedder:
            after = self._ask(connection, question, embedder_id, model)
        if without.intersection(after):
            with snapshot(connection):  # at whose end they are there again
                for memory_id in without:
                    erasure = MemoryErased(memory_id=memory_id)
                    take_out(
                        connection, self._views, msgspec.structs.replace(question.recorded, event=erasure)
                    )
                after = self._ask(connection, question, embedder_id, model, is_without=True)
        return before, after

    def _ask(
        self,
        connection: Connection,
        question: Question,
        embedder_id: str | None,
        model: RankingModel,
        *,
        is_without: bool = False,
    ) -> Ids:
        vector = found = nearness = None
        if embedder_id is not None:
            vector, key = self._models.question(embedder_id, question.query.text), (embedder_id, is_without)
            nearness = self._models.nearness(embedder_id, question.query.text)
            found = self._indexes.setdefault(key, self._indexes.get(key) or self._models.index(embedder_id))
        event = question.event
        moment = Moment(position=event.read_position, stale_by=0, now_us=event.at, index=found)
        asked = PreparedQuestion(vector, self._types, 0.0, model, nearness)
        matches = answering.read(connection, question.query, asked, moment).matches
        return tuple(result.memory_id for result in matches.results)

    def fill(self, connection: Connection, tell: Progress) -> None:
        """Compute the vectors that the cache lacks, where their models are here."""
        rows = connection.execute(_DEFERRED).fetchall()
        for place, (row, chunk, digest, embedder_id, content) in enumerate(rows):
            tell(place, len(rows), "passages embedded")
            cut = self._models.passages(embedder_id)
            for text in cut(content)[chunk : chunk + 1] if cut is not None else ():
                if text_hash(text) == digest and (vector := self._models.embed(embedder_id, text)):
                    connection.execute("UPDATE memory_vectors SET vector = ? WHERE id = ?", (vector, row))
        if rows:
            connection.execute("DELETE FROM deferred")


class _OutOfTime(Exception):
    """There is no time for the rest."""


def replay(home: Home, wanted: Wanted, otherwise: Otherwise, shown: int, progress: Progress) -> Replayed:
    """Ask again, and return what came of it, with *shown* differences at most.

    Raises `Invalid` where there is no log, or a moment is none, `ModelMissing` for a model that is not
    installed, `ModelFailed`, `Stale` where something was erased meanwhile, `ViewFailed`, `LogBroken` and
    storage errors.
    """
    if not home.paths.log.is_file():
        raise Invalid(f"there is no log at {home.paths.log}", hint="--home names another home")
    models, until_s = Models(home), time.monotonic() + wanted.within_s

    def tell(done: int, total: int, what: str = "events") -> None:
        if time.monotonic() > until_s:
            raise _OutOfTime
        progress(done, total, what)

    views: list[Projection] = [one for one in home.projections if one.NAME in VIEWS]
    if otherwise.embedder not in {None, "none"}:
        new = models.named(str(otherwise.embedder))
        place = next(place for place, one in enumerate(views) if one.NAME == "vectors")
        cut = models.passages(new)
        assert cut is not None
        views[place] = EmbeddedAtOnce(views[place], new, cut)
    asking, found = Asking(home, models, views, otherwise), Replayed(in_no_answer={*otherwise.without})
    versions = {view.NAME: view.VERSION for view in views}
    with FileLookup(home.paths.embeddings, open_untouched) as cached:
        builder = Builder(views, home.codec, lambda one: cached.find(*one))
        with builder.moments(home.paths.log, tell) as moments:
            log, codec = moments.log, home.codec
            reading.check_format(log)
            end, erased = reading.head(log), reading.erased(log, LAST_POSITION)
            questions, found.aged, found.unreadable = chosen(log, codec, wanted)
            first = min((one.recorded.position for one in questions), default=LAST_POSITION)
            judge(questions, _events(log, codec, _positions(log, JUDGING, first - 1)))
            with suppress(_OutOfTime):
                for place, question in enumerate(questions):
                    connection = moments.at(min(question.event.read_position, end))
                    asking.fill(connection, tell)
                    tell(place, len(questions), "questions")
                    before, after = asking.both(connection, question)
                    found.add(question, before, after)
                    found.in_no_answer -= {*before} - {*after}
                    if before != after and len(found.differences) < shown:
                        found.differences.append(difference(connection, question, before, after))
                    if before != tuple(one.memory_id for one in question.event.results):
                        found.unlike_log += 1
                        made_by = changed(question.event, versions, asking.embedder_id(question))
                        found.unlike_log_by.update(made_by or ["unknown"])
            if reading.erased(log, LAST_POSITION) != erased:
                raise Stale("the log has lost what was asked of it", hint="ask again")
    found.left_out = len(questions) - found.asked
    return found


def chosen(log: Connection, codec: Codec, wanted: Wanted) -> tuple[list[Question], int, int]:
    """Return the questions in the order of what they were answered from, of how many the details were let go
    of, and how many cannot be read.

    Raises `Invalid` for a moment that is none.
    """
    after = 0 if wanted.since is None else _position(log, wanted.since, "since", is_first=True) - 1
    through = LAST_POSITION if wanted.until is None else _position(log, wanted.until, "until")
    positions = [one for one in _positions(log, (MemoryQueried,), after) if one <= through]
    questions, aged, unreadable = list[Question](), 0, 0
    while positions and len(questions) < wanted.limit:
        read = list[Question]()
        for recorded in _events(log, codec, positions[-READ_AT_ONCE:]):
            if wanted.project is not None and recorded.project != wanted.project:
                continue
            if isinstance(recorded.event, QueryAged):
                aged += 1
            else:
                try:
                    read.append(_question(recorded))
                except msgspec.ValidationError:
                    unreadable += 1
        questions, positions = read + questions, positions[:-READ_AT_ONCE]
    return sorted(questions[-wanted.limit :], key=lambda one: one.event.read_position), aged, unreadable


def _positions(log: Connection, kinds: Sequence[type[Event]], after: Position) -> list[Position]:
    return reading.tagged(log, [tag_of(kind) for kind in kinds], after)


def _events(log: Connection, codec: Codec, positions: Sequence[Position]) -> Iterator[RecordedEvent]:
    while positions:
        read = reading.read_at(log, codec, positions[:READ_AT_ONCE])
        yield from read
        positions = positions[len(read) :]


def _position(log: Connection, text: str, name: str, *, is_first: bool = False) -> Position:
    """Return the position that a moment names: of the first event at that time or later, or the last until
    then.
    """
    if text.isascii() and text.isdigit():
        return min(int(text), LAST_POSITION)
    at_us = parse_time(text, name)
    return reading.position_at(log, at_us - is_first) + is_first


def _question(recorded: RecordedEvent) -> Question:
    """Raises `ValidationError` for what cannot be asked again."""
    event = recorded.event
    if not isinstance(event, MemoryQueried):
        raise msgspec.ValidationError(f"{recorded.tag} is erased, or of a newer version")
    said = {"text": event.text, "mode": event.mode, "limit": event.limit, **event.filters}
    return Question(recorded=recorded, event=event, query=msgspec.convert(said, QueryMemory))
