"""Bytes that are sent to a door: what is nearly a message of its protocol, and what is none."""

import json
import random
from collections.abc import Callable, Sequence
from urllib.parse import quote

from tests.fuzz.values import TEXTS, Token, Values, written

KILOBYTE, MEGABYTE = 1_024, 1_024 * 1_024
IDS = [
    b"1",
    b"-1",
    b"0",
    b'""',
    b'"a"',
    b"null",
    b"1.5",
    b"1e400",
    b"true",
    b"[]",
    b"{}",
    b"9" * 60,
    b'"\\ud800"',
    b'"\\u0000"',
    b'"' + b"i" * 3_000 + b'"',
]
IDS += [b"18446744073709551616", b"-0", b'"end"', b"NaN", b'{"id":1}']
METHODS: tuple[str, ...] = (
    "system.ping",
    "memory.query",
    "memory.get",
    "memory.list",
    "log.read",
    "rpc.cancel",
    "system.hello",
    "task.list",
    "tools.list",
    "log.follow",
)
METHODS += (
    "no.such",
    "",
    "memory.store\0",
    "rpc.",
    "__init__",
    "SYSTEM.PING",
    "system.ping " * 200,
    "reaction:x",
)
PARAMS = [
    b"{}",
    b"[]",
    b"null",
    b'"a"',
    b"5",
    b"[1,2]",
    b'{"text":"a"}',
    b'{"memory_id":"mem-0"}',
    b'{"limit":-1}',
    b'{"id":1}',
    b'{"protocol":1,"client":"c"}',
]
PARAMS += [
    b'{"after":0,"limit":2}',
    b'{"text":"\\ud83d"}',
    b'{"a":1,"a":2}',
    b'{"text":1e400}',
    b'{"content":""}',
]
MCP: tuple[str, ...] = (
    "initialize",
    "notifications/initialized",
    "ping",
    "tools/list",
    "tools/call",
    "notifications/cancelled",
    "notifications/progress",
    "resources/list",
)
MCP += (
    "prompts/get",
    "logging/setLevel",
    "completion/complete",
    "server/discover",
    "roots/list",
    "sampling/createMessage",
    "notifications/none",
    "tools/",
    "",
    "a" * 500,
)
VERSIONS = ("2025-11-25", "2026-07-28", "2024-11-05", "1999-01-01", "9999-99-99", "", "\ud800", 5, None)
TOOLS = ("omega_stats", "omega_query", "omega_memory", "omega_protocol", "omega_none", "", "\0", "x" * 300)
REPLIES = [
    b'{"jsonrpc":"2.0","id":%s,"result":{}}',
    b'{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":%s,"error":null}',
]


