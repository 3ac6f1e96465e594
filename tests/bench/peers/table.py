"""The table of a run, in Markdown."""

from collections.abc import Iterator

from tests.bench.peers.measuring import FLOOR, STORE, Outcome, Row
from tests.bench.peers.systems import HYBRID, MODES, SEMANTIC

HEAD = ("memories", "system", STORE, *MODES, "found", "refused", "RSS", "disk", "start")
ABSENT = "-"


def lines(outcome: Outcome) -> Iterator[str]:
    """Return its lines: milliseconds waited / of processor time, of questions in percent what was found,
    MB, MB, seconds.
    """
    yield "| " + " | ".join(HEAD) + " |"
    yield "| ---: | --- |" + " ---: |" * (len(HEAD) - 2)
    before = 0
    for row in outcome.rows:
        size = f"{row.memories:,}" if row.memories != before else ""
        before = row.memories
        yield "| " + " | ".join([size, *_cells(row)]) + " |"
    for system, why in outcome.failures.items():
        yield f"\n{system} was not measured further: {why}"


def _cells(row: Row) -> Iterator[str]:
    yield row.system
    for kind in (STORE, *MODES):
        # The floor of a question is the same in every mode that embeds it.
        is_alike = row.system == FLOOR and kind == SEMANTIC
        cost = row.costs.get(HYBRID if is_alike else kind)
        yield f"{cost.wall_ms:.1f} / {cost.cpu_ms:.1f}" if cost else ABSENT
    yield (
        " ".join(f"{row.found[mode]:.0%}" if mode in row.found else ABSENT for mode in MODES)
        if row.found
        else ABSENT
    )
    yield ABSENT if row.system == FLOOR else f"{row.refused:,}"
    for value, digits in ((row.resident_mb, 0), (row.disk_mb, 1), (row.start_s, 2)):
        yield ABSENT if value is None else f"{value:.{digits}f}"
