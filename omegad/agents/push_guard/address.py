"""Where a remote is: an address that git itself carries to, or one that would have it run a program of the
repository's choice.
"""

import re
from os.path import expanduser, isabs, join
from typing import NamedTuple
from urllib.parse import unquote

PROTOCOLS = "git:http:https:ssh"
"""What another machine may be asked by, see GIT_ALLOW_PROTOCOL in git(1)."""
SCHEMES = frozenset(("git", "http", "https", "ssh", "git+ssh", "ssh+git"))
SUFFIXES = ("/.git", "", ".git/.git", ".git")
"""What git tries behind a path, in this order."""

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_URL = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)://(?:[^/@]*@)?(.?)", re.DOTALL)
_SHORT = re.compile(r"(?:[^/:]*@)?([^/:]?)[^/:]*:", re.DOTALL)
_WHOLE = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9+.-]*://(?:[^/@]*@)?(?P<server>\[[^\]]*\]|[^/:]+)(?::[0-9]*)?/(?P<path>.*)",
    re.DOTALL,
)
_HOSTED = re.compile(r"(?:[^/:@]*@)?(?P<server>\[[^\]]*\]|[^/:]+):(?P<path>.*)", re.DOTALL)


class Address(NamedTuple):
    """Where a remote is: a folder of this machine, or the address to ask."""

    folder: str | None
    url: str


def address_of(url: str, top: str) -> Address | None:
    """Read the address of a remote of the repository whose files begin at *top*; None where git would run
    a helper for it, or an option.
    """
    if _HELPER.match(url):
        return None
    if found := _URL.match(url):
        if found[1] == "file":
            return Address(unquote(url.removeprefix("file://"), errors="surrogateescape"), url)
        return Address(None, url) if found[1] in SCHEMES and found[2] != "-" else None
    if found := _SHORT.match(url):
        return Address(None, url) if found[1] not in ("", "-") else None
    path = expanduser(url)
    return Address(path if isabs(path) else join(top, path), url)


def host_and_path(url: str) -> tuple[str, str] | None:
    """Return the server and the path that an address names, by whichever way it is reached; None where it
    names no server.
    """
    found = _WHOLE.match(url) or _HOSTED.match(url)
    return (found["server"].lower(), found["path"].strip("/").removesuffix(".git")) if found else None
