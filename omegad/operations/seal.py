"""A sealed home: what says so, the key, and how a home becomes sealed, or plain again.

`seal.toml` says where the key is and nothing of it. A change from one to the other is made beside the files
that are there, and happens at one rename, that of `log.db`; what was begun before that is taken away by the
next start, and what is left to do after it is done by the next start.
"""

import hmac
import os
import re
import stat
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from omegad.agents.spool import ASIDE, NOTE, PART, PART_S
from omegad.log import reading, verifying
from omegad.log.verifying import ChainCheck
from omegad.operations.files import SIDE_FILES
from omegad.operations.home_key import Seal, check_of, key_of, made
from omegad.runtime import alone, sealed_notes
from omegad.runtime.config import Paths
from omegad.runtime.errors import (
    LogBroken,
    Refused,
    Sealed,
    StorageCorrupt,
    StorageFailed,
)
from omegad.storage import driver, own_files, sealing
from omegad.storage.checkpointer import truncate
from omegad.storage.database import leave_wal, open_reader, open_writer, translated
from omegad.storage.driver import sqlite
from omegad.storage.wiping import UNFINISHED, overwrite
from omegad.views import generation
from omegad.views.past import UNFINISHED_COPY

BEGUN = "seal.toml.unfinished"
"""What `seal.toml` is called until all is sealed."""
ENDING = "unseal.unfinished"
"""What `seal.toml` is called from before the first file is plain until the last one is."""
CHANGED = ".changed"
"""What a file's name ends with that is made to take its place."""
PLAIN = ".plain"
"""What the name of a file that was sealed ends with, as it was before, until its bytes are overwritten."""
_ASIDE = re.compile(r"log\.db\.replaced-.*|.*\.of-another-log-.*")
_UNFINISHED = re.compile(
    rf"((log|embeddings|views-[0-9]+)\.db{re.escape(UNFINISHED)}|{re.escape(generation.SCRATCH)}"
    rf"|\.log\.db\.[0-9]+\.part){generation.BELONGING}"
)
_DAMAGED = re.compile(r"embeddings\.db\.damaged(-wal|-shm)?")
"""A cache of vectors that could not be read, of no use but to find out why."""
_HEADER = "# This home is sealed. Where its key is; without the key nobody can read it.\n"

Progress = Callable[[int, int, str], None]
"""Is told how much of how much is done, and what is counted."""


def told(paths: Paths) -> Seal | None:
    """Return what says that a home is sealed; None of one that is plain. Raises `Sealed` where what says so
    cannot be read.
    """
    for path in _saying(paths):
        if path.exists():
            return None if path != paths.seal and _is_plain(paths.log) else _read(path)
    return None


def is_said(paths: Paths) -> bool:
    """Say whether something says that a home is sealed, whatever it is."""
    return any(path.exists() for path in _saying(paths)) and not _is_plain(paths.log)


def broken_off(paths: Paths) -> Seal | None:
    """Return what tells of the key that a sealing has left which was killed, in a home that is plain and was
    not put in order since; None where there is nothing.
    """
    begun = paths.home / BEGUN
    if paths.seal.exists() or not (begun.exists() and _is_plain(paths.log)):
        return None
    with suppress(Sealed):
        return _read(begun)
    return None


def unlock(paths: Paths) -> Seal | None:
    """Hold the key of a home that is sealed, in this process, and return what says so; None of a plain one.

    Raises `Sealed` where the key is not there, or is another one, and `SealerMissing`. No file is changed.
    """
    if (seal := told(paths)) is None:
        return None
    if _is_plain(paths.log):
        raise Sealed(
            f"{paths.seal} says that the home is sealed, and {paths.log} is not",
            hint=f"put the sealed log back; or move {paths.seal} away, where the plain one is right",
        )
    sealing.hold(key_of(seal, paths.home))
    return seal


def check(paths: Paths) -> Seal | None:
    """Return as `unlock` does, and hold no key. Raises as it does, and `StorageCorrupt` for a log that is
    sealed, or damaged, where nothing says that the home is sealed.
    """
    if seal := told(paths):
        driver.sealing()
        key_of(seal, paths.home)
    else:
        _check_plain(paths)
    return seal


