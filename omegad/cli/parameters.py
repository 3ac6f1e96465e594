"""From what was given on the command line to the parameters of a method."""

import sys
from argparse import Namespace

import msgspec

from omegad.cli.arguments import WrongUsage

STDIN_BYTES_MAX = 1024 * 1024  # more than the daemon takes, so that it is the one to refuse it
SCOPE = ("project", "entity_id", "session_id")
FILTERS = (*SCOPE, "event_types", "tags", "since", "until")


def chosen(arguments: Namespace, *names: str) -> dict[str, object]:
    """Return the arguments named, as the parameters of the same names."""
    return {name: getattr(arguments, name) for name in names}


def filters(arguments: Namespace) -> dict[str, object]:
    """Return the parameters that say which memories are meant."""
    return chosen(arguments, *FILTERS)


def content(text: str) -> str:
    """Return the content that is meant: `-` is whatever standard input holds. Raises `WrongUsage` where that is not UTF-8."""
    if text != "-":
        return text
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX) if sys.stdin else b""
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise WrongUsage(f"standard input is not UTF-8: {error}") from error


def metadata(text: str | None) -> object:
    """Read a JSON object; raises `WrongUsage` for anything else."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except msgspec.DecodeError as error:
        raise WrongUsage(f"--metadata is not a JSON object: {error}") from error
