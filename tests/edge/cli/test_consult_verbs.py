"""The verbs that ask other models, and what `doctor` says of them; the provider is one on loopback."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.cli.conftest import Command
from tests.edge.consult.conftest import KEY, Consulting
from tests.edge.consult.provider import playing, says


@pytest.fixture
def consulting(tmp_path: Path) -> Iterator[Consulting]:
    with playing() as provider:
        yield Consulting(tmp_path, provider)


@pytest.fixture
def asking(consulting: Consulting) -> Iterator[Command]:
    assert threading.current_thread() is threading.main_thread()
    command = Command(consulting.home)
    try:
        yield command
    finally:
        command.end()


def test_people_ask_and_see_what_it_took(asking: Command, consulting: Consulting) -> None:
    consulting.provider.turns += [says("Take\x1b[2J one.")]
    told = asking("consult", "One writer?", "--model", "gpt", "--context", "log.py").stdout
    assert "answered in " in told
    assert told.endswith("Take\N{REPLACEMENT CHARACTER}[2J one.\n")
    found = asking.json("consult", "One writer?", "--model", "claude")
    assert (found["answer"], found["tokens"], found["spent"]["calls"]) == ("It depends.", 42, 2)
    piped = asking("consult", "--model", "gpt", stdin=b"From a pipe?\n").stdout
    assert 'Sent, 12 characters: "From a pipe?"' in piped


def test_an_answer_is_stored_where_that_is_asked_for(asking: Command) -> None:
    stored = asking.json("consult", "One writer?", "--model", "gpt", "--store", "--project", "shop")[
        "memory_id"
    ]
    memory = asking.json("get", stored)
    assert (memory["source"], memory["project"]) == ("cross_model_consult", "shop")


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(
    asking: Command, consulting: Consulting
) -> None:
    consulting.key_file.unlink()
    told = asking("consult", "Is password=hunter2secret9 fine?", "--model", "claude", "--dry-run").stdout
    assert f"{consulting.provider.url}/v1/messages" in told
    assert "Is password=[REDACTED:assigned_secret] fine?" in told
    assert "calls       0 of 20" in told
    found = asking.json("consult", "why?", "--model", "gpt", "--dry-run")
    assert found["body"]["messages"][-1]["content"] == "why?"
    assert consulting.provider.heard == []
    assert not (consulting.home / "consulted.json").exists()


def test_the_model_that_fits_is_named(asking: Command) -> None:
    assert asking.json("route", "review the architecture")["model"] == "claude"
    assert asking("route", "debugging Python").stdout == "gpt: it is said to be good at debugging Python\n"
    assert "none fits: no word of the task" in asking("route", "a poem", status=1).stderr


def test_without_a_model_it_is_said_how_to_configure_one(asking: Command, consulting: Consulting) -> None:
    (consulting.home / "config.toml").unlink()
    for verb in ("consult", "route"):
        assert (
            "describe some in config.toml, as [consult.models.NAME]" in asking(verb, "why?", status=1).stderr
        )


def consult_lines(asking: Command, *more: str) -> list[dict[str, str]]:
    found = json.loads(asking.run("doctor", "--json", "--no-spawn", *more).stdout)["findings"]
    return [one for one in found if one["part"] == "consult"]


def test_doctor_looks_at_keys_and_reaches_hosts_when_asked_to(
    asking: Command, consulting: Consulting
) -> None:
    states = [one["state"] for one in consult_lines(asking)]
    assert states == ["ok", "ok", "ok"]
    assert all("reached in" in one["seen"] for one in consult_lines(asking, "--reach")[:2])
    assert consulting.provider.heard == []
    consulting.key_file.chmod(0o644)
    open_to_others, *_ = consult_lines(asking)
    assert (open_to_others["state"], open_to_others["remedy"].split(";")[0]) == (
        "FAIL",
        f"chmod 600 {consulting.key_file}",
    )
    consulting.key_file.chmod(0o600)
    consulting.provider.shutdown()
    consulting.provider.server_close()
    assert "cannot be reached: Connection refused" in consult_lines(asking, "--reach")[0]["seen"]
    assert KEY not in str(consult_lines(asking))
