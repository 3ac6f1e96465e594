"""The pages of a sealed database as they are in its file, or in its write-ahead log: for what looks at files
and not at tables.

Of SQLCipher's format, version 4: pages of 4,096 bytes, at whose end stand 16 bytes of initial vector and 32
of HMAC; the first begins with the file's salt. Whether a page was tampered with is for those to see who read
the tables.
"""

from collections.abc import Callable, Iterator
from typing import IO

PAGE_BYTES = 4_096
VECTOR_BYTES, HMAC_BYTES, SALT_BYTES = 16, 32, 16
HEADER = b"SQLite format 3\0"
_FRACTIONS = b"\x40\x20\x20"
"""What the header of every database has at its 22nd byte."""
_WAL = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24


class Pages:
    """The pages of a file that is open, by number; as they are where *key* is None."""

    def __init__(self, file: IO[bytes], size: int, key: bytes | None) -> None:
        self._file, self._size = file, size
        self._opened = None if key is None else _opener(key)

    def read(self, number: int) -> bytes:
        """Return a page; fewer bytes where the file ends before."""
        self._file.seek((number - 1) * self._size)
        data = self._file.read(self._size)
        if self._opened is None or len(data) < self._size:
            return data
        return self._opened(data, number)


def plain(file: IO[bytes], key: bytes) -> Iterator[bytes] | None:
    """Return the pages of a sealed database, or of its write-ahead log, one after the other; None where the
    file is neither, by this key.
    """
    opened = _opener(key)
    beginning = file.read(PAGE_BYTES)
    if beginning[:4] in _WAL:
        file.seek(WAL_HEADER_BYTES)
        return _of_frames(file, opened)
    if len(beginning) < PAGE_BYTES or opened(beginning, 1)[21:24] != _FRACTIONS:
        return None
    file.seek(0)
    return _of_database(file, opened)


def _of_database(file: IO[bytes], opened: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    number = 1
    while len(data := file.read(PAGE_BYTES)) == PAGE_BYTES:
        yield opened(data, number)
        number += 1


def _of_frames(file: IO[bytes], opened: Callable[[bytes, int], bytes]) -> Iterator[bytes]:
    while len(frame := file.read(FRAME_HEADER_BYTES + PAGE_BYTES)) == FRAME_HEADER_BYTES + PAGE_BYTES:
        yield opened(frame[FRAME_HEADER_BYTES:], int.from_bytes(frame[:4], "big"))


def _opener(key: bytes) -> Callable[[bytes, int], bytes]:
    """Return what makes of a page, and its number, what SQLite sees of it."""
    from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: PLC0415  an extra
    from cryptography.hazmat.primitives.ciphers.algorithms import AES256  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers.modes import CBC  # noqa: PLC0415

    cipher = AES256(key)

    def opened(data: bytes, number: int) -> bytes:
        start, end = (SALT_BYTES if number == 1 else 0), PAGE_BYTES - VECTOR_BYTES - HMAC_BYTES
        vector = data[end : end + VECTOR_BYTES]
        found = Cipher(cipher, CBC(vector)).decryptor().update(data[start:end])
        return (HEADER if number == 1 else b"") + found + bytes(PAGE_BYTES - end)

    return opened
