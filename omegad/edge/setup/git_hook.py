"""The hook that git itself runs before a push: what it says, where it goes, and what is to become of it."""

import shlex
import subprocess
from pathlib import Path

from omegad.edge.setup.commands import Commands
from omegad.edge.setup.planning import Change, planned
from omegad.runtime.errors import NotFound, Refused, Unavailable

EVENT = "pre-push"
MARK = "# omegad's push guard; `omegad setup git-hook --remove` takes it away\n"
EXECUTABLE = 0o755


def hook_path(folder: Path) -> Path:
    """Return where the repository of a folder, of whichever of its work trees, has this hook; raises
    `NotFound` outside of any.
    """
    try:
        asked = subprocess.run(  # noqa: S603  nothing of it is anybody's input
            ["git", "rev-parse", "--git-path", f"hooks/{EVENT}"],  # noqa: S607  the person's own git
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise Unavailable("there is no git here", hint="install git, then run it again") from None
    if asked.returncode:
        raise NotFound(
            f"{folder} is in no git repository", hint="run it in the repository that is to have the hook"
        )
    return Path(folder, asked.stdout.removesuffix("\n")).resolve().parent / EVENT


def plan(path: Path, commands: Commands, *, removing: bool) -> Change:
    """Return what is to become of the hook, which lets every push pass where omegad is gone; another's is
    left alone.
    """
    python, client = shlex.quote(commands.python), shlex.quote(commands.hook_words()[-1])
    line = f'{commands.hook(EVENT)} "$@"'

    def hook(before: str | None) -> str | None:
        if before is None or MARK in before:
            ours = f"#!/bin/sh\n{MARK}[ -x {python} ] && [ -f {client} ] || exit 0\nexec {line}\n"
            return None if removing else ours
        if removing:
            return before
        raise Refused(
            "it is a hook that omegad did not write",
            hint=f"let it run this line, with git's own input: {line} || exit",
        )

    return planned(path, hook, mode=EXECUTABLE)
