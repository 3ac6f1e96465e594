"""Where the socket lives, and who may be at either end of it.

Invariant: a socket is replaced only by the holder of the home's lock, and only when nothing listens on it.
"""

import errno
import fcntl
import os
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from omegad.runtime.errors import AlreadyRunning, NoDaemon, Unavailable

BACKLOG = 1024  # a connect to a full backlog fails at once when it must not block
LOCK_TRIES = 10
LOCK_RETRY_S = 0.01
HOLDER_BYTES = 32  # all that an omegad reads that knows of no socket there
SOCKET_BYTES = 4_096

# <sys/un.h> and <sys/ucred.h> of macOS; Python has no names for them.
DARWIN_SOL_LOCAL = 0
DARWIN_LOCAL_PEERCRED = 1
DARWIN_XUCRED_BYTES = 76
DARWIN_LOCAL_PEERPID = 2


def private_directory(path: Path, variable: str = "OMEGAD_SOCKET") -> None:
    """Make *path*, which *variable* names, if need be, for this user alone; raise `Unavailable` when
    others could get into it.
    """
    elsewhere = f"set {variable} to another place"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise Unavailable(f"{path} cannot be made a directory: {error.strerror}", hint=elsewhere) from error
    if not stat.S_ISDIR(found.st_mode):
        raise Unavailable(f"{path} is not a directory of its own", hint=f"remove it, or {elsewhere}")
    if found.st_uid != os.geteuid():
        raise Unavailable(f"{path} belongs to another user", hint=elsewhere)
    if found.st_mode & 0o077:
        is_ours = (path / "log.db").exists() or {one.name for one in path.iterdir()} <= {"config.toml"}
        hint = f"chmod 700 {path}" if is_ours else f"it holds other things: {elsewhere}"
        raise Unavailable(f"{path} is open to other users", hint=hint)


