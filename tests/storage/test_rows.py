"""Many rows by one statement, in few calls: the same rows as one by one."""

import pytest

from omegad.storage.database import open_in_memory
from omegad.storage.driver import sqlite
from omegad.storage.rows import ROWS_AT_ONCE, run_rows

TABLE = "CREATE TABLE kept (id INTEGER PRIMARY KEY, said TEXT NOT NULL, times INTEGER NOT NULL) STRICT"
STATEMENTS = (
    "INSERT INTO kept VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times, said = excluded.said",
    "INSERT OR IGNORE INTO kept (id, said, times) VALUES (?, ?, ?)",
    "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)",
    "INSERT OR REPLACE INTO kept VALUES (?1, ?2 || '?', ?3)",
    "DELETE FROM kept WHERE id = ? AND said <> ? AND times < ?",
)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("count", [0, 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 3 * ROWS_AT_ONCE + 2])
def test_many_rows_come_to_what_they_come_to_one_by_one(statement: str, count: int) -> None:
    rows = [(number * 7 % 23, f"said {number}", number) for number in range(count)]
    at_once, one_by_one = open_in_memory(), open_in_memory()
    for connection in (at_once, one_by_one):
        connection.execute(TABLE)
        connection.executemany("INSERT INTO kept VALUES (?, 'before', 0)", [(1,), (7,)])
    run_rows(at_once, statement, rows)
    for row in rows:
        one_by_one.execute(statement, row)
    kept = [
        connection.execute("SELECT * FROM kept ORDER BY id").fetchall()
        for connection in (at_once, one_by_one)
    ]
    assert kept[0] == kept[1]
    assert at_once.total_changes == one_by_one.total_changes
    at_once.close()
    one_by_one.close()


def test_a_row_that_is_refused_is_told_of() -> None:
    connection = open_in_memory()
    connection.execute(TABLE)
    rows = [(number, None if number == ROWS_AT_ONCE else "said", 1) for number in range(2 * ROWS_AT_ONCE)]
    with pytest.raises(sqlite.IntegrityError):
        run_rows(connection, "INSERT INTO kept VALUES (?, ?, ?)", rows)
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (ROWS_AT_ONCE,)
    connection.close()
