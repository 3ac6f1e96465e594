"""JSON-RPC 2.0 in lines of UTF-8: bytes in, messages out, and back. Does no I/O.

Invariant: no bytes raise anything here; what is not a request comes out as a `Fault` that says why.
"""

import re
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from omegad.runtime.errors import Invalid, OmegadError
from omegad.runtime.json_text import id_in, mended

BATCH_LENGTH_MAX: Final = 100
NO_PARAMS: Final = Raw(b"")
WHITESPACE: Final = b" \t\r\n"
_BLANK_LINES: Final = re.compile(rb"[ \t\r\n]*\n")

Id: TypeAlias = int | str | None

# What msgspec raises for bytes that are not what was asked for. Its `ValidationError` is a `DecodeError`,
# which like `UnicodeDecodeError` is a `ValueError`; arrays nested too deeply are a `RecursionError`.
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ParseFailed(OmegadError):
    """The line is not JSON in UTF-8."""

    code, kind = -32700, "invalid"
    hint = "send one JSON message per line"


class InvalidRequest(OmegadError):
    """The line is not a JSON-RPC 2.0 request."""

    code, kind = -32600, "invalid"
    hint = 'send {"jsonrpc": "2.0", "id": 1, "method": "…", "params": {…}}, on one line'


class MethodNotFound(OmegadError):
    """There is no such method."""

    code, kind = -32601, "not_found"
    hint = "`omegad methods` lists them; a newer client may know more of them than this daemon"


class InternalError(OmegadError):
    """An unforeseen error inside omegad."""

    hint = "the daemon's log tells more"


class Request(msgspec.Struct, frozen=True):
    """Something a client asks for. Without an id it is a notification: it is not answered, whatever
    happens.
    """

    jsonrpc: Literal["2.0"]
    method: str
    id: Id | UnsetType = UNSET
    params: Raw = NO_PARAMS
    """A JSON object or array, or nothing at all."""


class Fault(msgspec.Struct, frozen=True):
    """Something a client sent that cannot be served, with the id to answer under."""

    id: Id
    error: OmegadError


class Batch(msgspec.Struct, frozen=True):
    """Requests that are answered together, in one line."""

    entries: list[Request | Fault]


Message: TypeAlias = Request | Fault | Batch


class WireError(msgspec.Struct, frozen=True):
    """An error as it travels."""

    code: int
    message: str
    data: dict[str, str] = {}


class Incoming(msgspec.Struct, frozen=True):
    """What a server sends: an answer, or (with a method) a notification."""

    id: int | None = None
    method: str = ""
    params: Raw = NO_PARAMS
    result: Raw = NO_PARAMS
    error: WireError | None = None


class _Cancel(msgspec.Struct):
    id: Id


class _Identified(msgspec.Struct):
    id: Id = None


# A list would be built whole before its length is looked at: 16 MiB of "[1,1,…" would take half a gigabyte.
_Entries = msgspec.defstruct(
    "_Entries",
    [(f"entry_{i}", Raw, NO_PARAMS) for i in range(BATCH_LENGTH_MAX)],
    array_like=True,
    forbid_unknown_fields=True,
)

_request = msgspec.json.Decoder(Request)
parse_incoming: Final = msgspec.json.Decoder(Incoming).decode
"""Reads a line that a server sent. Raises one of `UNREADABLE` for anything else."""
_identified = msgspec.json.Decoder(_Identified)
_entries = msgspec.json.Decoder(_Entries)
_cancel = msgspec.json.Decoder(_Cancel)
_anything = msgspec.json.Decoder(Raw)
_encode = msgspec.json.Encoder().encode


class LineTooLong(InvalidRequest):
    """The line is longer than the server reads."""

    hint = "line_bytes_max in config.toml sets how long a line may be"


