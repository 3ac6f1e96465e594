"""Memories and questions of several kinds, put into views as a daemon would, with real vectors, for a model
to be fitted to.

The project's own set is there always. Others are files on the machine of whoever fits, which the project does
not hold.
"""

import argparse
import json
import pickle
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from omegad.embedding import catalogue
from omegad.embedding.cache import text_hash
from omegad.embedding.passages import passages, short_passages
from omegad.embedding.session import Session
from omegad.index.vector_index import VectorIndex
from omegad.index.vector_indexes import VectorIndexes
from omegad.memory.types import MemoryTypes
from omegad.runtime.times import parse_time
from omegad.search import QueryMemory, Sources, pipeline, ranking
from omegad.search.features import Observed
from omegad.search.model import RankingModel
from omegad.search.question import compared
from omegad.text.ingestion import tagging
from tests.builders import EMBEDDER, START_US, embedded, stored
from tests.retrieval.dataset import FOLDER, load_memories, load_questions
from tests.shown import Shown

NOTES, FIRST_DAY = "notes", "first day"
RESULTS = 10
MINUTE_US = 60_000_000
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
FEW = (1, 3, 10, 30)
"""Of how many memories the small stores are that questions are asked of as well."""

Embed = Callable[[str], bytes]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory to store."""

    key: str
    content: str
    event_type: str = "memory"
    session_id: str | None = None
    referenced_at: int | None = None
    tags: tuple[str, ...] = ()


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question, the keys of what answers it, and of what did so once."""

    text: str
    kind: str
    gold: frozenset[str]
    stale: frozenset[str] = frozenset()


class Corpus(msgspec.Struct, frozen=True, kw_only=True):
    """What one project holds and is asked, and the kind of texts it is made of."""

    domain: str
    name: str
    memories: Sequence[Memory]
    questions: Sequence[Question]


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question asked of memories of a corpus, which are in a project: what the search looked at, and the
    rows of its answers.
    """

    corpus: Corpus
    project: str
    question: Question
    seen: Observed
    gold: frozenset[int]
    stale: frozenset[int]


def own() -> Iterator[Corpus]:
    """Yield the project's own set, by project."""
    memories, questions = (
        load_memories(),
        [question for question in load_questions() if question.mode == "hybrid"],
    )
    for project in sorted({memory.project for memory in memories if memory.project}):
        inside = [memory for memory in memories if memory.project == project]
        keys = {memory.key for memory in inside}
        yield Corpus(
            domain=NOTES,
            name=project,
            memories=[
                Memory(
                    key=memory.key,
                    content=memory.content,
                    event_type=memory.event_type,
                    session_id=memory.session_id,
                    referenced_at=(
                        parse_time(f"{memory.referenced_date[:10]}T00:00:00Z", "date")
                        if memory.referenced_date
                        else None
                    ),
                    tags=memory.tags,
                )
                for memory in inside
            ],
            questions=[
                Question(
                    text=one.text,
                    kind=one.kind,
                    gold=frozenset(one.gold),
                    stale=frozenset([one.stale] if one.stale else []),
                )
                for one in questions
                if one.project == project and keys.issuperset(one.gold)
            ],
        )


def first_day() -> Iterator[Corpus]:
    """Yield homes as they are on their first day: a handful of memories each, and what is asked of them."""
    for number, line in enumerate((FOLDER / "first_day.jsonl").read_text().splitlines()):
        said = json.loads(line)
        yield Corpus(
            domain=FIRST_DAY,
            name=f"home-{number}",
            memories=[Memory(key=str(key), content=text) for key, text in enumerate(said["memories"])],
            questions=[
                Question(text=text, kind=FIRST_DAY, gold=frozenset(map(str, gold)))
                for text, gold in said["questions"]
            ],
        )


