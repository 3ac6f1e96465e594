"""omegad as a benchmark asks it: a client's calls, through the socket."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from omegad.runtime.errors import Invalid, Refused
from tests.bench.recall.scores import Found
from tests.bench.recall.sets import Question, Text

TEXT_CHARACTERS_MAX = 8_192  # of a question
RESULTS_MAX = 100

Call = Callable[..., Any]


class Omegad:
    """A daemon, what it was told, and how that went."""

    def __init__(self, call: Call, *, is_served: bool) -> None:
        """Take `Client.call`; *is_served* asks for what agents are shown, else for as many as the limit."""
        self._call, self._is_served = call, is_served
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self.refused = 0
        self.degraded = 0
        self.silent = 0

    @property
    def merged(self) -> int:
        """How many texts were not kept as memories of their own."""
        return sum(len(keys) - 1 for keys in self._keys.values())

    def put(self, text: Text) -> None:
        """Have a text remembered."""
        given = {
            "session_id": text.session_id,
            "project": text.project,
            "referenced_date": text.said and text.said.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        known = {name: value for name, value in given.items() if value}
        try:
            answer = self._call("memory.store", content=text.content, event_type="memory", **known)
        except (Invalid, Refused):  # too large, or noise
            self.refused += 1
        else:
            self._keys[answer["memory_id"]].add(text.key)

    def ask(self, question: Question, limit: int) -> dict[str, Found]:
        """Return its results, by its name."""
        answer = self._call(
            "memory.query",
            text=question.text[:TEXT_CHARACTERS_MAX],
            limit=min(limit, RESULTS_MAX),
            all=not self._is_served,
            **({"project": question.project} if question.project else {}),
        )
        self.degraded += answer["degraded"] is not None
        self.silent += not answer["results"]
        return {"omegad": [frozenset(self._keys[hit["memory_id"]]) for hit in answer["results"]]}
