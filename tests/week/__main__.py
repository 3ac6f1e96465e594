"""`python -m tests.week [--transcripts FOLDER] [--sessions N] [--folder FOLDER]`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.week.run import Week
from tests.week.sessions import scripted, transcribed


def main() -> None:
    """Live a week, and end with 1 where something that should happen by itself did not, or log and views
    differ. What there was no occasion for, since nothing proved itself or nothing is to be compacted, is named.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.week", description="A week of agents' sessions, and what a person sees of it."
    )
    parser.add_argument("--transcripts", type=Path, help="transcripts of Claude Code instead of the script")
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--folder", type=Path, help="where the home is, which is kept then")
    options = parser.parse_args()
    sessions = transcribed(options.transcripts) if options.transcripts else scripted()
    with tempfile.TemporaryDirectory(prefix="omegad-week-") as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        lived = Week(folder, sessions, options.sessions, _tell).live()
    if lived.unshown:
        _tell(f"no occasion for: {', '.join(lived.unshown)}")
    _tell("\n".join(lived.wrong) or "all there was an occasion for happened by itself; log and views verify")
    sys.exit(bool(lived.wrong))


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is what the program is run for


if __name__ == "__main__":
    main()
