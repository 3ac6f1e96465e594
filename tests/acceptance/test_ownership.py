"""A home belongs to one user and is served by one daemon."""

import os
import signal
import socket
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest

from omegad.rpc import endpoint
from omegad.runtime.errors import OmegadError, ShuttingDown, Unavailable
from tests.acceptance.conftest import PATIENCE_S, Home, Raw, homes_in, refusal, until
from tests.forking import Forked

NOBODY = 65_534
REFUSED = 1  # exit status

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextmanager
def another_user() -> Iterator[None]:
    """Be somebody else for the length of the block."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def open_to_all(home: Home) -> Iterator[None]:
    """Be where the socket is, which others can reach as well for the length of the block."""
    with chdir(home.socket.parent):
        home.socket.parent.chmod(0o711)
        home.socket.chmod(0o666)
        try:
            yield
        finally:
            home.socket.parent.chmod(0o700)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A daemon of all tests that leave it as it is."""
    with homes_in(tmp_path_factory.mktemp("shared")) as make:
        yield make().start()


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_socket_and_the_files_are_for_their_owner_alone(daemon: Home) -> None:
    daemon.call("memory.store", content="A secret of mine")
    assert daemon.call("views.rebuild")["ok"]
    assert (_mode(daemon.path), _mode(daemon.socket.parent), _mode(daemon.socket)) == (0o700, 0o700, 0o600)
    files = [path for path in daemon.path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert {"log.db", "log.db-wal", "embeddings.db", "omegad.lock", "views-2.db"} <= {
        path.name for path in files
    }
    assert {path.name: oct(_mode(path)) for path in files if _mode(path) & 0o077} == {}
    assert _mode(daemon.paths.log) == 0o600


def test_files_are_private_whatever_the_callers_umask_is(home: Home) -> None:
    home.path.rmdir()
    before = os.umask(0)
    try:
        home.start()
    finally:
        os.umask(before)
    home.call("memory.store", content="A secret of mine")
    everything = [home.path, *home.path.rglob("*")]
    assert {
        path.name: oct(_mode(path)) for path in everything if _mode(path) & 0o077 and not path.is_symlink()
    } == {}


@as_root
def test_another_user_cannot_even_reach_the_socket(shared: Home) -> None:
    with (
        chdir(shared.path.parent),
        another_user(),
        pytest.raises(PermissionError),
    ):  # whatever temporary directories allow, the home itself must not
        os.stat(Path(shared.path.name) / "run")  # noqa: PTH116


@as_root
def test_another_user_who_reaches_the_socket_is_refused_and_nothing_is_done(shared: Home) -> None:
    head = shared.call("log.verify")["events"]
    with open_to_all(shared):
        for _ in range(50):
            answer = _intrude(Path(shared.socket.name))
            assert (answer["id"], answer["error"]["code"], answer["error"]["data"]["kind"]) == (
                None,
                -32002,
                "refused",
            )
            assert "only the user" in answer["error"]["message"]
    assert shared.call("log.verify")["events"] == head
    until(lambda: shared.call("system.status")["connections"] == 1)


def _intrude(path: Path) -> Any:
    with another_user():
        way_in = socket.socket(
            socket.AF_UNIX
        )  # a client of omegad's own would refuse to talk to another user's daemon
        way_in.settimeout(PATIENCE_S)
        way_in.connect(str(path))
        with Raw(way_in) as connection:
            connection.send(
                b'{"jsonrpc":"2.0","id":1,"method":"memory.store","params":{"content":"An intruder was'
                b' here"}}'
            )
            answer = connection.receive()
            assert connection.receive() is None
    return answer


@as_root
def test_a_client_tells_nothing_to_a_daemon_of_another_user(shared: Home) -> None:
    with open_to_all(shared), another_user(), pytest.raises(Unavailable, match="served by another user"):
        endpoint.connect(Path(shared.socket.name), PATIENCE_S)


def _serve_in_vain(home: Home) -> subprocess.CompletedProcess[str]:
    printed = home.path.with_name("refused")
    process = Forked(["serve"], home.environ, printed)
    return subprocess.CompletedProcess("serve", process.wait(), "", printed.read_text(encoding="utf-8"))


def test_a_second_daemon_of_a_home_says_who_serves_it_and_ends(shared: Home) -> None:
    second = _serve_in_vain(shared)
    assert second.returncode == REFUSED
    assert f"another omegad serves this home (process {shared.process.pid})" in second.stderr
    assert "hint: " in second.stderr
    assert "Traceback" not in second.stderr
    assert shared.answers()


def test_of_many_daemons_started_at_once_one_serves(homes: Callable[..., Home], tmp_path: Path) -> None:
    rivals = [homes(tmp_path / "contested") for _ in range(6)]
    for number, rival in enumerate(rivals):
        rival.output = tmp_path / f"printed{number}"
        rival.launch()
    until(lambda: sum(rival.process.poll() is None for rival in rivals) == 1)
    (winner,) = [rival for rival in rivals if rival.process.poll() is None]
    until(winner.answers)
    losers = [rival for rival in rivals if rival is not winner]
    assert {loser.process.returncode for loser in losers} == {REFUSED}
    assert all("another omegad serves this home" in loser.printed() for loser in losers)


def test_two_homes_cannot_share_a_socket(shared: Home, homes: Callable[..., Home]) -> None:
    other = homes(OMEGAD_SOCKET=str(shared.socket))
    refused = _serve_in_vain(other)
    assert refused.returncode == REFUSED
    assert f"something listens on {shared.socket}" in refused.stderr
    assert "OMEGAD_SOCKET" in refused.stderr
    assert shared.answers()


def test_a_socket_left_by_a_daemon_that_was_killed_is_taken_over(daemon: Home) -> None:
    stored = daemon.call("memory.store", content="Stored before the end")
    for _ in range(3):
        left = daemon.socket.stat().st_ino
        daemon.kill()
        assert daemon.socket.exists()
        daemon.start()
        assert daemon.socket.stat().st_ino != left
    assert daemon.call("memory.get", memory_id=stored["memory_id"])["content"] == "Stored before the end"


def test_a_file_where_the_socket_should_be_is_left_alone_and_named(home: Home) -> None:
    home.socket.parent.mkdir(mode=0o700)
    home.socket.write_text("something of mine")
    refused = _serve_in_vain(home)
    assert refused.returncode == REFUSED
    assert f"{home.socket} is there and is not a socket" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert home.socket.read_text() == "something of mine"


def test_a_home_that_others_can_enter_is_refused_with_what_to_do(home: Home) -> None:
    home.path.chmod(0o701)
    refused = _serve_in_vain(home)
    assert refused.returncode == REFUSED
    assert f"{home.path} is open to other users" in refused.stderr
    assert f"chmod 700 {home.path}" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert list(home.path.iterdir()) == []


@as_root
def test_a_home_of_another_user_is_refused(home: Home) -> None:
    os.chown(home.path, NOBODY, NOBODY)
    refused = _serve_in_vain(home)
    assert refused.returncode == REFUSED
    assert "belongs to another user" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_home_that_is_a_link_is_the_one_it_leads_to(home: Home, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.path)
    home.environ["OMEGAD_HOME"] = str(link)
    home.start()
    assert home.call("system.status")["home"] == str(home.path)


def test_a_lock_that_somebody_only_looks_at_keeps_no_daemon_from_starting(home: Home) -> None:
    home.paths.lock.touch(mode=0o600)
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            endpoint.holder(home.paths.lock)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        home.start()
    finally:
        over.set()
        looking.join(PATIENCE_S)
    assert endpoint.holder(home.paths.lock) == home.process.pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_told_to_stop_ends_at_once_and_cleanly(
    homes: Callable[..., Home], number: signal.Signals
) -> None:
    daemon = homes(OMEGAD_SHUTDOWN_S=f"{10 * PATIENCE_S}").start()
    with daemon.raw() as idle:
        daemon.call("memory.store", content="Something to keep")
        daemon.process.send_signal(number)
        assert daemon.process.wait(PATIENCE_S) == 0, "there is nothing to wait for"
        assert idle.receive() is None
    assert not daemon.socket.exists()
    assert not (daemon.path / "log.db-wal").exists()


def test_a_daemon_told_to_stop_by_a_client_answers_it_and_ends(daemon: Home) -> None:
    assert daemon.call("system.shutdown") == {"ok": True}
    assert daemon.process.wait(PATIENCE_S) == 0


def test_what_runs_when_a_daemon_is_told_to_stop_is_answered(daemon: Home) -> None:
    """Each request sent before the signal gets its result, or is told that the service stops; none is left
    without an answer.
    """
    for number in range(20):
        daemon.call("tool.record", session_id="s", tool_name="Read", tool_input=f"{number}")
    asked = 300
    with daemon.raw() as connection:
        connection.send(b'{"jsonrpc":"2.0","id":"follow","method":"log.follow"}')
        connection.send(b'{"jsonrpc":"2.0","id":"verify","method":"views.verify"}')
        for number in range(asked):
            params = b'{"session_id":"s","tool_name":"Write","request_id":"stop-%d"}' % number
            connection.send(
                b'{"jsonrpc":"2.0","id":%d,"method":"tool.record","params":%s}' % (number, params)
            )
        first = connection.receive()
        daemon.process.terminate()
        answers = [first]
        while (message := connection.receive()) is not None:
            answers.append(message)
    answers = [answer for answer in answers if "method" not in answer]
    assert daemon.process.wait(PATIENCE_S) == 0
    assert len({str(answer["id"]) for answer in answers}) == len(answers)
    assert {str(answer["id"]) for answer in answers} == {"follow", "verify", *map(str, range(asked))}
    refused = [answer for answer in answers if "error" in answer]
    assert {answer["error"]["code"] for answer in refused} <= {
        ShuttingDown.code
    }  # none, where all were answered before the signal came

    daemon.start()
    recorded = {
        answer["result"]["position"]
        for answer in answers
        if isinstance(answer["id"], int) and "result" in answer
    }
    events = daemon.events()
    assert recorded == {
        event["position"]
        for event in events
        if event["tag"].startswith("tool.called") and event["data"]["tool_name"] == "Write"
    }
    daemon.check()


def test_what_is_acknowledged_while_a_daemon_stops_is_there_afterwards(daemon: Home) -> None:
    acknowledged: list[int] = []

    def write() -> None:
        with daemon.client() as client:
            while True:
                acknowledged.append(client.call("tool.record", session_id="s", tool_name="Write")["position"])

    def until_refused() -> None:
        with pytest.raises(OmegadError):
            write()

    writers = [threading.Thread(target=until_refused) for _ in range(3)]
    for writer in writers:
        writer.start()
    until(lambda: len(acknowledged) > 50)
    assert daemon.stop() == 0
    for writer in writers:
        writer.join(PATIENCE_S)
    daemon.start()
    assert {event["position"] for event in daemon.events()} >= set(acknowledged)
    daemon.check()


def test_a_variable_of_another_program_ends_no_daemon(home: Home) -> None:
    home.environ["OMEGAD_FOO"] = "1"
    home.start()
    assert "OMEGAD_FOO is ignored" in home.printed()


def test_a_setting_that_does_not_exist_is_refused_with_the_nearest_that_does(home: Home) -> None:
    (home.path / "config.toml").write_text('modell = "none"\n', encoding="utf-8")
    refused = _serve_in_vain(home)
    assert refused.returncode == 2
    assert "unknown setting 'modell'" in refused.stderr
    assert "did you mean 'model'?" in refused.stderr


def test_a_client_of_a_home_that_nobody_serves_is_told_what_to_do(home: Home) -> None:
    assert "omegad start" in refusal(lambda: home.call("system.ping")).hint


def test_a_broken_configuration_that_is_read_again_ends_nothing(home: Home) -> None:
    home.start()
    (home.path / "config.toml").write_text('log_levle = "debug"\n', encoding="utf-8")
    home.process.send_signal(signal.SIGHUP)
    until(lambda: "log_levle" in home.printed(), home.printed)
    assert home.call("system.ping")["ok"]


def test_a_manager_that_is_gone_keeps_a_daemon_neither_from_starting_nor_from_ending_in_order(
    homes: Callable[..., Home],
) -> None:
    home = homes(NOTIFY_SOCKET="/nowhere/notify", WATCHDOG_USEC="20000").start()
    home.call("memory.store", content="Deploys are blue-green")
    assert home.stop() == 0
    assert "supervisor.not_told" in home.printed()
