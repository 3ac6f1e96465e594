"""Merges and pulls that git has kept are recorded where a session begins or goes on, once, whoever made them."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Home
from tests.edge.hook.conftest import payload

IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=a@x", "-c", "init.defaultBranch=main")
ROWS = "SELECT event, ref, before_sha, local_sha, session_id, project, reason FROM coord_git_events"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *IDENTITY, *words], capture_output=True, check=True)
    return done.stdout.decode().strip()


def commit(folder: Path, subject: str) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def hook(home: Home, event: str, session_id: str, folder: Path, **fields: Any) -> None:
    said = payload(event, session_id, cwd=str(folder), **fields)
    home.call("hook.dispatch", event=event, payload=said)


def merges(home: Home, worktree: Path) -> list[tuple[str, str | None, str, str]]:
    return [
        (event["data"]["what"], event["data"]["ref"], event["data"]["before"], event["data"]["after"])
        for event in home.events()
        if event["tag"] == "git.merged@1" and event["data"]["worktree"] == str(worktree)
    ]


@pytest.fixture
def pulled(tmp_path: Path) -> tuple[Path, Path]:
    """A repository and a clone of it."""
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    git(there, "init", "-q")
    commit(there, "begin")
    git(tmp_path, "clone", "-q", str(there), str(here))
    return there, here


def test_what_was_pulled_and_merged_outside_is_recorded_once(served: Home, pulled: tuple[Path, Path]) -> None:
    there, here = pulled
    first = git(here, "rev-parse", "HEAD")
    second = commit(there, "second")
    git(here, "pull", "-q", "--ff-only")
    hook(served, "SessionStart", "g-1", here, source="startup")
    assert [one[1:] for one in merges(served, here)] == [("refs/heads/main", first, second)]
    git(here, "checkout", "-q", "-b", "feature")
    commit(here, "third")
    git(here, "checkout", "-q", "main")
    git(here, "merge", "-q", "--no-ff", "-m", "merged", "feature")
    fourth = git(here, "rev-parse", "HEAD")
    git(here, "checkout", "-q", "feature")
    for number in range(2):
        hook(served, "UserPromptSubmit", "g-1", here, prompt=f"go on {number}")
    found = merges(served, here)
    assert [one[1:] for one in found[1:]] == [("refs/heads/main", second, fourth)]
    assert found[1][0].startswith("merge feature")
    commit(there, "fifth")
    git(here, "checkout", "-q", "main")
    git(here, "pull", "-q", "--rebase")
    hook(served, "UserPromptSubmit", "g-1", here, prompt="and now?")
    assert len(merges(served, here)) == 3
    rows = served.call("audit.sql", sql=f"{ROWS} WHERE project = 'here' ORDER BY id")["rows"]
    assert [row[:2] for row in rows[:2]] == [["pull", "refs/heads/main"], ["merge", "refs/heads/main"]]
    assert {row[4] for row in rows} == {None}
    served.check()


def test_a_merge_of_a_clock_that_is_ahead_is_recorded_once(
    served: Home, pulled: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = pulled
    hook(served, "SessionStart", "g-2", here, source="startup")
    second = commit(there, "second")
    with monkeypatch.context() as ahead:
        ahead.setenv("GIT_COMMITTER_DATE", "2099-01-01T00:00:00Z")
        git(here, "pull", "-q", "--ff-only")
    for number in range(3):
        hook(served, "UserPromptSubmit", "g-2", here, prompt=f"go on {number}")
    assert [one[3] for one in merges(served, here)] == [second]
    third = commit(there, "third")
    git(here, "pull", "-q", "--ff-only")
    hook(served, "UserPromptSubmit", "g-2", here, prompt="and now?")
    assert [one[3] for one in merges(served, here)] == [second, third]


def test_a_rebase_on_an_address_is_one_pull(served: Home, pulled: tuple[Path, Path]) -> None:
    there, here = pulled
    hook(served, "SessionStart", "g-3", here, source="startup")
    commit(there, "second")
    for subject in ("mine", "mine, too"):
        commit(here, subject)
    git(here, "pull", "-q", "--rebase", f"file://{there}", "main")
    hook(served, "UserPromptSubmit", "g-3", here, prompt="and now?")
    found = merges(served, here)
    assert [one[3] for one in found] == [git(here, "rev-parse", "HEAD")]
    assert "(finish)" in found[0][0]


def test_a_setting_turns_it_off(home: Home, pulled: tuple[Path, Path]) -> None:
    there, here = pulled
    commit(there, "second")
    git(here, "pull", "-q", "--ff-only")
    (home.path / "config.toml").write_text("git_sync = false\n")
    home.start()
    hook(home, "SessionStart", "g-1", here, source="startup")
    assert merges(home, here) == []
