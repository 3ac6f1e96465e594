"""A post in a real PostgreSQL, with a database of its own for each test."""

import secrets
from collections.abc import Iterator

import psycopg
import pytest

from tests.sharing.posts import Posted
from tests.sharing.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for each process of tests."""
    made = Server(("fsync=off",))
    yield made
    made.remove()


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """A database with the schema, which others are copied from."""
    return Posted.make_template(server)


@pytest.fixture
def posted(server: Server, template: str) -> Iterator[Posted]:
    """A post with a team `crew`, of nobody yet."""
    name = f"post_{secrets.token_hex(6)}"
    with psycopg.connect(**server.admin("postgres").parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        yield Posted(server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
