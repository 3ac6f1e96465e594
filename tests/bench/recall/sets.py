"""What a benchmark is made of: stores of texts, the questions that are asked of each, and how answers are
measured.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from tests.bench.recall import scores
from tests.bench.recall.scores import Found
from tests.retrieval import corpora

Score = Callable[[Found, frozenset[str]], float]
"""What a ranking is worth, of those that answer: 0 to 1."""


class Missing(Exception):
    """The data of a benchmark is not there, or is not what it was published as."""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text to remember. `session` is what the benchmark counts it to, the session it is said in unless
    that has another name.
    """

    key: str
    content: str
    session_id: str | None = None
    said: datetime | None = None
    project: str | None = None
    session: str = ""

    def counted(self) -> str:
        """Return the session that it counts for."""
        return self.session or self.session_id or ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question, asked once the first *after* texts of its store were said (None: all), and the keys and
    the sessions that answer it.
    """

    text: str
    kind: str = ""
    gold: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()
    after: int | None = None
    project: str | None = None
    limit: int = 0
    """How many results it is asked for; 0 takes the benchmark's."""


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """What one home holds and is asked: a conversation, a trajectory, a person."""

    name: str
    texts: Sequence[Text]
    questions: Sequence[Question]
    is_dev: bool = True
    """Whether it may be looked at while the ranking is worked on."""


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A figure: its name, and what the answer to one question adds to it, None where it does not count."""

    name: str
    of: Callable[[Store, Question, Found], float | None]
    out_of: int = 100
    """What the mean is told in: percent, or cases of so many."""


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A published benchmark, how it is read and measured here, and what others publish for it."""

    name: str
    source: str
    """Where its data is."""
    licence: str
    definition: str
    """What is remembered and asked, what is measured, and by whose definition."""
    load: Callable[[Path], Iterable[Store]]
    """Reads the stores from the folder of checkouts; raises `Missing`."""
    measures: Sequence[Measure]
    limit: int
    is_served: bool = False
    """Whether omegad shows what it shows to agents, rather than as many as asked for."""
    published: Mapping[str, str] = {}
    """What others publish, by measure, and by `measure, kind`."""
    peers: str = ""
    """Where that stands, and under which conditions."""


def of_texts(name: str, score: Score) -> Measure:
    """Return a measure of the texts that answer."""

    def of(store: Store, question: Question, found: Found) -> float | None:
        del store
        return score(found, question.gold) if question.gold else None

    return Measure(name=name, of=of)


def of_sessions(name: str, score: Score) -> Measure:
    """Return a measure of the sessions that answer: a session stands where the first of its texts does."""

    def of(store: Store, question: Question, found: Found) -> float | None:
        if not question.sessions:
            return None
        return score(scores.by_session(found, sessions_of(store.texts)), question.sessions)

    return Measure(name=name, of=of)


def sessions_of(texts: Iterable[Text]) -> dict[str, str]:
    """Return the session that each text counts for, by key."""
    return {text.key: text.counted() for text in texts}


def of_corpus(corpus: corpora.Corpus, *, is_dev: bool) -> Store:
    """Return a corpus that the ranking is fitted to as a store."""
    texts = [
        Text(
            key=memory.key,
            content=memory.content,
            session_id=memory.session_id,
            said=_moment(memory.referenced_at),
        )
        for memory in corpus.memories
    ]
    sessions = sessions_of(texts)
    questions = [
        Question(
            text=one.text, kind=one.kind, gold=one.gold, sessions=frozenset(sessions[key] for key in one.gold)
        )
        for one in corpus.questions
    ]
    return Store(name=corpus.name, texts=texts, questions=questions, is_dev=is_dev)


def _moment(at_us: int | None) -> datetime | None:
    return None if at_us is None else datetime.fromtimestamp(at_us / 1_000_000, UTC)


def files(folder: Path, *patterns: str) -> list[Path]:
    """Return the files under a folder that the first pattern to match any does; raises `Missing`."""
    for pattern in patterns:
        if found := sorted(folder.rglob(pattern), key=lambda path: (len(path.name), path.name)):
            return found
    raise Missing(f"no {' or '.join(patterns)} under {folder}")


@contextmanager
def reading(path: Path) -> Iterator[Path]:
    """Raise `Missing` with the file's name where something goes wrong with what is in it."""
    try:
        yield path
    except Missing:
        raise
    except Exception as error:  # a file may hold anything, as what Git LFS has in its place
        raise Missing(f"{path} is not what it was published as ({error!r})") from error


def held(path: Path) -> Any:
    """Return what is in a file of JSON. Raises `Missing` as `reading`."""
    with reading(path):
        return json.loads(path.read_text(encoding="utf-8"))


def day(text: str | None, form: str) -> datetime | None:
    """Read a date in a form of `strptime`; None where it is none."""
    try:
        return datetime.strptime(text or "", form).replace(tzinfo=UTC)
    except ValueError:
        return None
