"""What is made of texts, at hand for the next time, bounded by the memory that it takes."""

import sys
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def bytes_of(text: str) -> int:
    """Return how much memory a text takes."""
    return sys.getsizeof(text)


class Kept(dict[str, T]):
    """What a function makes of each text, at hand where it was asked for lately: a look-up in a dictionary
    costs a tenth of a call.

    It comes to *bytes_max* at most, by what *bytes_of* estimates a text, and what was made of it, to take.
    Where half of that is full, it takes the place of the other half, out of which comes what is asked for
    once more. Safe to use from several threads.
    """

    def __init__(self, make: Callable[[str], T], bytes_max: int, bytes_of: Callable[[str, T], int]) -> None:
        self._make = make
        self._bytes_of = bytes_of
        self._half = bytes_max // 2
        self._bytes = 0
        self._before: dict[str, T] = {}

    def __missing__(self, text: str) -> T:
        """Make it; raises what making it raises. What would take half of the room alone is not kept."""
        before = self._before
        found = before[text] if text in before else self._make(text)
        size = self._bytes_of(text, found)
        if size > self._half:
            return found
        if self._bytes + size > self._half:
            self._before = dict(self)
            self.clear()
            self._bytes = 0
        self._bytes += size
        self[text] = found
        return found
