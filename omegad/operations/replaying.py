"""What if: logged queries asked again, each as it was asked and at the moment of the log where it was, and
once more with something otherwise: without a memory, with other weights, with another embedder.

One copy of the views goes forward through the log, in a database of no name that is gone with the process,
and each question is asked when its position is reached. The log and the cache of vectors are read, whoever
writes them; nothing of the home is written.

What was right is told by the log: by how that was rated which an answer had shown, and by what a session used
of it, which its end records as a rating. Of other questions nothing is known.

A memory is taken away for those answers alone that held it: to the others it is as it was, so that they stay
the same to the letter.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from omegad import index
from omegad.embedding import catalogue
from omegad.embedding.cache import FileLookup, canonical, text_hash
from omegad.embedding.catalogue import Manifest, folder_of
from omegad.embedding.embedder import LoadedModel
from omegad.embedding.passages import passages
from omegad.index.vector_index import VectorIndex
from omegad.log import reading
from omegad.log.codec import Codec, tag_of
from omegad.log.event import Position, RecordedEvent
from omegad.log.projection import Projection, Statement
from omegad.memory.events import (
    MemoryEdited,
    MemoryEmbedded,
    MemoryErased,
    MemoryEvolved,
    MemoryRated,
    MemoryStored,
)
from omegad.memory.types import MemoryTypes
from omegad.operations.past import changed
from omegad.requests.method import Moment
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, ModelMissing, Stale
from omegad.runtime.times import parse_time, rfc3339
from omegad.search import answering
from omegad.search.answering import BY_WORDS, PreparedQuestion
from omegad.search.events import MemoryQueried
from omegad.search.model import RankingModel, fitted
from omegad.search.pipeline import QueryMemory
from omegad.session.events import MemorySurfaced, SessionEnded
from omegad.storage.database import open_untouched
from omegad.storage.driver import Connection
from omegad.storage.transaction import snapshot
from omegad.views.building import Builder, take_out

VIEWS = (*index.VIEWS, "edges")
"""What a search reads."""
READ_AT_ONCE = 500  # events
TEXT_CHARACTERS = 120
LAST_POSITION = 2**62
_DEFERRED = """
SELECT v.id, v.chunk, v.text_hash, v.embedder_id, m.content FROM deferred AS d
CROSS JOIN memory_vectors AS v ON v.id BETWEEN d.position * 1024 AND d.position * 1024 + 1023
JOIN memories AS m ON m.node_id = v.memory_id WHERE v.vector IS NULL
"""
_BEGINNINGS = f"""
SELECT node_id, substr(content, 1, {TEXT_CHARACTERS}) FROM memories WHERE node_id IN (SELECT value
  FROM json_each(?))
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


class Otherwise(NamedTuple):
    """What is to be otherwise: *without* these memories, with other weights, with the model of this name, or
    `none`; what is None stays as it was.
    """

    without: frozenset[str] = frozenset()
    weights: RankingModel | None = None
    embedder: str | None = None


class Question(msgspec.Struct, kw_only=True):
    """A query as the log has it, and whether what it showed was right, by memory id, as far as that is
    known.
    """

    recorded: RecordedEvent
    event: MemoryQueried
    query: QueryMemory
    judged: dict[str, bool] = {}

    @property
    def right(self) -> set[str]:
        """What is known to be right."""
        return {memory_id for memory_id, is_right in self.judged.items() if is_right}


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, how it begins, and its rank before and after, from 1, None where it is not in the answer.
    `is_right` is None where nothing is known.
    """

    memory_id: str
    text: str
    before: int | None
    after: int | None
    is_right: bool | None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A question that is answered otherwise: the memories of the answer before and after, and those that
    left, came or moved.
    """

    query_id: str
    position: Position
    at: str
    text: str
    session_id: str | None
    project: str | None
    before: tuple[str, ...]
    after: tuple[str, ...]
    moved: list[Moved]


