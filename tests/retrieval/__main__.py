"""`python -m tests.retrieval [--socket PATH] [--json FILE] [--verbose]`."""

import argparse
import sys
from pathlib import Path

import msgspec

from omegad.client import Client
from omegad.runtime.errors import NoDaemon
from tests.retrieval import asking, report
from tests.retrieval.asking import NoModel, Run
from tests.retrieval.scoring import shortfalls

PATIENCE_S = 60.0
BELOW_FLOOR = 1
NO_MODEL = 2
NO_DAEMON = 3


def main() -> int:
    """Score a daemon; return 0, 1 where a floor is missed, 2 where there is no model, 3 where no daemon
    answers.
    """
    options = _options()
    try:
        run = _run(options.socket)
    except NoModel as error:
        sys.stderr.write(f"{error}\n")
        return NO_MODEL
    except NoDaemon as error:
        sys.stderr.write(f"{error}\n")
        return NO_DAEMON
    sys.stdout.writelines(f"{line}\n" for line in report.lines(run, is_verbose=options.verbose))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run)) + b"\n")
    found = shortfalls(run.card)
    sys.stdout.writelines(f"MISSED: {line}\n" for line in found)
    return BELOW_FLOOR if found else 0


def _run(socket: Path | None) -> Run:
    with Client(socket, timeout_s=PATIENCE_S) if socket else asking.own_daemon() as client:
        return asking.run(client)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.retrieval",
        description="Score how well memories are found, with a set of the project's own.",
    )
    parser.add_argument(
        "--socket",
        type=Path,
        metavar="PATH",
        help="ask the daemon there, which keeps the set; else one is started on a home of its own",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="also write everything found, question by question, to a file",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="also print each miss with what was returned instead"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
