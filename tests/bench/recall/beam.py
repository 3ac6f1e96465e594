"""BEAM: long chats with an assistant, of 100,000 tokens each in the part that is asked here."""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.recall.scores import recall, reciprocal_rank
from tests.bench.recall.sets import Benchmark, Question, Store, Text, day, files, held, of_texts

DEV = range(9, 17)
_PLACE = re.compile(r"\s*->->.*$", re.DOTALL)  # where a message stood in the plan it was written from


def load(folder: Path) -> Iterator[Store]:
    """Yield the chats of 100,000 tokens, by their number."""
    asked = files(folder, "chats/100K/*/probing_questions/probing_questions.json")
    chats = {int(path.parents[1].name): path for path in asked}
    for number, path in sorted(chats.items()):
        chat = files(path.parents[1], "chat_trunecated.json", "chat.json")[0]
        texts = list(_texts(held(chat)))
        known = {text.key for text in texts}
        questions = [
            Question(text=one["question"], kind=kind, gold=gold)
            for kind, those in held(path).items()
            for one in those
            if (gold := frozenset(map(str, _numbers(one.get("source_chat_ids")))) & known)
        ]
        yield Store(name=f"100K-{number}", texts=texts, questions=questions, is_dev=number in DEV)


def _texts(batches: Iterable[dict[str, Any]]) -> Iterator[Text]:
    for batch in batches:
        said = day(batch.get("time_anchor"), "%B-%d-%Y")
        for message in (message for turn in batch["turns"] for message in turn):
            said = day(message.get("time_anchor"), "%B-%d-%Y") or said
            if content := _PLACE.sub("", message["content"]).strip():
                yield Text(
                    key=str(message["id"]),
                    content=f"{message['role']}: {content}",
                    session_id=f"batch-{batch['batch_number']}",
                    said=said,
                )


def _numbers(given: Any) -> Iterator[int]:
    """Yield the messages that a question was made from, which are nested by their part in it."""
    if isinstance(given, int):
        yield given
    for part in given.values() if isinstance(given, dict) else given if isinstance(given, list) else ():
        yield from _numbers(part)


BEAM = Benchmark(
    name="BEAM 100K",
    source="github.com/mohammadtavakoli78/BEAM",
    licence="none stated in the repository",
    definition=(
        "A memory is a message, a home a chat of 100,000 tokens. Questions that name the messages they were"
        " made from, of nine kinds (not abstention). Published are answers judged by a model; measured here is"
        " the recall of those messages, of which one question in seven has more than five."
    ),
    load=load,
    measures=[
        of_texts("R@5", partial(recall, 5)),
        of_texts("R@10", partial(recall, 10)),
        of_texts("MRR", reciprocal_rank),
    ],
    limit=10,
    peers=(
        "Answers, not evidence: [Kimetsu](https://kimetsu.dev/docs/memory-benchmark/beam/) 73.3 % judged right"
        " of 400 at 100K, with a budget of 96,000 tokens."
    ),
)