class Worth(msgspec.Struct, frozen=True, kw_only=True):
    """What answers are worth: the mean of recall (the share of what is right that is in the answer) and of
    1 / the rank of the first that is, 0 where none is, both None where nothing is known; and how much is
    in them that was rated badly.
    """

    recall: float | None
    mrr: float | None
    wrong: int


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it.

    `unlike_log` counts the answers that, with nothing otherwise, are not as the log has them, and
    `unlike_log_by` by what they were made with then and are not now; `unknown` are those of which that is not
    known. `in_no_answer` are the memories that were taken away in vain. `unreadable` questions were erased,
    or written by another version; for `left_out` there was no time. `known` are those of which something
    right is known, which recall and MRR are the means of.
    """

    asked: int
    same: int
    changed: int
    left: int
    came: int
    abstentions_gained: int
    abstentions_lost: int
    unlike_log: int
    unlike_log_by: dict[str, int]
    in_no_answer: list[str]
    unreadable: int
    left_out: int
    known: int
    before: Worth
    after: Worth
    differences: list[Difference]


class EmbeddedAtOnce:
    """The projection of vectors, had every text also been embedded by one model when it was said."""

    def __init__(self, vectors: Projection, embedder_id: str) -> None:
        self._vectors = vectors
        self._embedder_id = embedder_id
        self.NAME, self.VERSION, self.SCHEMA = vectors.NAME, vectors.VERSION, vectors.SCHEMA
        self.CANONICAL = vectors.CANONICAL
        self.EVENTS = (MemoryStored, *vectors.EVENTS)
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
                text_hashes=tuple(map(text_hash, passages(event.content))),
            )
            yield from self._vectors.project(msgspec.structs.replace(recorded, event=embedded))


class Models:
    """The models that are installed, loaded when they are needed."""

    def __init__(self, home: Home) -> None:
        names = dict.fromkeys((home.settings.model, *(model.name for model in catalogue.ALL)))
        found = (catalogue.installed(home.paths.models, name) for name in names)
        self._manifests = {manifest.embedder_id: manifest for manifest in found if manifest}
        self._home = home
        self._loaded: dict[str, LoadedModel] = {}
        self._questions: dict[tuple[str, str], bytes | None] = {}

    def __contains__(self, embedder_id: str | None) -> bool:
        """Say whether the model is here that makes these vectors."""
        return embedder_id in self._manifests

    def named(self, name: str) -> str:
        """Return the embedder id of a model; raises `ModelMissing`."""
        there = {manifest.name: embedder_id for embedder_id, manifest in self._manifests.items()}
        if name not in there:
            raise ModelMissing(
                f"the model {name[:80]!r} is not installed; there is {', '.join(('none', *there))}",
                hint="`omegad model list` shows the models, `omegad model install NAME` installs one",
            )
        return there[name]

    def question(self, embedder_id: str, text: str) -> bytes | None:
        """Return the vector of a question, None where the model fails on it."""
        if (key := (embedder_id, text)) not in self._questions:
            self._questions[key] = self.embed(embedder_id, self._manifests[embedder_id].query_prefix + text)
        return self._questions[key]

    def embed(self, embedder_id: str, text: str) -> bytes | None:
        """Return the vector of a text, None where the model fails on it, or is not here."""
        if (manifest := self._manifests.get(embedder_id)) is None:
            return None
        if embedder_id not in self._loaded:
            folder = folder_of(self._home.paths.models, manifest.name)
            self._loaded[embedder_id] = self._home.load(folder, manifest)
        try:
            return self._loaded[embedder_id].embed(canonical(text))
        # The runtime and the tokenizer raise bare Exceptions; what they fail on is found by its words
        except Exception:  # noqa: BLE001
            return None


class Asking:
    """Asks questions of the views as they stand, with the indexes that this takes."""

    def __init__(self, home: Home, models: Models, views: Sequence[Projection], otherwise: Otherwise) -> None:
        self._types = MemoryTypes.configured(home.settings.event_types)
        self._models = models
        self._views = views
        self._otherwise = otherwise
        self._indexes: dict[tuple[str, bool], VectorIndex] = {}
        self.in_no_answer = set(otherwise.without)
        """The memories to be taken away that none of the answers held so far."""

    def embedder_id(self, question: Question) -> str | None:
        """Return the model that a question was asked with, None where it is not here."""
        return question.event.embedder_id if question.event.embedder_id in self._models else None

    def both(self, connection: Connection, question: Question) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the memories that answer a question, best first: as it was asked, and otherwise."""
        without, weights, embedder = self._otherwise
        embedder_id, model = self.embedder_id(question), weights or fitted()
        before = after = self._ask(connection, question, embedder_id, fitted())
        if embedder is not None and question.event.mode not in BY_WORDS:
            embedder_id = None if embedder == "none" else self._models.named(embedder)
        if weights or embedder:
            after = self._ask(connection, question, embedder_id, model)
        if held := without.intersection(after):
            self.in_no_answer -= held
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
    ) -> tuple[str, ...]:
        vector = found = None
        if embedder_id is not None:
            vector, key = self._models.question(embedder_id, question.query.text), (embedder_id, is_without)
            found = self._indexes.setdefault(key, self._indexes.get(key) or VectorIndex(embedder_id))
        event = question.event
        moment = Moment(position=event.read_position, stale_by=0, now_us=event.at, index=found)
        asked = PreparedQuestion(vector, self._types, 0.0, model)
        matches = answering.read(connection, question.query, asked, moment).matches
        return tuple(result.memory_id for result in matches.results)

    def fill(self, connection: Connection, tell: Progress) -> None:
        """Compute the vectors that the cache lacks, where their models are here."""
        rows = connection.execute(_DEFERRED).fetchall()
        for place, (row, chunk, digest, embedder_id, content) in enumerate(rows):
            tell(place, len(rows), "passages embedded")
            for text in passages(content)[chunk : chunk + 1]:
                if text_hash(text) == digest and (vector := self._models.embed(embedder_id, text)):
                    connection.execute("UPDATE memory_vectors SET vector = ? WHERE id = ?", (vector, row))
        if rows:
            connection.execute("DELETE FROM deferred")