def enter(paths: Paths) -> Seal | None:
    """Finish, or take back, a change that was broken off, and return as `unlock` does. The caller holds the
    home's lock.
    """
    for name in (paths.seal.name, BEGUN):
        _part(paths.home / name).unlink(missing_ok=True)
    if (paths.home / ENDING).exists():
        if _is_plain(paths.log):
            _end_unsealed(paths)
            return None
        _take_back_unsealed(paths)
    if (paths.home / BEGUN).exists() and not paths.seal.exists() and _is_plain(paths.log):
        _take_back_sealed(paths)
    if (seal := unlock(paths)) is None:
        _check_plain(paths)
        return None
    _probe(paths.log)
    key = sealing.held()
    if key and not (Path(seal.packages) / "cryptography").is_dir():  # it was installed elsewhere
        seal = replace(seal, packages=made(key).packages)
        _write(paths.seal if paths.seal.exists() else paths.home / BEGUN, seal)
    if (paths.home / BEGUN).exists():
        _end_sealed(paths, seal)
    else:
        _seal_notes(paths, seal)
    return seal


def seal_home(paths: Paths, seal: Seal, progress: Progress) -> None:
    """Seal a home that is plain by the key that is held, which *seal* tells of. The caller holds the home's
    lock.

    Raises `LogBroken`, storage errors, and `Refused` for files that were set aside, which stay plain. `told`
    says whether the home is sealed then.
    """
    check_apart(paths)
    try:
        _write(paths.home / BEGUN, seal)
        for path in _databases(paths):
            _change(path, to_sealed=True, progress=progress)
        if paths.log.exists():
            _check_same(paths.log, progress)
            _put_in_place(paths.log, paths.home / f"{paths.log.name}{PLAIN}")
    except BaseException:
        if _is_plain(paths.log):
            _take_back_sealed(paths)
        raise
    _end_sealed(paths, seal)


def unseal_home(paths: Paths, progress: Progress) -> None:
    """Have a sealed home be plain. The caller holds the home's lock, and the process the key, which nothing
    needs any more once the log is plain. It stays where it is, for backups that are sealed by it.
    """
    try:
        paths.seal.replace(paths.home / ENDING)  # from now on hooks leave what happens plain
        alone.sync(paths.home)
        _open_notes(paths)
        for path in _databases(paths):
            _change(path, to_sealed=False, progress=progress)
        if paths.log.exists():
            _check_same(paths.log, progress)
            _put_in_place(paths.log)
    except BaseException:
        if not _is_plain(paths.log):
            _take_back_unsealed(paths)
            with suppress(OSError):  # as on a full disk; the next start does it
                _seal_notes(paths, _read(paths.seal))
        raise
    _end_unsealed(paths)


def check_recovered(paths: Paths, key: bytes) -> None:
    """Raise `Sealed` where the key, which the process holds, is not that of the home, if that is sealed, and
    `Refused` where it is plain and has a log.
    """
    if paths.log.exists() and paths.log.stat().st_size and _is_plain(paths.log):
        raise Refused("the home is plain, and needs no key")
    _probe(paths.log)
    try:
        seal = _read(paths.seal) if paths.seal.exists() else None
    except Sealed:
        return  # which is written anew
    if seal and not hmac.compare_digest(seal.check, check_of(key)):
        raise Sealed("that is not the key that this home is sealed by")


def recover(paths: Paths, seal: Seal) -> None:
    """Say in `seal.toml` where the key is now; the process holds it."""
    _write(paths.seal, seal)


def check_apart(paths: Paths) -> None:
    """Raise `Refused` where something was set aside, which nobody knows to be wanted, or not, or where a
    database is a link, so that what is plain would stay where it leads to.
    """
    if aside := set_aside(paths):
        raise Refused(
            f"{', '.join(path.name for path in aside)}: set aside, and plain, or sealed by a key of before",
            hint="remove them, or move them out of the home, and seal it then",
        )
    if links := [path for path in _databases(paths) if path.is_symlink()]:
        raise Refused(
            f"{', '.join(path.name for path in links)}: a link, and what it leads to would stay plain",
            hint="move what it leads to in its place, and seal the home then",
        )


def set_aside(paths: Paths) -> list[Path]:
    """Return the logs and views that were set aside, which stay as they are, plain or sealed."""
    return own_files.named(paths.home, _ASIDE)


