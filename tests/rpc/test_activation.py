import ctypes
import os
import socket
from pathlib import Path

import pytest

from omegad.rpc import activation, endpoint
from omegad.runtime.errors import Unavailable

OWN = str(os.getpid())


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"LISTEN_PID": "1", "LISTEN_FDS": "1"},
        {"LISTEN_FDS": "1"},
        {"LISTEN_PID": OWN, "LISTEN_FDS": "0"},
        {"LISTEN_PID": OWN, "LISTEN_FDS": "many"},
        {"LISTEN_PID": OWN, "LISTEN_FDS": "9" * 5_000},
    ],
    ids=["nothing", "another process", "nobody", "none", "no number", "too many"],
)
@pytest.mark.skipif(os.uname().sysname != "Linux", reason="elsewhere it is launchd that is asked")
def test_what_is_not_for_this_process_is_not_taken_and_children_are_told_nothing(
    environ: dict[str, str],
) -> None:
    assert activation.passed(environ) == []
    assert environ == {}


class Launchd:
    """The functions of macOS' C library that are asked."""

    def __init__(self, status: int, descriptors: tuple[int, ...]) -> None:
        self._status = status
        self._array = (ctypes.c_int * len(descriptors))(*descriptors)
        self.asked = b""
        self.freed = 0

    def launch_activate_socket(self, name: bytes, descriptors: object, count: object) -> int:
        self.asked = name
        if self._status == 0:
            ctypes.cast(descriptors, ctypes.POINTER(ctypes.c_void_p))[0] = ctypes.addressof(self._array)  # type: ignore[arg-type]
            ctypes.cast(count, ctypes.POINTER(ctypes.c_size_t))[0] = len(self._array)  # type: ignore[arg-type]
        return self._status

    def free(self, array: ctypes.c_void_p) -> None:
        assert array.value == ctypes.addressof(self._array)
        self.freed += 1


def test_launchd_is_asked_by_name_and_its_array_freed() -> None:
    library = Launchd(0, (5, 7))
    assert activation.of_launchd(library) == [5, 7]
    assert (library.asked, library.freed) == (b"Listener", 1)
    no_such_process = Launchd(3, ())
    assert activation.of_launchd(no_such_process) == []
    assert no_such_process.freed == 0


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path / "run")
    return tmp_path / "run" / "s"


def listener(name: Path, *, mode: int = 0o600, is_listening: bool = True) -> int:
    found = socket.socket(socket.AF_UNIX)
    found.bind(name.name)  # relative, for the shortness of names
    name.chmod(mode)
    if is_listening:
        found.listen()
    return found.detach()


def test_the_passed_socket_is_served_and_left_and_the_others_are_closed(path: Path) -> None:
    other = os.open(os.devnull, os.O_RDONLY)
    ours = listener(path)
    with endpoint.listening(path, [ours, other]) as served:
        assert served.fileno() == ours
    assert path.is_socket()


@pytest.mark.parametrize("passed", ["elsewhere", "deaf", "open to others", "no socket", "closed"])
def test_a_passed_socket_that_cannot_be_ours_is_refused(path: Path, passed: str) -> None:
    match passed:
        case "elsewhere":
            descriptor = listener(path.with_name("t"))
        case "deaf":
            descriptor = listener(path, is_listening=False)
        case "open to others":
            descriptor = listener(path, mode=0o666)
        case "no socket":
            descriptor = os.open(os.devnull, os.O_RDONLY)
        case _:
            descriptor = 987
    with pytest.raises(Unavailable), endpoint.listening(path, [descriptor]):
        pass
