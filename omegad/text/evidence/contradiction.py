"""Whether a text takes back what another one says: it reverts it by its title, or its first sentence says just the opposite. In doubt, no."""

import re
from functools import lru_cache

from omegad.text.evidence.statements import is_opposite, pieces, unturned, words

REVERTED, OPPOSITE = "reverted", "says the opposite"
TITLE_MIN = 12
"""A shorter title, in characters, may name anything."""

SHARED_MIN = 3
"""How many words two sentences share at least, in the same order, to be opposites; all but those on which their sense turns."""

_HEAD_CHARACTERS = 400
_HEADS_KEPT = 2_048  # whose words are at hand: what is near to one text is near to others
_REVERT = re.compile(r"\W{0,8}(?:[\w()/.-]{1,40}!?:\s)?revert(?:s|ed)?:?\s[\"'](?P<title>[^\n]+)", re.IGNORECASE)
_NUMBERS = re.compile(r"(?:\s\(#\d+\))+")


def contradiction(new: str, old: str) -> str | None:
    """Return why an older text does not hold where a newer one takes it back; None otherwise."""
    ours, theirs = new[:_HEAD_CHARACTERS].lstrip(), old[:_HEAD_CHARACTERS].lstrip()
    match = _REVERT.match(ours)
    title = _title(match["title"]) if match else ""
    if len(title) >= TITLE_MIN and title == _title(theirs.partition("\n")[0]):
        return REVERTED
    one, other = _first_words(ours), _first_words(theirs)
    is_shared = len(kept := unturned(one)) >= SHARED_MIN and kept == unturned(other)
    return OPPOSITE if is_shared and is_opposite(frozenset(one), frozenset(other)) else None


def _title(line: str) -> str:
    return _NUMBERS.sub("", line).strip(" \"'.").casefold()


@lru_cache(maxsize=_HEADS_KEPT)
def _first_words(text: str) -> tuple[str, ...]:
    """Return the words of the first sentence of a text; of code, a question or what lists something, none."""
    sentence, is_code = next(pieces(text), ("", True))
    return () if is_code or sentence.endswith(("?", ":")) else tuple(words(_NUMBERS.sub("", sentence)))
