"""Text to the numbers of pieces of words, as SentencePiece's unigram model has them.

A package that does this keeps hundreds of megabytes of a vocabulary of 250,000 pieces. Here the pieces are
three columns of a mapped file, sorted by a hash, and a text's parts are looked up all at once.
"""

import re
import unicodedata
from pathlib import Path

import numpy as np
import numpy.typing as npt

from omegad.embedding.e5_file import Pieces
from omegad.runtime.errors import Invalid

SPACE = "▁"
LONGEST = 16  # characters of a piece
PIECE_BYTES = 16  # a hash, a number, a score
LESS_LIKELY = 10.0  # an unknown character is, than the least likely piece, by this logarithm
LEAST_LIKELY = -20.364752
TILDE, KEPT = "\uff5e", "\ue0f0"  # which NFKC would change

_GONE = dict.fromkeys((*range(0x1, 0x9), 0xB, *range(0xE, 0x20), 0x7F, 0x8F, 0x9F), "")
_BLANK = dict.fromkeys(
    (0x9, 0xA, 0xC, 0xD, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD), " "
)
_READINGS = _GONE | _BLANK | {ord(TILDE): KEPT}
_SPACES = re.compile(" +")
_FACTOR, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)

Hashes = npt.NDArray[np.uint64]


def read_as(text: str) -> str:
    """Return a text as the model reads it: NFKC, without controls, words with a mark in front."""
    read = unicodedata.normalize("NFKC", text.translate(_READINGS)).replace(KEPT, TILDE)
    read = _SPACES.sub(SPACE, read)
    return read if read.startswith(SPACE) else SPACE + read


def write(pieces: Pieces, path: Path) -> None:
    """Write the file that `Unigram` reads. What marks a text's ends, or a gap, is no piece of a text."""
    marks = {pieces.first, pieces.last, pieces.unknown, len(pieces.texts) - 1}
    marks |= {number for number, text in enumerate(pieces.texts) if text == "<pad>"}
    numbers = np.array([number for number in range(len(pieces.texts)) if number not in marks], "<i4")
    texts = [pieces.texts[number] for number in numbers.tolist()]
    lengths = np.array([len(text) for text in texts])
    if lengths.max() > LONGEST:
        raise Invalid(f"a piece of a word has {lengths.max()} characters; {LONGEST} are expected")
    hashes = np.zeros(len(texts), "<u8")
    for length in range(1, LONGEST + 1):
        those = np.flatnonzero(lengths == length)
        if len(those):
            hashes[those] = _hashes("".join(texts[place] for place in those), length)[-1][::length]
    order = hashes.argsort()
    if not (np.diff(hashes[order]) > 0).all():
        raise Invalid("two pieces of words have the same hash")
    columns = (hashes[order], numbers[order], pieces.scores[numbers[order]].astype("<f4"))
    path.write_bytes(b"".join(column.tobytes() for column in columns))


class Unigram:
    """A tokenizer, for texts of up to some number of tokens."""

    def __init__(
        self, path: Path, tokens_max: int, *, first: int = 0, last: int = 2, unknown: int = 3
    ) -> None:
        """Map the file that `write` has written."""
        raw = np.memmap(path, np.uint8, "r")
        count = len(raw) // PIECE_BYTES
        self._hashes = raw[: 8 * count].view("<u8")
        self._numbers = raw[8 * count : 12 * count].view("<i4")
        self._scores = raw[12 * count : 16 * count].view("<f4")
        self._tokens_max = tokens_max
        self._first, self._last, self._unknown = first, last, unknown

    def encode(self, text: str) -> list[int]:
        """Return the numbers of a text, cut at what is allowed, with those of its ends."""
        return [self._first, *self._pieces(read_as(text))[: self._tokens_max - 2], self._last]

    def _pieces(self, text: str) -> list[int]:
        """Return the pieces of the likeliest cut (Viterbi); unknown characters in a row are one."""
        size = len(text)
        starts, ends, numbers, scores = self._found(text)
        likely = [0.0, *([-float("inf")] * size)]
        back: list[tuple[int, int]] = [(0, 0)] * (size + 1)
        place, count = 0, len(starts)
        for start in range(size):
            so_far, is_known = likely[start], False
            while place < count and starts[place] == start:
                end, score = ends[place], so_far + scores[place]
                is_known |= end == start + 1
                if score > likely[end]:
                    likely[end], back[end] = score, (start, numbers[place])
                place += 1
            score = so_far + LEAST_LIKELY - LESS_LIKELY
            if not is_known and score > likely[start + 1]:
                likely[start + 1], back[start + 1] = score, (start, self._unknown)
        pieces: list[int] = []
        while size:
            size, number = back[size]
            if number != self._unknown or not pieces or pieces[-1] != number:
                pieces.append(number)
        return pieces[::-1]

    def _found(self, text: str) -> tuple[list[int], list[int], list[int], list[float]]:
        """Return the parts of a text that are pieces, by where they start: starts, ends, numbers, scores."""
        hashes = _hashes(text, LONGEST)
        lengths = np.repeat(np.arange(1, len(hashes) + 1), [len(each) for each in hashes])
        starts = np.concatenate([np.arange(len(each)) for each in hashes])
        asked = np.concatenate(hashes)
        places = np.minimum(self._hashes.searchsorted(asked), len(self._hashes) - 1)
        hits = np.flatnonzero(self._hashes[places] == asked)
        hits = hits[starts[hits].argsort(kind="stable")]
        found, begin = places[hits], starts[hits]
        return (
            begin.tolist(),
            (begin + lengths[hits]).tolist(),
            self._numbers[found].tolist(),
            self._scores[found].tolist(),
        )


def _hashes(text: str, longest: int) -> list[Hashes]:
    """Return, for each length up to *longest*, a hash of each part of a text, by where it starts."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    with np.errstate(over="ignore"):
        mixed = (codes + np.uint64(1)) * _MIX
        mixed ^= mixed >> np.uint64(29)
        hashed = [mixed]
        for length in range(1, min(longest, len(mixed))):
            hashed.append(hashed[-1][:-1] * _FACTOR + mixed[length:])
    return hashed
