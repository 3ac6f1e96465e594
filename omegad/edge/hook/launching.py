"""A daemon that is started in the background, by a hook or by the MCP server of a session.

Of the standard library alone, as they are.
"""

from __future__ import annotations

import fcntl
import os
import sys

from omegad.runtime import derived

TYPE_CHECKING = False  # typing would be a tenth of what the MCP server occupies
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

LOCK = "starting.lock"
NO_SPAWN = "OMEGAD_NO_SPAWN"
"""Is set for what `omegad --no-spawn` becomes."""


def started(home: bytes, environ: Mapping[str, str], *, is_heard: bool) -> subprocess.Popen[bytes] | None:
    """Begin to start a daemon of this version, in the place of an older one if need be, and wait for nothing;
    None where somebody else does: whoever starts one has the lock as its input. What it complains of comes
    through a pipe where it is heard. Raises `OSError`.
    """
    if NO_SPAWN in environ:
        raise ConnectionRefusedError("none runs, and none may be started")
    folder = os.path.abspath(os.fsdecode(home))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        import subprocess  # noqa: PLC0415  costs more than all the rest, and one session of many needs it

        given = {**derived.importing(environ), "OMEGAD_HOME": folder}
        if explicit := environ.get("OMEGAD_SOCKET"):
            given["OMEGAD_SOCKET"] = os.path.abspath(os.path.expanduser(explicit))
        command = [sys.executable, "-P", "-m", "omegad", "start"]
        nowhere, heard = subprocess.DEVNULL, subprocess.PIPE if is_heard else subprocess.DEVNULL
        return subprocess.Popen(  # noqa: S603
            command, env=given, cwd=folder, stdin=lock, stdout=nowhere, stderr=heard, start_new_session=True
        )
    except BlockingIOError:
        return None
    finally:
        os.close(lock)
