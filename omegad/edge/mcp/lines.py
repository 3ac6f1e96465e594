"""Lines between a host and the gateway, as the bridge cuts them out of what comes. Of the standard library alone, as the bridge is."""

import json

TYPE_CHECKING = False  # typing would be a tenth of what the bridge occupies
if TYPE_CHECKING:
    from typing import Any

CHUNK = 65536


class TooLong(bytes):
    """The beginning and the end of a line that is refused."""


class Lines:
    """Bytes in, whole lines out, or what is left of those of more than *bytes_max*."""

    def __init__(self, bytes_max: float) -> None:
        self._bytes_max = bytes_max
        self._rest = bytearray()
        self._beginning = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that *data* ends."""
        self._rest += data
        if len(self._rest) > self._bytes_max + CHUNK:
            self._beginning = self._beginning or bytes(self._rest[:CHUNK])
            del self._rest[: -2 * CHUNK]
        if b"\n" not in data:
            return []
        first, *others, self._rest = self._rest.split(b"\n")
        whole = TooLong(self._beginning + first) if self._beginning else bytes(first)
        self._beginning = b""
        return [whole, *map(bytes, others)]


def read_message(line: bytes) -> "dict[str, Any]":
    """Return the message of a line, an empty one where it has none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def is_id(number: object) -> bool:
    """Say whether a request can have such an id."""
    return isinstance(number, (int, str)) and not isinstance(number, bool)


def is_introduction(message: "dict[str, Any]") -> bool:
    """Say whether a message is an introduction as the gateway takes it, which answers it under its id."""
    params = message.get("params")
    if message.get("method") != "initialize" or message.get("jsonrpc") != "2.0" or not is_id(message.get("id")) or not isinstance(params, dict):
        return False
    client = params.get("clientInfo")
    words = (params.get("protocolVersion"), *(client.get(name) for name in ("name", "version"))) if isinstance(client, dict) else (None,)
    return isinstance(params.get("capabilities"), dict) and all(isinstance(word, str) for word in words)
