"""The words on which the sense of a text turns, by what they do in it, from `words.toml`."""

from importlib import resources

import msgspec

_FILE = resources.files("omegad.text.evidence").joinpath("words.toml")
WORDS = {
    name: frozenset(listed.split())
    for name, listed in msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, str]).items()
}
