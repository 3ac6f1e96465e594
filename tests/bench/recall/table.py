"""A run as a table in Markdown, ready to be put into a page."""

from collections.abc import Iterator, Mapping, Sequence

from tests.bench.recall.running import ASIDE, Result, Row
from tests.bench.recall.sets import Benchmark

ASKED = ("omegad", "BM25", "cosine", "blend")


def lines(results: Sequence[Result], benchmarks: Mapping[str, Benchmark]) -> Iterator[str]:
    """Yield the table, the best of each row in bold, and what is to be known of each benchmark. Figures of
    one kind of question are shown where others publish them, and those of what is kept aside.
    """
    yield f"| benchmark | measure | {' | '.join(ASKED)} | what others publish |"
    yield f"| --- | --- |{' ---: |' * len(ASKED)} --- |"
    for result in results:
        counted = {row.measure: row.questions for row in result.rows if not row.kind}
        shown = [
            row
            for row in result.rows
            if not row.kind or row.published or (row.kind == ASIDE and row.questions < counted[row.measure])
        ]
        yield from (_row(result.name if place == 0 else "", row) for place, row in enumerate(shown))
    yield ""
    for result in results:
        benchmark = benchmarks[result.name]
        told = f"Others: {benchmark.peers}" if benchmark.peers else ""
        yield f"- **{result.name}** ({result.conditions()}). {benchmark.definition} {told}".rstrip()


def _row(name: str, row: Row) -> str:
    best = max(row.values.values())
    shown = [f"{row.values[one]:.{0 if row.out_of != 100 else 1}f}" for one in ASKED]
    marked = [
        f"**{text}**" if row.values[one] == best else text for one, text in zip(ASKED, shown, strict=True)
    ]
    measure = f"{row.measure}, {row.kind}" if row.kind else row.measure
    return f"| {name} | {measure} | {' | '.join(marked)} | {row.published} |"
