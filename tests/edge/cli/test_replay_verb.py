"""What would have been answered otherwise, asked on the command line by a process of its own."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from omegad.client import Client
from tests.acceptance.conftest import require_model
from tests.edge.cli.conftest import PATIENCE_S, Command


def ask(command: Command, *texts: str, **params: object) -> list[dict[str, Any]]:
    """Ask questions, and return their answers once the log has them."""
    with Client(command.paths.socket, timeout_s=PATIENCE_S) as client:
        answers = [client.call("memory.query", text=text, **params) for text in texts]
        for one in answers:
            client.call("receipts.list", query_id=one["query_id"])
    return answers


def bytes_of(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir() if path.is_file()}


@pytest.fixture
def asked(omegad: Command) -> Command:
    """A home in which some questions were asked, and whose daemon runs."""
    omegad("start")
    for number in range(3):
        omegad.store(f"alpha {number} is {'very ' * number}slow", project="shop" if number else None)
    ask(omegad, "alpha slow", "alpha very", "zebra")
    ask(omegad, "alpha", project="shop")
    return omegad


def test_exactly_the_answers_that_held_a_memory_change_beside_a_serving_daemon(asked: Command) -> None:
    gone = ask(asked, "very slow")[0]["results"][0]["memory_id"]
    held = {
        row[0]
        for row in asked.json("sql", f"SELECT query_id FROM retrievals WHERE memory_id = '{gone}'")["rows"]
    }
    report = asked.json("replay", "--without", gone)
    assert report["asked"] == 5
    assert {one["query_id"] for one in report["differences"]} == held
    assert 1 < report["changed"] < report["asked"]
    for one in report["differences"]:
        assert gone in one["before"]
        assert gone not in one["after"]
    shown = asked("replay", "--without", gone, "--limit-shown", "1").stdout
    assert "5 questions asked again" in shown
    assert any(line.startswith("left") and gone in line for line in shown.splitlines())
    assert "--limit-shown shows them" in shown
    assert asked.json("verify")["ok"]


def test_a_stopped_home_stays_as_it_is_to_the_byte(asked: Command, tmp_path: Path) -> None:
    asked("stop")
    before = bytes_of(asked.home)
    ids = tmp_path / "ids.txt"
    ids.write_text("mem-0\nmem-1\n", encoding="utf-8")
    weights = tmp_path / "weights.json"
    assert str(weights) in asked("replay", "--weights-out", str(weights)).stdout
    for options in (
        (),
        ("--weights", str(weights)),
        ("--without", f"@{ids}", "--without", "mem-2,mem-3"),
        ("--embedder", "none"),
    ):
        report = asked.json("replay", *options)
        assert (report["asked"], report["changed"], report["unlike_log"]) == (4, 0, 0), options
    assert bytes_of(asked.home) == before
    assert [one["text"] for one in asked.json("replay", "--project", "shop")["differences"]] == []
    assert asked.json("replay", "--project", "shop")["asked"] == 1


def test_what_cannot_be_asked_is_refused_with_what_is_wrong(asked: Command, tmp_path: Path) -> None:
    weights = tmp_path / "weights.json"
    asked("replay", "--weights-out", str(weights))
    there = asked("replay", "--weights-out", str(weights), status=1).stderr
    assert "File exists" in there
    assert "name a new file" in there
    refused = asked("replay", "--weights-out", str(asked.home / "weights.json"), status=1)
    assert "lies in the home" in refused.stderr
    written = json.loads(weights.read_text(encoding="utf-8"))
    weights.write_text(json.dumps(written | {"floor": 7}), encoding="utf-8")
    many, large, binary = (tmp_path / name for name in ("many", "large", "binary"))
    many.write_text("\n".join(f"mem-{number}" for number in range(10_001)), encoding="utf-8")
    large.write_bytes(b"m" * ((1 << 20) + 1))
    binary.write_bytes(b"\xff\xfe")
    for options, wrong, status in (
        (("--weights", str(weights)), "floor: 7 is no probability", 2),
        (("--weights", "nowhere.json"), "there is no file nowhere.json", 2),
        (("--without", "@nowhere.txt"), "there is no file nowhere.txt", 2),
        (("--without", f"@{many}"), "--without names 10,001 memories", 2),
        (("--without", f"@{large}"), "large has 1,048,577 bytes", 2),
        (("--weights", str(large)), "large has 1,048,577 bytes", 2),
        (("--without", f"@{binary}"), "binary is no text in UTF-8", 2),
        (("--embedder", "word2vec"), "'word2vec' is not installed", 1),
        (("--since", "yesterday"), "since is not a time", 2),
        (("--limit", "0"), "--limit is 1 to", 2),
    ):
        assert wrong in asked("replay", *options, status=status).stderr, options
    told = asked("replay", "--without", "mem-nowhere").stderr
    assert "mem-nowhere is in no answer" in told


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGINT, signal.SIGKILL))],
)
def test_wherever_it_is_ended_nothing_is_left(asked: Command, tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    asked.environ["TMPDIR"] = str(folder)
    weights = str(_weights(asked, tmp_path))
    asked("stop")  # which makes files of its own when it likes
    before = {path.name for path in asked.home.iterdir()}
    running = asked.begin("replay", "--weights", weights)
    opened = Path(f"/proc/{running.pid}/fd")
    until_s = time.monotonic() + PATIENCE_S
    while running.poll() is None and time.monotonic() < until_s:
        if opened.exists() and any("scratch.db (deleted)" in _target(one) for one in opened.iterdir()):
            break
    running.send_signal(number)
    running.communicate(timeout=PATIENCE_S)
    assert list(folder.iterdir()) == []
    left = {path.name for path in asked.home.iterdir()} - before
    if number is signal.SIGKILL:  # which gives SQLite no time for its own: the next to open a file takes it
        left = {name for name in left if not name.endswith(("-shm", "-wal"))}
    assert left == set()
    assert asked.json("verify")["ok"]


def _weights(command: Command, folder: Path) -> Path:
    path = folder / "weights.json"
    command("replay", "--weights-out", str(path))
    return path


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


@pytest.mark.model
def test_a_real_model_answers_as_it_did_and_none_by_words_alone(omegad: Command) -> None:
    require_model()
    omegad.environ["OMEGAD_MODEL"] = "all-MiniLM-L6-v2"
    omegad("start")
    for content in ("Customers are charged in euros", "Passwords are hashed with argon2"):
        omegad.store(content)
    (answer,) = ask(omegad, "how does a shopper pay", mode="semantic")
    assert answer["results"]
    for options in ((), ("--embedder", "all-MiniLM-L6-v2")):
        report = omegad.json("replay", *options)
        assert (report["asked"], report["changed"], report["unlike_log"]) == (1, 0, 0), options
    report = omegad.json("replay", "--embedder", "none")
    assert (report["abstentions_gained"], report["unlike_log"]) == (1, 0)


def test_nothing_that_was_asked_is_said_in_words(asked: Command) -> None:
    assert asked("replay", "--since", "2030-01-01").stdout.startswith("no question")
