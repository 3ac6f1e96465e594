"""The two commands that hosts are told to run, and how they are recognised in their files."""

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from omegad.runtime.errors import Unavailable

ALONE = ("-I", "-S")
"""The interpreter's options: nothing of the environment or the folder, and no site-packages, which these
files do without.
"""
HOOK_CLIENT = "hook_client.py"
MCP_BRIDGE = "mcp_bridge.py"
WORDS_MAX = 5  # interpreter, its two options, the file, and the event


class Commands(NamedTuple):
    """The interpreter and the package's folder, both absolute; a virtual environment's interpreter by its
    own path, not what it links to.
    """

    python: str
    package: str

    def hook(self, event: str) -> str:
        """Return the shell command of a hook, the same one whenever it is asked for."""
        return shlex.join([self.python, *ALONE, f"{self.package}/{HOOK_CLIENT}", event])

    def hook_words(self) -> list[str]:
        """Return a hook's command without its event, as words."""
        return [self.python, *ALONE, f"{self.package}/{HOOK_CLIENT}"]

    def server(self) -> list[str]:
        """Return the command of the MCP server, as words."""
        return [self.python, *ALONE, f"{self.package}/{MCP_BRIDGE}"]

    def files(self) -> list[Path]:
        """Return the files that the commands run."""
        return [Path(self.package) / name for name in (HOOK_CLIENT, MCP_BRIDGE)]


def installed() -> Commands:
    """Return the commands of the omegad that runs."""
    if not sys.executable:
        raise Unavailable(
            "this Python does not know its own path",
            hint="run omegad from the virtual environment that it is installed in",
        )
    own, python = map(os.path.abspath, (__file__, sys.executable))
    return Commands(python, str(Path(own).parents[2]))


def is_ours(value: object) -> bool:
    """Say whether a JSON value is a hook or an MCP server of an omegad, this one or another.

    It is if it runs one of the two files of the package the way setup writes it, or is a group of such hooks
    and nothing else.
    """
    if not isinstance(value, dict):
        return False
    if isinstance(inner := value.get("hooks"), list):
        return bool(inner) and all(map(is_ours, inner))
    words, arguments = value.get("command"), value.get("args", [])
    try:
        words = shlex.split(words) if isinstance(words, str) else words
    except ValueError:  # a quotation that does not end
        return False
    if not isinstance(arguments, list):
        return False
    words = [*(words if isinstance(words, list) else ()), *arguments]
    return (
        len(ALONE) + 1 < len(words) <= WORDS_MAX
        and tuple(words[1:3]) == ALONE
        and str(words[3]).endswith((f"/omegad/{HOOK_CLIENT}", f"/omegad/{MCP_BRIDGE}"))
    )
