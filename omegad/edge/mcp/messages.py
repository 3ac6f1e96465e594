"""What a host says on standard input: lines, the messages in them, and what is answered without a daemon.

Of the standard library alone, as the bridge is. The revisions that begin with a handshake are spoken, and the
one whose every request says what the handshake would have said; a session's first request decides.
"""

from __future__ import annotations

import json
import os
from math import isfinite

from omegad.edge.hook.delivery import find_home
from omegad.runtime import derived
from omegad.runtime.json_text import id_in, mended

TYPE_CHECKING = False  # typing would be a tenth of what the bridge occupies
if TYPE_CHECKING:
    from omegad.runtime.json_types import Fields

CHUNK = 65536
LINE_BYTES_MAX = 16 << 20  # of what a host says
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION = -32022
NO_JSON = "the line is no JSON, or nested too deeply. What to do: send one JSON message per line"
NO_REQUEST = (
    "the line is no request of JSON-RPC 2.0. What to do:"
    ' send {"jsonrpc": "2.0", "id": 1, "method": "…", "params": {…}}, on one line'
)
NO_ID = "the id of a request is neither a text nor an integer; what to do: give it one that is"
TOO_LONG = f"the line is longer than {LINE_BYTES_MAX} bytes; what to do: say less at once"

WITHOUT_HANDSHAKE = "2026-07-28"
VERSION, CLIENT, CAPABILITIES, SERVER = (
    f"io.modelcontextprotocol/{name}"
    for name in ("protocolVersion", "clientInfo", "clientCapabilities", "serverInfo")
)
SERVED = ("ping", "tools/list", "tools/call")
SERVED_WITHOUT_HANDSHAKE = ("server/discover", "tools/list", "tools/call")
BEGUN_WITH_HANDSHAKE = (
    "this connection serves the handshake protocol era; requests carrying the"
    f" {WITHOUT_HANDSHAKE} envelope are not accepted on it"
)
BEGUN_WITHOUT_HANDSHAKE = (
    f"connection is serving the {WITHOUT_HANDSHAKE} protocol; the initialize handshake is not accepted"
)
CLIENT_CHARACTERS = 200


