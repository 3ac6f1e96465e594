"""The command line: `omegad`, and `python -m omegad`."""

import os
import sys

try:
    from omegad.runtime import interrupting

    interrupting.end_at_once()
except KeyboardInterrupt:
    os._exit(130)


def main() -> int:
    """Do what the process's arguments ask for, and return the exit status."""
    from omegad.edge.cli import main as run  # noqa: PLC0415  Ctrl-C is looked after first

    status = run()
    interrupting.end_at_once(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