class Frames:
    """Invents frames, by chance. Those for lines end without their line feed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._values = Values(chance, lambda _name: ())
        self._kinds: list[Callable[[Callable[[], bytes]], bytes]] = [
            *[lambda request: request()] * 6,
            *[lambda request: self._mutated(request())] * 6,
            *[lambda request: self._cut(request())] * 2,
            lambda request: self._batch([request() for _ in range(chance.randrange(5))]),
            lambda request: self._batch([self._mutated(request()) for _ in range(3)]),
            lambda _request: chance.choice(REPLIES) % chance.choice(IDS),
            lambda _request: bytes(chance.randrange(256) for _ in range(chance.randrange(60))),
            lambda _request: written(self._values.anything(4)),
            lambda request: request().replace(b",", b',"id":7,', 1),
            lambda request: chance.choice((b"\xef\xbb\xbf", b" \t\r", b"\0", b"\x1e", b"//")) + request(),
            lambda request: request() + chance.choice((b"}", b"\0", b" ", b"\r", request(), b",")),
        ]

    def socket(self) -> bytes:
        """Return a frame for the daemon's socket."""
        return self._line(self._request)

    def mcp(self) -> bytes:
        """Return a frame for a session of MCP."""
        return self._line(self._mcp_request)

    def http(self, token: bytes, host: bytes) -> bytes:
        """Return a request for what speaks HTTP, or what is nearly one."""
        chance = self._chance
        if chance.random() < 0.3:
            return self._posted(token, host)
        if chance.random() < 0.3:
            return self._called(token, host)
        body = self.mcp() if chance.random() < 0.8 else b""
        headers = self._headers(token, host)
        kind = chance.random()
        if kind < 0.1:
            chunks = chance.choice(
                (
                    b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n",
                    b"ffffffffffffffff\r\n" + body,
                    b"-1\r\n",
                    b"5\r\nab",
                    b"zz\r\n\r\n",
                )
            )
            headers, body = [*headers, b"Transfer-Encoding: chunked"], chunks
        else:
            length = chance.choices(
                (len(body), len(body) + 5, max(0, len(body) - 5), -1, 10**30), (10, 1, 1, 1, 1)
            )[0]
            headers.append(b"Content-Length: %d" % length)
        if kind > 0.9:
            headers.append(
                chance.choice(
                    (
                        b"Content-Length: 3",
                        b"Transfer-Encoding: chunked",
                        b": empty",
                        b"No colon",
                        b"X: " + b"x" * 70_000,
                        b"\0: \0",
                    )
                )
            )
        verb = chance.choices(
            (b"POST", b"GET", b"DELETE", b"OPTIONS", b"PRI", b"post", b"A" * 9_000, b"\0", b""),
            (12, 2, 2, 1, 1, 1, 1, 1, 1),
        )[0]
        path = chance.choices(
            (
                b"/mcp",
                b"/",
                b"/../mcp",
                b"http://x/mcp",
                b"*",
                b"/mcp?" + b"a" * 9_000,
                b"/memory?tags=a&tags=b&limit=2",
                b"/openapi.json",
                b"\xff",
                b"/mcp\r\nX: y",
            ),
            (12, 1, 1, 1, 1, 1, 1, 1, 1, 1),
        )[0]
        version = chance.choices((b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/9", b""), (12, 2, 1, 1, 1))[0]
        end = chance.choices((b"\r\n", b"\n", b"\r"), (20, 1, 1))[0]
        frame = end.join([b"%s %s %s" % (verb, path, version), *headers, b"", b""]) + body
        return (
            self._mutated(frame)
            if chance.random() < 0.15
            else self._cut(frame)
            if chance.random() < 0.1
            else frame
        )

    def _posted(self, token: bytes, host: bytes) -> bytes:
        """Return a request of which the body alone may be amiss."""
        body = self._mcp_request() if self._chance.random() < 0.5 else self.mcp()
        kinds = b"Accept: application/json, text/event-stream\r\nContent-Type: application/json"
        head = (
            b"POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n%s\r\nContent-Length: %d\r\n\r\n"
        )
        return head % (host, token, kinds, len(body)) + body

    def _called(self, token: bytes, host: bytes) -> bytes:
        """Return a call of a method, of which all but the head may be amiss."""
        chance = self._chance
        body = chance.choice(PARAMS) if chance.random() < 0.5 else written(self._values.anything(4))
        method, said = quote(chance.choice(METHODS)).encode(), quote(body[:2_000]).encode()
        line = chance.choice(
            (
                b"POST /rpc/" + method,
                b"POST /memory/upsert",
                b"GET /memory?text=" + said,
                b"GET /memory?limit=" + said,
                b"DELETE /memory/" + said,
            )
        )
        kind = chance.choice((b"application/json", b"Application/JSON; charset=utf-8", b"text/plain"))
        head = (
            b"%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d"
        )
        return head % (line, host, token, kind, len(body)) + b"\r\n\r\n" + body

    def _headers(self, token: bytes, host: bytes) -> list[bytes]:
        pick = self._chance.choice
        odds = self._chance.random
        headers = [b"Host: " + (host if odds() < 0.9 else pick((b"example.com", b"", b"\xff", b"a" * 5_000)))]
        headers += [
            b"Authorization: Bearer "
            + (token if odds() < 0.7 else pick((b"", b"x", b"\xff\xfe", token[:-1], b"a" * 9_000)))
        ]
        headers += (
            [b"Accept: " + pick((b"application/json, text/event-stream", b"*/*", b"", b"q=" * 900))]
            if odds() < 0.9
            else []
        )
        headers += (
            [b"Content-Type: " + pick((b"application/json", b"text/plain", b"multipart/form-data", b""))]
            if odds() < 0.9
            else []
        )
        headers += [b"Mcp-Session-Id: " + pick((b"none", b"", b"\xff", b"s" * 9_000))] if odds() < 0.3 else []
        headers += (
            [b"Mcp-Protocol-Version: " + str(pick(VERSIONS)).encode(errors="replace")] if odds() < 0.4 else []
        )
        headers += (
            [
                b"Omegad-Project: " + pick((b"/src/shop", b"\xff\xfe", b"../" * 900)),
                b"Origin: " + pick((b"null", b"http://x", b"")),
            ]
            if odds() < 0.1
            else []
        )
        headers += [b"Expect: 100-continue"] if odds() < 0.02 else []
        headers += (
            [b"Connection: " + pick((b"close", b"keep-alive", b"upgrade", b"x"))] if odds() < 0.3 else []
        )
        return headers

    def _line(self, request: Callable[[], bytes]) -> bytes:
        chance = self._chance.random()
        if chance < 0.0002:
            return self._huge(request())
        if chance < 0.002:
            return request().replace(b"}", b',"x":' + self._nested() + b"}", 1)
        return self._chance.choice(self._kinds)(request).replace(b"\n", b" ")

    def _huge(self, request: bytes) -> bytes:
        size = self._chance.choice((100 * KILOBYTE, MEGABYTE, 3 * MEGABYTE, 17 * MEGABYTE))
        filled = self._chance.choice((b"a", b" ", b"\\n", b'\\"', b"[", b"\xff", b"9")) * size
        return self._chance.choice((filled, request.replace(b"}", b',"x":"' + filled + b'"}', 1)))[
            : 20 * MEGABYTE
        ]

    def _nested(self) -> bytes:
        depth = self._chance.choice((10, 900, 1_100, 5_000, 60_000))
        opening, closing = self._chance.choice(
            ((b"[", b"]"), (b'{"a":', b"}"), (b"[", b""), (b'{"a":[', b"]}"))
        )
        return opening * depth + b"1" + closing * depth

    def _request(self) -> bytes:
        pick = self._chance.choice
        method = (
            json.dumps(pick(METHODS)).encode()
            if self._chance.random() < 0.95
            else pick((b"5", b"null", b"{}", b'["a"]', b'"\\ud800"'))
        )
        params = (
            pick(PARAMS)
            if self._chance.random() < 0.9
            else written({self._values.text()[:40]: self._values.anything(2)})
        )
        return self._framed(method, params)

    def _mcp_request(self) -> bytes:
        pick = self._chance.choice
        method = pick(MCP)
        params: object = Token(pick(PARAMS))
        if method == "initialize" and self._chance.random() < 0.8:
            info = pick(
                (
                    {"name": "fuzz", "version": "1"},
                    {"name": "\0"},
                    {},
                    None,
                    "x",
                    {"name": "n" * 5_000, "version": 1},
                )
            )
            params = {
                "protocolVersion": pick(VERSIONS),
                "capabilities": pick(({}, {"roots": {}}, [], None, {"a": {}})),
                "clientInfo": info,
            }
        elif method == "tools/call":
            arguments: object = pick(
                (
                    {},
                    {"query": "a"},
                    {"query": pick(TEXTS)},
                    [],
                    None,
                    {"action": pick(TEXTS)},
                    {pick(TEXTS)[:30]: 1},
                )
            )
            params = {
                "name": pick(TOOLS),
                "arguments": arguments,
                "_meta": pick(({}, {"progressToken": 1}, {"sessionId": 5}, None, {"a": "b"})),
            }
        elif method.startswith("notifications/"):
            params = pick(
                (
                    {"requestId": pick((1, "a", None, "end", {})), "reason": 5},
                    {"progressToken": "a", "progress": pick((1, "x", -1))},
                    {},
                    None,
                )
            )
        return self._framed(json.dumps(method).encode(), written(params))

    def _framed(self, method: bytes, params: bytes) -> bytes:
        fields = [
            b'"jsonrpc":' + self._chance.choices((b'"2.0"', b'"1.0"', b"2.0", b"null"), (30, 1, 1, 1))[0],
            b'"method":' + method,
        ]
        fields += [b'"params":' + params] if self._chance.random() < 0.9 else []
        fields += [b'"id":' + self._chance.choice(IDS)] if self._chance.random() < 0.8 else []
        if self._chance.random() < 0.05:
            fields += [
                self._chance.choice(
                    (b'"id":3', method + b":" + method, b'"result":{}', b'"":""', b'"jsonrpc":"2.0"')
                )
            ]
        if self._chance.random() < 0.2:
            self._chance.shuffle(fields)
        return b"{" + b",".join(fields) + b"}"

    def _batch(self, requests: Sequence[bytes]) -> bytes:
        many = [*requests] * self._chance.choices((1, 5, 40), (8, 2, 1))[0]
        return b"[" + b",".join(many) + b"]"

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._chance.randrange(len(frame) + 1)]

    def _mutated(self, frame: bytes) -> bytes:
        """Change some bytes."""
        changed = bytearray(frame)
        for _ in range(self._chance.choice((1, 1, 2, 8))):
            at = self._chance.randrange(len(changed) + 1)
            match self._chance.randrange(4):
                case 0:
                    changed[at : at + 1] = bytes([self._chance.randrange(256)])
                case 1:
                    changed[at:at] = self._chance.choice(
                        (
                            b"\\",
                            b'"',
                            b"{",
                            b"}",
                            b"[",
                            b"]",
                            b",",
                            b"\xc3",
                            b"\xf0\x9f",
                            b"\\u",
                            b"\0",
                            b"null",
                            b"\r",
                        )
                    )
                case 2:
                    del changed[at : at + self._chance.randrange(1, 8)]
                case _:
                    changed[at:at] = changed[at : at + self._chance.randrange(40)]
        return bytes(changed)
