"""RealMem: ten people and the projects they work on with an assistant, over some 200 sessions each."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.recall.scores import ndcg, recall_all, recall_any
from tests.bench.recall.sets import Benchmark, Question, Store, Text, day, files, held, of_sessions, reading


def load(folder: Path) -> Iterator[Store]:
    """Yield a store a person."""
    for path in files(folder, "dataset/*_dialogues_256k.json"):
        with reading(path):
            sessions = held(path)["dialogues"]
        names = {one["session_uuid"]: one["session_identifier"] for one in sessions}
        texts, questions = list[Text](), list[Question]()
        for session in sessions:
            # Asked before anything of the session itself is remembered
            questions += _questions(session, names, len(texts))
            texts += _texts(session)
        yield Store(
            name=path.stem.removesuffix("_dialogues_256k"), texts=texts, questions=questions, is_dev=False
        )


def _texts(session: dict[str, Any]) -> Iterator[Text]:
    name = session["session_identifier"]
    for number, turn in enumerate(session["dialogue_turns"]):
        if turn["content"].strip():
            yield Text(
                key=f"{name}/{number}",
                content=f"{turn['speaker']}: {turn['content']}",
                session_id=name,
                said=day(session["current_time"][:10], "%Y-%m-%d"),
            )


def _questions(session: dict[str, Any], names: dict[str, str], after: int) -> Iterator[Question]:
    """Yield what the user asks; the sessions that answer are told by the assistant's next turn."""
    turns = session["dialogue_turns"]
    for turn, following in pairwise(turns):
        used = following.get("memory_session_uuids") or [
            one.get("session_uuid") for one in following.get("memory_used") or ()
        ]
        sessions = frozenset(names[uuid] for uuid in used if uuid in names)
        if turn.get("is_query") and following["speaker"] == "Assistant" and sessions:
            kind = turn.get("category_name") or ""
            yield Question(text=turn["content"].strip(), kind=kind, sessions=sessions, after=after)


REALMEM = Benchmark(
    name="RealMem",
    source="github.com/zhiyuan5986/RealMemBench (or AvatarMemory/RealMemBench)",
    licence="MIT by its README, Apache 2.0 by its LICENSE file",
    definition=(
        "A memory is a turn, a home a person. A question is asked when its session begins, of the sessions"
        " before; the sessions that hold what answers, by `eval/compute_auto_metrics_for_realmem.py`. What is"
        " published as R does not say whether it is recall_all or recall_any: both are measured."
    ),
    load=load,
    measures=[
        of_sessions("session recall_any@10", partial(recall_any, 10)),
        of_sessions("session recall_all@10", partial(recall_all, 10)),
        of_sessions("session recall_all@20", partial(recall_all, 20)),
        of_sessions("session ndcg_any@10", partial(ndcg, 10)),
        of_sessions("session ndcg_any@20", partial(ndcg, 20)),
    ],
    limit=100,
    published={
        "session recall_all@10": "R@10: Graph Mem 63.4, Mem0 60.6, A-mem 57.6",
        "session recall_all@20": "R@20: A-mem 72.4, Graph Mem 70.2, Mem0 65.2",
        "session ndcg_any@10": "Graph Mem 56.5, Mem0 52.5, A-mem 52.1",
        "session ndcg_any@20": "Graph Mem 58.3, A-mem 55.6, Mem0 54.0",
    },
    peers=(
        "[RealMemBench](https://github.com/zhiyuan5986/RealMemBench), `figs/image3.png`: systems that have a"
        " language model extract memories."
    ),
)
