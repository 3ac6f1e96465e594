"""The folder of a Claude Code plugin, of the same facts that setup writes into its settings."""

import json
from pathlib import Path

from omegad import __version__
from omegad.edge.setup.commands import Commands
from omegad.edge.setup.content import NAME, hooks, packaged, server
from omegad.edge.setup.hosts import BY_NAME
from omegad.runtime.errors import Refused

HOST = BY_NAME["claude-code"]
ABOUT = "Long-term memory: decisions, lessons and unfinished work of earlier sessions, kept on this machine"
MANIFEST = {
    "name": NAME,
    "version": __version__,
    "description": ABOUT,
    "author": {"name": NAME},
    "license": "Apache-2.0",
}
MARKETPLACE = {
    "name": NAME,
    "description": ABOUT,
    "owner": {"name": NAME},
    "plugins": [{"name": NAME, "source": "./", "description": ABOUT}],
}
SKILL = f"""---
name: memory
description: Recall what earlier sessions decided and learned, and keep what this one does. \
Use before decisions, and when something was learned.
---

{packaged("instructions.md")}"""


def write(folder: Path, commands: Commands) -> list[Path]:
    """Write the plugin into a folder that is new, empty or holds an earlier one of it; return its files.
    Raises `Refused`.
    """
    manifest = folder / ".claude-plugin" / "plugin.json"
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not _is_ours(manifest))):
        raise Refused(
            f"{folder} is there already and holds something else", hint="name a folder that is new or empty"
        )
    written = []
    for name, content in _files(commands).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            content if isinstance(content, str) else f"{json.dumps(content, indent=2)}\n", encoding="utf-8"
        )
        written.append(path)
    return written


def _files(commands: Commands) -> dict[str, object]:
    return {
        ".claude-plugin/plugin.json": MANIFEST,
        ".claude-plugin/marketplace.json": MARKETPLACE,
        "hooks/hooks.json": {"hooks": hooks(HOST, commands)},
        ".mcp.json": {"mcpServers": {NAME: server(HOST, commands)}},
        "skills/memory/SKILL.md": SKILL,
    }


def _is_ours(manifest: Path) -> bool:
    try:
        return bool(json.loads(manifest.read_bytes())["name"] == NAME)
    except (OSError, ValueError, KeyError, TypeError):
        return False
