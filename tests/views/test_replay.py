"""Comparing the vectors of two files: by key, within a tolerance, and without holding them all."""

import tracemalloc
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.storage.database import open_reader, open_writer
from omegad.storage.driver import Connection
from omegad.views import building

SELECT = "SELECT id, vector, id / 2 FROM v ORDER BY id"
MEBIBYTE = 1024 * 1024

Numbers = Mapping[int, float | None]


def write(path: Path, numbers: Numbers) -> Connection:
    """Write vectors that are a number over and over, and open the file for reading."""
    writer = open_writer(path, durable=False)
    writer.execute("CREATE TABLE v (id INTEGER PRIMARY KEY, vector BLOB)")
    rows = [
        (key, None if number is None else np.full(384, number, "<f4").tobytes())
        for key, number in numbers.items()
    ]
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO v VALUES (?, ?)", rows)
    writer.execute("COMMIT")
    writer.close()
    return open_reader(path)


def apart(folder: Path, ours: Numbers, theirs: Numbers, noted: Collection[int] = ()) -> tuple[int, int, int]:
    with closing(write(folder / "a.db", ours)) as mine, closing(write(folder / "b.db", theirs)) as other:
        return building._apart(mine, other, SELECT, noted)


_numbers = st.dictionaries(st.integers(1, 12), st.sampled_from([0.0, 0.5, 1.0, None]))


@given(ours=_numbers, theirs=_numbers, noted=st.frozensets(st.integers(0, 6)))
def test_those_that_both_files_have_are_compared_and_those_without_a_vector_counted(
    ours: Numbers, theirs: Numbers, noted: frozenset[int]
) -> None:
    differing = [
        key
        for key in ours.keys() & theirs.keys()
        if ours[key] != theirs[key] and None not in {ours[key], theirs[key]}
    ]
    with TemporaryDirectory() as folder:
        lacking = [key for key, number in ours.items() if number is None]
        waiting = [key for key in lacking if key // 2 in noted]
        missing = len(lacking) - len(waiting)
        assert apart(Path(folder), ours, theirs, noted) == (missing, len(waiting), len(differing))


@pytest.mark.parametrize(("difference", "count"), [(0.9e-4, 0), (1.1e-4, 1)])
def test_a_difference_within_the_tolerance_is_none(tmp_path: Path, difference: float, count: int) -> None:
    assert apart(tmp_path, {1: 0.0}, {1: difference}) == (0, 0, count)


def test_many_vectors_are_compared_in_little_memory(tmp_path: Path) -> None:
    numbers = {key: key / 10_000 for key in range(1, 5_001)}
    with (
        closing(write(tmp_path / "a.db", numbers)) as mine,
        closing(write(tmp_path / "b.db", numbers)) as other,
    ):
        tracemalloc.start()
        try:
            assert building._apart(mine, other, SELECT, ()) == (0, 0, 0)
            assert tracemalloc.get_traced_memory()[1] < MEBIBYTE
        finally:
            tracemalloc.stop()
