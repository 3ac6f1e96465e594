"""Where the post is: its URL read and checked, the password apart."""

import ssl
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import msgspec

from omegad.sharing.post.errors import BadAddress, NotEncrypted

PORT = 5432
MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
ENCRYPTED: Final = MODES[3:]
OPTIONS: Final = {"host", "port", "user", "dbname", "password", "sslmode", "sslrootcert", "sslcert", "sslkey"}
_SHOWN: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where the post is, and as whom one comes. The password is in no text that is made of it."""

    host: str
    """A name, an address, or the folder of a socket."""
    port: int
    dbname: str
    user: str
    password: str = ""
    sslmode: str
    sslrootcert: str = ""
    sslcert: str = ""
    sslkey: str = ""

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine: by a socket or the loopback interface."""
        return is_local(self.host)

    @property
    def url(self) -> str:
        """The address without its password, and without an sslmode that it has anyway."""
        told = {name: str(getattr(self, name)) for name in _SHOWN if getattr(self, name)}
        if self.sslmode == _mode("", self.host):
            del told["sslmode"]
        place = ""
        if self.host.startswith("/"):
            told = {"host": self.host, "port": str(self.port), **told}
        else:
            host = f"[{self.host}]" if ":" in self.host else self.host
            place = f"{host}:{self.port}"
        return f"postgresql://{quote(self.user, safe='')}@{place}/{quote(self.dbname, safe='')}" + (
            f"?{urlencode(told, safe='/')}" if told else ""
        )

    @property
    def place(self) -> str:
        """The host and port, for sentences."""
        return self.host if self.host.startswith("/") else f"{self.host}:{self.port}"

    def with_password(self, password: str) -> "Address":
        """Return the same with a password."""
        return msgspec.structs.replace(self, password=password)

    def parameters(self) -> dict[str, str | int]:
        """Return what the driver is told, the password among it."""
        told: dict[str, str | int] = {
            "host": self.host,
            "port": self.port,
            "dbname": self.dbname,
            "user": self.user,
            **{name: getattr(self, name) for name in _SHOWN if getattr(self, name)},
            "gssencmode": "disable",
            "client_encoding": "utf8",
            "application_name": "omegad",
        }
        if self.password:
            told["password"] = self.password
        if self.sslmode in ("verify-ca", "verify-full"):
            told.setdefault("sslrootcert", ssl.get_default_verify_paths().cafile or "system")
        elif not self.is_local:
            told["require_auth"] = "!password"  # nobody in between is given the password itself
        return told


def read(url: str) -> Address:
    """Read a URL, `postgresql://LOGIN:PASSWORD@HOST:PORT/DATABASE?sslmode=…`, or with `?host=/FOLDER` for a
    socket.

    Unless the host is local the connection is encrypted and the server's name verified; the URL may ask for
    `sslmode=require`, which is encrypted alone, and for nothing weaker. Raises `BadAddress`, `NotEncrypted`.
    """
    if not url.strip().startswith(("postgres://", "postgresql://")):
        raise BadAddress("the address of a post begins with postgresql://")
    try:
        parts = urlsplit(url.strip())
        port, query = (
            parts.port,
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)),
        )
    except ValueError:
        raise BadAddress("the host, the port or the options of the address cannot be read") from None
    options = dict(query)
    if strange := sorted(set(options) - OPTIONS):
        raise BadAddress(
            f"the address has an option that is not known: {strange[0]}",
            hint=f"it may have {', '.join(sorted(OPTIONS))}",
        )
    host = unquote(parts.hostname or "") or options.get("host", "")
    user = unquote(parts.username or "") or options.get("user", "")
    dbname = unquote(parts.path.removeprefix("/")) or options.get("dbname", "") or user
    if "," in host or ("/" in host and not host.startswith("/")):
        raise BadAddress("the address names more than one host")
    if not host or not user:
        raise BadAddress(f"the address lacks the {'login' if host else 'host'}")
    number = str(port or options.get("port") or PORT)
    if not (number.isascii() and number.isdigit() and 0 < int(number) < 1 << 16):
        raise BadAddress("the port of the address is not one")
    for name in ("sslrootcert", "sslcert", "sslkey"):
        if options.get(name, "system") != "system" and not Path(options[name]).is_file():
            raise BadAddress(f"the file that the address names as {name} is not there: {options[name]}")
    return Address(
        host=host,
        port=int(number),
        dbname=dbname,
        user=user,
        password=unquote(parts.password or "") or options.get("password", ""),
        sslmode=_mode(options.get("sslmode", ""), host),
        **{name: options.get(name, "") for name in ("sslrootcert", "sslcert", "sslkey")},
    )


def is_local(host: str) -> bool:
    """Return whether a host is this machine: the folder of a socket, or of the loopback interface."""
    if host.startswith("/") or host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False


def _mode(given: str, host: str) -> str:
    if given and given not in MODES:
        raise BadAddress(f"sslmode cannot be {given}", hint=f"it is one of {', '.join(ENCRYPTED)}")
    if is_local(host):
        return given or "prefer"
    if given and given not in ENCRYPTED:
        raise NotEncrypted(
            f"sslmode={given} would send what is shared through the network for anyone to read",
            hint="leave sslmode out, or use sslmode=require, which encrypts and does not verify who answers",
        )
    return given or "verify-full"
