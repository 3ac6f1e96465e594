"""A run in words: a table of kinds, the shares beside their floors, and every miss where they are wanted."""

from collections import Counter
from collections.abc import Iterator

from tests.retrieval.asking import Run
from tests.retrieval.scoring import CEILINGS, FLOORS, Answered, Recall, Scorecard

LABELS = {
    "recall_5": "R@5",
    "identifiers": "identifiers found in the first five",
    "newest_above_stale": "newest above stale",
    "unanswerable_abstained": "unanswerable abstained",
    "answerable_abstained": "answerable abstained",
}


def lines(run: Run, *, is_verbose: bool) -> Iterator[str]:
    """Yield the report, line by line."""
    yield f"{len(run.kept)} memories, {len(run.answers)} questions"
    yield ""
    yield f"{'kind':<14}{'questions':>10}{'R@5':>8}{'R@10':>8}{'MRR':>8}"
    for kind, recall in (*run.card.kinds.items(), ("all", run.card.overall)):
        yield _row(kind, recall)
    yield ""
    yield from _shares(run.card)
    yield f"{'query p50':<40}{run.card.query_p50_ms:>8.1f} ms"
    if run.degraded:
        yield f"{run.degraded} answers were degraded: this is not what the model would find"
    yield from _outcomes(run, is_verbose=is_verbose)
    if is_verbose:
        for one in run.answers:
            if one.is_miss():
                yield from _miss(one)


def _row(kind: str, recall: Recall) -> str:
    return f"{kind:<14}{recall.questions:>10}{100 * recall.recall_5:>8.1f}{100 * recall.recall_10:>8.1f}{recall.mrr:>8.3f}"


def _shares(card: Scorecard) -> Iterator[str]:
    for name, label in LABELS.items():
        value = getattr(card, name)
        shown = "-" if value is None else f"{100 * value:.1f}"
        bound = (
            f"at least {FLOORS[name]:g}"
            if name in FLOORS
            else f"at most {CEILINGS[name]:g}"
            if name in CEILINGS
            else ""
        )
        yield f"{label:<40}{shown:>8} %  {bound}".rstrip()


def _outcomes(run: Run, *, is_verbose: bool) -> Iterator[str]:
    counted = Counter(one.outcome for one in run.kept)
    yield "stores answered: " + ", ".join(f"{count} {outcome}" for outcome, count in counted.most_common())
    first = {one.memory_id: one.key for one in reversed(run.kept)}
    for one in run.merged():
        yield f"    {one.key} is {one.outcome}: {first[one.memory_id]} answers for it"
    for one in run.altered():
        yield f"    {one.key} has lost what looks like a secret: {', '.join(one.redacted)}"
    for one in run.kept if is_verbose else ():
        if one.contradicts:
            yield (
                f"    {one.key} contradicts {', '.join(first.get(other, other) for other in one.contradicts)}"
            )


def _miss(one: Answered) -> Iterator[str]:
    question = one.question
    wanted = ", ".join(question.gold) or "nothing"
    if question.stale:
        wanted += f", before {question.stale}"
    yield ""
    yield f"{question.kind}: {question.text}" + (f"  [{question.project}]" if question.project else "")
    yield f"    wanted: {wanted}" + ("; abstained" if one.abstained else "")
    for place, hit in enumerate(one.hits, 1):
        mark = "*" if hit.memory_id in one.golds else " "
        yield (
            f"  {mark} {place:>2}. {hit.score:.3f} {', '.join(hit.keys) or '(not of the set)'}"
            f" {hit.memory_id}"
        )
