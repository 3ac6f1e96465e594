"""A post with a team and logins, and facts to put there."""

import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
import pytest

from omegad.log.chain import payload_hash
from omegad.sharing.fact import Fact
from omegad.sharing.post import administration
from omegad.sharing.post.address import Address
from omegad.sharing.post.post import Deadlines, Head, Post, connected
from tests.sharing.server import Server

TEAM = "crew"
DEADLINES = Deadlines(connect_s=20.0, statement_s=60.0)
HLC = 1_764_000_000_000 << 16


class Posted:
    """A post in a database of its own."""

    def __init__(self, server: Server, dbname: str) -> None:
        self.server = server
        self.admin = server.admin(dbname)
        self._passwords: dict[str, str] = {}

    @staticmethod
    def make_template(server: Server) -> str:
        with psycopg.connect(**server.admin("postgres").parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute("CREATE DATABASE post_template")
        administration.install(server.admin("post_template"))
        administration.create_team(server.admin("post_template"), TEAM)
        return "post_template"

    @classmethod
    def made(cls, server: Server, template: str) -> "Posted":
        """Make a database out of the template."""
        name = f"post_{secrets.token_hex(6)}"
        with psycopg.connect(**server.admin("postgres").parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return cls(server, name)

    @classmethod
    def of_schema(cls, server: Server, schema: int) -> "Posted":
        """Make a post as the version did that knew of no later schema."""
        name = f"post_{secrets.token_hex(6)}"
        with psycopg.connect(**server.admin("postgres").parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute(f"CREATE DATABASE {name}".encode())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(administration, "SCHEMA", schema)
            patch.setattr(administration, "_search_by_meaning", lambda _connection: None)
            administration.install(server.admin(name))
        administration.create_team(server.admin(name), TEAM)
        return cls(server, name)

    def drop(self) -> None:
        """Remove the database."""
        with psycopg.connect(**self.server.admin("postgres").parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute(f"DROP DATABASE {self.admin.dbname} WITH (FORCE)".encode())

    def member(self, person: str, *, team: str = TEAM, is_admin: bool = False) -> Address:
        """Add a person; return where they find the post. Logins are the server's, so each has a name of its
        own.
        """
        login = f"{person.lower()}_{secrets.token_hex(4)}"
        password = administration.add_member(self.admin, team, login, person, is_admin=is_admin)
        assert password
        return self.of(login, password)

    def of(self, login: str, password: str) -> Address:
        return Address(
            host=self.admin.host,
            port=self.admin.port,
            dbname=self.admin.dbname,
            user=login,
            password=password,
            sslmode="prefer",
        )

    def at(self, address: Address, team: str = TEAM) -> AbstractAsyncContextManager[Post]:
        """Connect as a member."""
        return connected(address, team, DEADLINES)

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Do what only the database's superuser can."""
        with psycopg.connect(**self.admin.parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []


def fact(origin: str, seq: int, subject: str = "", tag: str = "memory.stored@2", **other: Any) -> Fact:
    """Return a fact that says something."""
    salt, body = secrets.token_bytes(16), other.pop("body", f'{{"said":"{origin} {seq}"}}'.encode())
    return Fact(
        origin=origin,
        seq=seq,
        hlc=other.pop("hlc", HLC + seq),
        event_id=f"{origin}-event-{seq}",
        tag=tag,
        subject=subject or f"mem-{origin}-{seq}",
        occurred_at=1_764_000_000_000_000 + seq,
        tz_offset=60,
        project="shop",
        agent="claude-code",
        position=other.pop("position", seq * 3),
        payload_hash=payload_hash(salt, body),
        salt=salt,
        body=body,
    )


def facts(origin: str, count: int, after: int = 0) -> list[Fact]:
    return [fact(origin, seq) for seq in range(after + 1, after + count + 1)]


async def push(post: Post, origin: str, some: Sequence[Fact], head: Head, at_once: int = 500) -> Head:
    """Push facts in batches."""
    for start in range(0, len(some), at_once):
        head = await post.push(origin, some[start : start + at_once], head)
    return head
