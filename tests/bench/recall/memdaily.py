"""MemDaily: 2,954 short trajectories of Chinese messages, each with one question."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from tests.bench.recall.scores import recall, reciprocal_rank
from tests.bench.recall.sets import Benchmark, Question, Store, Text, day, files, held, of_texts

KINDS = {
    "01": "simple",
    "02": "conditional",
    "03": "comparative",
    "04": "aggregative",
    "05": "post-processing",
    "06": "noisy",
}
_NUMBER = re.compile(r"\d+")
_LLM, _VECTORS = (88.8, 85.1, 94.7, 54.4, 80.0, 84.6), (73.5, 71.7, 84.5, 51.5, 69.3, 64.8)


def load(folder: Path) -> Iterator[Store]:
    """Yield the trajectories, numbered as the published script numbers them: those whose question failed to
    be made are left out first.
    """
    for path in files(folder, "messages_and_QAs/0*.json"):
        numbers = count()
        for one in held(path):
            asked = one["question_list"][0]
            if asked["question"] != "[ERRORQ]" and asked["answer"] != "[ERRORA]":
                yield _store(path.stem, next(numbers), one["message_list"], asked)


def _store(name: str, number: int, messages: list[dict[str, Any]], asked: dict[str, Any]) -> Store:
    texts = [
        Text(
            key=str(place),
            content=f"{one['message']} (消息地点 {one['place']}, 消息时间 {one['time']})",
            said=day(" ".join(_NUMBER.findall(one["time"])), "%Y %m %d %H %M"),
        )
        for place, one in enumerate(messages)
    ]
    gold = frozenset(map(str, asked["target_step_id"]))
    question = Question(text=asked["question"], kind=KINDS[name[:2]], gold=gold)
    return Store(name=f"{name}-{number}", texts=texts, questions=[question], is_dev=number % 2 == 0)


MEMDAILY = Benchmark(
    name="MemDaily",
    source="github.com/nuster1128/MemSim",
    licence="none stated",
    definition=(
        "A memory is a message with its place and time, a home a trajectory, nothing infused. Recall of the"
        " target messages among the first five, as `benchmark/TimeFlow.py` computes it; the accuracy of a"
        " model that chooses among four answers is not measured."
    ),
    load=load,
    measures=[of_texts("R@5", partial(recall, 5)), of_texts("MRR", reciprocal_rank)],
    limit=10,
    published={
        f"R@5, {kind}": f"a language model {model}, vectors {vectors}"
        for kind, model, vectors in zip(KINDS.values(), _LLM, _VECTORS, strict=True)
    },
    peers=(
        "[MemSim](https://github.com/nuster1128/MemSim), `benchmark/full_results/benchmark_memdaily.xlsx`,"
        " Recall@5: GLM-4-9B that reads all messages and names the five; vectors of llama-160m."
    ),
)