@contextmanager
def lock(path: Path, socket_path: Path | None = None) -> Iterator[None]:
    """Hold *path*, with this process's id in it and the socket that it will listen on, for the length of the
    block; raise `AlreadyRunning` when another does.

    The file stays: removing it could let two processes lock two files of the same name.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be opened: {error.strerror}",
            hint="the home must be writable; OMEGAD_HOME names another",
        ) from error
    try:
        tries = LOCK_TRIES
        while not _take(descriptor, fcntl.LOCK_EX):
            if tries := tries - 1:
                time.sleep(LOCK_RETRY_S)  # for who only looks whether it is held
                continue
            raise AlreadyRunning(
                f"another omegad serves this home (process {_named(descriptor) or 'unknown'})"
            )
        os.ftruncate(descriptor, 0)
        named = f"{os.getpid()}\n".encode()
        where = b"" if socket_path is None else os.fsencode(socket_path)
        os.write(descriptor, named.ljust(HOLDER_BYTES) + where if where else named)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path) -> int | None:
    """Return the process that holds the lock at *path*, 0 where it has not said which it is, None where none
    does.

    What the file says counts only while the lock is held: a number that a power cut left in it may be
    anybody's by then.
    """
    held = _held(path)
    return None if held is None else held[0]


def served_at(path: Path) -> Path | None:
    """Return the socket that the holder of the lock at *path* listens on, or will; None where none says."""
    where = (_held(path) or (0, b""))[1]
    return Path(os.fsdecode(where)) if where else None


def _held(path: Path) -> tuple[int, bytes] | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if _take(descriptor, fcntl.LOCK_SH):
            return None
        return _named(descriptor), os.pread(descriptor, SOCKET_BYTES, HOLDER_BYTES)
    finally:
        os.close(descriptor)


def _take(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _named(descriptor: int) -> int:
    written = os.pread(descriptor, HOLDER_BYTES, 0).strip()
    return int(written) if written.isdigit() else 0


@contextmanager
def listening(path: Path, passed: Sequence[int] = ()) -> Iterator[socket.socket]:
    """Listen at *path* for this user alone, for the length of the block. The caller holds the home's lock.

    A socket that nobody listens on is replaced; anything else there is left alone, and refused. Where a
    service manager has *passed* descriptors, one of them has to listen there, and its socket stays when the
    block ends: the manager still listens on it.
    """
    private_directory(path.parent)
    if passed:
        with inherited(path, passed) as listener:
            yield listener
        return
    _refuse_unless_stale(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            ours = _listen_at(path, listener)
        except OSError as error:
            raise Unavailable(
                f"{path} cannot be made a socket: {error}", hint="set OMEGAD_SOCKET to another place"
            ) from error
        try:
            yield listener
        finally:
            with suppress(OSError):  # it is gone, or whoever starts next takes its place
                if os.path.samestat(path.lstat(), ours):
                    path.unlink()


def _listen_at(path: Path, listener: socket.socket) -> os.stat_result:
    """Make *listener* listen at *path*; return what its file is. Raises `OSError`."""
    # A short name, because it has to fit where the socket's own name fits.
    temporary = path.with_name(f".{os.getpid():x}.s")
    temporary.unlink(missing_ok=True)
    umask = os.umask(0o077)
    try:
        listener.bind(str(temporary))
    finally:
        os.umask(umask)
    temporary.chmod(0o600)
    ours = temporary.stat()
    listener.listen(BACKLOG)  # before anyone can see it, so that nobody finds it deaf
    temporary.rename(path)
    return ours


def inherited(path: Path, passed: Sequence[int]) -> socket.socket:
    """Return the socket among descriptors that listens at *path*, and close the others; raise
    `Unavailable` where none does.
    """
    listener, elsewhere = None, []
    for descriptor in passed:
        with suppress(OSError):  # no socket
            candidate = socket.socket(fileno=descriptor)
            name = candidate.getsockname() if candidate.family == socket.AF_UNIX else ""
            is_listening = candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if (
                listener is None
                and is_listening
                and isinstance(name, str)
                and name
                and os.path.realpath(name) == os.path.realpath(path)
            ):
                listener = candidate
            else:
                elsewhere.append(str(name or descriptor))
                candidate.close()
    if listener is None:
        found = f" but at {', '.join(elsewhere)}" if elsewhere else ""
        raise Unavailable(
            f"the service manager does not listen at {path}{found}", hint="run `omegad service install` again"
        )
    if path.lstat().st_mode & 0o077:
        listener.close()
        raise Unavailable(f"{path} is open to other users", hint="run `omegad service install` again")
    return listener


def _refuse_unless_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise Unavailable(
            f"{path} is there and is not a socket", hint="move it away, or set OMEGAD_SOCKET to another place"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        if probe.connect_ex(str(path)) != errno.ECONNREFUSED:
            raise AlreadyRunning(
                f"something listens on {path}",
                hint="two homes cannot share a socket: set OMEGAD_SOCKET for one of them",
            )


def connect(path: Path, timeout_s: float | None = None) -> socket.socket:
    """Connect to the daemon at *path*.

    Raises `NoDaemon` when nothing answers there, and `Unavailable`, before anything is sent, when another
    user's process does.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(str(path))
        owner = peer_uid(connection)
    except OSError as error:
        connection.close()
        raise NoDaemon(f"no omegad answers on {path}: {error.strerror or error}") from error
    if owner != os.geteuid():
        connection.close()
        raise Unavailable(
            f"{path} is served by another user", hint="set OMEGAD_SOCKET to a socket of your own"
        )
    return connection


def peer_uid(connection: socket.socket) -> int:
    """Return the user at the other end, as the kernel knows it. Raises `OSError` when it does not."""
    if sys.platform == "darwin":
        credentials = connection.getsockopt(DARWIN_SOL_LOCAL, DARWIN_LOCAL_PEERCRED, DARWIN_XUCRED_BYTES)
        return int(struct.unpack_from("=II", credentials)[1])
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
    return int(struct.unpack("=iII", credentials)[1])


def peer_pid(connection: socket.socket) -> int:
    """Return the process at the other end, as the kernel knows it; 0 where it does not."""
    try:
        if sys.platform == "darwin":
            return connection.getsockopt(DARWIN_SOL_LOCAL, DARWIN_LOCAL_PEERPID)
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
        return int(struct.unpack("=iII", credentials)[0])
    except OSError:
        return 0
