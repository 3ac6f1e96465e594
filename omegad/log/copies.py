"""Verbatim copies of a text in other texts: found whatever the white space between the words and however
often they were written as JSON.

What is short, or a single common word, stands in many texts for something else, so of that only whole values
are copies; but of a password that somebody names, as short as they are, each that stands alone is one. A text
that was cut off, and shows it, is a copy, too. Of what is known to be made of what is
looked for, every run of it is one.
"""

import json
import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from functools import cache
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from omegad.log.event import Excerpt
from omegad.log.sanitise import searched_fields

ERASED = "[erased]"
"""What stands in place of a copy."""
CHARACTERS_MIN = 12
"""Shorter texts, and single words without a digit or sign up to `WORD_BYTES_MAX`, are copied only by whole
values.
"""
WORD_BYTES_MAX = 24
LONE_MIN = 6
"""So long is a short text that is looked for between other words."""
JSON_LEVELS = 3
WORDS_MAX = 3
SIGNS_MAX = 200
CUT_MIN = 40
"""So many characters of a text's beginning or end, where another one was cut, are a copy."""
PHRASE_CUT_MIN = 8
"""As `CUT_MIN`, of a phrase, which stands for nothing else."""
CUT_MARKS = ("…", "...", "[…]", "\\u2026")

StructT = TypeVar("StructT", bound=msgspec.Struct)
Hashes = npt.NDArray[np.uint64]
NONE: Hashes = np.empty(0, np.uint64)
FACTOR = 0x9E3779B97F4A7C15  # odd, and far from small powers: 2**64 divided by the golden ratio

_WORD = re.compile(r"[0-9A-Za-z]+")
_TOKEN = re.compile(r"\S+")
_UNEVEN = re.compile(r"[^\S ]\s*| \s+")
_SPACELESS = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_UNIT = re.compile(rf"\[erased\]|[{_SPACELESS}]|[^\W_{_SPACELESS}]+")
_SIDE_BY_SIDE = re.compile(r"\[erased\](?:[^\w\[]*\[erased\])+")


