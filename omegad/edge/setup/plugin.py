"""The folder of a Claude Code plugin, of the same facts that setup writes into its settings."""

import json
from contextlib import suppress
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
    files = {
        ".claude-plugin/plugin.json": MANIFEST,
        ".claude-plugin/marketplace.json": MARKETPLACE,
        "hooks/hooks.json": {"hooks": hooks(HOST, commands)},
        ".mcp.json": {"mcpServers": {NAME: server(HOST, commands)}},
    }
    manifest = folder / ".claude-plugin" / "plugin.json"
    is_ours = False
    with suppress(OSError, ValueError, KeyError, TypeError):
        is_ours = json.loads(manifest.read_bytes())["name"] == NAME
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not is_ours)):
        raise Refused(
            f"{folder} is there already and holds something else", hint="name a folder that is new or empty"
        )
    texts = {name: f"{json.dumps(content, indent=2)}\n" for name, content in files.items()}
    written = []
    for name, text in (texts | {"skills/memory/SKILL.md": SKILL}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
