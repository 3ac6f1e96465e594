"""Which project a folder belongs to."""

from pathlib import Path

GITDIR = "gitdir: "
LEVELS_MAX = 64
LINE_MAX = 4_096


def project_of(folder: str | None) -> str | None:
    """Return the name of the repository that holds *folder*, whichever of its work trees that is, or the folder's own without one."""
    if not folder or "\0" in folder:
        return None
    path = Path(folder)
    for root in (path, *path.parents)[:LEVELS_MAX]:
        try:
            if (root / ".git").is_dir():
                return root.name or None
            if (root / ".git").is_file():
                return _main(root).name or None
        except OSError:
            break
    return path.name or None


def _main(root: Path) -> Path:
    """Return the folder of the repository's main work tree, given another one's."""
    with (root / ".git").open(encoding="utf-8", errors="replace") as file:
        line = file.readline(LINE_MAX).strip()
    parts = (root / line.removeprefix(GITDIR)).resolve().parts
    return Path(*parts[: parts.index(".git")]) if line.startswith(GITDIR) and ".git" in parts and "worktrees" in parts else root
