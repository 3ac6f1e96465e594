"""`python -m tests.bench [NAME …] [--quick] [--large] [--json FILE]`, and `python -m tests.bench recall` or
`peers`.
"""

import argparse
import os
import sys
import time
from functools import partial
from pathlib import Path

import msgspec

from tests.bench import (
    appends,
    claims,
    greedy,
    live_rebuilds,
    memories,
    posts,
    rebuilds,
    resident,
    sharing,
    sockets,
    starts,
)
from tests.bench.figures import Effort, Figure, Machine, machine, table_row
from tests.bench.peers import command as peers
from tests.bench.recall import command as recall
from tests.bench.year import command as year

BENCHMARKS = {
    "append": appends.run,
    "socket": sockets.run,
    "memory": memories.run,
    "rebuild": rebuilds.run,
    "rebuild-live": live_rebuilds.run,
    "start": starts.run,
    "rss": resident.run,
    "claims": claims.run,
    "greedy": greedy.run,
    "post": posts.run,
    "sharing": sharing.run,
}


class Report(msgspec.Struct):
    """A whole run, as `--json` writes it."""

    machine: Machine
    figures: dict[str, list[Figure]] = {}


def main() -> None:
    """Run the benchmarks named, or all of them."""
    options = _options()
    effort = Effort(quick=options.quick, large=options.large)
    report = Report(machine())
    print(report.machine.line())
    for name in options.names or BENCHMARKS:
        started, found = time.perf_counter(), report.figures.setdefault(name, [])
        print(f"\n{name}")
        BENCHMARKS[name](effort, partial(_take, found))
        print(f"    ({time.perf_counter() - started:.0f} s; load average then {os.getloadavg()[0]:.2f})")
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def _take(found: list[Figure], figure: Figure) -> None:
    found.append(figure)
    print(table_row(figure), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure omegad beside floors of the same run; nothing passes or fails.",
        epilog=(
            "Apart from these, each with a --help of its own: `recall --data DIR`, published benchmarks of memory"
            " systems, and `peers`, other memory services beside this one."
        ),
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        choices=[*BENCHMARKS, []],
        help=f"of {', '.join(BENCHMARKS)}; all, when none is given",
    )
    parser.add_argument(
        "--quick", action="store_true", help="measure less: under a minute in all, and less steady"
    )
    parser.add_argument(
        "--large",
        action="store_true",
        help="also measure with 100,000 memories, which takes minutes to prepare",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    return parser.parse_args()


if __name__ == "__main__":
    apart = {"peers": peers.main, "recall": recall.main, "year": year.main}
    if sys.argv[1:2] and sys.argv[1] in apart:
        sys.exit(apart[sys.argv[1]](sys.argv[2:]))
    main()
