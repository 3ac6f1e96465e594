"""`python -m tests.torture [--kills N] [--acknowledged N] [--seed TEXT]`."""

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.torture.run import Limits, Torture, refusals


def main() -> None:
    """Torture a daemon, and end with 1 where something acknowledged was lost, doubled, or came back after
    its erasure.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description="Kill a daemon at random moments of mixed work."
    )
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument(
        "--acknowledged",
        type=int,
        help="requests that must be acknowledged in all; 100 a kill where left out",
    )
    parser.add_argument(
        "--seed",
        default=secrets.token_hex(4),
        help="names the same choices again; moments differ all the same",
    )
    parser.add_argument("--folder", type=Path, help="where the homes are, which are kept then")
    options = parser.parse_args()
    acknowledged = options.acknowledged or 100 * options.kills
    folder = options.folder or Path(tempfile.mkdtemp(prefix="omegad-torture-"))
    folder.mkdir(parents=True, exist_ok=True)
    _tell(f"seed {options.seed}, in {folder}")
    torture = Torture(folder, options.seed, _tell)
    wrong = torture.run(Limits(options.kills, acknowledged))
    _tell(f"refused meanwhile:\n{refusals(torture)}")
    _tell("\n".join(wrong) or "nothing lost, nothing doubled, nothing came back; log and views verify")
    if not wrong and not options.folder:
        shutil.rmtree(folder)
    sys.exit(bool(wrong))


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is what the program is run for


if __name__ == "__main__":
    main()
