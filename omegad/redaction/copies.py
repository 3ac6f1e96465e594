"""Verbatim copies of a text in other texts: found whatever the white space between the words and however often they were written as JSON.

What is short, or a single common word, stands in many texts for something else, so of that only whole values are copies.
"""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from omegad.log.event import Excerpt
from omegad.redaction.sanitise import searched_fields

ERASED = "[erased]"
"""What stands in place of a copy."""
CHARACTERS_MIN = 12
"""Shorter texts, and single words without a digit or sign up to `WORD_BYTES_MAX`, are copied only by whole values."""
WORD_BYTES_MAX = 24
JSON_LEVELS = 3
WORDS_MAX = 3
SIGNS_MAX = 200
CUT_MIN = 40
"""So many characters of a text's beginning or end, where another one was cut, are a copy."""

StructT = TypeVar("StructT", bound=msgspec.Struct)

_WORD = re.compile(r"[0-9A-Za-z]+")
_TOKEN = re.compile(r"\S+")


class Wordings:
    """The texts to find. Texts are compared in NFC."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Take them; empty ones are left out."""
        self.texts = tuple(dict.fromkeys(text for text in map(_nfc, texts) if text.strip()))
        variants = sorted({written for text in self.texts for written in _written(text)}, key=len, reverse=True)
        self._anywhere = [" ".join(one.split()) for one in variants if not is_short(one)]
        self._whole = {" ".join(one.split()) for one in variants if is_short(one)}
        self._long = [one for one in variants if len(one) >= 2 * CUT_MIN]
        self.signs = self._signs()
        """Groups of words: every text with a copy has all those of one group in it, also as JSON; no group where there may be none."""

    @property
    def short(self) -> int:
        """How many of them are looked for as whole values alone."""
        return sum(map(is_short, self.texts))

    def clean(self, text: str) -> str:
        """Return *text* with `ERASED` in place of each copy; as it is where there is none."""
        if self.signs and not any(all(word in text for word in group) for group in self.signs):
            return text
        composed = _nfc(text)
        if " ".join(composed.split()) in self._whole:
            return ERASED
        found = composed
        spaced = " ".join(found.split())
        for wording in self._anywhere:
            if wording in spaced:
                found = _replaced(found, wording)
                spaced = " ".join(found.split())
        return text if found == composed else found

    def without(self, event: StructT) -> StructT:
        """Return *event* with `ERASED` in place of each copy in its free text; itself where there is none."""
        if isinstance(event, Excerpt):
            return self._excerpt(event)
        changes: dict[str, Any] = {}
        for name in searched_fields(type(event)):
            value = getattr(event, name)
            clean = self.data(value)
            if clean != value:
                changes[name] = clean
        return msgspec.structs.replace(event, **changes) if changes else event

    def data(self, value: object) -> object:
        """Return a value of which every text, keys among them, is as `clean` returns it."""
        match value:
            case str():
                return self.clean(value)
            case msgspec.Struct():
                return self.without(value)
            case dict():
                return {self.data(key): self.data(item) for key, item in value.items()}
            case tuple() | list():
                return type(value)(map(self.data, value))
            case _:
                return value

    def _excerpt(self, excerpt: StructT) -> StructT:
        assert isinstance(excerpt, Excerpt)
        head, tail = self.clean(excerpt.head), self.clean(excerpt.tail)
        for wording in self._long if tail else ():
            if (start := head.rfind(wording[:CUT_MIN])) >= 0 and wording.startswith(head[start:]):
                head = head[:start] + ERASED
            if (start := tail.find(wording[-CUT_MIN:])) >= 0 and wording.endswith(tail[: start + CUT_MIN]):
                tail = ERASED + tail[start + CUT_MIN :]
        if (head, tail) == (excerpt.head, excerpt.tail):
            return excerpt
        return msgspec.structs.replace(excerpt, head=head, tail=tail, sha256="")

    def _signs(self) -> tuple[tuple[str, ...], ...]:
        parts = [part for text in self._long for part in (text[:CUT_MIN], text[-CUT_MIN:])]
        found = dict.fromkeys(map(_longest_words, (*self.texts, *parts)))
        return () if () in found or len(found) > SIGNS_MAX else tuple(found)

    def pieces(self) -> list[bytes]:
        """Return runs of bytes by which a file with one of them is recognised: beginning, middle and end, as text and as JSON."""
        written = {one for text in self.texts for one in _written(text, levels=1)}
        return [part for one in written for part in _parts(one.encode()) if len(part) >= CHARACTERS_MIN]


def is_short(text: str) -> bool:
    """Say whether a text is too short, or too common, to be a copy within another one."""
    bare = text.strip()
    return len(bare) < CHARACTERS_MIN or (bare.isalpha() and len(bare.encode()) <= WORD_BYTES_MAX)


def blank(event: StructT) -> StructT:
    """Return *event* without any of its free text, and without the key of its content."""
    changes: dict[str, Any] = {"content_key": ""} if hasattr(event, "content_key") else {}
    for name in searched_fields(type(event)):
        if (value := getattr(event, name)) is not None:
            changes[name] = type(value)()
    return msgspec.structs.replace(event, **changes)


def _written(text: str, levels: int = JSON_LEVELS) -> Iterator[str]:
    """Yield a text as it is, and as JSON has it, and JSON within JSON."""
    yield text
    for in_ascii in (False, True):
        within = text
        for _ in range(levels):
            within = json.dumps(within, ensure_ascii=in_ascii)[1:-1]
            yield within


def _replaced(text: str, wording: str) -> str:
    tokens = [found.span() for found in _TOKEN.finditer(text)]
    spaced = " ".join(text[start:end] for start, end in tokens)
    place = spaced.find(wording)
    starts, at = [], 0
    for start, end in tokens:
        starts.append(at)
        at += end - start + 1
    parts, done = [], 0
    while place >= 0:
        first = bisect_right(starts, place) - 1
        last = bisect_right(starts, place + len(wording) - 1) - 1
        parts += [text[done : tokens[first][0] + place - starts[first]], ERASED]
        done = tokens[last][0] + place + len(wording) - starts[last]
        place = spaced.find(wording, place + len(wording))
    return "".join((*parts, text[done:]))


def _longest_words(text: str) -> tuple[str, ...]:
    return tuple(sorted(dict.fromkeys(_WORD.findall(text)), key=len, reverse=True)[:WORDS_MAX])


def _parts(data: bytes) -> Iterator[bytes]:
    size = 2 * CUT_MIN
    for start in {0, max(0, (len(data) - size) // 2), max(0, len(data) - size)}:
        yield data[start : start + size]


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