class Refusal(Exception):
    """What is answered with an error, under its id where it has one."""

    def __init__(self, number: object, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        told = {"code": code, "message": message}
        self.answer = {"id": number, "error": told if data is None else told | {"data": data}}


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


def _number(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None  # which JSON has no word for


_decode = json.JSONDecoder(parse_float=_number, parse_constant=lambda _: None).decode


def encoded(message: object) -> bytes:
    """Return a message as a line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"


def read(line: bytes) -> Fields | None:
    """Return the message of a line, None where it says nothing. Raises `Refusal`."""
    if isinstance(line, TooLong):
        raise Refusal(json.loads(id_in(line)), INVALID_REQUEST, TOO_LONG)
    try:
        message = _decode(mended(line).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        if line.strip(b" \t\r"):
            raise Refusal(json.loads(id_in(line)), PARSE_ERROR, NO_JSON) from None
        return None
    if not isinstance(message, dict):
        raise Refusal(None, INVALID_REQUEST, NO_REQUEST)
    number, method = message.get("id"), message.get("method")
    if method and "id" in message and not is_id(number):
        raise Refusal(None, INVALID_REQUEST, NO_ID)
    is_request = isinstance(method, str) and isinstance(message.get("params"), dict | None)
    if message.get("jsonrpc") == "2.0" and is_request:
        return message
    if "result" in message or "error" in message:
        return message if method is None and is_id(number) else None
    raise Refusal(number if is_id(number) else None, INVALID_REQUEST, NO_REQUEST)


def is_id(number: object) -> bool:
    """Say whether a request can have such an id."""
    return isinstance(number, int | str) and not isinstance(number, bool)


def greeting() -> Fields:
    """Return what is answered to whoever introduces itself, as it is installed at this moment."""
    return json.loads(derived.read(derived.GREETING))  # type: ignore[no-any-return]


def consulting(home: bytes) -> bytes:
    """Return what config.toml of a *home* says where it may name models to consult, else nothing."""
    try:
        with open(os.path.join(home, b"config.toml"), "rb") as file:
            configured = file.read()
    except OSError:
        return b""
    return configured if b"consult" in configured else b""


def with_consulting(listed: Fields) -> Fields:
    """Return the list of the daemon's tools with those by which other models are consulted, if there are
    any.
    """
    if not (configured := consulting(find_home())):
        return listed
    from omegad.edge.consult import offering  # noqa: PLC0415  few have models to consult

    return {"tools": [*listed["tools"], *offering.tools(configured).values()]}


class Session:
    """What a host has said of itself, and what follows of that for its requests."""

    def __init__(self) -> None:
        self._has_handshake: bool | None = None
        self._introduction: Fields | None = None
        self._greeting: Fields = {}

    @property
    def has_roots(self) -> bool:
        """Whether its client may be asked which folders it works in."""
        said = self._introduction or {"capabilities": {}}
        return said["capabilities"].get("roots") is not None

    def result_of(self, message: Fields) -> Fields | None:
        """Return what a request comes to, None where it is the call of a tool. Raises `Refusal`."""
        number, method, params = message["id"], message["method"], message.get("params") or {}
        meta = params.get("_meta")
        is_enveloped = isinstance(meta, dict) and VERSION in meta
        if self._has_handshake is None:
            self._has_handshake = method == "initialize" or not is_enveloped
        if not self._has_handshake:
            _check_envelope(number, method, params)
        elif method == "initialize":
            return self._introduced(number, params)
        elif is_enveloped:
            raise Refusal(number, INVALID_REQUEST, BEGUN_WITH_HANDSHAKE)
        if method not in (SERVED if self._has_handshake else SERVED_WITHOUT_HANDSHAKE):
            raise Refusal(number, NO_METHOD, "Method not found", method)
        is_known = not self._has_handshake or self._introduction is not None or method == "ping"
        if not is_known or not _is_fit(method, params):
            raise Refusal(number, INVALID_PARAMS, "Invalid request parameters", "")
        if method == "tools/call":
            return None
        if method == "ping":
            return {}
        self._greeting = self._greeting or greeting()
        if method == "tools/list":
            result = with_consulting(self._greeting[method])
        else:
            introduced = {
                name: self._greeting["initialize"][name] for name in ("capabilities", "instructions")
            }
            result = {"supportedVersions": [WITHOUT_HANDSHAKE], **introduced}
        return (
            result if self._has_handshake else self.finished({**result, "ttlMs": 0, "cacheScope": "private"})
        )

    def _introduced(self, number: object, params: Fields) -> Fields:
        """Note who the client is, and return what it is told of the server."""
        version = params.get("protocolVersion")
        if (
            not isinstance(version, str)
            or not isinstance(params.get("capabilities"), dict)
            or not _is_client(params.get("clientInfo"))
        ):
            raise Refusal(number, INVALID_PARAMS, "Invalid request parameters", "")
        self._introduction, self._greeting = params, greeting()
        versions = self._greeting["versions"]
        chosen = version if version in versions else versions[-1]
        return {"protocolVersion": chosen, **self._greeting["initialize"]}

    def client_of(self, params: Fields) -> str:
        """Return what the client calls itself that makes this request."""
        said = self._introduction["clientInfo"] if self._introduction else params["_meta"].get(CLIENT)
        return (said["name"] if said else "")[:CLIENT_CHARACTERS] or "mcp"

    def finished(self, result: Fields) -> Fields:
        """Return a result with what its revision has in each."""
        if self._has_handshake:
            return result
        self._greeting = self._greeting or greeting()
        server = self._greeting["initialize"]["serverInfo"]
        return {**result, "resultType": "complete", "_meta": {SERVER: server}}


def _is_fit(method: str, params: Fields) -> bool:
    """Say whether parameters are what their method takes."""
    meta, arguments = params.get("_meta"), params.get("arguments")
    if meta is not None and not (isinstance(meta, dict) and is_id(meta.get("progressToken", ""))):
        return False
    if method == "tools/call":
        return isinstance(params.get("name"), str) and (arguments is None or isinstance(arguments, dict))
    return isinstance(params.get("cursor", ""), str | None)


def _is_client(said: object) -> bool:
    return (
        isinstance(said, dict) and isinstance(said.get("name"), str) and isinstance(said.get("version"), str)
    )


def _check_envelope(number: object, method: str, params: Fields) -> None:
    """Refuse a request that does not say all that a handshake would have said."""
    if method == "initialize":
        requested = params.get("protocolVersion")
        named = {"requested": requested} if isinstance(requested, str) else {}
        data = {"supported": [WITHOUT_HANDSHAKE], **named}
        raise Refusal(number, UNSUPPORTED_VERSION, BEGUN_WITHOUT_HANDSHAKE, data)
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        required = f"the required {VERSION!r} and {CAPABILITIES!r} envelope keys"
        raise Refusal(number, INVALID_PARAMS, f"params._meta must be an object carrying {required}")
    if missing := [name for name in (VERSION, CAPABILITIES) if name not in meta]:
        told = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        raise Refusal(number, INVALID_PARAMS, told)
    version = meta[VERSION]
    if not isinstance(version, str):
        raise Refusal(number, INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version != WITHOUT_HANDSHAKE:
        data = {"supported": [WITHOUT_HANDSHAKE], "requested": version}
        raise Refusal(number, UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta[CAPABILITIES], dict) or not (meta.get(CLIENT) is None or _is_client(meta[CLIENT])):
        raise Refusal(number, INVALID_PARAMS, "Invalid request parameters", "")
