"""That a hook says nothing to anybody else's process, wherever that listens in its daemon's place."""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from omegad.edge.hook import delivery as hook_delivery
from omegad.edge.mcp import pipe as mcp_bridge
from tests.acceptance.conftest import PATIENCE_S, Home, daemon, home, homes
from tests.edge.hook.conftest import CLIENT, begin, payload, spooled

__all__ = ["daemon", "home", "homes"]

NOBODY = 65_534
ALLOW = b'{"jsonrpc":"2.0","id":1,"result":{"exit_code":0,"stdout":"allowed","stderr":""}}\n'

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def impostor(path: str, uid: int, ready: Connection) -> None:
    """Listen at *path* as another user, and answer as a daemon would; tell what was heard."""
    os.setgid(uid)
    os.setuid(uid)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        Path(path).chmod(0o666)
        listener.listen()
        ready.send(None)
        connection = listener.accept()[0]
        connection.settimeout(PATIENCE_S)
        heard = connection.recv(1 << 16)
        if heard:
            connection.sendall(ALLOW)
        ready.send(heard)
        connection.close()


@contextmanager
def listening_as(uid: int, path: Path) -> Iterator[Connection]:
    """Have a process of that user listen; it says what it has heard."""
    ours, theirs = get_context("fork").Pipe()
    process = get_context("fork").Process(target=impostor, args=(str(path), uid, theirs))
    process.start()
    theirs.close()  # so that its end is heard
    try:
        assert ours.poll(PATIENCE_S), "it does not listen"
        ours.recv()
        yield ours
    finally:
        process.kill()
        process.join(PATIENCE_S)


@pytest.fixture
def crowd() -> Iterator[Path]:
    """A folder in which everybody may make files, as in that of temporary ones; its path is short enough
    for sockets.
    """
    with TemporaryDirectory() as made:
        folder = Path(made)
        for parent in folder.parents:
            mode = parent.stat().st_mode
            if not mode & 0o001:
                parent.chmod(mode | 0o711)
        folder.chmod(0o1777)
        yield folder


def printed(home: Home, **environ: str) -> bytes:
    """Return what a prompt's hook prints that knows of no other folder for all than the one of *environ*."""
    client = [
        "-c",
        f"""
import posix, sys
sys.path.append({str(CLIENT.parents[1])!r})
from omegad.edge.hook import delivery as hook_delivery
hook_delivery.SHARED = posix.environ.get(b"CROWD", b"/nowhere")
hook_delivery.STDIN_S = hook_delivery.LONG_S = {PATIENCE_S}
posix._exit(hook_delivery.main(sys.argv[1], sys.argv[2:]))
""",
    ]
    process = begin(home, "UserPromptSubmit", client, **environ)
    out, err = process.communicate(
        json.dumps(payload("UserPromptSubmit", prompt="what nobody else is to read")).encode(), PATIENCE_S
    )
    assert (process.returncode, err) == (0, b"")
    return out


@as_root
@pytest.mark.parametrize("folder_is_mine", [True, False])
def test_a_hook_says_nothing_to_another_users_process_and_heeds_nothing_that_it_says(
    home: Home, crowd: Path, *, folder_is_mine: bool
) -> None:
    folder = crowd / "omegad"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    with listening_as(NOBODY, folder / "omegad.sock") as heard:
        if folder_is_mine:
            os.chown(folder, 0, 0)
            folder.chmod(0o700)
        assert printed(home, OMEGAD_SOCKET=str(folder / "omegad.sock")) == b""
        assert not heard.poll() or heard.recv() == b""
    assert len(spooled(home)) == 1


@as_root
def test_the_folder_for_the_sockets_of_long_names_that_another_has_made_first_is_passed_over(
    home: Home, crowd: Path
) -> None:
    """Even where what listens there is this user's own, as behind a link that another has laid."""
    long = home.path / ("a" * 100)
    long.mkdir()
    theirs, mine = crowd / f"omegad-{os.getuid()}", crowd / "mine"
    mine.mkdir(mode=0o700)
    theirs.symlink_to(mine)
    os.chown(theirs, NOBODY, NOBODY, follow_symlinks=False)
    name = sha256(str(long).encode()).hexdigest()[:16]
    with listening_as(0, mine / f"{name}.sock") as heard:
        assert printed(home, OMEGAD_HOME=str(long), CROWD=str(crowd)) == b""
        assert not heard.poll()
        theirs.unlink()
        mine.rename(theirs)
        assert printed(home, OMEGAD_HOME=str(long), CROWD=str(crowd)) == b"allowed"
        assert b"what nobody else is to read" in heard.recv()


@as_root
def test_the_bridge_says_nothing_to_another_users_process(
    crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_bridge, "sockets", lambda _home: [os.fsencode(crowd / "omegad.sock")])
    with listening_as(NOBODY, crowd / "omegad.sock") as heard:
        with pytest.raises(mcp_bridge.CannotStart, match="another user"):
            mcp_bridge.connect()
        assert not heard.poll(0.05) or heard.recv() == b""


def test_the_user_at_the_other_end_is_known() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert hook_delivery.peer_uid(ours) == os.geteuid()
