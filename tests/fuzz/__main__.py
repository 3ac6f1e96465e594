"""`python -m tests.fuzz [--operations N] [--frames N] [--seed TEXT]`."""

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.fuzz.run import Fuzz, Limits


def main() -> None:
    """Fuzz a daemon, and end with 1 where a promise is broken."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description="Send hostile operations and frames to every door of a daemon.",
    )
    parser.add_argument("--operations", type=int, default=40_000)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument(
        "--seed",
        default=secrets.token_hex(4),
        help="names the same choices again; what happens at once differs all the same",
    )
    parser.add_argument("--folder", type=Path, help="where the home is, which is kept then")
    parser.add_argument("--model", default="none", help="which model embeds")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="omegad-fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    _tell(f"seed {options.seed}, in {folder}")
    wrong = Fuzz(folder, options.seed, _tell, options.model).run(Limits(options.operations, options.frames))
    _tell("\n".join(wrong) or "every answer is an answer, nobody else noticed; log and views verify")
    if not wrong and not options.folder:
        shutil.rmtree(folder)
    sys.exit(bool(wrong))


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is what the program is run for


if __name__ == "__main__":
    main()
