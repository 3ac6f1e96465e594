"""A git repository as the guard of pushes asks it: by commands that change nothing in it, each within the time that is left."""

import os
import signal
import subprocess
import time
from functools import cached_property
from typing import NamedTuple

LIMIT_S = 15.0  # of the 20 s that a hook may take
NO_TIME = 124

QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",  # which answers with nothing
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
"""Nobody is there to be asked for a password, and looking changes nothing."""
ABROAD = ("-c", "safe.bareRepository=explicit")  # none that a clone has brought along, whose configuration could run anything
SSH = "-o BatchMode=yes -o ControlMaster=no"  # one that stayed in the background would keep the pipe open
PROGRAMS = ("core.sshcommand", "core.gitproxy", "core.askpass")
PROGRAM_ENDS = (".uploadpack", ".vcs", ".helper")
LACKS_MAX = 5
LINE_CHARACTERS = 120


class Done(NamedTuple):
    """How a command ended: its status, and what it printed."""

    status: int
    out: str
    err: str


class Repository:
    """The repository of a folder; `where` are git's own options that say so otherwise."""

    def __init__(self, folder: str, where: tuple[str, ...] = (), within_s: float = LIMIT_S) -> None:
        self._folder = folder
        self._command = ("git", *ABROAD, *where)
        self._deadline = time.monotonic() + within_s

    def run(self, *words: str, environ: dict[str, str] | None = None) -> Done:
        """Run git. Where it takes longer than there is time, it is ended, and its status is `NO_TIME`."""
        with subprocess.Popen(
            [*self._command, *words],
            cwd=self._folder,
            env={**os.environ, **QUIET, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # without a terminal to ask on, and to be ended with all that it has started
        ) as process:
            try:
                out, err = process.communicate(timeout=max(0.01, self._deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return Done(NO_TIME, "", "no answer in time")
            return Done(process.returncode, out, err)

    @cached_property
    def _configured(self) -> list[tuple[str, str, str]]:
        """What is configured, in order: who says so, the key with its section and name in lower case, and the value."""
        words = self.run("config", "--null", "--show-scope", "--get-regexp", r"^(remote|branch|push|core|credential)\.").out.split("\0")
        entries = ((scope, *entry.partition("\n")) for scope, entry in zip(words[::2], words[1::2], strict=False))
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
        """A program that the repository itself names for the way to a remote: no one has agreed yet that it is run."""
        named = (key for scope, key, _ in self._configured if scope in ("local", "worktree"))
        return next((key for key in named if key in PROGRAMS or key.endswith(PROGRAM_ENDS)), None)

    def setting(self, *keys: str) -> str | None:
        """Return the latest value of the first of these keys that has one."""
        return next((self.settings[key][-1] for key in keys if key in self.settings), None)

    @cached_property
    def branch(self) -> str | None:
        """The branch that is checked out, None where none is."""
        return self.run("symbolic-ref", "-q", "--short", "HEAD").out.strip() or None

    def remotes(self) -> set[str]:
        """Return the names of the remotes."""
        return {key[len("remote.") : -len(".url")] for key in self.settings if key.startswith("remote.") and key.endswith(".url")}

    def refs_at(self, remote: str, refs: list[str]) -> dict[str, str] | str:
        """Ask a remote where its refs are; return the words of what went wrong where it does not answer, or is not to be asked."""
        if program := self.own_program:
            return f"it is to be reached by a program that this repository names, {program}, and nobody has agreed to that yet"
        ssh = os.environ.get("GIT_SSH_COMMAND") or self.setting("core.sshcommand") or "ssh"
        quiet = {} if "GIT_SSH" in os.environ and "GIT_SSH_COMMAND" not in os.environ else {"GIT_SSH_COMMAND": f"{ssh} {SSH}"}
        asked = self.setting(f"remote.{remote}.pushurl") or remote
        done = self.run("ls-remote", "--", asked, *refs, environ=quiet)
        if done.status:
            return (done.err.strip() or f"git ended with {done.status}")[-4 * LINE_CHARACTERS :]
        return {ref: sha for sha, _, ref in (line.partition("\t") for line in done.out.splitlines())}

    def commit(self, name: str) -> str | None:
        """Return the id of a commit that the repository has."""
        return self.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}").out.strip() or None

    def ref(self, name: str) -> str | None:
        """Return the full name of a ref."""
        return self.run("rev-parse", "-q", "--verify", "--symbolic-full-name", name).out.strip() or None

    def branches(self) -> list[str]:
        """Return the full names of all branches."""
        return self.run("for-each-ref", "--format=%(refname)", "refs/heads").out.splitlines()

    def is_in(self, older: str, newer: str) -> bool:
        """Say whether a commit is the other, or among those that led to it."""
        return self.run("merge-base", "--is-ancestor", older, newer).status == 0

    def lacking(self, mine: str, theirs: str) -> tuple[int, tuple[str, ...]]:
        """Return how many commits *theirs* has that *mine* lacks, and the latest of them in a line each."""
        told = self.run("log", f"--max-count={LACKS_MAX}", "--no-show-signature", "--no-color", "--format=%h %an: %s", f"{mine}..{theirs}", "--")
        count = self.run("rev-list", "--count", f"{mine}..{theirs}", "--").out.strip()
        lines = tuple("".join(letter for letter in line if letter.isprintable())[:LINE_CHARACTERS] for line in told.out.splitlines())
        return int(count) if count.isdigit() else len(lines), lines
