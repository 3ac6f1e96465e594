"""How much of a file each table and index takes."""

from contextlib import closing
from pathlib import Path

from omegad.storage.database import open_reader, open_writer
from omegad.storage.pages import parts

SCHEMA = """
CREATE TABLE plain (id INTEGER PRIMARY KEY, name TEXT NOT NULL, said TEXT);
CREATE INDEX plain_by_name ON plain (name);
CREATE TABLE keyed (name TEXT PRIMARY KEY, said TEXT) WITHOUT ROWID;
CREATE TABLE empty (id INTEGER PRIMARY KEY);
"""


def test_every_page_is_of_something_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    with closing(open_writer(path, durable=False)) as connection:
        connection.executescript(SCHEMA)
        rows = [(f"{number * 7_919 % 30_011:09}", "said " * 20) for number in range(30_000)]
        connection.executemany("INSERT INTO plain (name, said) VALUES (?, ?)", rows)
        connection.executemany("INSERT OR REPLACE INTO keyed VALUES (?, ?)", rows)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        whole = parts(connection, path)
        assert (whole.overflow_bytes, whole.free_bytes) == (0, 0)
        assert sum(one.bytes for one in whole.parts) == path.stat().st_size
        sizes = {one.name: one.bytes for one in whole.parts}
        page = connection.execute("PRAGMA page_size").fetchone()[0]
        assert sizes["empty"] == page
        assert min(sizes["plain"], sizes["keyed"]) > 30_000 * 100
        assert 30_000 * 9 < sizes["plain_by_name"] < 30_000 * 30
        connection.execute("UPDATE plain SET said = ? WHERE id = 1", ("long " * 20_000,))
        connection.execute("DELETE FROM keyed WHERE name > '000010000'")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with closing(open_reader(path)) as reader:
        found = parts(reader, path)
    assert 100_000 - page <= found.overflow_bytes <= 100_000 + page
    assert found.free_bytes > sizes["keyed"] // 2
    taken = sum(one.bytes for one in found.parts) + found.overflow_bytes + found.free_bytes
    assert taken == path.stat().st_size


def test_a_file_that_is_cut_off_is_measured_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "some.db"
    with closing(open_writer(path, durable=False)) as connection:
        connection.executescript(SCHEMA)
        connection.executemany(
            "INSERT INTO keyed VALUES (?, ?)", [(str(one), "x" * 900) for one in range(9_000)]
        )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cut = tmp_path / "cut.db"
        cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert sum(one.bytes for one in parts(connection, cut).parts) <= path.stat().st_size