class CopyFinder:
    """The texts to find, without empty ones. Texts are compared in NFC. *cut_min* characters of one, where it
    was cut, are a copy. One that is short, *lone*, is a copy between other words, too.
    """

    def __init__(self, texts: Iterable[str], cut_min: int = CUT_MIN, lone: str = "") -> None:
        self._cut_min = cut_min
        self.lone = _nfc(lone)
        self._alone = _standing_alone(self.lone) if self.lone else None
        self.texts = tuple(dict.fromkeys(text for text in map(_nfc, texts) if text.strip()))
        variants = sorted(
            {written for text in self.texts for written in _written(text)}, key=len, reverse=True
        )
        self._anywhere = [_spaced(one) for one in variants if not is_short(one)]
        self._whole = {_spaced(one) for one in variants if is_short(one)}
        self._long = [one for one in variants if not is_short(one) and len(one) > cut_min]
        self._windows: dict[int, Hashes] = {}
        self._runs: dict[str, None] = {}
        self.terms = self._terms()
        """Groups of words: every text with a copy has all those of one group in it, also as JSON; no group
        where there may be none.
        """

    @property
    def short(self) -> int:
        """How many of them are looked for as whole values alone."""
        return sum(is_short(text) for text in self.texts if text != self.lone)

    def clean(self, text: str) -> str:
        """Return *text* with `ERASED` in place of each copy; as it is where there is none."""
        if self.terms and not any(all(word in text for word in group) for group in self.terms):
            return text
        composed = _nfc(text)
        found, spaced = composed, _spaced(composed)
        if spaced in self._whole:
            return ERASED
        if self._alone:
            found = self._alone.sub(ERASED, found)
            spaced = _spaced(found)
        for wording in self._anywhere:
            if wording in spaced:
                found = _replaced(found, wording)
                spaced = _spaced(found)
        for wording in self._anywhere if any(mark in spaced for mark in CUT_MARKS) else ():
            for run in self._cut_off(spaced, wording):
                found = _replaced(found, run)
                spaced = _spaced(found)
        return text if found == composed else found

    def clean_words(self, text: str, least: int, kept: Iterable[str], plain: Container[str]) -> str:
        """Return *text* without copies, and without what the texts have and none of *kept* has: runs of
        *least* characters, and words.

        Words that are *plain* stay. Where words are not set apart, each character is one.
        """
        kept = tuple(map(_nfc, kept))
        text = self.clean(text)
        gone = {word for one in self.texts for word in _units(one)} - {
            word for one in kept for word in _units(one)
        }
        found = _UNIT.sub(
            lambda it: ERASED if (word := it[0].casefold()) in gone and word not in plain else it[0], text
        )
        found = self.clean_runs(found, least, but=_hashes_of(kept, least))
        return text if found == text else _SIDE_BY_SIDE.sub(ERASED, found)

    def clean_runs(self, text: str, least: int, but: Hashes = NONE) -> str:
        """Return *text* without copies, and without any run of *least* characters that one of the texts
        has, too, none where *least* is 0; those whose hashes are in *but* stay.
        """
        text = self.clean(text)
        if not least:
            return text
        if least not in self._windows:
            self._windows[least] = _hashes_of(self._anywhere, least)
        spaced, ranges = _spaced(text), list[tuple[int, int]]()
        hashes = _hashes(spaced, least)
        is_run = _are_among(hashes, self._windows[least]) & ~_are_among(hashes, but)
        for start in np.flatnonzero(is_run).tolist():
            if ranges and start <= ranges[-1][1]:
                ranges[-1] = (ranges[-1][0], start + least)
            else:
                ranges.append((start, start + least))
        self._runs.update(dict.fromkeys(spaced[start:end].strip() for start, end in ranges))
        return _without(text, ranges) if ranges else text

    def _cut_off(self, spaced: str, wording: str) -> Iterator[str]:
        """Yield the beginnings of a text that stand in another one and are cut off there, as a mark says."""
        size = max(self._cut_min, CHARACTERS_MIN)
        beginning = wording[:size]
        at = spaced.find(beginning) if len(wording) > size else -1
        while at >= 0:
            pairs = zip(spaced[at:], wording, strict=False)
            end = at + next(
                (place for place, (one, other) in enumerate(pairs) if one != other),
                min(len(spaced) - at, len(wording)),
            )
            if spaced[end : end + 8].lstrip(" [").startswith(CUT_MARKS):
                yield spaced[at:end].rstrip()
            at = spaced.find(beginning, max(at + 1, end - size))

    def without(self, event: StructT, least: int = 0) -> StructT:
        """Return *event* with `ERASED` in place of each copy in its free text, and with *least* of each
        such run; itself where there is none.
        """
        if isinstance(event, Excerpt):
            return self._excerpt(event, least)
        changes: dict[str, object] = {}
        for name in searched_fields(type(event)):
            value = getattr(event, name)
            clean = self.data(value, least)
            if clean != value:
                changes[name] = clean
        return msgspec.structs.replace(event, **changes, **_without_digest(event)) if changes else event

    def data(self, value: object, least: int = 0) -> object:
        """Return a value of which every text, keys among them, is as `clean` returns it; with *least*, as
        `clean_runs` does.
        """
        match value:
            case str():
                return self.clean_runs(value, least)
            case msgspec.Struct():
                return self.without(value, least)
            case dict():
                return {self.data(key, least): self.data(item, least) for key, item in value.items()}
            case tuple() | list():
                return type(value)(self.data(item, least) for item in value)
            case _:
                return value

    def _excerpt(self, excerpt: StructT, least: int) -> StructT:
        assert isinstance(excerpt, Excerpt)
        head, tail = (self.clean_runs(part, least) for part in (excerpt.head, excerpt.tail))
        size = self._cut_min
        for wording in self._long if tail else ():
            if (start := head.rfind(wording[:size])) >= 0 and wording.startswith(head[start:]):
                head = head[:start] + ERASED
            if (start := tail.find(wording[-size:])) >= 0 and wording.endswith(tail[: start + size]):
                tail = ERASED + tail[start + size :]
        if (head, tail) == (excerpt.head, excerpt.tail):
            return excerpt
        return msgspec.structs.replace(excerpt, head=head, tail=tail, sha256="")

    def _terms(self) -> tuple[tuple[str, ...], ...]:
        parts = [part for text in self._long for part in (text[: self._cut_min], text[-self._cut_min :])]
        words = (dict.fromkeys(_WORD.findall(text)) for text in (*self.texts, *parts))
        found = dict.fromkeys(tuple(sorted(one, key=len, reverse=True)[:WORDS_MAX]) for one in words)
        return () if () in found or len(found) > SIGNS_MAX else tuple(found)

    def pieces(self, *, has_runs: bool = False) -> list[bytes]:
        """Return runs of bytes by which a file with one of them is recognised: beginning, middle and end, as
        text and as JSON.

        Those of the runs that were taken out of other texts are among them where they are asked for.
        """
        written = {
            one
            for text in (*self.texts, *(self._runs if has_runs else ()))
            for one in _written(text, levels=1)
        }
        least = min(CHARACTERS_MIN, len(self.lone) or CHARACTERS_MIN)
        return [part for one in written for part in _parts(one.encode()) if len(part) >= least]


def is_lone(text: str) -> bool:
    """Say whether a short text is a copy where it stands between other words: a password, of letters with a
    digit or sign among them.
    """
    return (
        len(text) >= LONE_MIN
        and not any(map(str.isspace, text))
        and any(map(str.isalpha, text))
        and not text.isalpha()
    )


