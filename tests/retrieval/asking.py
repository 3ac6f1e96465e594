"""Storing the set in a daemon and asking it the questions, through its socket alone."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from omegad.client import Client
from omegad.embedding import catalogue
from omegad.runtime.config import find_paths
from tests.bench import homes
from tests.retrieval.dataset import Memory, Question, load_memories, load_questions
from tests.retrieval.scoring import LIMIT, Answered, Hit, Scorecard, scored

Call = Callable[..., Any]
"""`Client.call`, or anything that answers like it."""


class NoModel(Exception):
    """There is no embedding model to score with."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a memory of the set: the id that answers for it, and how its store was answered."""

    key: str
    memory_id: str
    outcome: str
    redacted: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one run found."""

    card: Scorecard
    kept: list[Kept]
    answers: list[Answered]
    degraded: int
    """How many questions were answered by words alone, or with what else the daemon calls degraded."""

    def merged(self) -> list[Kept]:
        """Return the memories that the daemon did not keep as ones of their own."""
        return [one for one in self.kept if one.outcome != "stored"]

    def altered(self) -> list[Kept]:
        """Return the memories that the daemon took something out of."""
        return [one for one in self.kept if one.redacted]


@contextmanager
def own_daemon() -> Iterator[Client]:
    """Start a daemon process, with the installed model, on a home of its own that is removed in the end;
    raises `NoModel`.
    """
    models = find_paths().models
    if catalogue.installed(models, "auto") is None:
        raise NoModel(f"no embedding model is installed in {models}; `omegad model install` fetches one")
    with (
        homes.directory() as folder,
        homes.served(folder / "home", "auto") as running,
        homes.connected(running) as client,
    ):
        yield client


def run(client: Client) -> Run:
    """Store the set, ask its questions, and score the answers; raises `NoModel` where the daemon has none."""
    if client.call("system.status")["embedding"]["model"] is None:
        raise NoModel("the daemon has no embedding model; `omegad model install` fetches one")
    kept = store(client.call, load_memories())
    answers, degraded = ask(client.call, load_questions(), kept)
    return Run(card=scored(answers), kept=kept, answers=answers, degraded=degraded)


def store(call: Call, memories: Sequence[Memory]) -> list[Kept]:
    """Store the memories one after the other."""
    return [_kept(memory.key, call("memory.store", **memory.parameters())) for memory in memories]


def ask(call: Call, questions: Sequence[Question], kept: Sequence[Kept]) -> tuple[list[Answered], int]:
    """Ask the questions one after the other; return the answers, and how many of them are degraded."""
    ids = {one.key: one.memory_id for one in kept}
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for one in kept:
        keys[one.memory_id].append(one.key)
    answers, degraded = [], 0
    for question in questions:
        started_s = time.perf_counter()
        answer = call("memory.query", limit=LIMIT, all=True, **question.parameters())
        took_ms = (time.perf_counter() - started_s) * 1_000
        degraded += answer["degraded"] is not None
        hits = tuple(
            Hit(memory_id=hit["memory_id"], score=hit["score"], keys=tuple(keys[hit["memory_id"]]))
            for hit in answer["results"]
        )
        answers.append(_answered(question, hits, ids, is_abstained=answer["abstained"], took_ms=took_ms))
    return answers, degraded


def _kept(key: str, answer: dict[str, Any]) -> Kept:
    changes = {name: tuple(answer.get(name) or ()) for name in ("redacted", "contradicts")}
    return Kept(key=key, memory_id=answer["memory_id"], outcome=answer["outcome"], **changes)


def _answered(
    question: Question, hits: tuple[Hit, ...], ids: dict[str, str], *, is_abstained: bool, took_ms: float
) -> Answered:
    return Answered(
        question=question,
        hits=hits,
        abstained=is_abstained,
        took_ms=took_ms,
        golds=frozenset(ids[key] for key in question.gold),
        newest=ids[question.newest] if question.newest else None,
        stale=ids[question.stale] if question.stale else None,
    )
