"""`claims`: agents that race for the same twenty files, while the daemon and some of them are killed; then
one of them alone.
"""

import tempfile
from pathlib import Path

from tests.acceptance.conftest import homes_in
from tests.acceptance.test_claims import Race
from tests.acceptance.test_claims import run as race_through
from tests.bench.figures import Effort, Report, of_calls

AGENTS = 50
PAUSE_S = 0.4
"""How long an agent works at most on what it holds, and between two claims; real ones take a hundred times
as long.
"""


def run(effort: Effort, report: Report) -> None:
    """Measure the answer to a claim, granted or refused; the race ends with the proof that nobody ever
    held what another did.
    """
    claims, kills = effort.pick(10_000, 1_000), effort.pick(20, 4)
    with tempfile.TemporaryDirectory() as folder, homes_in(Path(folder)) as make:
        for name, agents, count, pause_s, killed in (
            (f"{AGENTS} agents", AGENTS, claims, PAUSE_S, kills),
            ("5 agents", 5, claims // 10, 0.05, 0),
        ):
            race = Race(make().start(), Path(folder) / name.replace(" ", "-"), agents, count, pause_s)
            race_through(race, killed, every_s=3.0, within_s=900.0)
            granted = race.check()
            took = [answer.ms for answer in race.answers]
            note = f"{len(took)} answers, {granted} granted, {killed} kills, none held twice"
            report(of_calls(f"claim.files, {name}", took, goal="p50 <= 5 ms", note=note))
