"""PrecisionMemBench: 35 beliefs of one person, and 77 cases that say what must be found and that nothing else
may be.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.recall.scores import Found
from tests.bench.recall.sets import Benchmark, Measure, Question, Store, Text, files, held

OWNER = "test-user"
BELIEFS_MAX = 20

Belief = Mapping[str, Any]


class Case(Question, frozen=True, kw_only=True):
    """A case: what it expects, and the beliefs of its user by id."""

    expect: Mapping[str, Any]
    scopes: tuple[str, ...]
    beliefs: Mapping[str, Belief]

    def of_scope(self, belief: Belief) -> bool:
        """Say whether a belief is of one of the case's scopes."""
        return any(scope in self.scopes for scope in belief["scope"])

    def pinned(self) -> list[str]:
        """Return what is always shown, which the harness and no memory decides."""
        return [
            key
            for key, one in self.beliefs.items()
            if one["pinned"]
            and one["type"] != "open_question"
            and not (one["superseded_by"] or one["resolved_at"])
            and self.of_scope(one)
        ]

    def relevant(self, found: Found) -> list[str]:
        """Return what the harness makes of the results: without what is pinned, with whom a relation is
        between, within the budget.
        """
        pinned = self.pinned()
        if not (self.text.strip() and self.limit):
            return []
        keys = [key for result in found for key in sorted(result) if key not in pinned]
        others = [
            other
            for key in keys
            if self.beliefs[key]["type"] == "relation"
            for other in self.beliefs[key].get("participants", ())
            if other in self.beliefs and other not in {*pinned, *keys} and self.of_scope(self.beliefs[other])
        ]
        return [*keys, *others][: max(0, self.limit - len(pinned))]

    def expected(self) -> set[str]:
        """Return what is to be found beside what is pinned."""
        wanted = self.expect.get("relevantBeliefs", {})
        if "shouldOnlyInclude" in wanted:
            return set(wanted["shouldOnlyInclude"])
        return {key for key in wanted.get("mustInclude", ()) if not self.beliefs[key]["pinned"]}

    def precision(self, found: Found) -> float | None:
        """Return the share of what is found that is to be; None where neither is anything."""
        relevant, expected = set(self.relevant(found)), self.expected()
        if not relevant:
            return 0.0 if expected else None
        return len(relevant & expected) / len(relevant)

    def recall(self, found: Found) -> float | None:
        """Return the share of what is to be found that is; None where nothing is."""
        expected = self.expected()
        return len(expected & set(self.relevant(found))) / len(expected) if expected else None

    def is_passed(self, found: Found) -> bool:
        """Say whether all that is asserted of beliefs holds; what is asserted of the persona and of pinned
        questions is the harness's own, and holds for every system.
        """
        wanted = self.expect.get("relevantBeliefs", {})
        relevant, pinned = set(self.relevant(found)), set(self.pinned()[: self.limit])
        shown, facts = relevant | pinned, self.expect.get("pinnedFacts", {})
        only = wanted.get("shouldOnlyInclude")
        return (
            shown.issuperset(wanted.get("mustInclude", ()))
            and shown.isdisjoint(wanted.get("mustExclude", ()))
            and (only is None or relevant == set(only))
            and pinned.issuperset(facts.get("mustInclude", ()))
            and pinned.isdisjoint(facts.get("mustExclude", ()))
        )


def load(folder: Path) -> Iterator[Store]:
    """Yield a store for each user who is asked about."""
    beliefs, cases = (
        held(files(folder, f"fixtures/{name}.json")[0]) for name in ("beliefs.seed", "retrieval.cases")
    )
    for user in dict.fromkeys(case.get("userId", OWNER) for case in cases):
        known = {one["_id"]: one for one in beliefs if one["user_id"] == user}
        texts = [Text(key=key, content=_content(one), project=one["scope"][0]) for key, one in known.items()]
        asked = [_case(case, known) for case in cases if case.get("userId", OWNER) == user]
        yield Store(name=user, texts=texts, questions=asked)


def _content(belief: Belief) -> str:
    parts = (belief["canonical_name"], *belief["aliases"], belief["content"], belief["why_it_matters"])
    return " ".join(part for part in parts if part)


def _case(case: Mapping[str, Any], beliefs: Mapping[str, Belief]) -> Case:
    return Case(
        text=case["query"],
        kind=case["category"],
        project=case["scope"][0],
        limit=case.get("budget", {}).get("maxBeliefs", BELIEFS_MAX),
        expect=case["expect"],
        scopes=tuple(case["scope"]),
        beliefs=beliefs,
    )


def _measure(name: str, of: Callable[[Case, Found], float | None], out_of: int = 100) -> Measure:
    def measured(store: Store, question: Question, found: Found) -> float | None:
        del store
        assert isinstance(question, Case)
        return of(question, found)

    return Measure(name=name, of=measured, out_of=out_of)


PRECISION = Benchmark(
    name="PrecisionMemBench",
    source="github.com/tenurehq/precisionMemBench",
    licence="MIT",
    definition=(
        "A memory is a belief (name, aliases, content, why it matters), a project its scope, a home a user; all"
        " are stored, superseded ones as well. The 77 cases of single turns, at most 20 results, as"
        " `retrieval.external.eval.test.ts` judges them; the 12 turns of its sessions are not run. omegad"
        " answers as it does to agents: what hardly answers beside the first is left out."
    ),
    load=load,
    measures=[
        _measure("precision", Case.precision),
        _measure("recall", Case.recall),
        _measure("passed of 77", lambda case, found: float(case.is_passed(found)), 77),
        _measure(
            "actively passed of 77",
            lambda case, found: float(case.is_passed(found) and bool(case.precision(found))),
            77,
        ),
    ],
    limit=BELIEFS_MAX,
    is_served=True,
    published={
        "precision": "Tenure 100, OKF 47, supermemory 22, agentmemory 17, yourmemory 17, Zep 9, Mem0 6, A-mem 6",
        "recall": "Tenure 100, OKF 91, supermemory 71, agentmemory 97, yourmemory 88, Zep 95, Mem0 99, A-mem 99",
        "passed of 77": "Tenure 77, OKF 36, gbrain 34, supermemory 21, yourmemory 21, Zep 9, Mem0 9, A-mem 9",
        "actively passed of 77": "Tenure 43, OKF 18, gbrain 5, supermemory 4, all others 0",
    },
    peers=(
        "[PrecisionMemBench](https://github.com/tenurehq/precisionMemBench#results): Tenure is its author's own"
        " system; OKF has a language model read files."
    ),
)