def sets(path: Path, domain: str) -> Iterator[Corpus]:
    """Yield the sets of a file: each a project, its memories (id, content, event_type, session_id) and its
    questions (text, kind, gold, stale).
    """
    for one in json.loads(path.read_text())["sets"]:
        memories = [
            Memory(
                key=m["id"], content=m["content"], event_type=m["event_type"], session_id=m.get("session_id")
            )
            for m in one["memories"]
        ]
        told = (question for question in one["questions"] if not question.get("near"))
        questions = [
            Question(text=q["text"], kind=q["kind"], gold=frozenset(q["gold"]), stale=frozenset(q["stale"]))
            for q in told
        ]
        yield Corpus(domain=domain, name=one["project"], memories=memories, questions=questions)


def locomo(path: Path, domain: str) -> Iterator[Corpus]:
    """Yield the conversations of a file in the form of LoCoMo."""
    yield from talks(json.loads(path.read_text()), domain)


def talks(samples: Sequence[Any], domain: str) -> Iterator[Corpus]:
    """Yield the conversations of LoCoMo: one memory a turn, dated by its session; categories 1 to 4."""
    for number, sample in enumerate(samples):
        talk, memories = sample["conversation"], []
        for session in sorted(
            (key for key in talk if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])
        ):
            said = datetime.strptime(talk[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(
                tzinfo=UTC
            )
            for turn in talk[session]:
                caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
                memories.append(
                    Memory(
                        key=turn["dia_id"],
                        content=f"{turn['speaker']}: {turn['text']}{caption}",
                        session_id=f"{number}-{session}",
                        referenced_at=int(said.timestamp()) * 1_000_000,
                    )
                )
        known = {memory.key for memory in memories}
        questions = []
        for one in sample["qa"]:
            gold = {
                f"D{int(a)}:{int(b)}"
                for evidence in one["evidence"]
                for a, b in re.findall(r"D:?(\d+):(\d+)", evidence)
            } & known
            if one["category"] in CATEGORIES and gold:
                questions.append(
                    Question(text=one["question"], kind=CATEGORIES[one["category"]], gold=frozenset(gold))
                )
        yield Corpus(domain=domain, name=f"locomo-{number}", memories=memories, questions=questions)


def realtalk(path: Path, domain: str) -> Iterator[Corpus]:
    """Yield the chat of a file in the form of REALTALK: one memory a message, dated; what has no evidence is
    left out.
    """
    talk, memories = json.loads(path.read_text()), list[Memory]()
    for session in sorted(
        (key for key in talk if re.fullmatch(r"session_\d+", key)), key=lambda key: int(key[8:])
    ):
        for turn in talk[session]:
            said = datetime.strptime(turn["date_time"], "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC)
            if text := turn["clean_text"].strip():
                memories.append(
                    Memory(
                        key=turn["dia_id"],
                        content=f"{turn['speaker']}: {text}",
                        session_id=session,
                        referenced_at=int(said.timestamp()) * 1_000_000,
                    )
                )
    known = {memory.key for memory in memories}
    told = [(one["question"], known.intersection(one["evidence"])) for one in talk["qa"]]
    questions = [Question(text=text, kind="chat", gold=frozenset(gold)) for text, gold in told if gold]
    yield Corpus(domain=domain, name=path.stem, memories=memories, questions=questions)


def articles(path: Path, domain: str) -> Iterator[Corpus]:
    """Yield the articles of a file in the form of SQuAD, one memory a sentence; a question is answered by that
    in which its answer begins.
    """
    for number, article in enumerate(json.loads(path.read_text())["data"]):
        memories, questions = list[Memory](), list[Question]()
        for place, paragraph in enumerate(article["paragraphs"]):
            begins = [0, *(found.end() for found in SENTENCE_END.finditer(paragraph["context"]))]
            for begin, end in zip(begins, [*begins[1:], None], strict=True):
                memories.append(
                    Memory(key=f"{place} {begin}", content=paragraph["context"][begin:end].strip())
                )
            for one in paragraph["qas"]:
                answer = min((each["answer_start"] for each in one["answers"]), default=None)
                key = None if answer is None else max(begin for begin in begins if begin <= answer)
                gold = frozenset[str]() if key is None else frozenset([f"{place} {key}"])
                questions.append(Question(text=one["question"], kind="article", gold=gold))
        yield Corpus(domain=domain, name=f"{domain}-{number}", memories=memories, questions=questions)


def precision(folder: Path) -> Iterator[Corpus]:
    """Yield the beliefs of a folder of fixtures in the form of PrecisionMemBench by their scope, and what they
    are to be asked; what is pinned is shown anyhow, and so neither right nor wrong.
    """
    beliefs, cases = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("beliefs.seed", "retrieval.cases")
    )
    for scope in dict.fromkeys(case["scope"][0] for case in cases):
        known = {
            one["_id"]: one
            for one in beliefs
            if scope in one["scope"]
            and one["user_id"] == "test-user"
            and not (one["superseded_by"] or one["resolved_at"])
        }
        pinned = frozenset(key for key, one in known.items() if one["pinned"])
        asked = [case for case in cases if case["scope"][0] == scope and case["query"].strip()]
        golds = [
            known.keys() & case["expect"].get("relevantBeliefs", {}).get("shouldOnlyInclude", ())
            for case in asked
        ]
        yield Corpus(
            domain="precision",
            name=scope,
            memories=[
                Memory(key=key, content=" ".join([one["canonical_name"], *one["aliases"], one["content"]]))
                for key, one in known.items()
            ],
            questions=[
                Question(text=case["query"], kind=case["category"], gold=frozenset(gold), stale=pinned - gold)
                for case, gold in zip(asked, golds, strict=True)
            ],
        )


def of_files(parser: argparse.ArgumentParser) -> None:
    """Let a program be told what there is beside the project's own set, and where vectors are kept."""
    for name, what in (
        ("--sets", "files of sets of memories and questions"),
        ("--locomo", "files of conversations in the form of LoCoMo"),
        ("--realtalk", "files of chats in the form of REALTALK"),
        ("--articles", "files of articles in the form of SQuAD"),
    ):
        parser.add_argument(name, help=what, nargs="*", default=[], metavar="DOMAIN=FILE")
    parser.add_argument(
        "--cache", type=Path, metavar="FILE", help="where vectors are kept from one run to the next"
    )


def named(options: argparse.Namespace) -> list[Corpus]:
    """Return the project's own set, and those of the files that a program was told of."""
    found = list(own())
    for read, given in (
        (sets, options.sets),
        (locomo, options.locomo),
        (realtalk, options.realtalk),
        (articles, options.articles),
    ):
        for one in given:
            domain, path = one.split("=", 1)
            found += read(Path(path), domain)
    return found


def embedder(models: Path, cache: Path | None, choice: str = "auto") -> tuple[Embed, Callable[[], None]]:
    """Return what embeds a text by the installed model, and what writes the vectors to *cache*; raises
    `FileNotFoundError` without a model.
    """
    manifest = catalogue.installed(models, choice)
    if manifest is None:
        raise FileNotFoundError(f"no embedding model in {models}; `omegad model install` fetches one")
    session = Session(models / manifest.name, manifest)
    # Whoever fits wrote it
    known: dict[str, bytes] = pickle.loads(cache.read_bytes()) if cache and cache.exists() else {}  # noqa: S301

    def embed(text: str) -> bytes:
        key = f"{manifest.embedder_id} {text_hash(text)}"
        if key not in known:
            known[key] = session.embed(text)
        return known[key]

    def save() -> None:
        if cache:
            cache.write_bytes(pickle.dumps(known))

    return embed, save


class Library:
    """Corpora, each as the project of a home of its own, to ask questions of."""

    def __init__(self, corpora: Sequence[Corpus], embed: Embed, *, is_multilingual: bool = False) -> None:
        """Store all memories in order, a minute apart; by one model, which may be that for all languages."""
        self.corpora = corpora
        self._embed, self._passages = embed, short_passages if is_multilingual else passages
        self._views: defaultdict[str, Shown] = defaultdict(Shown)
        self._indexs: defaultdict[str, VectorIndexes] = defaultdict(
            lambda: VectorIndexes(VectorIndex(EMBEDDER, is_multilingual=is_multilingual))
        )
        self._rows: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._minutes = count()
        self._tag_rules = tagging.load()
        for corpus in corpora:
            self.put(corpus)

    def put(self, corpus: Corpus) -> None:
        """Store the memories of a corpus in a home of its own."""
        self._put(corpus.name, corpus.memories)

    def ask(
        self, corpus: Corpus, question: Question, model: RankingModel, project: str | None = None
    ) -> Asked:
        """Ask a question of all of a corpus, or of what a *project* holds of it."""
        asked_of = project or corpus.name
        rows = self._rows[asked_of]
        now_us = START_US + (next(self._minutes) + 1_440) * MINUTE_US
        query = QueryMemory(text=question.text, project=asked_of)
        sources = Sources(
            {EMBEDDER: self._embed(compared(question.text))}, self._indexs[asked_of], MemoryTypes({}), model
        )
        seen = pipeline.observed(self._views[asked_of].connection, query, sources, now_us)
        known = (
            frozenset(rows[key] for key in keys if key in rows) for keys in (question.gold, question.stale)
        )
        return Asked(
            corpus=corpus,
            project=asked_of,
            question=question,
            seen=seen,
            **dict(zip(("gold", "stale"), known, strict=True)),
        )

    def rank(self, asked: Asked, model: RankingModel) -> list[int]:
        """Return the rows that were seen as a model ranks them, best first."""
        return [one.id for one in pipeline.ordered(self._views[asked.project].connection, asked.seen, model)]

    def shown(self, asked: Asked, model: RankingModel, most: float) -> list[int]:
        """Return the first rows that are at most so far behind the best, or belong to it."""
        best = pipeline.ordered(self._views[asked.project].connection, asked.seen, model)[:RESULTS]
        belonging = pipeline.belonging(best[0].id, asked.seen) if best else ()
        return [one.id for one in ranking.beside(best, most, belonging)]

    def signs(self, asked: Asked, model: RankingModel) -> dict[str, float]:
        """Return what the confidence in a model's ranking is read from."""
        connection = self._views[asked.project].connection
        return pipeline.confidence_features(
            connection, pipeline.ordered(connection, asked.seen, model), asked.seen
        )

    def few(
        self,
        corpus: Corpus,
        question: Question,
        model: RankingModel,
        size: int,
        chance: random.Random,
        *,
        is_answerable: bool,
    ) -> Asked:
        """Ask a question of a store of so many memories of its corpus, one of which answers it or none."""
        project = f"{corpus.name} {size} {next(self._minutes)}"
        others = [memory for memory in corpus.memories if memory.key not in question.gold]
        chosen = chance.sample(others, min(len(others), size - is_answerable))
        if is_answerable:
            chosen.append(next(memory for memory in corpus.memories if memory.key in question.gold))
        self._put(project, chosen)
        return self.ask(corpus, question, model, project)

    def _put(self, project: str, memories: Sequence[Memory]) -> None:
        views = self._views[project]
        for memory in memories:
            content = memory.content.strip()
            row = views.show(
                stored(
                    memory_id := f"{project} {memory.key}",
                    content,
                    event_type=memory.event_type,
                    priority=MemoryTypes({}).of(memory.event_type).priority,
                    tags=memory.tags,
                    auto_tags=tagging.tags_of(content, project, self._tag_rules),
                    referenced_at=memory.referenced_at,
                ),
                project=project,
                session_id=memory.session_id and f"{project} {memory.session_id}",
                occurred_at=START_US + next(self._minutes) * MINUTE_US,
            )
            self._rows[project][memory.key] = row
            texts = self._passages(content)
            views.vectors |= {text_hash(text): self._embed(text) for text in texts}
            views.show(embedded(memory_id, *texts), project=project)
