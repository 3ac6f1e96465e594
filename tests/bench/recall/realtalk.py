"""REALTALK: ten chats of real people over three weeks."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench.recall.scores import recall, reciprocal_rank
from tests.bench.recall.sets import Benchmark, Store, files, of_corpus, of_sessions, of_texts, reading
from tests.retrieval import corpora

DEV = 5  # chats, the first


def load(folder: Path) -> Iterator[Store]:
    """Yield the chats, by their number."""
    chats = {int(path.stem.split("_")[1]): path for path in files(folder, "data/Chat_*.json")}
    for number, path in sorted(chats.items()):
        with reading(path):
            found = [*corpora.realtalk(path, "REALTALK")]
        for corpus in found:
            yield of_corpus(corpus, is_dev=number <= DEV)


REALTALK = Benchmark(
    name="REALTALK",
    source="github.com/danny911kr/REALTALK",
    licence="none stated",
    definition=(
        "A memory is a message, a home a chat. Questions that name their evidence. Published are the F1 of"
        " answers and a model's judgement of them; measured here is the recall of the evidence, by message and"
        " by session (of some 22; a session stands where the first of its messages does)."
    ),
    load=load,
    measures=[
        of_texts("R@5", partial(recall, 5)),
        of_texts("R@10", partial(recall, 10)),
        of_texts("MRR", reciprocal_rank),
        of_sessions("session R@10", partial(recall, 10)),
    ],
    limit=50,
)
