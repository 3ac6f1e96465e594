"""What a service manager hears: a fake one listens where systemd would."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from omegad.runtime import supervisor
from tests.builders import PATIENCE_S


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"{folder}/notify")
        listening.settimeout(0.01)
        yield listening


class EnoughError(Exception):
    """Ends what else goes on for ever."""


async def at_once() -> None:
    """Answer."""


def heard(manager: socket.socket) -> list[str]:
    found = []
    try:
        while True:
            found.append(manager.recv(4_096).decode())
    except TimeoutError:
        return found


async def test_a_watched_loop_says_twice_in_each_interval_that_it_runs(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[float, list[str]]] = []

    async def pause(seconds: float) -> None:
        said.append((seconds, heard(manager)))
        if len(said) == 3:
            raise EnoughError

    monkeypatch.setattr("omegad.runtime.supervisor.anyio.sleep", pause)
    environ = {
        "NOTIFY_SOCKET": manager.getsockname(),
        "WATCHDOG_USEC": "100000",
        "WATCHDOG_PID": str(os.getpid()),
    }
    with pytest.raises(EnoughError):
        await supervisor.keep_alive(at_once, environ)
    assert said == [(0.05, ["WATCHDOG=1"])] * 3


async def test_one_whose_writer_does_not_answer_says_nothing(manager: socket.socket) -> None:
    with anyio.move_on_after(0.1):
        await supervisor.keep_alive(
            anyio.sleep_forever, {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "10000"}
        )
    assert heard(manager) == []


@pytest.mark.parametrize(
    "watch",
    [
        {},
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"},
    ],
    ids=["not watched", "empty", "zero", "no number", "another process"],
)
async def test_one_that_is_not_watched_says_nothing(manager: socket.socket, watch: dict[str, str]) -> None:
    with anyio.fail_after(PATIENCE_S):
        await supervisor.keep_alive(at_once, {"NOTIFY_SOCKET": manager.getsockname(), **watch})
    assert heard(manager) == []


async def test_a_manager_that_is_away_for_a_while_harms_nobody(tmp_path: Path) -> None:
    environ = {"NOTIFY_SOCKET": str(tmp_path / "nobody"), "WATCHDOG_USEC": "10000"}
    with anyio.move_on_after(0.05) as waiting:
        await supervisor.keep_alive(at_once, environ)
    assert waiting.cancelled_caught


@pytest.mark.parametrize(
    "state", ["READY=1\nSTATUS=Serves /home/\udcff", "WATCHDOG=1", "STOPPING=1", "STATUS=\ud800"]
)
def test_one_that_does_not_hear_is_told_without_an_error(
    tmp_path: Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SEND_S", 0.01)
    (tmp_path / "no-socket").touch()
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as full,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as filling,
    ):
        full.bind(str(tmp_path / "full"))
        filling.settimeout(0)
        filling.connect(str(tmp_path / "full"))
        with suppress(BlockingIOError):
            while True:
                filling.send(b"said")
        for address in (
            tmp_path / "nobody",
            tmp_path / "no-socket",
            tmp_path / ("long" * 40),
            "vsock:2:1",
            "@",
            "a\0b",
            tmp_path / "full",
        ):
            supervisor.notify(state, {"NOTIFY_SOCKET": str(address)})


@pytest.mark.skipif(sys.platform != "linux", reason="the abstract namespace is Linux's")
def test_a_manager_in_the_abstract_namespace_hears_as_well() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0omegad-test-{os.getpid()}")
        listening.settimeout(PATIENCE_S)
        supervisor.notify("READY=1", {"NOTIFY_SOCKET": f"@omegad-test-{os.getpid()}"})
        assert listening.recv(64) == b"READY=1"
