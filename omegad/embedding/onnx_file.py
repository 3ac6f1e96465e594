"""Writes ONNX files: the messages of its protocol buffers that a graph needs, by their numbers in onnx.proto.

A message is written as its fields, one after another; a repeated field is there several times.
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

FLOAT, INT8, INT64 = 1, 3, 7
"""The types of a tensor's elements."""
OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # what goes with it; newer ones lock older runtimes out
RUNTIME = "com.microsoft"
"""The domain of onnxruntime's own operations."""
EXTERNAL = 1  # where a tensor's elements are: in another file
AS_FLOAT, AS_INT, AS_INTS = 1, 2, 7  # the types of an attribute
VARINT, BYTES, FIXED_32 = 0, 2, 5  # how a field is written

Attribute = float | list[int]
Field = tuple[int, int | float | str | bytes]


def message(*fields: Field) -> bytes:
    """Return the bytes of a message: of each field its number and its value; a message within it is bytes."""
    written = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            written += _varint(number << 3 | VARINT) + _varint(value)
        elif isinstance(value, float):
            written += _varint(number << 3 | FIXED_32) + struct.pack("<f", value)
        else:
            content = value.encode() if isinstance(value, str) else value
            written += _varint(number << 3 | BYTES) + _varint(len(content)) + content
    return bytes(written)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; a negative number is what it is in 64 bits."""
    rest, written = value % 2**64, bytearray()
    while rest >= 0x80:  # noqa: PLR2004
        written.append(rest % 0x80 | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def model(nodes: Iterable[bytes], constants: Iterable[bytes], given: bytes, result: bytes) -> bytes:
    """Return the file of a graph that makes *result* of what is *given*."""
    graph = message(
        *((1, each) for each in nodes),
        (2, "graph"),
        *((5, each) for each in constants),
        (11, given),
        (12, result),
    )
    opsets = (message((1, domain), (2, version)) for domain, version in (("", OPSET), (RUNTIME, 1)))
    return message((1, IR_VERSION), (2, "omegad"), (7, graph), *((8, each) for each in opsets))


def node(
    op: str, inputs: Iterable[str], outputs: tuple[str, ...], domain: str, attributes: dict[str, Attribute]
) -> bytes:
    """Return an operation, which is named for its first output."""
    return message(
        *((1, each) for each in inputs),
        *((2, each) for each in outputs),
        (3, outputs[0]),
        (4, op),
        *((5, _attribute(name, value)) for name, value in attributes.items()),
        (7, domain),
    )


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, list):
        return message((1, name), *((8, each) for each in value), (20, AS_INTS))
    if isinstance(value, int):
        return message((1, name), (3, value), (20, AS_INT))
    return message((1, name), (2, value), (20, AS_FLOAT))


def tensor(name: str, kind: int, shape: tuple[int, ...], content: bytes) -> bytes:
    """Return a constant; its elements are *content*, little-endian."""
    return message(*((1, size) for size in shape), (2, kind), (8, name), (9, content))


class Place(NamedTuple):
    """Where the bytes of a constant are: in another file in the folder."""

    file: str
    offset: int
    length: int


def tensor_in(place: Place, name: str, kind: int, shape: tuple[int, ...]) -> bytes:
    """Return a constant; its elements, little-endian, are in another file."""
    said = {"location": place.file, "offset": str(place.offset), "length": str(place.length)}
    fields = (message((1, key), (2, value)) for key, value in said.items())
    return message(
        *((1, size) for size in shape),
        (2, kind),
        (8, name),
        *((13, each) for each in fields),
        (14, EXTERNAL),
    )


def value(name: str, kind: int, shape: tuple[int | str, ...]) -> bytes:
    """Return what a graph takes or gives; a size that varies has a name."""
    sizes = (message((2 if isinstance(size, str) else 1, size)) for size in shape)
    tensor_type = message((1, kind), (2, message(*((1, each) for each in sizes))))
    return message((1, name), (2, message((1, tensor_type))))
