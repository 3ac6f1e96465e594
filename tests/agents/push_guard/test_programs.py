"""That looking at a push runs no program that a repository names, by whichever way git would come to run
it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omegad.agents.push_guard.address import address_of
from tests.acceptance.conftest import PATIENCE_S, Home
from tests.agents.push_guard.conftest import Race
from tests.edge.hook.conftest import CLIENT, spooled

PUSH = "git push origin HEAD:main"
Arranged = Callable[[Race, str], str | None]


def program(race: Race, name: str = "program") -> str:
    """Write a program that leaves a trace, and return its path."""
    path = race.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {race.folder}/trace\nexit 1\n")
    path.chmod(0o755)
    return str(path)


def configured(*settings: tuple[str, str]) -> Arranged:
    """Have the clone's own configuration say so; PROGRAM stands for the program."""

    def arrange(race: Race, its: str) -> None:
        for key, value in settings:
            race.git(
                race.second, "config", "--add", key.replace("PROGRAM", its), value.replace("PROGRAM", its)
            )

    return arrange


def url(value: str, *settings: tuple[str, str]) -> Arranged:
    """Have the clone reach its remote so."""

    def arrange(race: Race, its: str) -> None:
        race.git(race.second, "config", "protocol.allow", "always")
        race.git(race.second, "config", "protocol.ext.allow", "always")
        race.git(race.second, "remote", "set-url", "origin", value.replace("PROGRAM", its))
        configured(*settings)(race, its)

    return arrange


def included(race: Race, its: str) -> None:
    (race.folder / "more").write_text(
        f'[core]\n\tsshCommand = {its}\n\tgitProxy = {its}\n[remote "origin"]\n\tuploadpack = {its}\n'
    )
    race.git(race.second, "config", "include.path", str(race.folder / "more"))


def of_the_worktree(race: Race, its: str) -> None:
    race.git(race.second, "config", "extensions.worktreeConfig", "true")
    race.git(race.second, "config", "--worktree", "remote.origin.uploadpack", its)


def partial(folder: Path, race: Race, its: str, branch: str) -> None:
    """Have a repository lack the commit of a branch, which git would fetch from its remote as soon as
    somebody looks.
    """
    git = folder if (folder / "objects").exists() else folder / ".git"
    lost = race.git(folder, "rev-parse", branch).strip()
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "promisor",
        "remote.promisor.promisor": "true",
        "remote.promisor.url": f"ext::{its}",
        "protocol.ext.allow": "always",
    }
    for key, value in settings.items():
        race.git(folder, "config", key, value)
    (git / "objects" / lost[:2] / lost[2:]).unlink()


def partial_clone(race: Race, its: str) -> str:
    race.commit(race.first, "One more")
    partial(race.first, race, its, "main")
    return f"git -C {race.first} push origin main"


def partial_remote(race: Race, its: str) -> None:
    race.git(race.other, "pull", "-q")
    race.git(race.other, "push", "-q", "origin", "HEAD:another")
    race.commit(race.other, "Another")
    race.git(race.other, "push", "-q", "origin", "HEAD:another")
    partial(race.remote, race, its, "another")


def bare_within(race: Race, its: str) -> str:
    """A bare repository among the files of another, which a session has changed into."""
    race.git(race.folder, "clone", "-q", "--bare", str(race.remote), str(race.second / "fixture"))
    race.git(
        race.second, "--git-dir", str(race.second / "fixture"), "config", "remote.origin.url", f"ext::{its}"
    )
    race.git(race.second, "--git-dir", str(race.second / "fixture"), "config", "protocol.ext.allow", "always")
    return f"cd {race.second / 'fixture'} && {PUSH}"


def elsewhere(race: Race, its: str) -> str:
    """A folder whose `.git` leads to a repository that names a program."""
    url("ext::PROGRAM")(race, its)
    there = race.folder / "there"
    there.mkdir()
    (there / ".git").write_text(f"gitdir: {race.first}/.git\n")
    return f"cd {there} && {PUSH}"


def on_the_path(race: Race, its: str) -> None:
    """Programs with the names of those that the guard runs, in the folder where it runs them."""
    for name in ("git", "ps", "ssh", "git-remote-ext", "git-upload-pack"):
        (race.second / name).write_bytes(Path(its).read_bytes())
        (race.second / name).chmod(0o755)


def said(command: str) -> Arranged:
    """The command itself says so."""

    def arrange(race: Race, its: str) -> str:
        race.git(race.second, "config", "protocol.ext.allow", "always")
        return command.replace("PROGRAM", its)

    return arrange


