"""One request over HTTP and its answer, by the standard library: the base install has no client, and a
process that asks one question needs neither connections to keep nor an event loop.

TLS is verified, plain HTTP reaches this machine alone, nothing is followed elsewhere, no proxy is asked, and
answers are read to a bound. Everything together has one deadline, by a signal: a socket's own time-out
begins anew with every byte.
"""

import http.client
import signal
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from ipaddress import ip_address
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit

from omegad.runtime.errors import OmegadError, Unavailable

BODY_BYTES_MAX = 1 << 20
AGAIN_S = 1.0


class TimedOut(OmegadError):
    """The deadline has passed."""

    hint = "ask something shorter, ask another model, or go on without a second opinion"


class Unreached(Unavailable):
    """Nobody answers there; nothing was sent, unless `is_sent`."""

    is_sent = False
    hint = "go on without a second opinion; `omegad doctor --reach` says whether it can be reached"


class Response(NamedTuple):
    """What came back: a body of at most `BODY_BYTES_MAX`, and the headers that say what to do."""

    status: int
    body: bytes
    retry_after: str
    location: str


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise `TimedOut` in a block that takes longer; of the main thread alone. It is raised again and again,
    in case somebody caught it.
    """

    def late(_number: int, _frame: object) -> NoReturn:
        raise TimedOut(f"it took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def connected(url: str, seconds: float) -> http.client.HTTPConnection:
    """Return a connection to where *url* leads. Raises `Unreached`."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        secure = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, parts.port, timeout=seconds, context=secure
        )
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=seconds)
    try:
        connection.connect()
        peer = connection.sock.getpeername()[0]
    except ssl.SSLCertVerificationError as error:
        connection.close()
        raise Unreached(
            f"{parts.netloc} cannot prove that it is: {error.verify_message}",
            hint="go on without it; base_url in config.toml, or this machine's certificates, may be wrong",
        ) from None
    except (OSError, UnicodeError) as error:  # the latter of a name that is none
        connection.close()
        reason = getattr(error, "strerror", None) or error
        raise Unreached(f"{parts.netloc} cannot be reached: {reason}") from None
    if parts.scheme != "https" and not ip_address(peer.partition("%")[0]).is_loopback:
        connection.close()
        raise Unreached(f"{parts.netloc} is not this machine, and http would show others what is said")
    return connection


def post(url: str, headers: Mapping[str, str], body: bytes, seconds: float) -> Response:
    """Send a body, and return the answer. Raises `Unreached`, and `Unavailable` for an answer that is too
    long.
    """
    parts = urlsplit(url)
    with closing(connected(url, seconds)) as connection:
        try:
            connection.request("POST", parts.path, body, {**headers, "Accept-Encoding": "identity"})
            response = connection.getresponse()
            found = response.read(BODY_BYTES_MAX + 1)
        except (http.client.HTTPException, OSError) as error:
            # A foreign text may be in the error, which is therefore only named
            unreached = Unreached(f"{parts.netloc} hung up, or does not speak HTTP ({type(error).__name__})")
            unreached.is_sent = True
            raise unreached from None
    if len(found) > BODY_BYTES_MAX:
        raise Unavailable(
            f"{parts.netloc} answers with more than {BODY_BYTES_MAX:,} bytes",
            hint="base_url or output_tokens in config.toml may be wrong; go on without a second opinion",
        )
    told = (response.getheader(name) or "" for name in ("Retry-After", "Location"))
    return Response(response.status, found, *told)
