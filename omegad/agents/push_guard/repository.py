"""A git repository as the guard of pushes asks it: by commands that change nothing in it, each within the
time that is left.

Invariant: nothing that a repository's configuration names is run. In a repository only what reads is run,
which needs no program, no hook and nobody's protocol; another machine is asked from outside of it, with the
user's own configuration alone.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from os.path import isabs
from typing import NamedTuple

from omegad.agents.push_guard.address import PROTOCOLS, SUFFIXES, address_of, host_and_path

LIMIT_S = 15.0  # of the 20 s that a hook may take
HEADS = "refs/heads/"

QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",  # which answers with nothing
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
"""Nobody is there to be asked for a password, and looking changes nothing."""
WITHIN = {
    "GIT_NO_LAZY_FETCH": "1",  # what is missing of a partial clone is not fetched
    "GIT_ALLOW_PROTOCOL": "none",  # nor by a git that does not know of that
}
READING = ("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
ABROAD = ("-c", "safe.bareRepository=explicit")  # none that a clone has brought along
NOWHERE = "/dev/null"
PLACES = frozenset(
    (
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    )
)
"""What of the environment leads to a repository."""
SSH = "-o BatchMode=yes -o ControlMaster=no"  # one that stayed in the background would keep the pipe open
PROGRAMS = ("core.sshcommand", "core.gitproxy", "core.askpass")
PROGRAM_ENDS = (".uploadpack", ".vcs", ".helper")
OWN = ("local", "worktree")
ADDRESSES_MAX = 4
LACKS_MAX = 5
LINE_CHARACTERS = 120


class OutOfTimeError(Exception):
    """What is asked of git takes longer than there is time."""


class Done(NamedTuple):
    """How a command ended: its status, and what it printed."""

    status: int
    out: str
    err: str


def run(words: Sequence[str], folder: str, environ: Mapping[str, str], deadline: float) -> Done:
    """Run git; raise `OutOfTimeError`, and end all that it has started, where it takes until after
    *deadline*.
    """
    with subprocess.Popen(
        words,
        cwd=folder,
        env={**environ, **QUIET, "PATH": programs()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="surrogateescape",
        start_new_session=True,  # without a terminal to ask on, and to be ended with all that it has started
    ) as process:
        try:
            out, err = process.communicate(timeout=max(0.01, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise OutOfTimeError("no answer in time") from None
        return Done(process.returncode, out, err)


def programs() -> str:
    """Return where programs are looked for: never in the folder that a command happens to run in."""
    return os.pathsep.join(entry for entry in os.get_exec_path() if isabs(entry))


class Repository:
    """The repository of a folder; `where` are git's own options that say so otherwise."""

    def __init__(self, folder: str, where: tuple[str, ...] = (), within_s: float = LIMIT_S) -> None:
        self._folder = folder
        self._where = where
        self._deadline = time.monotonic() + within_s

    def run(self, *words: str) -> Done:
        """Run git in the repository. Raises `OutOfTimeError`."""
        return run(
            [*READING, *ABROAD, *self._where, *words], self._folder, {**os.environ, **WITHIN}, self._deadline
        )

    @cached_property
    def _configured(self) -> list[tuple[str, str, str]]:
        """What is configured, in order: who says so, the key with its section and name in lower case, and
        the value.
        """
        words = self.run(
            "config", "--null", "--show-scope", "--get-regexp", r"^(remote|branch|push|core|credential)\."
        ).out.split("\0")
        entries = (
            (scope, *entry.partition("\n")) for scope, entry in zip(words[::2], words[1::2], strict=False)
        )
        return [(scope, key, value) for scope, key, _, value in entries]

    @cached_property
    def settings(self) -> dict[str, list[str]]:
        """Every value of each key."""
        found: dict[str, list[str]] = {}
        for _, key, value in self._configured:
            found.setdefault(key, []).append(value)
        return found

    @property
    def own_program(self) -> str | None:
        """A program that the repository itself names for the way to a remote: no one has agreed yet that
        it is run.
        """
        named = (key for scope, key, _ in self._configured if scope in OWN)
        return next((key for key in named if key in PROGRAMS or key.endswith(PROGRAM_ENDS)), None)

    def setting(self, *keys: str) -> str | None:
        """Return the latest value of the first of these keys that has one."""
        return next((self.settings[key][-1] for key in keys if key in self.settings), None)

    def is_set(self, key: str) -> bool:
        """Say whether a setting is on; one without a value is."""
        return (self.setting(key) or "").lower() in ("true", "yes", "on", "1") or (
            key in self.settings and not self.setting(key)
        )

    @cached_property
    def branch(self) -> str | None:
        """The branch that is checked out, None where none is."""
        return self.run("symbolic-ref", "-q", "--short", "HEAD").out.strip() or None

    @cached_property
    def top(self) -> str:
        """Where its files begin, to which addresses are relative."""
        return (
            self.run("rev-parse", "--show-toplevel").out or self.run("rev-parse", "--absolute-git-dir").out
        ).removesuffix("\n")

    def remotes(self) -> set[str]:
        """Return the names of the remotes."""
        return {
            key[len("remote.") : -len(".url")]
            for key in self.settings
            if key.startswith("remote.") and key.endswith(".url")
        }

    def meant(self, remote: str) -> str | None:
        """Return by what name to ask for a remote that is given by its name, its address or a folder; None
        for a server that is no remote's.

        Of an address that names the same place as a remote's, however it is reached, the remote is asked:
        nobody has agreed yet to another way.
        """
        if remote in self.remotes():
            return remote
        address = address_of(remote, self.top)
        if address is None:
            return None
        if address.folder is not None:
            return remote
        place = host_and_path(remote)
        return next(
            (
                name
                for name in sorted(self.remotes())
                if any(host_and_path(url) == place for url in self._urls(name))
            ),
            None,
        )

    def _urls(self, remote: str) -> list[str]:
        """Return where a push to a remote goes, which may be given as a folder."""
        if remote not in self.remotes():
            return [remote]
        return self.run("remote", "get-url", "--push", "--all", "--", remote).out.splitlines()

    def refs_at(self, remote: str, refs: list[str] | None) -> list[dict[str, str]] | str:
        """Ask a remote, at each of its addresses, where these refs are, or all branches.

        Returns the words of what went wrong where it does not answer, or is not to be asked.
        """
        if program := self.own_program:
            return (
                f"it is to be reached by a program that this repository names, {program}, and nobody has"
                " agreed to that yet"
            )
        found = list[dict[str, str]]()
        for url in self._urls(remote)[:ADDRESSES_MAX]:
            address = address_of(url, self.top)
            if address is None:
                return "its address has git run a program, and nobody has agreed to that yet"
            try:
                done = (
                    self._refs_in(address.folder, refs)
                    if address.folder is not None
                    else self._asked(address.url, refs)
                )
            except OutOfTimeError as error:
                return str(error)
            if done.status:
                return (done.err.strip() or f"git ended with {done.status}")[-4 * LINE_CHARACTERS :]
            found.append(
                {ref: sha for sha, ref in (line.split(maxsplit=1) for line in done.out.splitlines())}
            )
        return found

    def _asked(self, url: str, refs: list[str] | None) -> Done:
        """Ask another machine, as one would in no repository at all."""
        ssh = os.environ.get("GIT_SSH_COMMAND") or next(
            (value for _, key, value in reversed(self._configured) if key == "core.sshcommand"), "ssh"
        )
        quiet = (
            {}
            if "GIT_SSH" in os.environ and "GIT_SSH_COMMAND" not in os.environ
            else {"GIT_SSH_COMMAND": f"{ssh} {SSH}"}
        )
        environ = {**_elsewhere(), "GIT_ALLOW_PROTOCOL": PROTOCOLS, "GIT_DIR": NOWHERE, **quiet}
        return run(["git", "ls-remote", "--", url, *(refs or [f"{HEADS}*"])], "/", environ, self._deadline)

    def _refs_in(self, path: str, refs: list[str] | None) -> Done:
        """Read the refs of a repository of this machine, which runs nothing that it names either."""
        for folder in (path + suffix for suffix in SUFFIXES):
            words = [
                "--git-dir",
                folder,
                "for-each-ref",
                "--format=%(objectname) %(refname)",
                "--",
                *(refs or [HEADS]),
            ]
            done = run([*READING, *words], "/", {**_elsewhere(), **WITHIN}, self._deadline)
            if not done.status:
                return done
        return Done(1, "", f"{path} is no repository that can be read")

    def commit(self, name: str) -> str | None:
        """Return the id of a commit that the repository has."""
        return (
            self.run("rev-parse", "-q", "--verify", "--end-of-options", f"{name}^{{commit}}").out.strip()
            or None
        )

    def ref(self, name: str) -> str | None:
        """Return the full name of a ref."""
        return (
            self.run(
                "rev-parse", "-q", "--verify", "--symbolic-full-name", "--end-of-options", name
            ).out.strip()
            or None
        )

    def refs(self, beginning: str) -> dict[str, str]:
        """Return where all refs are whose names begin so, up to a slash."""
        done = self.run("for-each-ref", "--format=%(objectname) %(refname)", "--", beginning)
        return {ref: sha for sha, ref in (line.split(maxsplit=1) for line in done.out.splitlines())}

    def is_in(self, older: str, newer: str) -> bool:
        """Say whether a commit is the other, or among those that led to it."""
        return self.run("merge-base", "--is-ancestor", older, newer).status == 0

    def lacking(self, mine: str | None, theirs: str) -> tuple[int, tuple[str, ...]]:
        """Return how many commits *theirs* has that *mine* lacks, or every branch where that is None, and
        the latest of them in a line each.
        """
        among = (theirs, "--not", *([mine] if mine else ["--branches"]), "--")
        told = self.run(
            "rev-list", f"--max-count={LACKS_MAX}", "--no-color", "--format=tformat:%h %an: %s", *among
        )
        count = self.run("rev-list", "--count", *among).out.strip()
        subjects = (line for line in told.out.splitlines() if not line.startswith("commit "))
        lines = tuple(
            "".join(letter for letter in line if letter.isprintable())[:LINE_CHARACTERS] for line in subjects
        )
        return int(count) if count.isdigit() else len(lines), lines


def _elsewhere() -> dict[str, str]:
    """Return an environment that leads to no repository."""
    return {name: value for name, value in os.environ.items() if name not in PLACES}
