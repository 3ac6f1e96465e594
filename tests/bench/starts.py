"""`start`: from starting the process to the first answer, with a home of 1,000 memories.

The process is cold, the disk's cache is not. The memories' vectors stand in for the model's own, which would
take as long to search.
"""

import subprocess
import sys
import time
from pathlib import Path

from omegad.embedding.catalogue import MINILM, installed
from omegad.runtime.config import find_paths
from tests.bench import homes, texts
from tests.bench.figures import Effort, Report, of_rounds

MEMORIES = 1_000
QUESTION = "what did we say about the tests of the part that failed?"
IMPORTS = "import omegad.daemon"
MODEL_IMPORTS = f"{IMPORTS}; import omegad.embedding.session"


def run(effort: Effort, report: Report) -> None:
    """Measure without a model, and with one where it is installed; each in turns with an interpreter that
    only imports the same.
    """
    manifest = installed(find_paths().models, MINILM.name)
    rounds = effort.pick(7, 3)
    with homes.directory() as place:
        home = place / "home"
        homes.make_home(
            home, texts.notes(MEMORIES, "there"), manifest.embedder_id if manifest else homes.INSTANT_ID
        )
        _report(home, "none", IMPORTS, rounds, report)
        if manifest:
            _report(home, MINILM.name, MODEL_IMPORTS, rounds, report)
        else:
            print(f"start with a model: skipped, {MINILM.name} is not installed")


def _report(home: Path, model: str, imports: str, rounds: int, report: Report) -> None:
    starts = [(_imported(imports), *_start(home, model)) for _ in range(rounds)]
    bare, listening, answered, second = (list(values) for values in zip(*starts, strict=True))
    floors = {"an interpreter that imports the same": sorted(bare)[rounds // 2]}
    note = (
        f"it listened after {sorted(listening)[rounds // 2]:.2f} s; a second query took"
        f" {sorted(second)[rounds // 2] * 1e3:.1f} ms"
    )
    goal = "< 1 s" if model == "none" else "< 2 s"
    report(
        of_rounds(f"start to first answer, model {model}", "s", answered, goal=goal, floors=floors, note=note)
    )


def _imported(imports: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", imports], check=True)
    return time.perf_counter() - started


def _start(home: Path, model: str) -> tuple[float, float, float]:
    """Return the seconds from the start until a connection, and until the first answer, and those that a
    second answer takes.
    """
    with homes.served(home, model) as running, homes.connected(running) as client:
        listening = time.perf_counter()
        answer = client.call("memory.query", text=QUESTION, mode="hybrid" if model == "none" else "semantic")
        answered = time.perf_counter()
        client.call("memory.query", text="another question about the build")
        second = time.perf_counter() - answered
        assert isinstance(answer, dict)
        assert (answer["degraded"] is None) == (model != "none"), answer["degraded"]
    return listening - running.started_s, answered - running.started_s, second
