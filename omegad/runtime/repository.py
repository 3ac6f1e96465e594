"""Which project a folder belongs to. Of the standard library alone, and little of it: MCP's pipe asks."""

import os

GITDIR = "gitdir: "
LEVELS_MAX = 64
LINE_MAX = 4_096


def project_of(folder: str | None) -> str | None:
    """Return the name of the repository that holds *folder*, whichever of its work trees that is, or the
    folder's own without one.
    """
    if not folder or "\0" in folder:
        return None
    steps = [step for step in folder.split("/") if step not in {"", "."}]
    top = "/" if folder.startswith("/") else ""
    for depth in range(len(steps), max(-1, len(steps) - LEVELS_MAX), -1):
        root = top + "/".join(steps[:depth])
        git = os.path.join(root, ".git")
        if os.path.isdir(git):
            return os.path.basename(root) or None
        if os.path.isfile(git):
            try:
                line = first_line(git)
            except OSError:
                break
            parts = os.path.realpath(os.path.join(root, line.removeprefix(GITDIR))).split("/")
            if line.startswith(GITDIR) and ".git" in parts and "worktrees" in parts:
                root = "/".join(parts[: parts.index(".git")])  # the main work tree
            return os.path.basename(root) or None
    return steps[-1] if steps else None


def first_line(path: str) -> str:
    """Return the first line of a small file. Raises `OSError`."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.readline(LINE_MAX).strip()
