"""Whether the log is the one that the home's views were made from. Where it is not, they may hold the only
copy of what it has lost.
"""

from collections.abc import Iterable
from contextlib import closing
from datetime import datetime
from pathlib import Path

from omegad.log.checkpoint import Checkpoint
from omegad.log.event_log import EventLog
from omegad.runtime.errors import LogLost, OmegadError
from omegad.storage import own_files
from omegad.storage.database import open_reader, translated
from omegad.storage.driver import sqlite
from omegad.views import generation


def seen_by(path: Path) -> list[Checkpoint]:
    """Read the checkpoints of a file of views, without making anything in it; none where it cannot be
    read.
    """
    try:
        with translated(), closing(open_reader(path)) as connection:
            return list(generation.load_checkpoints(connection).values())
    except (OmegadError, sqlite.Error):  # it is damaged, or was never finished
        return []


def check_there(home: Path, log: Path) -> None:
    """Refuse, before it is made, a log that is missing or empty though views have seen events; its
    write-ahead log is then left alone.
    """
    if log.exists() and log.stat().st_size:
        return
    for path in generation.files(home):
        _refuse(path, (one for one in seen_by(path) if one.position), "which is missing or empty")


async def check(home: Path, log: EventLog) -> None:
    """Refuse a log that lacks, or has otherwise, what any file of views has seen. Raises `LogLost`."""
    for path in generation.files(home):
        others = [one for one in seen_by(path) if await log.chain_at(one.position) != one.chain]
        is_shorter = any(one.position > log.head for one in others)
        _refuse(path, others, f"which ends at {log.head}" if is_shorter else "which has another there")


def set_aside(home: Path, now: datetime) -> list[Path]:
    """Rename every file of views, so that the next start builds them from the log as it is; return the new
    names. Copies that show earlier moments are removed, of which nobody knows what that log has lost.
    """
    moved = []
    for copy in own_files.named(home / generation.PAST, generation.COPY):
        generation.remove(copy)
    for path in generation.files(home):
        aside = path.with_name(f"{path.name}.of-another-log-{now:%Y%m%dT%H%M%S%f}")
        for suffix in generation.SUFFIXES:
            belonging = path.with_name(path.name + suffix)
            if belonging.exists():
                belonging.rename(aside.with_name(aside.name + suffix))
        moved.append(aside)
    return moved


def _refuse(path: Path, others: Iterable[Checkpoint], but: str) -> None:
    latest = max(others, key=lambda one: one.position, default=None)
    if latest is not None:
        raise LogLost(f"{path} has seen event {latest.position} of log.db, {but}")
