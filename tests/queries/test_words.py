"""Which terms choose candidates, and that all of them count in their scores."""

from collections.abc import Iterator

import pytest

from omegad.queries import words
from omegad.storage.driver import Connection, sqlite
from projections import fulltext, memories

ALWAYS = ("1", ())
COMMON = words.MATCHES_MAX + 200


@pytest.fixture
def connection() -> Iterator[Connection]:
    opened = sqlite.connect(":memory:")
    opened.executescript(fulltext.SCHEMA + memories.SCHEMA)
    yield opened
    opened.close()


def put(connection: Connection, row: int, content: str) -> None:
    connection.execute("INSERT INTO memories_fts (rowid, content, context) VALUES (?, ?, '')", (row, content))
    columns = ("id", "node_id", "status", "event_type", "created_us", "changed_position", "priority", "tags", "created_at", "pending")
    values = (row, f"m{row}", "active", "memory", 0, row, 3, "[]", "", 0)
    names = ", ".join((*columns, "content_hash", "redacted", "content", "metadata"))
    connection.execute(f"INSERT INTO memories ({names}) VALUES ({', '.join('?' * 14)})", (*values, "", "[]", content, "{}"))


def fill(connection: Connection) -> None:
    """Lay in many memories of a common word, and 150 that have a rare one as well."""
    for row in range(1, COMMON + 1):
        put(connection, row, f"deploy number{row}" + (" canary" if row % 8 == 0 else ""))


def best(connection: Connection, text: str, limit: int = 100) -> dict[int, float]:
    asked = words.of_question(text)
    assert asked
    return words.best_of_all(connection, asked, *ALWAYS, limit)


def test_a_term_of_thousands_chooses_nobody_where_rarer_ones_find_enough(connection: Connection) -> None:
    fill(connection)
    asked = words.of_question("deploy canary")
    assert asked
    assert words._rarest(connection, asked.terms, 100) == ['"canary"']
    assert all(row % 8 == 0 for row in best(connection, "deploy canary"))


def test_every_term_counts_in_the_scores(connection: Connection) -> None:
    fill(connection)
    asked = words.of_question("deploy canary number16")
    assert asked
    found = best(connection, "deploy canary number16")
    assert found == words.of_rows(connection, asked, list(found))
    assert max(found, key=lambda row: found[row]) == 16


def test_a_common_term_alone_still_finds(connection: Connection) -> None:
    fill(connection)
    assert len(best(connection, "deploy")) == 100


def test_where_rare_terms_find_too_few_the_common_one_chooses_too(connection: Connection) -> None:
    fill(connection)
    asked = words.of_question("deploy number7")
    assert asked
    assert words._rarest(connection, asked.terms, 100) == ['"deploy"', '"number7"']
    found = best(connection, "deploy number7", 10)
    assert len(found) == 10
    assert max(found, key=lambda row: found[row]) == 7


def test_a_small_store_is_asked_for_every_term(connection: Connection) -> None:
    for row in range(1, 30):
        put(connection, row, f"alpha {'beta' if row % 2 else 'gamma'}")
    assert len(best(connection, "alpha beta gamma")) == 29


@pytest.mark.parametrize("text", ["", "?!", "\0"])
def test_what_has_no_word_asks_nothing(text: str) -> None:
    assert words.of_question(text) is None
    assert words.of_phrase(text) is None