class Findings:
    """Adds up what came of questions; keeps *shown* differences at most."""

    def __init__(self, shown: int) -> None:
        self.counts = Counter[str]()
        self.unlike = Counter[str]()
        self._shown = shown
        self._differences = list[Difference]()
        self._known = list[tuple[float, float, float, float]]()

    def add(
        self, connection: Connection, question: Question, before: tuple[str, ...], after: tuple[str, ...]
    ) -> None:
        """Add a question that was asked of these views, and the memories of its two answers."""
        wrong = question.judged.keys() - question.right
        self.counts.update(
            asked=1,
            same=before == after,
            changed=before != after,
            left=len({*before} - {*after}),
            came=len({*after} - {*before}),
            abstentions_gained=bool(before) and not after,
            abstentions_lost=bool(after) and not before,
            wrong_before=len(wrong.intersection(before)),
            wrong_after=len(wrong.intersection(after)),
        )
        if right := question.right:
            self._known.append((*_worth(before, right), *_worth(after, right)))
        if before != after and len(self._differences) < self._shown:
            self._differences.append(_difference(connection, question, before, after))

    def replayed(self, in_no_answer: set[str], *, unreadable: int, left_out: int) -> Replayed:
        """Return all that was added."""
        counts = (
            "asked",
            "same",
            "changed",
            "left",
            "came",
            "abstentions_gained",
            "abstentions_lost",
            "unlike_log",
        )
        means: list[float | None] = [fmean(column) for column in zip(*self._known, strict=True)]
        means = means or [None] * 4
        return Replayed(
            **{name: self.counts[name] for name in counts},
            unlike_log_by=dict(self.unlike),
            in_no_answer=sorted(in_no_answer),
            unreadable=unreadable,
            left_out=left_out,
            known=len(self._known),
            before=Worth(recall=means[0], mrr=means[1], wrong=self.counts["wrong_before"]),
            after=Worth(recall=means[2], mrr=means[3], wrong=self.counts["wrong_after"]),
            differences=sorted(self._differences, key=lambda one: one.position),
        )


class _OutOfTime(Exception):
    """There is no time for the rest."""


