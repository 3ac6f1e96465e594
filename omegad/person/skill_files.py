"""Skills' files: a lesson is appended to `{folder}/{skill}/SKILL.md`, whole or not at all, and once."""

import os
import re
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from omegad.person.events import FailureReason
from omegad.runtime.alone import sync

FILE = "SKILL.md"
FILE_BYTES_MAX = 1024 * 1024
UNFINISHED = ".SKILL.md.omegad"
SECTION = "## Lessons Learned"
TRIES = 3  # where somebody else writes the file at the same time

_NAME = re.compile(r"\w[\w.-]{0,127}")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_SECTION = re.compile(r" {0,3}## +lessons learned[ #]*", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}##? ")

_writing = threading.Lock()


def improve(folders: Sequence[Path], skill: str, lesson: str) -> FailureReason | None:
    """Append a lesson, one line, to the file of a skill in the first folder that has it; return why that
    cannot be, None when it is there.

    A lesson that the section has already is left at that, so this may be done again.
    """
    if not _NAME.fullmatch(skill):
        return "name_refused"
    for folder in folders:
        try:
            path = (folder / skill / FILE).resolve(strict=True)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, RuntimeError):  # a link to itself
            return "unreadable"
        if not path.is_relative_to(folder.resolve()):
            return "name_refused"
        with _writing:
            return _append(path, lesson)
    return "not_found"


def _append(path: Path, lesson: str) -> FailureReason | None:
    for _ in range(TRIES):
        try:
            text, known = _read(path)
        except (OSError, ValueError):
            return "unreadable"
        changed = with_lesson(text, lesson)
        if changed == text:
            return None
        try:
            if _replace(path, changed.encode(), known):
                return None
        except OSError:
            break
    return "unwritable"


def _read(path: Path) -> tuple[str, os.stat_result]:
    """Return a file's text, and what tells whether it is still the same. Raises `OSError`, and
    `ValueError` for what is no text of this size.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode) or known.st_size > FILE_BYTES_MAX:
            raise ValueError(path)
        return file.read().decode(), known


def _replace(path: Path, data: bytes, known: os.stat_result) -> bool:
    """Put *data* in a file's place with its mode; say whether the file was still the one that is *known*.
    Raises `OSError`.
    """
    unfinished = path.with_name(UNFINISHED)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, stat.S_IMODE(known.st_mode))
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        present = path.stat()
        if (present.st_ino, present.st_mtime_ns, present.st_size) != (
            known.st_ino,
            known.st_mtime_ns,
            known.st_size,
        ):
            return False
        unfinished.replace(path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    sync(path.parent)
    return True


def with_lesson(text: str, lesson: str) -> str:
    """Return a skill's text with a lesson at the end of its section, which is made where there is none;
    the same text where it is there.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines, item = text.split("\n"), f"- {lesson}"
    fences = [place for place, line in enumerate(lines) if _FENCE.match(line)]
    blocks = [range(first, last + 1) for first, last in zip(fences[::2], fences[1::2], strict=False)]
    # A block that is never closed is none.
    inside = set[int]() if len(fences) % 2 else set(chain.from_iterable(blocks))
    outside = set(range(len(lines))) - inside
    start = next((place for place in sorted(outside) if _SECTION.fullmatch(lines[place].rstrip())), None)
    if start is None:
        gap = newline if not text or text.endswith("\n") else 2 * newline
        return f"{text}{gap if text else ''}{SECTION}{newline}{newline}{item}{newline}"
    end = next(
        (
            place
            for place in range(start + 1, len(lines))
            if place in outside and _HEADING.match(lines[place])
        ),
        len(lines),
    )
    if any(line.rstrip() == item.rstrip() for line in lines[start:end]):
        return text
    last = next(place for place in range(end - 1, start - 1, -1) if lines[place].strip())
    ending = newline.removesuffix("\n")
    before = lines[: last + 1]
    before[-1] = before[-1].removesuffix("\r") + ending
    added = [ending] if last == start else []
    after = lines[last + 1 :] or [""]
    return "\n".join([*before, *added, item + ending, *after])
