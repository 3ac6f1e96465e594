"""What came of questions that were asked again: what is answered otherwise, and what that is worth.

What was right is told by the log: by how that was rated which an answer had shown, and by what a session used
of it, which its end records as a rating. Of other questions nothing is known.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from omegad.log.event import Position, RecordedEvent
from omegad.memory.events import MemoryRated
from omegad.runtime.times import rfc3339
from omegad.search.events import MemoryQueried
from omegad.search.pipeline import QueryMemory
from omegad.session.events import MemorySurfaced, SessionEnded
from omegad.storage.driver import Connection

JUDGING = (MemoryQueried, MemorySurfaced, MemoryRated, SessionEnded)
"""What `judge` looks at."""
TEXT_CHARACTERS = 120
_BEGINNINGS = f"""
SELECT node_id, substr(content, 1, {TEXT_CHARACTERS}) FROM memories WHERE node_id IN (SELECT value
  FROM json_each(?))
"""

Ids = tuple[str, ...]
"""The memories of an answer, best first."""


class Question(msgspec.Struct, kw_only=True):
    """A query as the log has it, and whether what it showed was right, by memory id, as far as that is
    known.
    """

    recorded: RecordedEvent
    event: MemoryQueried
    query: QueryMemory
    judged: dict[str, bool] = {}


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """A memory, how it begins, and its rank before and after, from 1, None where it is not in the answer.
    `is_right` is None where nothing is known.
    """

    memory_id: str
    text: str
    before: int | None
    after: int | None
    is_right: bool | None


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A question that is answered otherwise: the memories of the answer before and after, and those that
    left, came or moved.
    """

    query_id: str
    position: Position
    at: str
    text: str
    session_id: str | None
    project: str | None
    before: Ids
    after: Ids
    moved: list[Moved]


class Replayed(msgspec.Struct, kw_only=True):
    """What came of it; pairs are before and after.

    `unlike_log` counts the answers that, with nothing otherwise, are not as the log has them, and
    `unlike_log_by` by what they were made with then and are not now; `unknown` are those of which that is not
    known. `in_no_answer` are the memories that were taken away in vain. `unreadable` questions were erased,
    or written by another version; of `aged` ones the details were let go of, since their time was over; for
    `left_out` there was no time.

    `known` are the questions of which something right is known, which the means are of: of recall, the share
    of what is right that is in the answer, and of 1 / the rank of the first that is, 0 where none is. `wrong`
    is how much is in the answers that was rated badly.
    """

    asked: int = 0
    same: int = 0
    changed: int = 0
    left: int = 0
    came: int = 0
    abstentions_gained: int = 0
    abstentions_lost: int = 0
    unlike_log: int = 0
    unlike_log_by: Counter[str] = msgspec.field(default_factory=Counter)
    in_no_answer: set[str] = set()
    aged: int = 0
    unreadable: int = 0
    left_out: int = 0
    known: int = 0
    recall: tuple[float, ...] = (0.0, 0.0)
    mrr: tuple[float, ...] = (0.0, 0.0)
    wrong: tuple[int, ...] = (0, 0)
    differences: list[Difference] = []

    def add(self, question: Question, before: Ids, after: Ids) -> None:
        """Count a question and its two answers."""
        self.asked += 1
        self.same += before == after
        self.changed += before != after
        self.left += len({*before} - {*after})
        self.came += len({*after} - {*before})
        self.abstentions_gained += bool(before) and not after
        self.abstentions_lost += bool(after) and not before
        answers, wrong = (before, after), {one for one, is_right in question.judged.items() if not is_right}
        self.wrong = tuple(
            count + len(wrong.intersection(ids)) for count, ids in zip(self.wrong, answers, strict=True)
        )
        if right := question.judged.keys() - wrong:
            self.known += 1
            recalls = [len(right.intersection(ids)) / len(right) for ids in answers]
            firsts = [
                next((1 / rank for rank, one in enumerate(ids, 1) if one in right), 0.0) for ids in answers
            ]
            self.recall, self.mrr = self._mean(self.recall, recalls), self._mean(self.mrr, firsts)

    def _mean(self, before: Sequence[float], one_more: Sequence[float]) -> tuple[float, ...]:
        return tuple(mean + (one - mean) / self.known for mean, one in zip(before, one_more, strict=True))


def difference(connection: Connection, question: Question, before: Ids, after: Ids) -> Difference:
    """Return in what two answers of these views differ."""
    ranks = [{memory_id: rank for rank, memory_id in enumerate(ids, 1)} for ids in (before, after)]
    named = [one for one in dict.fromkeys(before + after) if ranks[0].get(one) != ranks[1].get(one)]
    texts = dict(connection.execute(_BEGINNINGS, (msgspec.json.encode(named).decode(),)).fetchall())
    moved = [
        Moved(
            memory_id=one,
            text=texts.get(one, ""),
            before=ranks[0].get(one),
            after=ranks[1].get(one),
            is_right=question.judged.get(one),
        )
        for one in named
    ]
    event, recorded = question.event, question.recorded
    return Difference(
        query_id=event.query_id,
        position=recorded.position,
        at=rfc3339(event.at),
        text=event.text,
        session_id=recorded.session_id,
        project=recorded.project,
        before=before,
        after=after,
        moved=moved,
    )


def judge(questions: Sequence[Question], events: Iterable[RecordedEvent]) -> None:
    """Note of questions what *events*, those of `JUDGING` since the first of them, say of what they showed.

    What a session's end rates is about all that the session had asked; what else is rated, about what showed
    it last.
    """
    asked = {one.recorded.position: one for one in questions}
    latest, ends = dict[str, Position](), dict[Position, str | None]()
    of_session = defaultdict[tuple[str | None, str], list[Question]](list)
    for recorded in events:
        match recorded.event:
            case MemoryQueried(results=results) | MemorySurfaced(results=results):
                latest.update({one.memory_id: recorded.position for one in results})
                if (question := asked.get(recorded.position)) and recorded.session_id:
                    for one in results:
                        of_session[recorded.session_id, one.memory_id].append(question)
            case SessionEnded():
                ends[recorded.position] = recorded.session_id
            case MemoryRated(memory_id=memory_id, points=points) if recorded.cause in ends:
                for question in of_session[ends[recorded.cause], memory_id]:
                    question.judged.setdefault(memory_id, points > 0)
            case MemoryRated(memory_id=memory_id, points=points):
                if question := asked.get(latest.get(memory_id, 0)):
                    question.judged[memory_id] = points > 0
            case _:
                pass
