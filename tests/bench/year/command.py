"""`python -m tests.bench year`."""

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import omegad
from omegad import daemon
from tests.bench.figures import machine
from tests.bench.peers.processes import PROC
from tests.bench.year import running
from tests.bench.year.events import Year, lived
from tests.bench.year.running import Made, Making, Rebuilt, Served
from tests.week.run import Week
from tests.week.sessions import scripted

WHOLE = 12_000_000
SESSIONS = 60
EVENT_BYTES = 6_000
"""Of the disk, about, for each event, its views being there twice for a while."""
CANNOT, TERMINATED = 2, 143


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, as `--json` writes it."""

    events: dict[str, int]
    made: list[Made]
    rebuilt: list[Rebuilt]
    served: Served
    files_mb: dict[str, float]


def main(arguments: Sequence[str]) -> int:
    """Make the log, measure, and print the tables; return 0, or 2 where it cannot be done here."""
    options = _options(arguments)
    place = Path(options.folder or tempfile.gettempdir())
    free, needed = shutil.disk_usage(place).free, options.events * EVENT_BYTES
    if free < needed or not PROC.is_dir():
        why = f"{needed / 1e9:.0f} GB may be needed below {place}, and {free / 1e9:.0f} GB are free"
        _tell(why if free < needed else "memory is read from /proc, which is not here")
        return CANNOT
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that nothing is left behind
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omegad-year-", dir=place)))
        year = Year(lived(options.shape or _lived_week(folder)), "year")
        home = folder / "home"
        home.mkdir(mode=0o700)
        making = Making(home, year, options.events, _tell)
        views = options.views or max(1, options.events // 10)
        daemon.run(lambda: making.run(sorted({max(1, views // 10), max(1, views // 3), views})))
        served = running.served(home, _tell)
        report = Report(
            events=dict(making.kinds.most_common()),
            made=making.made,
            rebuilt=making.rebuilt,
            served=served,
            files_mb={
                path.name: path.stat().st_size / 1e6 for path in sorted(home.iterdir()) if path.is_file()
            },
        )
    print(f"omegad {omegad.__version__}; {datetime.now(UTC):%Y-%m-%d}; {machine().line()}\n")
    for line in _lines(report):
        print(line)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    return 0


def _lived_week(folder: Path) -> Path:
    """Live the week of the script, and return its log."""
    _tell(f"a week of {SESSIONS} sessions gives the shape")
    week = folder / "week"
    week.mkdir()
    Week(week, scripted(), SESSIONS, lambda _: None).live()
    return week / "home" / "log.db"


def _lines(report: Report) -> Iterator[str]:
    whole = sum(report.events.values())
    yield "| events | appended a second | a second of CPU | log, MB | bytes an event |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    for made in report.made:
        rates = f"{made.events / made.seconds:,.0f} | {made.events / made.cpu_s:,.0f}"
        size = f"{made.log_mb:,.0f} | {made.log_mb * 1e6 / made.events:,.0f}"
        yield f"| {made.events:,} | {rates} | {size} |"
    yield ""
    yield "| events rebuilt | shown a second | in all, s | CPU, s | RSS, MB | views, MB | 12 M so, min (CPU) |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for one in report.rebuilt:
        took = f"{one.events / one.shown_s:,.0f} | {one.seconds:.0f} | {one.cpu_s:.0f}"
        sizes = f"{one.resident_mb:.0f} | {one.views_mb:,.0f}"
        times = WHOLE / one.events / 60
        estimate = f"{one.seconds * times:.0f} ({one.cpu_s * times:.0f})"
        yield f"| {one.events:,} | {took} | {sizes} | {estimate} |"
    yield ""
    served = report.served
    yield f"Start to the first answer {served.start_s:.2f} s, {served.resident_mb:.0f} MB then."
    yield f"`log verify`: {served.verified_s:.0f} s ({whole / served.verified_s:,.0f} events a second)" + (
        "." if served.is_verified else ", and it found the log broken."
    )
    before, after = served.log_mb
    yield (
        f"Retention: {sum(served.aged.values()):,} events, said in {served.due_s:.0f} s, gone in"
        f" {served.aged_s:.0f} s; {served.freed_mb:,.0f} MB of payloads freed, log.db {before:,.0f} MB before and"
        f" {after:,.0f} after; verified again in {served.verified_after_s:.0f} s"
        + ("." if served.is_verified_after else ", and found broken.")
    )
    yield f"Processor time, s: {', '.join(f'{what} {cpu:.1f}' for what, cpu in served.cpu_s.items())}."
    yield f"Files in the end, MB: {', '.join(f'{name} {size:,.0f}' for name, size in report.files_mb.items())}."
    yield f"Events: {', '.join(f'{tag} {many:,}' for tag, many in report.events.items())}."


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench year",
        description=(
            "Make the log of a year out of what a home lived through, by the daemon's own parts, and measure:"
            " appending, sizes, rebuilds at a tenth, a third and all of --views, start, verifying, retention."
            " Progress goes to stderr."
        ),
    )
    parser.add_argument(
        "--events",
        type=_positive,
        default=1_200_000,
        metavar="N",
        help=f"how many (1200000; a heavy year has {WHOLE})",
    )
    parser.add_argument(
        "--views", type=_positive, metavar="N", help="at how many events the views are built last (a tenth)"
    )
    parser.add_argument(
        "--shape",
        type=Path,
        metavar="LOG",
        help="a log.db that was lived; else tests.week's script is lived first",
    )
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the files are made, and removed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)