def still_sealed(paths: Paths) -> list[Path]:
    """Return the logs and views that were set aside while the home was sealed, and are so still."""
    databases = (path for path in set_aside(paths) if not path.name.endswith(SIDE_FILES))
    return [path for path in databases if not sealing.is_plain(path)]


def _probe(path: Path) -> None:
    """Raise `Sealed` where the key that is held does not open a database that is there."""
    if not (path.exists() and path.stat().st_size):
        return
    with translated(path.name), closing(open_reader(path)) as connection:
        try:
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except sqlite.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite.SQLITE_NOTADB:
                raise
            raise Sealed(f"the home's key does not open {path}: it is damaged, or of another home") from error


def _saying(paths: Paths) -> tuple[Path, ...]:
    return paths.seal, paths.home / ENDING, paths.home / BEGUN


def _is_plain(path: Path) -> bool:
    return path.exists() and sealing.is_plain(path)


def _check_plain(paths: Paths) -> None:
    if paths.log.exists() and paths.log.stat().st_size and not _is_plain(paths.log):
        raise StorageCorrupt(
            f"{paths.log} is damaged, or it is sealed and {paths.seal.name} is gone",
            hint="restore it from a backup; or `omegad seal --recover`, where the home was sealed",
        )


def _databases(paths: Paths) -> list[Path]:
    """Return what is changed: the log last."""
    views = generation.current(paths.home)
    return [path for path in (paths.embeddings, views, paths.log) if path and path.exists()]


def _changed(path: Path) -> Path:
    return path.with_name(path.name + CHANGED)


def _change(path: Path, *, to_sealed: bool, progress: Progress) -> None:
    """Make the file that is to take the place of *path*, whole and on the disk; *path* is one file then."""
    progress(0, 1, f"{path.name}: files written")
    target = _changed(path)
    overwrite(target)
    with translated(path.name), sealing.as_is(path), closing(open_writer(path, durable=True)) as connection:
        if not truncate(connection, 0):
            raise StorageFailed(f"somebody else reads {path}", hint="close what reads it, and run this again")
        leave_wal(connection)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    with translated(path.name):
        sealing.convert(path, target, to_sealed=to_sealed)
    alone.sync(target)
    progress(1, 1, f"{path.name}: files written")


def _check_same(log: Path, progress: Progress) -> None:
    """Raise `LogBroken` where the log that is to take the place of another does not verify, or is another."""
    reports = []
    for path in (_changed(log), log):
        check = ChainCheck()
        with translated(path.name), sealing.as_is(path), closing(open_reader(path)) as connection:
            total = reading.head(connection)
            while check.verify(connection, verifying.VERIFY_CHUNK):
                progress(check.report.events, total, f"{path.name}: events verified")
        reports.append(check.report)
    if not all(report.ok for report in reports) or reports[0].head_hash != reports[1].head_hash:
        raise LogBroken("the log does not verify, so nothing was changed")


def _put_in_place(path: Path, left: Path | None = None) -> None:
    """Have what was made take the name *path*, and what had it before the name *left*; at each moment
    something has it.
    """
    if left:
        left.unlink(missing_ok=True)
        left.hardlink_to(path)
    _changed(path).replace(path)
    alone.sync(path.parent)


def _overwrite_left(left: Path, path: Path) -> None:
    """Overwrite what `_put_in_place` has left, unless it is still the one at *path*."""
    if path.exists() and left.samefile(path):
        left.unlink()
    else:
        overwrite(left)


def _end_sealed(paths: Paths, seal: Seal) -> None:
    """Put in place what was sealed beside the log, and overwrite what was plain."""
    views = generation.current(paths.home)
    for path in (paths.embeddings, views):
        if path and _changed(path).exists():
            _put_in_place(path, path.with_name(path.name + PLAIN))
    _remove_all_changed(paths)
    plain = [
        *own_files.named(paths.home, re.compile(rf".*{re.escape(PLAIN)}")),
        *(path for path in generation.files(paths.home) if sealing.is_plain(path)),
        *(path for path in (paths.embeddings,) if _is_plain(path)),
        *own_files.named(paths.home, _DAMAGED),
        *_of_the_past(paths),
        *_unfinished(paths),
    ]
    for path in plain:
        for suffix in ("", *SIDE_FILES):
            overwrite(path.with_name(path.name + suffix))
    _say(paths, BEGUN)
    _seal_notes(paths, seal)


