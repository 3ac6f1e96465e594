"""What people tell their agents in files: CLAUDE.md, AGENTS.md and the like. Each point of a list is a
constraint, or a preference.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from omegad.edge.transfer.found import Beginning, Finding, Found, LeftOut, Source, checked, modified_at
from omegad.edge.transfer.reading import text_file
from omegad.runtime.private import public_text
from omegad.runtime.repository import project_of

NAMES = frozenset(
    {
        "claude.md",
        "claude.local.md",
        "agents.md",
        "gemini.md",
        "copilot-instructions.md",
        "memory.md",
        ".cursorrules",
        ".windsurfrules",
    }
)
OF_THE_USER = frozenset({".claude", ".codex", ".gemini", ".config"})
"""Folders whose files hold for all projects."""

FILE_BYTES_MAX = 1024 * 1024
WORDS_MIN = 3

_POINT = re.compile(r"[ \t]{0,32}(?:[-*+]|\d{1,3}[.)])[ \t]{1,8}(?:\[[ xX]\][ \t])?(.*)")
_BINDING = re.compile(
    r"\b(?:never|always|must|shall|do not|don't|cannot|only|required|forbidden|no)\b", re.IGNORECASE
)
_OURS = ("<!-- omegad:begin -->", "<!-- omegad:end -->")


def recognises(path: Path, _beginning: Beginning) -> bool:
    """Say whether its name is one of such files."""
    return path.name.casefold() in NAMES and path.is_file()


def read(path: Path) -> Iterator[Finding]:
    """Yield each point of a list, with the headings above it as tags. Raises `Invalid` for a file that is
    no text.
    """
    text = public_text(text_file(path, FILE_BYTES_MAX))
    folder = path.absolute().parent
    project = None if folder == Path.home() or folder.name in OF_THE_USER else project_of(str(folder))
    for heading, point in _points(text):
        source_id = sha256(point.encode()).hexdigest()[:16]
        if len(point.split()) < WORDS_MIN:
            yield LeftOut(source_id, "too short to say something by itself")
            continue
        yield checked(
            Found(
                source_id=source_id,
                content=point,
                created_at=modified_at(path),
                event_type="constraint" if _BINDING.search(point) else "user_preference",
                tags=(heading,) if heading else (),
                project=project,
                metadata={"file": path.name},
            )
        )


def _points(text: str) -> Iterator[tuple[str, str]]:
    """Yield the points of lists outside of code and of what omegad wrote itself, each with its heading."""
    heading, point, is_code, is_ours = "", list[str](), False, False
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        is_ours = (is_ours or stripped == _OURS[0]) and stripped != _OURS[1]
        is_fence = stripped.startswith(("```", "~~~"))
        found = None if is_code or is_ours or is_fence else _POINT.match(line)
        goes_on = (
            point
            and found is None
            and stripped
            and line[:1] in " \t"
            and not (is_code or is_fence or is_ours)
        )
        if point and not goes_on:
            yield heading, " ".join(point)
            point = []
        if found:
            point = [found[1].strip()]
        elif goes_on:
            point.append(stripped)
        elif stripped.startswith("#") and not is_code:
            heading = stripped.lstrip("#").strip()
        is_code = is_code != is_fence


SOURCE = Source("instructions", "CLAUDE.md, AGENTS.md and other files of instructions", recognises, read)
