"""LoCoMo: ten conversations of two people over months, written by language models."""

import json
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.recall.scores import recall, reciprocal_rank
from tests.bench.recall.sets import Benchmark, Store, files, held, of_corpus, of_texts
from tests.retrieval import corpora

DEV = 5  # conversations, the first


def load(folder: Path) -> Iterator[Store]:
    """Yield the conversations of `locomo10.json`, or of the archive that older checkouts have."""
    path = files(folder, "locomo10.json", "locomo10.zip")[0]
    samples = _unpacked(path) if path.suffix == ".zip" else held(path)
    for number, corpus in enumerate(corpora.talks(samples, "LoCoMo")):
        yield of_corpus(corpus, is_dev=number < DEV)


def _unpacked(path: Path) -> list[Any]:
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".json"))
        talks = [json.loads(archive.read(name)) for name in names]
    return [{"conversation": talk, "qa": talk["qa"]} for talk in talks]


LOCOMO = Benchmark(
    name="LoCoMo",
    source="github.com/snap-research/locomo",
    licence="CC BY-NC 4.0",
    definition=(
        "A memory is a turn (speaker, text, caption of a picture), a home a conversation. Questions of"
        " categories 1 to 4 that name their evidence. Recall of the evidence turns, as `task_eval/evaluation.py`"
        " computes it; the answers' F1 is not measured, since that takes a model to answer."
    ),
    load=load,
    measures=[
        of_texts("R@5", partial(recall, 5)),
        of_texts("R@10", partial(recall, 10)),
        of_texts("MRR", reciprocal_rank),
    ],
    limit=10,
    published={"R@10": "MemPalace 48.0"},
    peers=(
        "[MemPalace](https://github.com/MemPalace/mempalace/blob/main/benchmarks/BENCHMARKS.md): dialogs as"
        " units, no rerank, all five categories (1,986 questions)."
    ),
)
