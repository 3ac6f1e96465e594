"""A client whose first connection ended before it could say who it is."""

import socket
import threading
from pathlib import Path

import pytest

from omegad.client.blocking import Client
from omegad.runtime.errors import NoDaemon

ANSWER = b'{"jsonrpc":"2.0","id":%d,"result":{"version":"7"}}\n'


def test_a_client_that_could_not_say_who_it_is_connects_again_when_it_is_entered_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            listener.accept()[0].close()
            connection = listener.accept()[0]
            with connection:
                number = connection.makefile("rb").readline().count(b'"id":2') + 1
                connection.sendall(ANSWER % number)

        server = threading.Thread(target=serve)
        server.start()
        client = Client(path, name="again", timeout_s=10.0)
        with pytest.raises(NoDaemon), client:
            pass
        with client:
            assert client.server_version == "7"
        server.join()
