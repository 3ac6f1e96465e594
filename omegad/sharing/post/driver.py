"""psycopg, imported where a connection is made, and its errors in words of ours."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omegad.runtime.errors import OmegadError
from omegad.runtime.steadiness import in_words
from omegad.sharing.post.address import Address
from omegad.sharing.post.errors import (
    AheadOfClock,
    DriverAbsent,
    Forked,
    LoginRefused,
    LoginRemoved,
    NotAMember,
    NotEncrypted,
    NotInstalled,
    NotYours,
    PasswordAbsent,
    PostLost,
    PostRefused,
    PostSilent,
    PostUnreachable,
    Retired,
    StoredByAnother,
    TooLarge,
)

if TYPE_CHECKING:
    import psycopg

SAID_MAX = 300
_AROUND_A_REASON = re.compile(  # what libpq says beside why: where, which is said already, and a question
    r'connection (?:failed|is bad): |connection to server (?:at|on socket) "[^"]*"(?:, port \d+)? failed: '
    r"| Is the server running [^?]*\?"
)

_REFUSALS = (  # what libpq says of a connection that was not made, which has no code
    ("password authentication failed", LoginRefused, "does not accept the password of {user}"),
    ("no password supplied", PasswordAbsent, "asks for the password of {user}, and none is known"),
    ("is not permitted to log in", LoginRemoved, "does not let {user} log in any more"),
    ("role ", LoginRefused, "knows no login {user}"),
    ("no pg_hba.conf entry", LoginRefused, "does not let {user} connect to {dbname} from here"),
    ("authentication method requirement", NotEncrypted, "asks for the password itself, which is not sent"),
    ("server does not support SSL", NotEncrypted, "does not offer TLS"),
    ("certificate", NotEncrypted, "has a certificate that cannot be verified"),
    ("SSL error", NotEncrypted, "and this machine do not agree on TLS"),
    ("database ", NotInstalled, "has no database {dbname}"),
    ("too many clients", PostUnreachable, "has too many connections"),
    ("remaining connection slots", PostUnreachable, "has too many connections"),
    ("starting up", PostUnreachable, "is starting"),
    ("shutting down", PostUnreachable, "is stopping"),
    ("resolve host", PostUnreachable, "is not known by this name"),
    ("Name or service not known", PostUnreachable, "is not known by this name"),
    ("nodename nor servname", PostUnreachable, "is not known by this name"),
    ("timeout", PostSilent, "did not answer in time"),
)

_STATES: dict[str, tuple[type[OmegadError], str]] = {
    "OM001": (NotAMember, ""),
    "OM002": (NotYours, "this name at the post belongs to another login, or nobody has taken it: {detail}"),
    "OM003": (TooLarge, ""),
    "OM004": (AheadOfClock, "what is to be told is stamped {ahead} ahead of the server's clock"),
    "OM005": (Forked, ""),
    "OM006": (StoredByAnother, "somebody else stored what is to be erased for everyone: {detail}"),
    "OM007": (TooLarge, "this login has 1,000 homes at the post, which is all that it may have"),
    "OM008": (Retired, "{detail}: it tells and receives nothing any more"),
    "23514": (TooLarge, "a fact is larger than the post takes: {constraint}"),
    "42501": (NotAMember, "this login may do nothing here: it is not a member of a team, or not any more"),
    "3F000": (NotInstalled, ""),
    "42P01": (NotInstalled, ""),
    "53300": (PostUnreachable, "the post has too many connections"),
    "57014": (PostSilent, ""),
    "57P01": (PostLost, "the post is stopping"),
    "57P02": (PostLost, "the post ended in the middle"),
    "57P03": (PostUnreachable, "the post is starting or stopping"),
}


def imported() -> None:
    """Import the driver. Raises `DriverAbsent`."""
    try:
        import psycopg  # noqa: F401, PLC0415  an extra, and dear
    except ImportError as error:
        raise DriverAbsent(f"PostgreSQL's driver, psycopg, cannot be loaded: {error}") from None


@contextmanager
def connecting(address: Address) -> Iterator[None]:
    """Raise what keeps from connecting in words of ours, without the password."""
    from psycopg import Error  # noqa: PLC0415  an extra

    try:
        yield
    except Error as error:
        said = _without_password(error, address)
        for sign, kind, words in _REFUSALS:
            if sign in said:
                told = words.format(user=address.user, dbname=address.dbname)
                raise kind(f"the post at {address.place} {told}") from None
        reason = _AROUND_A_REASON.sub("", said)
        raise PostUnreachable(f"the post at {address.place} cannot be reached: {reason}") from None


@contextmanager
def asking(address: Address) -> Iterator[None]:
    """Raise what an answer fails on in words of ours, without the password."""
    from psycopg import Error, InterfaceError, OperationalError  # noqa: PLC0415  an extra

    try:
        yield
    except Error as error:
        said = _without_password(error, address)
        if error.sqlstate in _STATES:
            kind, words = _STATES[error.sqlstate]
            detail = error.diag.message_detail or ""
            ahead = in_words(int(detail) * 1_000) if detail.isdigit() else detail
            told = words.format(detail=detail, ahead=ahead, constraint=error.diag.constraint_name)
            raise kind(told) from None
        if error.sqlstate is None and isinstance(error, InterfaceError | OperationalError):
            raise PostLost(f"the connection to the post at {address.place} ended: {said}") from None
        raise PostRefused(f"the post at {address.place} refused: {said} ({error.sqlstate})") from None


def _without_password(error: "psycopg.Error", address: Address) -> str:
    said = " ".join(str(error).split())
    return (said.replace(address.password, "…") if address.password else said)[:SAID_MAX]
