"""LongMemEval: 500 questions, each with a history of chats with an assistant of its own."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.recall.scores import ndcg, recall_all, recall_any
from tests.bench.recall.sets import Benchmark, Question, Store, Text, day, files, held, of_sessions, of_texts

SAID = "%Y/%m/%d (%a) %H:%M"


def load(folder: Path) -> Iterator[Store]:
    """Yield a store a question; what is to be abstained from, and what no turn of the user answers, is left
    out, as the published script does.
    """
    path = files(folder, "longmemeval_s_cleaned.json", "longmemeval_s.json")[0]
    for entry in held(path):
        texts = list(_texts(entry))
        gold = [text for text in texts if text.session.startswith("answer")]
        if "_abs" not in entry["question_id"] and gold:
            question = Question(
                text=entry["question"],
                kind=entry["question_type"],
                gold=frozenset(text.key for text in gold),
                sessions=frozenset(text.session for text in gold),
            )
            yield Store(name=entry["question_id"], texts=texts, questions=[question])


def _texts(entry: dict[str, Any]) -> Iterator[Text]:
    """Yield the turns of the user. A turn that holds no evidence counts for another session than those of its
    session that do, as in the published script.
    """
    sessions = zip(
        entry["haystack_session_ids"], entry["haystack_dates"], entry["haystack_sessions"], strict=True
    )
    for place, (name, date, turns) in enumerate(sessions):
        for number, turn in enumerate(turns, 1):
            if turn["role"] == "user" and turn["content"].strip():
                counted = name if turn.get("has_answer") else name.replace("answer", "noans")
                yield Text(
                    key=f"{place}_{name}_{number}",
                    content=turn["content"],
                    session_id=f"{place}_{name}",
                    said=day(date, SAID),
                    session=counted,
                )


LONGMEMEVAL = Benchmark(
    name="LongMemEval-S",
    source=(
        "huggingface.co/datasets/xiaowu0162/longmemeval-cleaned (longmemeval_s_cleaned.json, or the"
        " longmemeval_s.json of before), which nothing here fetches"
    ),
    licence="MIT",
    definition=(
        "A memory is a turn of the user, a home the history of one question. `run_retrieval.py` with turns as"
        " units: sessions by their best turn, abstention left out."
    ),
    load=load,
    measures=[
        of_sessions("session recall_any@5", partial(recall_any, 5)),
        of_sessions("session recall_all@5", partial(recall_all, 5)),
        of_sessions("session recall_all@10", partial(recall_all, 10)),
        of_texts("turn recall_all@10", partial(recall_all, 10)),
        of_texts("turn ndcg_any@10", partial(ndcg, 10)),
    ],
    limit=100,
    published={
        "session recall_any@5": "engram v2 98.1, MemPalace raw 96.6, Awareness 95.6, agentmemory 95.2"
    },
    peers=(
        "[agentmemory](https://github.com/rohitg00/agentmemory/blob/main/benchmark/LONGMEMEVAL.md): BM25 and"
        " vectors of MiniLM, all 500 questions; it quotes MemPalace, which keeps whole sessions"
        " ([its own page](https://github.com/MemPalace/mempalace/blob/main/benchmarks/BENCHMARKS.md))."
        " [Awareness](https://awareness.market/docs?doc=longmemeval): BM25 and vectors of MiniLM by reciprocal"
        " ranks. [engram](https://engram-memory.dev/architecture/benchmarks): with a cross-encoder."
    ),
)
