"""Bytes are found wherever they stand in a file, and a file that changes meanwhile ends nobody."""

import os
import threading
from pathlib import Path

import pytest

from omegad.storage import searching
from omegad.storage.searching import HEADER, READ_BYTES, holding

PIECE = b"a phrase that was erased"


@pytest.mark.parametrize(
    "before", [0, 1, READ_BYTES - 7, READ_BYTES, 2 * READ_BYTES - len(PIECE) + 1, 3 * READ_BYTES]
)
def test_a_piece_is_found_wherever_it_stands(tmp_path: Path, before: int) -> None:
    plain, database, without, empty = (tmp_path / name for name in ("plain", "database", "without", "empty"))
    plain.write_bytes(b"x" * before + PIECE + b"x" * 10)
    database.write_bytes(HEADER + b"x" * before + PIECE)
    without.write_bytes(b"x" * before + PIECE[:-1] + b"x" + PIECE[1:])
    empty.touch()
    wanted = [b"another one, which is a good deal longer than the first", PIECE]
    assert holding([plain, database, without, empty, tmp_path / "none"], wanted) == {
        plain: "file",
        database: "database",
    }


def test_a_file_that_becomes_shorter_while_it_is_searched_is_searched_as_it_is(tmp_path: Path) -> None:
    path, is_over = tmp_path / "log.db-wal", threading.Event()

    def change() -> None:
        while not is_over.is_set():
            for size in (64 * READ_BYTES, 0):
                os.truncate(path, size)

    path.touch()
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(5):
            assert searching.holding([path], [PIECE]) == {}
    finally:
        is_over.set()
        changing.join()
