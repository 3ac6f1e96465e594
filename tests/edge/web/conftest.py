"""The process that speaks HTTP, in a home of its own."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import httpx2
import pytest

from tests.acceptance.conftest import PATIENCE_S, Home, homes, homes_in, until
from tests.edge.mcp.conftest import Host, host

__all__ = ["Host", "homes", "host"]


class Site:
    """What a process serves over HTTP, for who has its token."""

    def __init__(self, home: Home, port: int, token: str) -> None:
        self.home = home
        self.port = port
        self.token = token
        self.at = f"127.0.0.1:{port}"
        self.own = {"authorization": f"Bearer {token}"}
        self._client = httpx2.Client(base_url=f"http://{self.at}", timeout=PATIENCE_S)

    def ask(
        self, verb: str, path: str, headers: Mapping[str, str | None] | None = None, **more: Any
    ) -> httpx2.Response:
        """Ask with the token, and other headers than usual."""
        sent = {name: value for name, value in {**self.own, **(headers or {})}.items() if value is not None}
        return self._client.request(verb, path, headers=sent, **more)

    def close(self) -> None:
        self._client.close()

    def call(self, method: str, **params: Any) -> Any:
        """Return what a method answers."""
        answer = self.ask("POST", f"/rpc/{method}", json=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def refusal(self, verb: str, path: str, **more: Any) -> tuple[int, str]:
        """Return the status of a refusal, and its kind."""
        answer = self.ask(verb, path, **more)
        error = answer.json()["error"]
        assert error["message"]
        assert error["data"]["hint"]
        return answer.status_code, error["data"]["kind"]

    def say(self, said: bytes) -> bytes:
        """Return all that is answered to some bytes until the other end closes."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            connection.sendall(said)
            return b"".join(iter(lambda: connection.recv(65_536), b""))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def serving(home: Home, *parts: str) -> Iterator[Site]:
    """Serve parts for a home until the block ends."""
    port = free_port()
    home.paths.config.write_text(f"web = {list(parts)}\nweb_port = {port}\n", encoding="utf-8")
    command = [sys.executable, "-m", "omegad", "web"]
    shown = subprocess.run([*command, "--token"], env=home.environ, capture_output=True, check=True)
    with (
        home.paths.web_log.open("ab") as output,
        subprocess.Popen(command, env=home.environ, stdout=output, stderr=output) as process,
    ):
        try:
            until(lambda: listens(port), lambda: home.paths.web_log.read_text(encoding="utf-8"))
            with closing(Site(home, port, shown.stdout.decode().strip())) as site:
                yield site
        finally:
            process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert "Traceback" not in home.paths.web_log.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Everything that can be served, for the tests of a module."""
    with homes_in(tmp_path_factory.mktemp("web")) as make:
        home = make().start()
        with serving(home, "page", "api", "mcp") as site:
            yield site
