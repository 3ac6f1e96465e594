"""Whether a text takes back what another one says: the one thing that texts say outright in a form of its own, a revert by its title."""

import re

REVERTED = "reverted"
TITLE_MIN = 12
"""A shorter title, in characters, may name anything."""

_HEAD_CHARACTERS = 400
_REVERT = re.compile(r"\W*(?:[\w()/.-]{1,40}!?:\s)?revert(?:s|ed)?:?\s[\"'](?P<title>[^\n]+)", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:\s\(#\d+\))+")


def contradiction(new: str, old: str) -> str | None:
    """Return why an older text does not hold where a newer one reverts it by its title, its first line; None otherwise."""
    match = _REVERT.match(new[:_HEAD_CHARACTERS].lstrip())
    title = _title(match["title"]) if match else ""
    return REVERTED if len(title) >= TITLE_MIN and title == _title(old[:_HEAD_CHARACTERS].lstrip().partition("\n")[0]) else None


def _title(line: str) -> str:
    return _NUMBERS.sub("", line).strip(" \"'.").casefold()
