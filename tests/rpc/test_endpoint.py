import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omegad.rpc import endpoint
from omegad.runtime.errors import AlreadyRunning, NoDaemon, Unavailable
from tests.rpc.raw_client import socket_path as short_socket_path

ROOT = Path(__file__).parents[2]


@pytest.fixture
def socket_path() -> Iterator[Path]:
    with short_socket_path() as path:
        yield path


@pytest.fixture(autouse=True)
def loose_umask() -> Iterator[None]:
    # With the strictest umask the modes would be right by accident.
    before = os.umask(0o000)
    yield
    os.umask(before)


def test_the_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    endpoint.private_directory(tmp_path / "run")
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700
    endpoint.private_directory(tmp_path / "run")


@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o777, 0o720])
def test_a_directory_that_others_can_enter_is_refused_with_the_way_out(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "run"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(Unavailable, match="open to other users") as refusal:
        endpoint.private_directory(path)
    assert refusal.value.hint == f"chmod 700 {path}"


@pytest.mark.parametrize(("name", "way"), [("config.toml", "chmod 700"), ("notes.txt", "to another place")])
def test_a_home_in_which_only_settings_are_is_to_be_closed_and_no_other_folder(
    tmp_path: Path, name: str, way: str
) -> None:
    (tmp_path / name).touch()
    tmp_path.chmod(0o755)
    with pytest.raises(Unavailable, match="open to other users") as refusal:
        endpoint.private_directory(tmp_path, "OMEGAD_HOME")
    assert way in refusal.value.hint


def test_a_directory_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="not a directory of its own"):
        endpoint.private_directory(tmp_path / "run")


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint.private_directory(tmp_path / "run")
    somebody_else = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody_else)
    with pytest.raises(Unavailable, match="another user"):
        endpoint.private_directory(tmp_path / "run")


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(Unavailable):
        endpoint.private_directory(tmp_path / "run")


def test_the_lock_names_its_holder_and_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "omegad.lock"
    with endpoint.lock(path):
        assert path.read_text() == f"{os.getpid()}\n"
        with pytest.raises(AlreadyRunning, match=str(os.getpid())), endpoint.lock(path):
            pytest.fail("two hold one lock")
        assert path.read_text() == f"{os.getpid()}\n"
    with endpoint.lock(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_another_process_cannot_hold_the_lock_and_the_death_of_its_holder_frees_it(tmp_path: Path) -> None:
    path = tmp_path / "omegad.lock"
    hold = "with endpoint.lock(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    program = f"import pathlib, sys\nfrom omegad.rpc import endpoint\n{hold}"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunning, match=str(holder.pid)), endpoint.lock(path):
            pytest.fail("two processes hold one lock")
        holder.kill()
        holder.wait()
        with endpoint.lock(path):
            assert path.read_text() == f"{os.getpid()}\n"


def test_a_lock_file_that_is_a_symlink_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "omegad.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Unavailable), endpoint.lock(tmp_path / "omegad.lock"):
        pytest.fail("it followed the link")
    assert (tmp_path / "precious").read_text() == "mine"


def test_the_socket_is_its_owners_alone_and_gone_afterwards(socket_path: Path) -> None:
    with endpoint.listening(socket_path):
        assert stat.S_IMODE(socket_path.stat().st_mode) == 0o600
        assert [path.name for path in socket_path.parent.iterdir()] == [socket_path.name]
        with endpoint.connect(socket_path, 5.0) as connection:
            assert endpoint.peer_uid(connection) == os.geteuid()
    assert not socket_path.exists()


def test_listening_leaves_the_umask_as_it_was(socket_path: Path) -> None:
    with endpoint.listening(socket_path):
        assert os.umask(0o000) == 0o000


def test_a_socket_that_a_dead_daemon_left_is_taken_over(socket_path: Path) -> None:
    endpoint.private_directory(socket_path.parent)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(socket_path))
        dead.listen()
    with pytest.raises(NoDaemon):
        endpoint.connect(socket_path, 5.0)
    with endpoint.listening(socket_path):
        endpoint.connect(socket_path, 5.0).close()


def test_a_socket_that_somebody_listens_on_is_left_alone(socket_path: Path) -> None:
    with endpoint.listening(socket_path):
        before = socket_path.stat().st_ino
        with pytest.raises(AlreadyRunning), endpoint.listening(socket_path):
            pytest.fail("two listen on one socket")
        assert socket_path.stat().st_ino == before
        endpoint.connect(socket_path, 5.0).close()


def test_a_file_that_is_no_socket_is_never_replaced(socket_path: Path) -> None:
    endpoint.private_directory(socket_path.parent)
    socket_path.write_text("precious")
    with pytest.raises(Unavailable, match="not a socket"), endpoint.listening(socket_path):
        pytest.fail("it replaced a file")
    assert socket_path.read_text() == "precious"


def test_a_socket_that_was_replaced_meanwhile_is_not_removed(socket_path: Path) -> None:
    with endpoint.listening(socket_path), socket.socket(socket.AF_UNIX) as other:
        socket_path.unlink()
        other.bind(str(socket_path))
    assert socket_path.exists()


def test_a_socket_in_an_open_directory_is_refused(socket_path: Path) -> None:
    socket_path.parent.mkdir(mode=0o755)
    with pytest.raises(Unavailable, match="open to other users"), endpoint.listening(socket_path):
        pytest.fail("it listened there")


def test_a_path_that_is_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable), endpoint.listening(tmp_path / ("x" * 100) / "omegad.sock"):
        pytest.fail("it listened there")


def test_no_daemon_is_found_where_there_is_none(socket_path: Path) -> None:
    with pytest.raises(NoDaemon) as refusal:
        endpoint.connect(socket_path, 5.0)
    assert refusal.value.hint == "run `omegad start`"


def test_a_socket_that_another_user_serves_is_not_spoken_to(
    socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint.listening(socket_path):
        monkeypatch.setattr(endpoint, "peer_uid", lambda _connection: os.geteuid() + 1)
        with pytest.raises(Unavailable, match="another user"):
            endpoint.connect(socket_path, 5.0)
