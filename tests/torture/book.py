"""What a daemon was asked for, what it answered, and the proof from its log that both are so."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from typing import Any, NamedTuple

COMPACTED = "compaction"
ERASE = "memory.erase"
SAME = ("position", "memory_id", "outcome", "call_index")
"""Fields of an answer that are the same however often the request is sent."""


class Asked(NamedTuple):
    """A request, which is the same request however often it is sent by its client under its id."""

    client: str
    method: str
    params: dict[str, Any]
    mark: str
    """A text that stands in what the request writes, and nowhere else."""


class Book:
    """What was asked for: acknowledged, or still without an answer when the daemon was killed."""

    def __init__(self) -> None:
        self.acknowledged: list[tuple[Asked, dict[str, Any]]] = []
        self.unanswered: dict[str, Asked] = {}
        self.erasable: list[tuple[str, str]] = []
        """Memories that may be erased, with the mark that stands in each."""
        self.erasing: dict[str, str] = {}
        """Marks by memory of those whose erasure was asked for and not answered yet."""
        self.gone: list[str] = []
        """Marks of what was erased: they stand in no file."""
        self.counts: Counter[str] = Counter()
        self._numbers = count(1)

    def number(self) -> int:
        """Return a number that no other request has."""
        return next(self._numbers)

    def ask(self, asked: Asked) -> None:
        """Note a request that is about to be sent."""
        self.unanswered[asked.mark] = asked

    def answer(self, asked: Asked, answer: dict[str, Any]) -> None:
        """Note that it was acknowledged, and with what."""
        del self.unanswered[asked.mark]
        self.counts[asked.method] += 1
        self.acknowledged.append((asked, answer))
        if (
            asked.method == "memory.store"
            and answer["outcome"] == "stored"
            and "erasable" in asked.params["tags"]
        ):
            self.erasable.append((answer["memory_id"], asked.mark))

    def erased(self, memory_id: str) -> None:
        """Note that an erasure was acknowledged."""
        self.counts[ERASE] += 1
        self.gone.append(self.erasing.pop(memory_id))


def same(answer: dict[str, Any]) -> dict[str, Any]:
    """Return those fields of an answer that a repeated request is answered with again."""
    return {name: answer[name] for name in SAME if name in answer}


def lost_or_doubled(book: Book, events: list[dict[str, Any]]) -> Iterator[str]:
    """Hold the log's events, from the first, against the book; yield a sentence for everything that is not
    as acknowledged.
    """
    if any(
        after["recorded_at"] < before["recorded_at"] and after["tag"] != "clock.mended@1"
        for before, after in pairwise(events)
    ):
        yield "recorded_at decreases"
    if [event["position"] for event in events] != list(range(1, len(events) + 1)):
        yield "positions are not 1, 2, 3 …"
    written = Counter(_marks(events))
    gone = set(book.gone) | set(book.erasing.values())
    for asked, answer in book.acknowledged:
        times = written[asked.mark]
        if asked.mark in gone:
            if times and asked.mark in book.gone:
                yield f"{asked.mark} was erased and is in the log"
        elif times != 1:
            yield (
                f"{asked.mark} ({asked.method}) was acknowledged with {same(answer)} and is in the log"
                f" {times} times"
            )
        elif (place := answer.get("position")) and asked.mark not in _marks(events[place - 1 : place]):
            yield f"{asked.mark} was acknowledged at position {place}, where something else is"
    for asked in book.unanswered.values():
        if written[asked.mark] > 1:
            yield (
                f"{asked.mark} ({asked.method}) was never acknowledged and is in the log"
                f" {written[asked.mark]} times"
            )
    yield from _shared(events)


def _marks(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Return the mark of each event that one request has written; a request writes one event with its
    mark.
    """
    for event in events:
        data = event["data"]
        if not data:  # erased
            continue
        tag = event["tag"].split("@")[0]
        if (
            tag == "memory.stored" and data["source"] != COMPACTED
        ):  # a summary begins as the first memory does that it is made of
            yield _first_word(data["content"])
        elif tag == "tool.called":
            yield str(data.get("tool_use_id") or "")
        elif tag == "prompt.submitted":
            yield _first_word(data["prompt"]["head"])


def _first_word(text: str) -> str:
    return next(iter(text.split()), "")


def _shared(events: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Yield the positions at which a file was claimed that another session held."""
    holders: dict[tuple[str, str], str] = {}
    for event in events:
        data, session = event["data"], event["session_id"]
        if event["tag"].startswith("files.claimed@"):
            names = [(data["worktree"], path) for path in data["paths"]]
            if any(holders.get(name, session) != session for name in names):
                yield f"position {event['position']} grants {session} what another holds"
            holders |= dict.fromkeys(names, session)
        elif event["tag"].startswith("claims.released@"):
            ended = {(data["worktree"], path) for path in data["paths"]}
            for name in [
                name
                for name, holder in holders.items()
                if holder == session and (data.get("is_all") or name in ended)
            ]:
                del holders[name]
