"""A provider of models on loopback that plays a script: what it answers to each request in turn."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Turn = Callable[["Handler"], None]


class Provider(ThreadingHTTPServer):
    """Speaks both APIs; says "It depends." once its script is played."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.turns: list[Turn] = []
        self.heard: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        """Path, headers in lower case, and body of each request."""
        self.is_asked = Event()
        self.is_over = Event()

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that leave, or do not trust it; what they then say is tested."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        heard = {name.lower(): value for name, value in self.headers.items()}
        self.server.heard.append((self.path, heard, body))
        self.server.is_asked.set()
        turn = self.server.turns.pop(0) if self.server.turns else says("It depends.")
        with suppress(BrokenPipeError, ConnectionResetError):
            turn(self)

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


def says(text: str, **usage: int) -> Turn:
    """Answer with a text, and what it took."""

    def turn(handler: Handler) -> None:
        if handler.path.endswith("/messages"):
            counted = usage or {"input_tokens": 30, "output_tokens": 12}
            said: dict[str, Any] = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        else:
            counted = usage or {"prompt_tokens": 30, "completion_tokens": 12}
            said = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
        handler.answer(200, json.dumps({**said, "usage": counted}).encode())

    return turn


def answers(status: int, body: bytes = b"{}", **headers: str) -> Turn:
    return lambda handler: handler.answer(status, body, **headers)


def hangs(handler: Handler) -> None:
    """Say nothing, for as long as the test takes."""
    handler.server.is_over.wait(60)
    handler.close_connection = True


def hangs_up(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def drips(handler: Handler) -> None:
    """Send a byte now and then, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    while not handler.server.is_over.is_set():
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.02)


@contextmanager
def playing() -> Iterator[Provider]:
    """Serve for the length of the block."""
    with Provider() as provider:
        thread = Thread(target=provider.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield provider
        finally:
            provider.is_over.set()
            provider.shutdown()
            thread.join()
