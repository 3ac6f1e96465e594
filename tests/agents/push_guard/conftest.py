"""A remote, a clone of it with two work trees, and the push guard as hosts and git run it."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.acceptance.conftest import PATIENCE_S, Home, daemon, home, homes
from tests.edge.hook.conftest import begin, payload

__all__ = ["Race", "daemon", "home", "homes", "race", "still"]

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "a@x",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "a@x",
}
ALONE = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


class Race:
    """Two work trees, `first` and `second`, whose branches follow `main` of a bare remote, and a clone of
    somebody else, `other`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.remote, self.first, self.second, self.other = (
            folder / name for name in ("remote.git", "first", "second", "other")
        )

    def begin(self) -> None:
        """Make it."""
        folder = self.folder
        self.git(folder, "init", "-q", "--bare", "-b", "main", str(self.remote))
        self.git(folder, "clone", "-q", str(self.remote), str(self.first))
        self.git(self.first, "checkout", "-q", "-b", "main")
        self.commit(self.first, "begin")
        self.git(self.first, "push", "-q", "-u", "origin", "main")
        self.git(self.first, "worktree", "add", "-q", "-b", "work", str(self.second), "main")
        self.git(self.second, "branch", "-q", "--set-upstream-to=origin/main")
        self.git(folder, "clone", "-q", str(self.remote), str(self.other))

    def copied(self, folder: Path) -> "Race":
        """Return one that is as this one, in an empty folder."""
        shutil.copytree(self.folder, folder, symlinks=True, dirs_exist_ok=True)
        here, there = bytes(self.folder), bytes(folder)
        for path in folder.rglob("*"):
            if path.is_file() and here in (data := path.read_bytes()):
                path.write_bytes(data.replace(here, there))
        return Race(folder)

    def environ(self, home: Home | None = None) -> dict[str, str]:
        here = {"OMEGAD_HOME": str(home.path if home else self.folder / "home"), "HOME": str(self.folder)}
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMEGAD_", "GIT_", "CLAUDE"))
        }
        return {**kept, **IDENTITY, **ALONE, **here}

    def git(self, folder: Path, *words: str) -> str:
        return self.run(folder, "git", *words, is_fine=True).stdout

    def run(
        self, folder: Path, *words: str, home: Home | None = None, is_fine: bool = False
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words,
            cwd=folder,
            env=self.environ(home),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert not is_fine or done.returncode == 0, done.stderr
        return done

    def commit(self, folder: Path, subject: str) -> str:
        self.git(folder, "commit", "-q", "--allow-empty", "-m", subject)
        return self.git(folder, "rev-parse", "HEAD").strip()

    def refs(self) -> dict[str, bytes]:
        """Return everything in the clone's repository that says where something is: refs, FETCH_HEAD,
        reflogs, and the objects' names.
        """
        return {
            str(path.relative_to(self.first)): path.read_bytes()
            for path in sorted((self.first / ".git").rglob("*"))
            if path.is_file()
        }

    def told(
        self, home: Home, folder: Path, command: Any, use_id: str = "", **environ: str
    ) -> dict[str, Any] | None:
        """Run the hook of an agent that is about to run *command*, each time anew unless it is the same use
        of its tool, and return what its host is told.
        """
        use_id = use_id or str(uuid4())
        call: dict[str, Any] = {
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": use_id,
        }
        said = payload("PreToolUse", cwd=str(folder), **call)
        process = begin(home, "PreToolUse", **{"PATH": os.environ["PATH"], **ALONE, **environ})
        out, err = process.communicate(json.dumps(said).encode(), PATIENCE_S)
        assert (process.returncode, err) == (0, b"")
        return dict(json.loads(out)) if out else None


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Race:
    """Both work trees have a commit of their own, and `first` has pushed its. For nobody but those who
    copy it.
    """
    race = Race(tmp_path_factory.mktemp("begun"))
    race.begin()
    race.commit(race.first, "Round the total in the first tree")
    race.commit(race.second, "Fix the export in the second tree")
    race.git(race.first, "push", "-q", "origin", "main")
    return race


@pytest.fixture
def race(begun: Race, tmp_path: Path) -> Race:
    """A race of the test's own."""
    return begun.copied(tmp_path)


@pytest.fixture(scope="module")
def still(begun: Race, tmp_path_factory: pytest.TempPathFactory) -> Race:
    """A race of all tests that change nothing in it."""
    return begun.copied(tmp_path_factory.mktemp("still"))