def _end_unsealed(paths: Paths) -> None:
    """Put in place what was opened beside the log, and say nothing more of a seal."""
    views = generation.current(paths.home)
    for path in (paths.embeddings, views):
        if path and _changed(path).exists():
            _put_in_place(path)
    generation.remove_others(paths.home, *([views] if views else []))
    for path in _of_the_past(paths):
        path.unlink()
    (paths.home / ENDING).unlink()
    alone.sync(paths.home)


def _take_back_sealed(paths: Paths) -> None:
    """Take away what a sealing made that came to nothing."""
    _remove_all_changed(paths)
    for left in own_files.named(paths.home, re.compile(rf".*{re.escape(PLAIN)}")):
        _overwrite_left(left, left.with_suffix(""))
    (paths.home / BEGUN).unlink(missing_ok=True)
    alone.sync(paths.home)


def _take_back_unsealed(paths: Paths) -> None:
    """Take away what an unsealing made that came to nothing, and say again that the home is sealed."""
    _remove_all_changed(paths)
    _say(paths, ENDING)


def _say(paths: Paths, said: str) -> None:
    """Have `seal.toml` say what a file says that has another name; from then on hooks seal what they leave.
    Where it is there, the key was taken in again, and that is where it is.
    """
    if paths.seal.exists():
        (paths.home / said).unlink(missing_ok=True)
    else:
        (paths.home / said).replace(paths.seal)
    alone.sync(paths.home)


def _remove_all_changed(paths: Paths) -> None:
    for path in own_files.named(paths.home, re.compile(rf".*{re.escape(CHANGED)}(-journal)?")):
        overwrite(path)


def _of_the_past(paths: Paths) -> list[Path]:
    return own_files.named(
        paths.home / generation.PAST, re.compile(rf"(.*\.db|{UNFINISHED_COPY}){generation.BELONGING}")
    )


def _unfinished(paths: Paths) -> list[Path]:
    """Return what those have left who were killed: who made a database anew, verified views, restored a
    backup, or was a hook.
    """
    return [
        *own_files.named(paths.home, _UNFINISHED),
        *(
            path
            for path in own_files.named(paths.spool, PART)
            if path.lstat().st_mtime < time.time() - PART_S
        ),
    ]


def _notes(paths: Paths) -> Iterator[Path]:
    """Yield what hooks left, and what of it was set aside; take away what a change of one has left that was
    broken off.
    """
    for folder in (paths.spool, paths.spool / ASIDE):
        for part in own_files.named(folder, re.compile(rf".*{re.escape(CHANGED)}")):
            overwrite(part)
        for left in own_files.named(folder, re.compile(rf".*{re.escape(PLAIN)}")):
            _overwrite_left(left, left.with_suffix(""))
        yield from (path for path in own_files.named(folder, NOTE) if stat.S_ISREG(path.lstat().st_mode))


def _seal_notes(paths: Paths, seal: Seal) -> None:
    for path in _notes(paths):
        data = path.read_bytes()
        if not data.startswith(sealed_notes.MAGIC):
            sealed = sealed_notes.seal(bytes.fromhex(seal.hooks), os.fsencode(path.name), data)
            alone.write(_changed(path), sealed)
            _put_in_place(path, left := path.with_name(path.name + PLAIN))
            overwrite(left)


def _open_notes(paths: Paths) -> None:
    """Have what hooks left be plain. What the key that is held does not open stays, for the daemon to set
    aside.
    """
    key = sealing.held()
    assert key
    for path in _notes(paths):
        data = path.read_bytes()
        if data.startswith(sealed_notes.MAGIC):
            with suppress(ValueError):
                alone.write(_changed(path), sealed_notes.opened(key, os.fsencode(path.name), data))
                _put_in_place(path)


def _read(path: Path) -> Seal:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Seal)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise Sealed(
            f"{path} does not say what `omegad seal` writes: {error}",
            hint="put it back from a copy; or `omegad seal --recover` writes it anew",
        ) from None


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}")


def _write(path: Path, seal: Seal) -> None:
    part = _part(path)
    said = [
        f"{name} = {msgspec.json.encode(value).decode()}\n"
        for name, value in msgspec.structs.asdict(seal).items()
        if value
    ]
    part.unlink(missing_ok=True)
    alone.write(part, (_HEADER + "".join(said)).encode())
    part.replace(path)
    alone.sync(path.parent)