def replay(home: Home, wanted: Wanted, otherwise: Otherwise, shown: int, progress: Progress) -> Replayed:
    """Ask again, and return what came of it, with *shown* differences at most.

    Raises `Invalid` where there is no log, or a moment is none, `ModelMissing` for a model that is not
    installed, `Stale` where something was erased meanwhile, `ViewFailed`, `LogBroken` and storage errors.
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
        views[place] = EmbeddedAtOnce(views[place], new)
    asking, found = Asking(home, models, views, otherwise), Findings(shown)
    with FileLookup(home.paths.embeddings, open_untouched) as cached:
        builder = Builder(views, home.codec, lambda one: cached.find(*one))
        with builder.moments(home.paths.log, tell) as moments:
            reading.check_format(moments.log)
            erased = reading.erased(moments.log, LAST_POSITION)
            questions, unreadable = chosen(moments.log, home.codec, wanted)
            judge(questions, moments.log, home.codec)
            versions = {view.NAME: view.VERSION for view in views}
            end = reading.head(moments.log)
            with suppress(_OutOfTime):
                for place, question in enumerate(questions):
                    connection = moments.at(min(question.event.read_position, end))
                    asking.fill(connection, tell)
                    tell(place, len(questions), "questions")
                    before, after = asking.both(connection, question)
                    found.add(connection, question, before, after)
                    if before != tuple(one.memory_id for one in question.event.results):
                        found.counts["unlike_log"] += 1
                        embedder_id = asking.embedder_id(question)
                        found.unlike.update(changed(question.event, versions, embedder_id) or ["unknown"])
            if reading.erased(moments.log, LAST_POSITION) != erased:
                raise Stale("the log has lost what was asked of it", hint="ask again")
    left_out = len(questions) - found.counts["asked"]
    return found.replayed(asking.in_no_answer, unreadable=unreadable, left_out=left_out)


def chosen(log: Connection, codec: Codec, wanted: Wanted) -> tuple[list[Question], int]:
    """Return the questions in the order of what they were answered from, and how many cannot be read.

    Raises `Invalid` for a moment that is none.
    """
    after = 0 if wanted.since is None else _position(log, wanted.since, "since", is_first=True) - 1
    through = LAST_POSITION if wanted.until is None else _position(log, wanted.until, "until")
    positions = [one for one in reading.tagged(log, [tag_of(MemoryQueried)], after) if one <= through]
    questions, unreadable = list[Question](), 0
    while positions and len(questions) < wanted.limit:
        read = list[Question]()
        for recorded in _events(log, codec, positions[-READ_AT_ONCE:]):
            if wanted.project is None or recorded.project == wanted.project:
                try:
                    read.append(_question(recorded))
                except msgspec.ValidationError:
                    unreadable += 1
        questions, positions = read + questions, positions[:-READ_AT_ONCE]
    return sorted(questions[-wanted.limit :], key=lambda one: one.event.read_position), unreadable


def judge(questions: Sequence[Question], log: Connection, codec: Codec) -> None:
    """Note of questions what the log says of what they showed.

    What a session's end rates is about all that the session had asked; what else is rated, about what showed
    it last.
    """
    asked = {one.recorded.position: one for one in questions}
    latest, ends = dict[str, Position](), dict[Position, str | None]()
    of_session = defaultdict[tuple[str | None, str], list[Question]](list)
    tags = [tag_of(kind) for kind in (MemoryQueried, MemorySurfaced, MemoryRated, SessionEnded)]
    for recorded in _events(log, codec, reading.tagged(log, tags, min(asked, default=LAST_POSITION) - 1)):
        match recorded.event:
            case MemoryQueried(results=results) | MemorySurfaced(results=results):
                latest.update({one.memory_id: recorded.position for one in results})
                if (question := asked.get(recorded.position)) and recorded.session_id:
                    for one in results:
                        of_session[recorded.session_id, one.memory_id].append(question)
            case SessionEnded():
                ends[recorded.position] = recorded.session_id
            case MemoryRated(memory_id=memory_id, points=points) if recorded.cause in ends:
                for question in of_session[ends[recorded.cause], memory_id]:
                    question.judged.setdefault(memory_id, points > 0)
            case MemoryRated(memory_id=memory_id, points=points):
                if question := asked.get(latest.get(memory_id, 0)):
                    question.judged[memory_id] = points > 0
            case _:
                pass


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


def _worth(found: Sequence[str], right: set[str]) -> tuple[float, float]:
    """Return recall, and 1 / the rank of the first that is right."""
    first = next((1 / rank for rank, one in enumerate(found, 1) if one in right), 0.0)
    return len(right.intersection(found)) / len(right), first


def _difference(
    connection: Connection, question: Question, before: tuple[str, ...], after: tuple[str, ...]
) -> Difference:
    ranks = [{memory_id: rank for rank, memory_id in enumerate(one, 1)} for one in (before, after)]
    named = [one for one in dict.fromkeys(before + after) if ranks[0].get(one) != ranks[1].get(one)]
    texts = dict(connection.execute(_BEGINNINGS, (msgspec.json.encode(named).decode(),)).fetchall())
    event, recorded = question.event, question.recorded
    return Difference(
        query_id=event.query_id,
        position=recorded.position,
        at=rfc3339(event.at),
        text=event.text,
        session_id=recorded.session_id,
        project=recorded.project,
        before=before,
        after=after,
        moved=[
            Moved(
                memory_id=one,
                text=texts.get(one, ""),
                before=ranks[0].get(one),
                after=ranks[1].get(one),
                is_right=question.judged.get(one),
            )
            for one in named
        ],
    )
