"""Reads rules: the file that is installed with the package, then those of the user, each checked against
one Struct.
"""

import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec

from omegad.runtime.errors import BadConfiguration

StructT = TypeVar("StructT", bound=msgspec.Struct)


def read_all(packaged: str, paths: Sequence[Path], kind: type[StructT]) -> dict[str, StructT]:
    """Return what each file says, by the file's name: that of *packaged* first, then *paths* in order.

    Raises `BadConfiguration`, naming the file, for one that cannot be read, is not TOML, or is not of *kind*.
    """
    installed = resources.files("omegad.text.ingestion").joinpath("rules", packaged)
    found = {packaged: _parsed(packaged, installed.read_bytes(), kind)}
    for path in paths:
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BadConfiguration(
                f"{path}: {error.strerror}", hint="make the file readable, or remove it"
            ) from error
        found[str(path)] = _parsed(str(path), data, kind)
    return found


def _parsed(name: str, data: bytes, kind: type[StructT]) -> StructT:
    try:
        return msgspec.convert(tomllib.loads(data.decode()), kind)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise BadConfiguration(
            f"{name}: {error}", hint="mend the file, or remove it to use the built-in rules alone"
        ) from error
