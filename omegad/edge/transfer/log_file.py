"""A log as one file: copied while it is written, verified, and put in a home's place. A copy never goes into
a home, and in the place of nothing but an older copy.
"""

import os
import stat
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from omegad.log import reading, verifying
from omegad.log.verifying import ChainCheck, LogReport
from omegad.operations.files import SIDE_FILES
from omegad.runtime.alone import sync
from omegad.runtime.errors import Invalid, LogBroken, OmegadError, Refused, StorageCorrupt, StorageFailed
from omegad.storage import sealing
from omegad.storage.checkpointer import truncate
from omegad.storage.database import leave_wal, open_reader, open_writer, translated
from omegad.storage.driver import Connection, sqlite
from omegad.storage.transaction import snapshot
from omegad.views import log_check

PAGES_AT_ONCE = 1_024
UNCHANGED = "nothing was changed; `omegad verify` says more of a home's log"

ELSEWHERE = "name a file outside the home"
MAGIC = b"SQLite format 3\0"
WITHOUT_WAL = b"\x01\x01"
"""What the header of a backup says where that of a log that is in use says that it has a write-ahead log."""

Progress = Callable[[int, int, str], None]
"""Is told how much of how much is done, and what is counted."""


def copy(source: Path, target: Path, progress: Progress) -> LogReport:
    """Copy the log at *source*, as it is at one moment, to the empty file *target*, and verify the copy.

    Whoever writes the log goes on meanwhile. Raises `Invalid` where *source* is no log, `LogBroken` where the
    copy does not verify, and storage errors.
    """
    if sealing.held() and source.is_file() and sealing.is_plain(source):  # into a home that is sealed
        with translated():
            open_log(source).close()
            sealing.convert(source, target, to_sealed=True)
        return verify(target, progress)
    with translated(), closing(open_log(source)) as reader, closing(sqlite.connect(target)) as copied:
        sealing.unlock(copied)
        with snapshot(reader):  # or the copy would begin again with every commit
            reader.execute("SELECT 1 FROM identity").fetchone()
            reader.backup(
                copied,
                pages=PAGES_AT_ONCE,
                progress=lambda _, left, total: progress(total - left, total, "pages"),
            )
        leave_wal(copied)
    return verify(target, progress)


def pack(log: Path, target: Path, progress: Progress) -> LogReport:
    """Write the log at *log*, which nobody else uses, into the empty file *target*, without what is free in
    it, and verify that; *log* is one file then. Raises `LogBroken`, and storage errors.
    """
    open_log(log).close()
    with translated(log.name), closing(open_writer(log, durable=True)) as connection:
        if not truncate(connection, 0):
            raise StorageFailed(f"somebody else reads {log}", hint="close what reads it, and run this again")
        last = reading.chain_at(connection, head := reading.head(connection))
        progress(0, 1, "files written")
        connection.execute("VACUUM INTO ?", (os.fspath(target),))
        leave_wal(connection)
    report = verify(target, progress)
    if (report.events, report.head_hash) != (head, last.hex() if last else report.head_hash):
        raise LogBroken(f"what was packed of {log} is not what it says", hint=UNCHANGED)
    return report


def open_log(path: Path) -> Connection:
    """Open the log at *path* to read it. Raises `Invalid` where there is none, `LogBroken` where a newer
    version wrote it.
    """
    if not path.is_file():
        raise Invalid(f"there is no log at {path}", hint="--home or OMEGAD_HOME names another home")
    with sealing.as_is(path):
        connection = open_reader(path)
    try:
        reading.check_format(connection)
    except sqlite.DatabaseError as error:
        connection.close()
        hint = "a backup of a sealed home is read in a home that has its key: `omegad seal --recover`"
        raise Invalid(f"{path} is no log of omegad: {error}", hint=hint) from error
    except OmegadError:
        connection.close()
        raise
    return connection


