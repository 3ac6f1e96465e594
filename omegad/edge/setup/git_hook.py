"""The hook that git itself runs before a push: what it says, where it goes, and what is to become of it."""

import shlex
import subprocess
from pathlib import Path

from omegad.edge.setup import files
from omegad.edge.setup.commands import Commands
from omegad.edge.setup.planning import Change
from omegad.runtime.errors import NotFound, OmegadError, Unavailable

EVENT = "pre-push"
MARK = "# omegad's push guard; `omegad setup git-hook --remove` takes it away\n"
EXECUTABLE = 0o755


def text(commands: Commands) -> str:
    """Return the hook, which lets every push pass where omegad is gone."""
    python, client = shlex.quote(commands.python), shlex.quote(commands.hook_words()[-1])
    return (
        f'#!/bin/sh\n{MARK}[ -x {python} ] && [ -f {client} ] || exit 0\nexec {commands.hook(EVENT)} "$@"\n'
    )


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
    """Return what is to become of the hook; another's is left alone."""
    try:
        before = files.read(path)
    except OmegadError as error:
        return Change(path=path, parts=(), problem=str(error), hint=error.hint)
    if before is not None and MARK not in before:
        if removing:
            return Change(path=path, parts=(), before=before, after=before)
        line = f'{commands.hook(EVENT)} "$@" || exit'
        return Change(
            path=path,
            parts=(),
            problem="it is a hook that omegad did not write",
            hint=f"let it run this line, with git's own input: {line}",
        )
    return Change(path=path, parts=(), before=before, after=None if removing else text(commands))
