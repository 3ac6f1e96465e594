"""The daemon of a week, whose clock a file moves and whose schedules look at it all the time:
`python -m tests.week.serve CLOCK`.
"""

import sys
from pathlib import Path

from omegad.edge.cli import main
from omegad.reactions.runner import Pace, Runner
from tests.acceptance.failing import set_clock

LOOKS_S = 0.02

if __name__ == "__main__":
    set_clock(Path(sys.argv[1]))
    Runner.__init__.__kwdefaults__ = {"pace": Pace(clock_s=LOOKS_S)}
    sys.exit(main(["serve"]))
