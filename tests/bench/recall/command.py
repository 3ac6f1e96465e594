"""`python -m tests.bench recall --data DIR`."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import omegad
from omegad.embedding import catalogue
from omegad.runtime.config import find_paths
from omegad.runtime.errors import OmegadError
from omegad.runtime.interrupting import INTERRUPTED
from tests.bench.figures import Machine, machine
from tests.bench.recall import plain, running, table
from tests.bench.recall.beam import BEAM
from tests.bench.recall.devmembench import DEVMEMBENCH
from tests.bench.recall.locomo import LOCOMO
from tests.bench.recall.longmemeval import LONGMEMEVAL
from tests.bench.recall.memdaily import MEMDAILY
from tests.bench.recall.precision import PRECISION
from tests.bench.recall.realmem import REALMEM
from tests.bench.recall.realtalk import REALTALK
from tests.bench.recall.running import Result
from tests.bench.recall.sets import Missing

BENCHMARKS = {
    "locomo": LOCOMO,
    "longmemeval": LONGMEMEVAL,
    "beam": BEAM,
    "realtalk": REALTALK,
    "realmem": REALMEM,
    "memdaily": MEMDAILY,
    "precision": PRECISION,
    "devmembench": DEVMEMBENCH,
}
NOT_MEASURED, NO_MODEL = 1, 2


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run, as `--json` writes it."""

    at: str
    version: str
    models: list[str]
    machine: Machine
    part: str
    sample: int | None
    results: list[Result]
    missing: dict[str, str]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks named, or all; return 0, 1 where none has its data or one went wrong, 2 where there
    is no model, or 130 where it was interrupted. What was measured until then is printed.
    """
    options = _options(arguments)
    models = find_paths().models
    try:
        embed = plain.embedder(models)
    except FileNotFoundError as error:
        _tell(str(error))
        return NO_MODEL
    results, missing, status = list[Result](), dict[str, str](), 0
    for key in options.only or BENCHMARKS:
        benchmark = BENCHMARKS[key]
        try:
            stores, of = running.chosen(benchmark, options.data, options.part, options.sample)
        except Missing as error:
            missing[key] = f"{error}; its data: {benchmark.source} (licence: {benchmark.licence})"
            _tell(f"{benchmark.name} is left out: {missing[key]}")
            continue
        try:
            results.append(running.run(benchmark, stores, of, embed, _tell))
        except KeyboardInterrupt:
            status, missing[key] = INTERRUPTED, "it was interrupted"
            break
        except (OmegadError, RuntimeError) as error:
            status, missing[key] = NOT_MEASURED, f"omegad went wrong: {error}"
            _tell(f"{benchmark.name} is left out: {missing[key]}")
        _write(options, results, missing)
    if results:
        _print(options, models, results, missing)
        return status
    _tell("nothing was measured" + ("" if status else f": {options.data} holds the data of none of these"))
    return status or NOT_MEASURED


def _print(options: argparse.Namespace, models: Path, results: list[Result], missing: dict[str, str]) -> None:
    installed = [one.name for one in catalogue.ALL if catalogue.installed(models, one.name)]
    print(
        f"omegad {omegad.__version__}, {datetime.now(UTC):%Y-%m-%d}, {' and '.join(installed)};"
        f" {'what is kept aside as well' if options.part == 'all' else 'without what is kept aside'}"
        + (f"; at most {options.sample} homes of each, by a fixed seed" if options.sample else "")
        + "; percent unless said otherwise\n"
    )
    for line in table.lines(results, {one.name: one for one in BENCHMARKS.values()}):
        print(line)
    for key, why in missing.items():
        print(f"- **{BENCHMARKS[key].name}** is left out: {why}")


def _write(options: argparse.Namespace, results: list[Result], missing: dict[str, str]) -> None:
    """Write what there is so far: a long run that is ended has told of what it was through with."""
    if options.json:
        models = find_paths().models
        report = Report(
            at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=omegad.__version__,
            models=[one.name for one in catalogue.ALL if catalogue.installed(models, one.name)],
            machine=machine(),
            part=options.part,
            sample=options.sample,
            results=results,
            missing=missing,
        )
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench recall",
        description=(
            "Ask omegad, BM25, cosine and their blend what published benchmarks of memory systems ask, and print"
            " a table in Markdown. Progress goes to stderr."
        ),
        epilog="Where the data is: "
        + "; ".join(f"{key}: {one.source}" for key, one in BENCHMARKS.items())
        + ". A benchmark whose data is missing is left out.",
    )
    parser.add_argument(
        "--data",
        type=_folder,
        required=True,
        metavar="DIR",
        help="holds checkouts of the benchmarks' repositories",
    )
    parser.add_argument(
        "--only", nargs="+", choices=BENCHMARKS, metavar="NAME", help=f"of {', '.join(BENCHMARKS)}"
    )
    parser.add_argument(
        "--part",
        choices=("dev", "all"),
        default="all",
        help="dev leaves out what is kept aside from work on the ranking; all, the default, takes hours",
    )
    parser.add_argument(
        "--sample", type=_positive, metavar="N", help="at most N homes of each, chosen by a fixed seed"
    )
    parser.add_argument(
        "--json", type=_file, metavar="FILE", help="also write all figures, by kind, to a file"
    )
    return parser.parse_args(arguments)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text}")
    return Path(text)


def _file(text: str) -> Path:
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder, or in none")
    return path


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of homes")
    return int(text)