def is_short(text: str) -> bool:
    """Say whether a text is too short, or too common, to be a copy within another one."""
    bare = text.strip()
    return len(bare) < CHARACTERS_MIN or (bare.isalpha() and len(bare.encode()) <= WORD_BYTES_MAX)


def _standing_alone(text: str) -> re.Pattern[str]:
    """Return a pattern for a text, however often it was written as JSON, that is no part of a word."""
    written = "|".join(map(re.escape, sorted(set(_written(text)), key=len, reverse=True)))
    before = r"(?:(?<![^\W_])|(?<=\\[nrt]))" if text[0].isalnum() else ""
    after = r"(?![^\W_])" if text[-1].isalnum() else ""
    return re.compile(f"{before}(?:{written}){after}")


def blank(event: StructT) -> StructT:
    """Return *event* without any of its free text, and without the key of its content."""
    changes: dict[str, object] = {"content_key": ""} if hasattr(event, "content_key") else {}
    for name in searched_fields(type(event)):
        if (value := getattr(event, name)) is not None:
            changes[name] = type(value)()
    return msgspec.structs.replace(event, **changes, **_without_digest(event))


def _without_digest(event: msgspec.Struct) -> dict[str, object]:
    """Return in what an event changes whose text is gone: the digest of all that its hook said is zeros of
    the same length.
    """
    delivery = getattr(event, "delivery", None)
    return (
        {"delivery": msgspec.structs.replace(delivery, digest="0" * len(delivery.digest))} if delivery else {}
    )


def _written(text: str, levels: int = JSON_LEVELS) -> Iterator[str]:
    """Yield a text as it is, and as JSON has it, and JSON within JSON."""
    yield text
    for in_ascii in (False, True):
        within = text
        for _ in range(levels):
            within = json.dumps(within, ensure_ascii=in_ascii)[1:-1]
            yield within


def _replaced(text: str, wording: str) -> str:
    """Return *text* with `ERASED` in place of each *wording*, whatever white space it has between its
    words.
    """
    spaced, ranges = _spaced(text), list[tuple[int, int]]()
    place = spaced.find(wording)
    while place >= 0:
        ranges.append((place, place + len(wording)))
        place = spaced.find(wording, place + len(wording))
    return _without(text, ranges)


def _without(text: str, ranges: Iterable[tuple[int, int]]) -> str:
    """Return *text* with `ERASED` in place of each range, which count its characters as if all white space
    were one blank.
    """
    starts, ends, starts_spaced, at = array("Q"), array("Q"), array("Q"), 0
    for found in _TOKEN.finditer(text):
        starts.append(found.start())
        ends.append(found.end())
        starts_spaced.append(at)
        at += found.end() - found.start() + 1

    def place_of(spaced: int, after: int = 0) -> int:
        token = bisect_right(starts_spaced, spaced) - 1
        return min(starts[token] + spaced - starts_spaced[token] + after, ends[token])

    parts, done = [], 0
    for first, last in ranges:
        parts += [text[done : place_of(first)], ERASED]
        done = place_of(last - 1, after=1)
    return "".join((*parts, text[done:]))


def _hashes_of(texts: Iterable[str], least: int) -> Hashes:
    """Return the hashes of all runs of so many characters of some texts: a set of the runs would be a string
    for each place, 16 MB of a long text.
    """
    return np.unique(np.concatenate([NONE, *(_hashes(_spaced(one), least) for one in texts)]))


def _are_among(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Return of each hash whether it is among those *known*, which are in their order."""
    found: npt.NDArray[np.bool_] = np.searchsorted(known, hashes) != np.searchsorted(known, hashes, "right")
    return found


def _hashes(text: str, least: int) -> Hashes:
    """Return the hash of the run of so many characters from each place on: a polynomial, modulo 2**64."""
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    if len(characters) < least:
        return NONE
    return np.lib.stride_tricks.sliding_window_view(characters, least) @ _powers(least)


@cache
def _powers(count: int) -> Hashes:
    return np.array([pow(FACTOR, place, 2**64) for place in range(count)], np.uint64)


def _units(text: str) -> set[str]:
    return {found[0].casefold() for found in _UNIT.finditer(text)} - {ERASED}


def _parts(data: bytes) -> Iterator[bytes]:
    size = 2 * CUT_MIN
    for start in {0, max(0, (len(data) - size) // 2), max(0, len(data) - size)}:
        yield data[start : start + size]


def _spaced(text: str) -> str:
    """Return *text* with one blank for all white space between two words, and none around them: as split and
    joined again, but without a string for each word.
    """
    return _UNEVEN.sub(" ", text.strip())


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
