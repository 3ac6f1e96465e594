"""A request that was answered gets that answer when it is sent again, whatever has become of what it was
about.
"""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Home, homes_in


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon of all these tests."""
    with homes_in(tmp_path_factory.mktemp("requests")) as make:
        yield make().start()


def twice(home: Home, between: Callable[[Any], object], method: str, **params: object) -> tuple[Any, Any]:
    """Send a request, do what happens *between*, given its answer, and send it again on another
    connection; return both answers.
    """
    with home.client("agent") as client:
        first = client.call(method, **params)
    between(first)
    head = home.call("system.status")["log"]["head"]
    with home.client("agent") as client:
        again = client.call(method, **params)
    assert home.call("system.status")["log"]["head"] == head, "the second one was recorded"
    return first, again


def test_a_lesson_that_the_person_took_out_again_is_not_written_by_a_second_request(serving: Home) -> None:
    skill = serving.path / "skills" / "search" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Search\n")
    take_out = lambda _: skill.write_text("# Search\n")  # noqa: E731
    first, again = twice(
        serving, take_out, "skill.improve", skill="search", lesson="Look by email too", request_id="improve-1"
    )
    assert first["outcome"] == "improved"
    assert again == first
    assert skill.read_text() == "# Search\n"


def test_a_thesis_whose_memory_was_erased_since_it_was_revised_gives_the_answer_of_then(
    serving: Home,
) -> None:
    thesis_id = serving.call(
        "thesis.state", statement="Postgres full text is enough for the search of the shop"
    )["thesis_id"]
    erase = lambda revised: serving.call("memory.erase", memory_id=revised["memory_id"])  # noqa: E731
    statement = "Postgres full text is enough for the search of the shop and of the handbook"
    first, again = twice(
        serving, erase, "thesis.revise", thesis_id=thesis_id, statement=statement, request_id="revise-1"
    )
    assert again == first


def test_claims_that_were_let_go_are_let_go_once_when_their_repository_is_gone(
    serving: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(folder)], check=True, timeout=60)
    held = {"session_id": "s-1", "folder": str(folder)}
    serving.call("claim.branch", **held, ref="main")
    first, again = twice(
        serving,
        lambda _: shutil.rmtree(folder),
        "claim.release",
        **held,
        refs=["main"],
        request_id="release-1",
    )
    assert first["count"] == 1
    assert again == first


def test_an_erasure_is_told_again_as_it_was_told_first(serving: Home) -> None:
    stored = serving.call("memory.store", content="The spare key lies beneath the third flower pot")
    first, again = twice(
        serving, lambda _: None, "memory.erase", memory_id=stored["memory_id"], request_id="erase-1"
    )
    assert first["copies"]
    assert again == first


def test_a_tool_that_changed_something_says_the_same_again_whatever_it_would_find_now(serving: Home) -> None:
    about = {"paths": ["/src/shop/a.py"], "project": "/src/shop"}
    between = lambda _: serving.call("intent.announce", session_id="s-3", text="Split the ledger", **about)  # noqa: E731
    arguments = {"action": "intent", "text": "Rename the ledger", "paths": about["paths"]}
    asked = {
        "name": "omega_coord",
        "arguments": arguments,
        "session_id": "s-2",
        "project": about["project"],
        "request_id": "use-1",
    }
    first, again = twice(serving, between, "tools.call", **asked)
    assert not first["is_error"], first
    assert again == first
