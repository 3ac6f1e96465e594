"""A safetensors file: which tensors it holds, and where their bytes are.

Of one that is read only the header is, so the size of the weights does not matter.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from omegad.runtime.errors import Invalid

HEADER_BYTES_MAX = 16 * 1024 * 1024
LENGTH_BYTES = 8  # the header's length, little-endian, is what a file begins with
FLOAT32, INT8 = "F32", "I8"
FLOAT32_BYTES = 4
ALIGNED = 8  # bytes that the header's length is a multiple of


class Tensor(msgspec.Struct, frozen=True):
    """A tensor's place in the file; *offset* counts bytes from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int


class _Entry(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def read_header(path: Path) -> dict[str, Tensor]:
    """Return the tensors of the file by name, without the `bert.` that some publishers put before it.

    Raises `Invalid` for a file that is not safetensors or is cut short.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(LENGTH_BYTES), "little")
        if not 0 < header_bytes <= min(HEADER_BYTES_MAX, size - LENGTH_BYTES):
            raise _broken(path, "its header's length is impossible")
        header = file.read(header_bytes)
    try:
        raw = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        entries = {name: msgspec.json.decode(entry, type=_Entry) for name, entry in raw.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _broken(path, str(error)) from error
    data = LENGTH_BYTES + header_bytes
    for name, entry in entries.items():
        begin, end = entry.data_offsets
        if not 0 <= begin <= end <= size - data:
            raise _broken(path, f"{name} lies outside the file")
    return {
        name.removeprefix("bert."): Tensor(
            entry.dtype,
            entry.shape,
            data + entry.data_offsets[0],
            entry.data_offsets[1] - entry.data_offsets[0],
        )
        for name, entry in entries.items()
    }


def write(path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    """Write a file of tensors, by name: type, shape, and elements, little-endian."""
    entries, end = {}, 0
    for name, (dtype, shape, content) in tensors.items():
        entries[name] = _Entry(dtype, shape, (end, end + len(content)))
        end += len(content)
    header = msgspec.json.encode(entries)
    header += b" " * (-len(header) % ALIGNED)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(LENGTH_BYTES, "little") + header)
        file.writelines(content for _, _, content in tensors.values())


def _broken(path: Path, why: str) -> Invalid:
    return Invalid(f"{path.name} is not a complete safetensors file: {why}", hint="download the model again")
