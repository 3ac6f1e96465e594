"""`python -m tests.bench peers`."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import omegad
from omegad.embedding.catalogue import MINILM
from omegad.runtime.config import find_paths
from tests.bench.figures import machine
from tests.bench.peers import environments, measuring, model, table
from tests.bench.peers.mcp import PeerFailed
from tests.bench.peers.measuring import Floor, Plan
from tests.bench.peers.processes import PROC
from tests.bench.peers.systems import PEERS, McpSystem, Omegad, OmegadByMcp, System

SIZES, LIMIT_S = [1_000, 10_000], 1_800.0
CANNOT, TERMINATED = 2, 143


def main(arguments: Sequence[str]) -> int:
    """Measure, and print the table; return 0, or 2 where nothing can be measured here."""
    options = _options(arguments)
    models = find_paths().models
    if not PROC.is_dir():
        _tell("processor time and memory are read from /proc, which is not here")
        return CANNOT
    try:
        floor = Floor(models)
    except FileNotFoundError as error:
        _tell(str(error))
        return CANNOT
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that nothing is left behind
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omegad-peers-")))
        cache = options.cache or place / "cache"
        model.write(models / MINILM.name, place / "model")
        failures: dict[str, str] = {}
        systems = list(_systems(options, cache, place, failures))
        plan = Plan(sizes=options.sizes, limit_s=options.limit, rounds=options.rounds)
        outcome = measuring.run(systems, floor, plan, _tell)
        outcome.failures = failures | outcome.failures
    said = "; ".join(f"{system.name} {system.version}" for system in systems)
    print(f"{said}; {datetime.now(UTC):%Y-%m-%d}; {machine().line()}\n")
    for line in table.lines(outcome):
        print(line)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(outcome)) + b"\n")
    return 0


def _systems(
    options: argparse.Namespace, cache: Path, place: Path, failures: dict[str, str]
) -> Iterator[System]:
    """Install and make all that are wanted; what cannot be is told, and among the *failures*."""
    yield Omegad("omegad", omegad.__version__, place / "socket", sys.executable)
    yield OmegadByMcp("omegad, MCP", omegad.__version__, place / "mcp", sys.executable)
    if options.before:
        try:
            source = environments.checkout(options.before, cache)
            programs = environments.made(cache / f"omegad-{source.name}", sys.executable, str(source))
            version = environments.version(programs, "omegad")
        except PeerFailed as error:
            failures["omegad before"] = str(error)
            _tell(f"omegad before: {error}")
        else:
            python = str(programs / "python")
            yield Omegad("omegad before", f"{version} ({options.before})", place / "before", python)
    for adapter in (peer for peer in PEERS if peer.name in options.only):
        try:
            _tell(f"{adapter.name}: installing {adapter.requirement}")
            python = options.python or environments.interpreter()
            programs = environments.made(cache / adapter.name, python, adapter.requirement)
            version = environments.version(programs, adapter.package)
        except PeerFailed as error:
            failures[adapter.name] = str(error)
            _tell(f"{adapter.name}: {error}")
        else:
            yield McpSystem(adapter, version, place / adapter.name, programs, place / "model")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    names = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench peers",
        description=(
            "Measure omegad beside other memory services for agents, with the same model and the same notes, in"
            " turns within one run, and print a table in Markdown. Each is installed from the Python package"
            " index into an environment of its own, and asked through its server of MCP; omegad through its"
            " socket and through `omegad mcp`. Progress goes to stderr."
        ),
        epilog="10,000 memories take half an hour on two processors, 100,000 most of a day.",
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=_size,
        default=SIZES,
        metavar="N",
        help="at how many memories (1000 10000)",
    )
    parser.add_argument(
        "--only", nargs="*", choices=names, default=names, metavar="PEER", help=f"of {', '.join(names)}"
    )
    parser.add_argument(
        "--before",
        metavar="PATH_OR_REVISION",
        help="another omegad to measure beside this one: a folder with its source, or a commit of this repository",
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="keep environments there, and use those that are there"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT_S,
        metavar="SECONDS",
        help="how long filling a system up to the next size may take (1800); what is slower is left out, and said",
    )
    parser.add_argument(
        "--rounds", type=int, default=measuring.ROUNDS, help="rounds of 20 calls of each kind (5)"
    )
    parser.add_argument(
        "--python", metavar="PROGRAM", help="which Python the peers' environments are made of"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    return parser.parse_args(arguments)


def _size(text: str) -> int:
    size, least = int(text), measuring.ROUNDS * measuring.CALLS * 4
    if size < least:
        raise argparse.ArgumentTypeError(f"at least {least}, so that no question is asked twice")
    return size
