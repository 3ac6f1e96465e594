"""Who is answered over HTTP, whatever is asked: one set of rules for every route.

They are applied twice: to the head of a request as it comes, before anything is made of it, and to each
request that reaches the application, of which several may come in one piece.
"""

import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

HOSTS = ("127.0.0.1", "localhost", "[::1]")
SAME_SITE = frozenset({b"same-origin", b"none"})
"""What `Sec-Fetch-Site` says of what a page of ours asks, and of what a person opened."""
BODY_BYTES_MAX = 4 * 1024 * 1024

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every answer carries."""
CHALLENGE = {"WWW-Authenticate": 'Bearer error="invalid_token"'}

BEARER = re.compile(rb"bearer[ \t]+([^\s]+)[ \t]*", re.IGNORECASE)


class Asked(NamedTuple):
    """The head of a request; the names of its headers are in lower case."""

    method: str
    path: str
    headers: Sequence[tuple[bytes, bytes]]

    def values(self, wanted: bytes) -> list[bytes]:
        """Return what the headers of a name say."""
        return [value for name, value in self.headers if name == wanted]

    @property
    def has_body(self) -> bool:
        """Whether more than the head may come."""
        return bool(self.values(b"transfer-encoding")) or any(
            value.strip() != b"0" for value in self.values(b"content-length")
        )


class Refusal(NamedTuple):
    """Why a request is not answered, and what to do about it."""

    status: HTTPStatus
    said: str
    hint: str = ""

    @property
    def body(self) -> bytes:
        """What is answered: an error as those of the socket."""
        return error_body(-32600, self.said, {"kind": "refused", "tag": "RUNTIME_ENV", "hint": self.hint})

    @property
    def headers(self) -> dict[str, str]:
        """What the answer carries."""
        challenge = CHALLENGE if self.status is HTTPStatus.UNAUTHORIZED else {}
        return {"Content-Type": "application/json", **HEADERS, **challenge}


def error_body(code: int, message: str, data: dict[str, str]) -> bytes:
    """Return an error as it is answered."""
    return msgspec.json.encode({"error": {"code": code, "message": message, "data": data}})


NO_TOKEN = Refusal(
    HTTPStatus.UNAUTHORIZED,
    "the token is missing or wrong",
    "send the header Authorization: Bearer TOKEN; `omegad web --token` prints it, and `omegad page` opens"
    " the page with one of its own",
)
TOO_LARGE = Refusal(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    f"the body of a request may have {BODY_BYTES_MAX} bytes",
    "send less at once; `omegad import` takes in what is larger",
)
ELSEWHERE = Refusal(
    HTTPStatus.FORBIDDEN, "another site's page asks for this", "open omegad's own page, or ask from a program"
)
NOT_SERVED = Refusal(
    HTTPStatus.NOT_FOUND, "nothing is served there", "`web` in config.toml says what is: page, api, mcp"
)


class Rules:
    """The rules of one port."""

    def __init__(
        self, port: int, token: str, public: Iterable[str], is_served: Callable[[str], bool]
    ) -> None:
        """*public* are the paths, and with a / at their end the folders, that may be read without the
        *token*; *is_served* says whether there is anything at a path.
        """
        self._hosts = {f"{host}:{port}".encode(): f"http://{host}:{port}".encode() for host in HOSTS}
        self._token = token.encode()
        self._public = frozenset(public)
        self._folders = tuple(path for path in self._public if path.endswith("/") and path != "/")
        self._is_served = is_served

    def objection(self, asked: Asked) -> Refusal | None:
        """Say why a request is not answered, None where it is."""
        hosts = asked.values(b"host")
        origin = self._hosts.get(hosts[0].lower()) if len(hosts) == 1 else None
        if origin is None:
            return Refusal(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this host is not served here",
                f"ask for one of {', '.join(name.decode() for name in self._hosts)}",
            )
        is_public = self._is_public(asked)
        if not _is_own(asked, origin) and not (is_public and _is_opened(asked)):
            return ELSEWHERE
        if not is_public and not self.shows_token(asked):
            return NO_TOKEN if self._is_served(asked.path) else NOT_SERVED
        lengths = [value for value in asked.values(b"content-length") if value.isdigit()]
        return TOO_LARGE if any(int(length[:20]) > BODY_BYTES_MAX for length in lengths) else None

    def shows_token(self, asked: Asked) -> bool:
        """Say whether the owner asks."""
        shown = [BEARER.fullmatch(value) for value in asked.values(b"authorization")]
        return any(hmac.compare_digest(one[1], self._token) for one in shown if one)

    def _is_public(self, asked: Asked) -> bool:
        return (
            asked.method in {"GET", "HEAD"}
            and not asked.has_body
            and (asked.path in self._public or asked.path.startswith(self._folders))
        )


def _is_own(asked: Asked, origin: bytes) -> bool:
    """Say whether no other site's page asks, as far as a browser tells; programs tell nothing."""
    if sites := asked.values(b"sec-fetch-site"):
        return all(site in SAME_SITE for site in sites)
    return all(said == origin for said in asked.values(b"origin"))


def _is_opened(asked: Asked) -> bool:
    """Say whether a person follows a link to a page that fills a tab, of which the one that has the link
    sees nothing.
    """
    return asked.values(b"sec-fetch-mode") == [b"navigate"] and asked.values(b"sec-fetch-dest") == [
        b"document"
    ]


REQUEST_LINE = re.compile(rb"([A-Z]+) ([^ \r\n]+) HTTP/1\.[01]\r?\n")
HEADER_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n]*?)[ \t]*\r?")


def read_head(head: bytes) -> Asked | None:
    """Return what the head of a request says, None where it is none of HTTP/1.1, or continues a header on
    another line.
    """
    line = REQUEST_LINE.match(head)
    if line is None:
        return None
    headers = []
    for text in head[line.end() :].split(b"\n"):
        if text in {b"", b"\r"}:
            continue
        found = HEADER_LINE.fullmatch(text)
        if found is None:
            return None
        headers.append((found[1].lower(), found[2]))
    return Asked(line[1].decode(), unquote(line[2].partition(b"?")[0].decode("latin-1")), headers)