def verify(path: Path, progress: Progress) -> LogReport:
    """Check every page of the log at *path*, and compute its whole chain again. Raises `LogBroken` where
    something is wrong.
    """
    check = ChainCheck()
    with translated(), closing(open_log(path)) as connection:
        total = reading.head(connection)
        try:
            damages = [
                str(row[0]) for row in connection.execute("PRAGMA integrity_check(1)") if row[0] != "ok"
            ]
            while check.verify(connection, verifying.VERIFY_CHUNK):
                progress(check.report.events, total, "events verified")
        except sqlite.DatabaseError as error:
            raise LogBroken(f"{path} is damaged after position {check.report.events}: {error}") from error
    if damages:
        raise LogBroken(f"{path} is damaged: {damages[0]}", hint=UNCHANGED)
    require(check.report, path)
    return check.report


def require(report: LogReport, path: Path) -> None:
    """Raise `LogBroken` unless the whole chain has verified."""
    if not report.ok:
        raise LogBroken(
            f"{path} does not verify: the hash chain breaks at position {report.first_bad}", hint=UNCHANGED
        )


def check_free(log: Path, *, may_replace: bool, hint: str) -> None:
    """Raise `Refused` where a home has a log with events that may not be replaced, or that cannot be read."""
    if may_replace or not log.exists() or log.stat().st_size == 0:
        return
    with suppress(Invalid, LogBroken, StorageCorrupt), translated(), closing(open_log(log)) as connection:
        if reading.head(connection) == 0:
            return
    raise Refused(f"{log} has events already", hint=hint)


def put_in_place(verified: Path, log: Path, now: datetime) -> list[Path]:
    """Make *verified*, which lies in the same folder, the home's log; return the new names of the log and the
    views that were there.

    The caller holds the home's lock. Views are renamed last: until then they keep a daemon from starting with
    a log that lacks what they saw.
    """
    aside = log.with_name(f"{log.name}.replaced-{now:%Y%m%dT%H%M%S%f}")
    moved = [aside] if log.exists() else []
    for suffix in (*SIDE_FILES, ""):  # a write-ahead log beside a file that is not its own would spoil it
        old = log.with_name(log.name + suffix)
        if old.exists():
            old.rename(aside.with_name(aside.name + suffix))
    sync(verified)
    verified.rename(log)
    sync(log.parent)
    return moved + log_check.set_aside(log.parent, now)


def check_outside(target: Path, home: Path) -> None:
    """Raise `Refused` where *target* lies in a home, by whichever name, or is one of the files of *home*.

    *home* is known by what it is, not by how it is spelled; another one by the lock that each home has.
    """
    for place in {Path(os.path.realpath(target.parent)), Path(os.path.realpath(target)).parent}:
        for folder in (place, *place.parents):
            if _is_same(folder, home) or (folder / "omegad.lock").is_file():
                raise Refused(f"{target} lies in the home {folder}", hint=ELSEWHERE)
    if target.exists() and home.is_dir() and any(_is_same(target, own) for own in home.iterdir()):
        raise Refused(f"{target} is a file of the home {home}", hint=ELSEWHERE)


def check_backup(path: Path) -> None:
    """Raise `Refused` unless *path* is what `omegad backup` made: a whole file with a log that is not in
    use. Its name does not count.
    """
    hint = "name another file, or move it away: only older backups are rotated"
    if not stat.S_ISREG(path.lstat().st_mode):
        raise Refused(f"{path} is no file, or a link", hint=hint)
    try:
        with path.open("rb") as file:
            header = file.read(20)
        if header[:16] == MAGIC and header[18:] != WITHOUT_WAL:
            raise Refused(f"{path} is no backup that omegad made", hint=hint)
        with closing(open_log(path)) as connection:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
                raise Refused(f"{path} is no backup that omegad made", hint=hint)
    except (OSError, OmegadError) as error:
        raise Refused(
            f"{path} is no backup that omegad made, or cannot be read: {error}", hint=hint
        ) from error


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False