ARRANGED: dict[str, Arranged] = {
    "an address that is a program": url("ext::PROGRAM"),
    "an address that becomes one": url("safe:x", ("url.ext::PROGRAM .insteadOf", "safe:")),
    "an address that becomes one to push to": url("safe:x", ("url.ext::PROGRAM .pushInsteadOf", "safe:")),
    "an address to push to": configured(
        ("protocol.ext.allow", "always"), ("remote.origin.pushurl", "ext::PROGRAM")
    ),
    "a second address": configured(
        ("protocol.ext.allow", "always"),
        ("remote.origin.pushurl", "ext::PROGRAM"),
        ("remote.origin.pushurl", "/nowhere"),
    ),
    "a helper": configured(("protocol.ext.allow", "always"), ("remote.origin.vcs", "ext")),
    "what receives": configured(
        ("remote.origin.uploadpack", "PROGRAM"), ("remote.origin.receivepack", "PROGRAM")
    ),
    "what receives there": said("git push --receive-pack PROGRAM --exec PROGRAM origin HEAD:main"),
    "the way of ssh": url("ssh://git@localhost/x", ("core.sshCommand", "PROGRAM")),
    "the way of ssh, in short": url(
        "git@localhost:x", ("core.sshCommand", "PROGRAM"), ("ssh.variant", "simple")
    ),
    "an option of ssh": url("ssh://-oProxyCommand=PROGRAM/x"),
    "a proxy": url("git://localhost/x", ("core.gitProxy", "PROGRAM")),
    "who knows the password": url(
        "http://127.0.0.1:1/x", ("credential.helper", "!PROGRAM"), ("core.askPass", "PROGRAM")
    ),
    "hooks and watchers": configured(
        ("core.fsmonitor", "PROGRAM"),
        ("core.hooksPath", "PROGRAM/.."),
        ("core.pager", "PROGRAM"),
        ("core.alternateRefsCommand", "PROGRAM"),
        ("gpg.program", "PROGRAM"),
        ("log.showSignature", "true"),
        ("diff.external", "PROGRAM"),
        ("alias.log", "!PROGRAM"),
        ("alias.ls-remote", "!PROGRAM"),
        ("alias.config", "!PROGRAM"),
        ("uploadpack.packObjectsHook", "PROGRAM"),
    ),
    "what is included": included,
    "a work tree's own": of_the_worktree,
    "a partial clone": partial_clone,
    "a remote that is a partial clone": partial_remote,
    "a bare repository within": bare_within,
    "a repository that is elsewhere": elsewhere,
    "a setting of the command": said("git -c remote.origin.url=ext::PROGRAM push origin HEAD:main"),
    "the way of the command": said(
        "GIT_SSH_COMMAND=PROGRAM git -c core.sshCommand=PROGRAM -c remote.origin.url=git@localhost:x push"
        " origin HEAD:main"
    ),
    "a program of a common name": on_the_path,
}


@pytest.mark.parametrize("way", ARRANGED)
def test_no_program_that_a_repository_names_is_run(home: Home, race: Race, way: str) -> None:
    command = ARRANGED[way](race, program(race)) or PUSH
    trace = race.folder / "trace"
    trace.unlink(missing_ok=True)
    here = f"{os.environ['PATH']}" if way != "a program of a common name" else f".::{os.environ['PATH']}"
    race.told(home, race.second, command, PATH=here)
    assert not trace.exists(), "an agent's hook has run it"
    (path,) = spooled(home)
    assert len(json.loads(path.read_bytes())["pushes"]) == 1
    client = [sys.executable, "-I", "-S", str(CLIENT), "pre-push", "origin", str(race.remote)]
    shas = [race.git(race.remote, "rev-parse", name).strip() for name in ("main", "main~1")]
    lines = (
        f"HEAD {'1' * 40} refs/heads/main {shas[0]}\nrefs/heads/work {shas[1]} refs/heads/work {shas[0]}\n"
    )
    folder = race.first if command.startswith("git -C") else race.second
    environ = {**race.environ(home), "PATH": here}
    subprocess.run(
        client,
        cwd=folder,
        env=environ,
        input=lines,
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert not trace.exists(), "git's own hook has run it"


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/srv/x.git", "/srv/x.git"),
        ("../x.git", "/top/../x.git"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("./odd:name", "/top/./odd:name"),
        ("git@host:x", None),
        ("host:x", None),
        ("ssh://git@host:22/x", None),
        ("https://user:word@host/x", None),
        ("git://host/x", None),
    ],
)
def test_what_git_reaches_by_itself_may_be_asked(url: str, folder: str | None) -> None:
    address = address_of(url, "/top")
    assert address is not None
    assert address.folder == folder


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c x",
        "fd::7",
        "hg::https://host/x",
        "ftp://host/x",
        "foo://host/x",
        "ssh://-oProxyCommand=x/y",
        "git@-oProxyCommand=x:y",
        "-x:y",
    ],
)
def test_what_git_needs_a_program_for_is_not_asked(url: str) -> None:
    assert address_of(url, "/top") is None
