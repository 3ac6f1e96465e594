"""DevMemBench: 25 sessions of a coding assistant about two projects, and 200 questions."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench.recall.scores import recall, recall_all, reciprocal_rank
from tests.bench.recall.sets import Benchmark, Question, Store, Text, day, files, held, of_sessions


def load(folder: Path) -> Iterator[Store]:
    """Yield the one store."""
    sessions, asked = (
        held(files(folder, f"benchmark/src/dataset/{name}.json")[0]) for name in ("sessions", "questions")
    )
    texts = [
        Text(
            key=f"{session['sessionId']}/{number}",
            content=f"{message['role']}: {message['content']}",
            session_id=session["sessionId"],
            said=day(session["metadata"]["date"], "%Y-%m-%d"),
        )
        for session in sessions
        for number, message in enumerate(session["messages"])
    ]
    questions = [
        Question(
            text=one["question"], kind=one["questionType"], sessions=frozenset(one["haystackSessionIds"])
        )
        for one in asked
        if one["haystackSessionIds"]
    ]
    yield Store(name="all", texts=texts, questions=questions, is_dev=False)


DEVMEMBENCH = Benchmark(
    name="DevMemBench",
    source="github.com/prosperitypirate/opencode-memory (codexfi), benchmark/",
    licence="MIT",
    definition=(
        "A memory is a message, one home holds both projects, as in the original run. Published are answers"
        " and relevance judged by a model; measured here is whether results belong to the sessions that the"
        " questions name (not abstention, which names none)."
    ),
    load=load,
    measures=[
        of_sessions("session R@3", partial(recall, 3)),
        of_sessions("session R@5", partial(recall, 5)),
        of_sessions("session recall_all@5", partial(recall_all, 5)),
        of_sessions("session MRR", reciprocal_rank),
    ],
    limit=50,
    peers=(
        "By a model's judgement: [codexfi](https://github.com/prosperitypirate/opencode-memory/blob/main/benchmark/README.md)"
        " answers 92.0 to 95.0 % right; of its first 20 memories one is relevant for 83.0 to 89.5 % of the"
        " questions, MRR .68 to .74."
    ),
)
