"""A transaction that is over when the call is: committed, or rolled back."""

from collections.abc import Iterator
from contextlib import contextmanager
from sqlite3 import complete_statement

from omegad.storage.driver import Connection


@contextmanager
def writing(connection: Connection) -> Iterator[Connection]:
    """Commit what the block writes, or none of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has rolled the transaction back already, and a second ROLLBACK would hide the reason.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: Connection) -> Iterator[Connection]:
    """Let every read of the block see the same moment."""
    connection.execute("BEGIN")
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextmanager
def savepoint(connection: Connection) -> Iterator[Connection]:
    """Undo, within a transaction, what the block wrote when it fails."""
    connection.execute("SAVEPOINT part")
    try:
        yield connection
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")


def run_script(connection: Connection, script: str) -> None:
    """Run several statements inside the transaction that is open; the driver's own `executescript` would
    commit it.
    """
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if complete_statement(statement):
            connection.execute(statement)
            statement = ""
    assert not statement.strip(), statement