class Lines:
    """Cuts a stream of bytes into lines; holds one line of *bytes_max* and the piece fed last, never more."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._buffer = bytearray()
        self._searched = 0
        self._skipping = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._buffer += data

    @property
    def held_bytes(self) -> int:
        """What was fed and is not taken yet."""
        return len(self._buffer)

    def next(self) -> bytes | None:
        """Return the next whole line without its newline, or None until more is fed.

        Raises `LineTooLong` once for a line that is too long, as soon as that is known; the rest of it is
        skipped.
        """
        end = self._buffer.find(b"\n", self._searched)
        if self._skipping:
            self._take(len(self._buffer) if end < 0 else end + 1)
            self._skipping = end < 0
            return None if self._skipping else self.next()
        if max(end, 0) > self._bytes_max or (end < 0 and len(self._buffer) > self._bytes_max):
            self._skipping = end < 0
            self._take(len(self._buffer) if end < 0 else end + 1)
            raise LineTooLong(f"the line is longer than {self._bytes_max} bytes")
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        self._take(end + 1)
        return line

    def _take(self, count: int) -> None:
        del self._buffer[:count]
        self._searched = 0


class Receiver(Lines):
    """What a server reads: feed it bytes, then take messages from it until there are none."""

    def end(self) -> None:
        """The stream is over: its last line counts even without a newline."""
        self.feed(b"\n")

    def next_message(self) -> Message | None:
        """Return the next message, or None until more is fed. Blank lines are no messages."""
        while True:
            try:
                line = self.next()
            except LineTooLong as error:
                return Fault(None, error)
            if line is None:
                return None
            if line := line.strip(WHITESPACE):
                return parse(line)
            # The blank lines that come next go all at once: one by one, a stream of newlines would keep
            # everyone waiting.
            if blank := _BLANK_LINES.match(self._buffer):
                self._take(blank.end())


def parse(line: bytes) -> Message:
    """Read one line that is not blank. Where text was cut inside a character, the half that is left of it
    is read as U+FFFD.
    """
    message = _parse(line)
    if (
        isinstance(message, Fault)
        and isinstance(message.error, ParseFailed)
        and (better := mended(line)) is not line
    ):
        return _parse(better)
    return message


def _parse(line: bytes) -> Message:
    try:
        if not line.isascii():
            line.decode()  # strings that msgspec skips over are not checked for UTF-8
        if not line.startswith(b"["):
            return _parse_request(line)
        _anything.decode(line)  # tells what is no JSON from what is no batch
    except UNREADABLE as error:
        return _unreadable(line, error)
    try:
        entries = [entry for entry in msgspec.structs.astuple(_entries.decode(line)) if memoryview(entry)]
    except msgspec.ValidationError:
        return Fault(None, InvalidRequest(f"a batch holds at most {BATCH_LENGTH_MAX} requests"))
    if not entries:
        return Fault(None, InvalidRequest("a batch holds at least one request"))
    return Batch([_parse_request(entry) for entry in entries])


def _parse_request(text: bytes | Raw) -> Request | Fault:
    try:
        request = _request.decode(text)
    except UNREADABLE as error:
        try:
            _anything.decode(text)
        except UNREADABLE as malformed:
            return _unreadable(text, malformed)
        return Fault(_id_of(text), InvalidRequest(str(error)))
    params = memoryview(request.params)
    if not params or params[0] in b"{[":
        return request
    if params[0] in b"n":
        return msgspec.structs.replace(request, params=NO_PARAMS)
    return Fault(
        None if request.id is UNSET else request.id, InvalidRequest("params must be an object or an array")
    )


def _unreadable(text: bytes | Raw, error: Exception) -> Fault:
    if isinstance(
        error, RecursionError
    ):  # which is JSON all the same, as far as anybody knows, and may say whose it is
        return Fault(
            _id_of(b'{"id":%s}' % id_in(bytes(text))),
            ParseFailed("JSON is nested too deeply", hint="send it flatter, or as a text"),
        )
    return Fault(None, ParseFailed(str(error)))


def _id_of(text: bytes | Raw) -> Id:
    """Return the id that a message says, None where that cannot be told."""
    try:
        return _identified.decode(text).id
    except UNREADABLE:
        return None


def parse_cancel(params: Raw) -> Id:
    """Return the id of the request to cancel. Raises `Invalid` when *params* name none."""
    try:
        return _cancel.decode(params).id
    except UNREADABLE as error:
        raise Invalid(
            str(error), hint='rpc.cancel takes {"id": …}, the id of the request to cancel'
        ) from error


def encode_result(request_id: Id, result: object) -> bytes:
    """Write the answer to a request. Raises what msgspec raises for a result that is not JSON."""
    if isinstance(result, Raw) and not memoryview(result):
        result = None
    return _one_line(_encode({"jsonrpc": "2.0", "id": request_id, "result": result}))


def encode_error(request_id: Id, error: OmegadError) -> bytes:
    """Write the refusal of a request."""
    data = {"kind": error.kind, "tag": error.tag, "hint": _utf8(error.hint)}
    told = WireError(error.code, _utf8(str(error)), data)
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": told})


def encode_request(request_id: int | None, method: str, params: object) -> bytes:
    """Write a request, or with None for an id a notification. Raises `Invalid` for text that is none."""
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params}
    if request_id is not None:
        message["id"] = request_id
    try:
        return _one_line(_encode(message))
    except UnicodeEncodeError as error:
        raise Invalid(
            f"half of a surrogate pair is no text, at character {error.start:,}",
            hint="text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') mends it",
        ) from error


def _one_line(text: bytes) -> bytes:
    # A Raw may be laid out over several lines; inside JSON a newline is never more than white space.
    return text.replace(b"\n", b" ") if b"\n" in text else text


def _utf8(text: str) -> str:
    # A message may quote a file name that is not UTF-8, which Python keeps as surrogates.
    return text.encode("utf-8", "backslashreplace").decode()
