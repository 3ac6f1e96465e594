"""The run with peers that are processes of their own and keep lines in a file, what their tools say taken
apart as the real ones say it, and the model that they are handed.
"""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from omegad.embedding.catalogue import MINILM, installed
from omegad.embedding.session import Session
from omegad.runtime.config import find_paths
from tests.acceptance.conftest import require_model
from tests.bench import texts
from tests.bench.peers import environments, measuring, model, systems, table
from tests.bench.peers.mcp import PeerFailed, StdioServer
from tests.bench.peers.measuring import Cost, Outcome, Plan, Row
from tests.bench.peers.processes import cpu_ms, files_mb, resident_mb
from tests.bench.peers.systems import HYBRID, WORDS, Adapter, McpSystem

PATIENCE_S = 30.0


class NoModel:
    """Embeds nothing, in no time."""

    def store(self, _note: texts.Note) -> str:
        return ""

    def ask(self, _mode: str, _note: texts.Note) -> list[str]:
        return []


def peer(folder: Path, name: str, *how: str) -> McpSystem:
    adapter = Adapter(
        name=name,
        package="",
        requirement="",
        command=("python", str(Path(__file__).with_name("fake_peer.py")), *how),
        model="cache/model",
        store=lambda note: ("keep", {"content": note.content}),
        asks={HYBRID: lambda note: ("find", {"query": note.question})},
        result=re.compile(r"(?m)^\d+\. "),
    )
    programs, given = folder / "bin", folder / "model"
    for made in (programs, given):
        made.mkdir(exist_ok=True)
    (given / "model.onnx").write_bytes(bytes(1_000_000))
    if not (programs / "python").exists():
        (programs / "python").symlink_to(sys.executable)
    return McpSystem(adapter, "1.2.3", folder / name, programs, given)


def test_peers_are_measured_in_turns_and_one_that_fails_stops_none_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "SETTLE_S", 0.0)
    monkeypatch.setattr(measuring, "STARTS", 1)
    monkeypatch.setattr(systems, "ANSWER_S", 1.0)
    there = [peer(tmp_path, name, name) for name in ("sound", "refuse", "regret", "mute", "die")]
    told = list[str]()
    plan = Plan(sizes=[40, 60], limit_s=PATIENCE_S, rounds=2, calls=5)
    outcome = measuring.run(there, NoModel(), plan, told.append)
    assert [(row.memories, row.system) for row in outcome.rows] == [
        (size, name) for size in (40, 60) for name in (measuring.FLOOR, "sound")
    ]
    assert set(outcome.failures) == {"refuse", "regret", "mute", "die"}
    assert (
        "did not take 2 of 3 notes, this one since keep: there is one like it" in outcome.failures["refuse"]
    )
    assert "did not take 2 of 3 notes, this one since keep: Error: no more" in outcome.failures["regret"]
    assert "no answer in time" in outcome.failures["mute"]
    assert "the disk is gone" in outcome.failures["die"]
    sound = outcome.rows[-1]
    assert sound.found[HYBRID] > 0.5
    assert sound.refused == 0
    assert set(sound.costs) == {measuring.STORE, HYBRID}
    assert sound.disk_mb is not None
    assert sound.disk_mb < 0.5  # without the model
    assert all(one.processes() for one in there)
    assert not any(Path(f"/proc/{pid}").exists() for one in there for pid in one.processes())


def test_what_is_too_slow_is_said_to_have_come_so_far(tmp_path: Path) -> None:
    plan = Plan(sizes=[40], limit_s=0.0, rounds=1, calls=1)
    outcome = measuring.run([peer(tmp_path, "slow")], NoModel(), plan, lambda _: None)
    assert outcome.failures == {"slow": "the time was over when it had 0 memories"}


def test_a_server_that_does_not_start_says_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such backend')"]
    with pytest.raises(PeerFailed, match="no such backend"):
        StdioServer(command, os.environ, tmp_path, PATIENCE_S)


def test_results_are_taken_apart_as_each_peer_says_them() -> None:
    omega = (
        "Results: 2\n## 1. [decision] `mem-1` (str: 1.00)\nUse pnpm.\n*2026*\n\n## 2. [memory] `mem-2`\nNo.\n"
    )
    service = "Found 2 memories:\n\n1. Use pnpm.\n   Hash: fc\n\n2. No.\n   Hash: 0c\n"
    for adapter, said in ((systems.OMEGA_MEMORY, omega), (systems.MCP_MEMORY_SERVICE, service)):
        found = [one.splitlines()[0] for one in adapter.result.split(said)[1:]]
        assert found == ["Use pnpm.", "No."]


def test_the_table_says_what_was_measured_and_what_was_not() -> None:
    rows = [
        Row(memories=1_000, system=measuring.FLOOR, costs={"store": Cost(7.5, 7.6), HYBRID: Cost(2.1, 2)}),
        Row(
            memories=1_000,
            system="one",
            costs={"store": Cost(14.04, 18), HYBRID: Cost(9, 12), WORDS: Cost(4, 5)},
            found={HYBRID: 0.99, WORDS: 1.0},
            refused=3,
            resident_mb=151.6,
            disk_mb=10.04,
            start_s=1.234,
        ),
    ]
    said = list(table.lines(Outcome(rows=rows, failures={"two": "it ended"})))
    assert (
        said[2] == "| 1,000 | embedding alone | 7.5 / 7.6 | 2.1 / 2.0 | 2.1 / 2.0 | - | - | - | - | - | - |"
    )
    assert (
        said[3]
        == "|  | one | 14.0 / 18.0 | 9.0 / 12.0 | - | 4.0 / 5.0 | 99% - 100% | 3 | 152 | 10.0 | 1.23 |"
    )
    assert said[4] == "\ntwo was not measured further: it ended"


def test_what_processes_and_folders_take_is_read(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_bytes(bytes(2_000_000))
    assert files_mb(tmp_path) == 2
    assert files_mb(tmp_path, but=[tmp_path / "kept"]) == 0
    assert resident_mb([os.getpid()]) > 10
    assert cpu_ms([os.getpid()]) > 10
    assert (cpu_ms([2**22 + 1]), resident_mb([2**22 + 1])) == (0, 0)


def test_what_cannot_be_installed_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed, match="no-such-python"):
        environments.made(tmp_path / "environment", "no-such-python", "a-package")
    with pytest.raises(PeerFailed, match="rev-parse"):
        environments.checkout("no-such-revision", tmp_path)
    assert environments.checkout(str(tmp_path), tmp_path / "unused") == tmp_path


@pytest.mark.model
def test_the_model_that_peers_are_handed_gives_the_vectors_that_omegad_computes(tmp_path: Path) -> None:
    require_model()
    import onnxruntime  # noqa: PLC0415  slow to load, and only here

    models = find_paths().models
    manifest = installed(models, MINILM.name)
    assert manifest
    own = Session(models / MINILM.name, manifest)
    model.write(models / MINILM.name, tmp_path)
    exported = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    text = "The nightly export times out unless fetch_size is 500"
    ids = own._given(text)["input_ids"]
    padded = np.concatenate([ids, np.zeros(7, np.int64)])[None]
    mask = (np.arange(padded.shape[1]) < len(ids)).astype(np.int64)[None]
    (hidden,) = exported.run(None, {"input_ids": padded, "attention_mask": mask})
    assert np.asarray(hidden).shape == (1, len(ids) + 7, 384)
    pooled = np.asarray(hidden)[0, : len(ids)].mean(axis=0)
    assert pooled / np.linalg.norm(pooled) @ np.frombuffer(own.embed(text), "<f4") > 0.999999
