"""What two texts have to do with each other, read from their words alone. Pure, and linear in their
length.
"""

from importlib import resources

import msgspec

_FILE = resources.files("omegad.text.evidence").joinpath("words.toml")
WORDS = {
    name: frozenset(listed.split())
    for name, listed in msgspec.toml.decode(_FILE.read_bytes(), type=dict[str, str]).items()
}
"""The words on which the sense of a text turns, by what they do in it."""
