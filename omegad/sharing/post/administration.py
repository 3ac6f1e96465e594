"""What an administrator of the database does: the schema, teams and members. By the command line alone."""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, LiteralString

import msgspec

from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.sharing.post.address import Address
from omegad.sharing.post.driver import asking, connecting, imported
from omegad.sharing.post.errors import HomeOutdated, NotInstalled

if TYPE_CHECKING:
    import psycopg
    from psycopg.sql import Composed

SCHEMA = 3
"""The schema that this version makes, and the newest it knows."""
WORKS_FROM = {1: 1, 2: 1, 3: 1}
"""By schema, the oldest that a program must know of to work with it."""
SERVERS = (15, 18)  # oldest and newest PostgreSQL that is tried
CONNECT_S = 10
WAIT_S = 60  # for another who installs
PGVECTOR = (0, 8)  # the oldest with which what is filtered is found all the same
INDEXED_FROM = 50_000
"""Vectors of a team, above which an index is worth what it misses."""
_LOCK = int.from_bytes(b"omegad")
_LOGIN = re.compile(r"[a-z_][a-z0-9_.-]{0,62}")

_ROLES = """
DO $$
BEGIN
    BEGIN
        CREATE ROLE omegad_owner NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    BEGIN
        CREATE ROLE omegad_member NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END;
    IF NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
       AND NOT pg_has_role(current_user, 'omegad_owner', 'USAGE') THEN
        EXECUTE format('GRANT omegad_owner TO %I', current_user);
    END IF;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO omegad_owner', current_database());
    CREATE SCHEMA IF NOT EXISTS omegad AUTHORIZATION omegad_owner;
END
$$
"""


_PARTITION = b"""
CREATE TABLE omegad.facts_TEAM PARTITION OF omegad.facts FOR VALUES IN (TEAM);
ALTER TABLE omegad.facts_TEAM ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
"""


class Member(msgspec.Struct, frozen=True):
    """A person in a team. Times are microseconds since 1970."""

    login: str
    person: str
    is_admin: bool
    joined_at: int
    left_at: int | None


def install(address: Address) -> tuple[int, int]:
    """Make or upgrade the schema; return its number before, 0 for none, and after.

    Raises `HomeOutdated` where it is newer than this version of omegad, and what keeps it from being made.
    """
    with _connected(address) as connection:
        if (number := connection.info.server_version // 10_000) < SERVERS[0]:
            raise Refused(
                f"PostgreSQL {number} is too old for a post", hint=f"use {SERVERS[0]} to {SERVERS[1]}"
            )
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        before = _version(connection)
        if before > SCHEMA:
            raise HomeOutdated(f"the post's schema is {before}; this version of omegad knows {SCHEMA}")
        if before == 0:
            connection.execute(_ROLES)
        for version in range(before + 1, SCHEMA + 1):
            _migrate(connection, version)
        _search_by_meaning(connection)
        return before, SCHEMA


def create_team(address: Address, team: str) -> None:
    """Make a team. Raises `Refused` where there is one by this name."""
    if not team.strip() or len(team) > 100 or not team.isprintable():  # noqa: PLR2004  as the schema says
        raise Invalid("a team's name has 1 to 100 characters")
    with _connected(address) as connection, _as_owner(connection):
        made = connection.execute(
            "INSERT INTO omegad.teams (name) VALUES (%s) ON CONFLICT DO NOTHING RETURNING team", (team,)
        ).fetchone()
        if made is None:
            raise Refused(f"there is a team {team} already", hint="members are added to it")
        connection.execute(_PARTITION.replace(b"TEAM", b"%d" % made[0]))


def add_member(address: Address, team: str, login: str, person: str, *, is_admin: bool = False) -> str | None:
    """Add a person to a team, by a login of the database's.

    Returns the password where the login is made here, which is known nowhere else, and None where it is one
    already, as of another team. Raises `NotFound`, and `Refused` for a login that omegad did not make.
    """
    if not _LOGIN.fullmatch(login):
        raise Invalid("a login begins with a letter and has small letters, digits, _, . and - alone")
    if not person.strip() or len(person) > 100 or not person.isprintable():  # noqa: PLR2004  as the schema says
        raise Invalid("a person's name has 1 to 100 characters")
    with _connected(address) as connection:
        with connection.transaction():
            password = _login(connection, login)
            with _as_owner(connection):
                connection.execute(
                    "INSERT INTO omegad.members (team, login, person, is_admin) VALUES (%s, %s, %s, %s)"
                    " ON CONFLICT (team, login) DO UPDATE SET person = excluded.person,"
                    " is_admin = excluded.is_admin, left_at = NULL",
                    (_team(connection, team), login, person, is_admin),
                )
        return password


def remove_member(address: Address, team: str, login: str) -> None:
    """End a membership: from then on the login reads nothing of the team. Connections that it has are ended,
    and a login without any team cannot connect. Raises `NotFound`.
    """
    with _connected(address) as connection:
        with _as_owner(connection):
            gone = connection.execute(
                "UPDATE omegad.members SET left_at = clock_timestamp()"
                " WHERE team = %s AND login = %s AND left_at IS NULL",
                (_team(connection, team), login),
            )
            if not gone.rowcount:
                raise NotFound(f"{login} is not a member of {team}", hint="see who is")
            others = connection.execute(
                "SELECT 1 FROM omegad.members WHERE login = %s AND left_at IS NULL", (login,)
            ).fetchone()
        if others is None:
            connection.execute(_sql("ALTER ROLE {} NOLOGIN", login))
        _end_connections(connection, login)


def teams(address: Address) -> list[str]:
    """Return the names of all teams."""
    with _connected(address) as connection, _as_owner(connection):
        return [name for (name,) in connection.execute("SELECT name FROM omegad.teams ORDER BY name")]


def members(address: Address, team: str) -> list[Member]:
    """Return who is and was in a team. Raises `NotFound`."""
    with _connected(address) as connection, _as_owner(connection):
        rows = connection.execute(
            "SELECT login, person, is_admin, (extract(epoch FROM joined_at) * 1000000)::bigint,"
            " (extract(epoch FROM left_at) * 1000000)::bigint FROM omegad.members WHERE team = %s"
            " ORDER BY person, login",
            (_team(connection, team),),
        )
        return [Member(*row) for row in rows]


@contextmanager
def _connected(address: Address) -> "Iterator[psycopg.Connection]":
    imported()
    import psycopg  # noqa: PLC0415  an extra
    from psycopg.errors import InsufficientPrivilege  # noqa: PLC0415

    with connecting(address):
        connection = psycopg.connect(
            **address.parameters(),  # type: ignore[arg-type]
            autocommit=True,
            connect_timeout=CONNECT_S,
            options=f"-c lock_timeout={WAIT_S}s",
        )
    with connection, asking(address):
        try:
            yield connection
        except InsufficientPrivilege as error:
            raise Refused(
                f"{address.user} may not do that: {error.diag.message_primary}",
                hint="an administrator creates roles and owns the database; where these roles are another's,"
                f" GRANT omegad_owner, omegad_member TO {address.user} WITH ADMIN OPTION",
            ) from None


@contextmanager
def _as_owner(connection: "psycopg.Connection") -> Iterator[None]:
    """Do what is done in one transaction, as the role that owns the schema."""
    if not _version(connection):
        raise NotInstalled
    with connection.transaction():
        connection.execute("SET LOCAL ROLE omegad_owner")
        yield


def _version(connection: "psycopg.Connection") -> int:
    made = connection.execute("SELECT to_regclass('omegad.schema_version') IS NOT NULL").fetchone()
    if not made or not made[0]:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM omegad.schema_version").fetchone()
    return int(row[0]) if row else 0


def _migrate(connection: "psycopg.Connection", version: int) -> None:
    with connection.transaction():
        connection.execute("SET LOCAL ROLE omegad_owner")
        connection.execute(_statements(version))
        connection.execute(
            "INSERT INTO omegad.schema_version (version, works_from) VALUES (%s, %s)",
            (version, WORKS_FROM[version]),
        )


def _statements(version: int) -> bytes:
    return files("omegad.sharing.post").joinpath(f"schema_{version}.sql").read_bytes()


def _search_by_meaning(connection: "psycopg.Connection") -> None:
    """Make what holds vectors, where pgvector is there or can be installed, and indexes where there are
    many.
    """
    import psycopg  # noqa: PLC0415  an extra

    offered = connection.execute(
        "SELECT coalesce(installed_version, default_version), installed_version IS NOT NULL"
        " FROM pg_available_extensions WHERE name = 'vector'"
    ).fetchone()
    if offered is None or tuple(int(part) for part in offered[0].split(".")[:2]) < PGVECTOR:
        return
    if not offered[1]:
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except psycopg.errors.InsufficientPrivilege:
            return  # a superuser may make it, and this be done again
    made = connection.execute(
        "SELECT extnamespace::regnamespace::text, to_regclass('omegad.vectors') IS NOT NULL FROM pg_extension"
        " WHERE extname = 'vector'"
    ).fetchone()
    assert made
    if not made[1]:
        told = files("omegad.sharing.post").joinpath("vectors.sql").read_text()
        with connection.transaction():
            connection.execute("SET LOCAL ROLE omegad_owner")
            connection.execute(told.replace("{vector}", made[0]).encode())
    _index_vectors(connection, made[0])


def _index_vectors(connection: "psycopg.Connection", schema: str) -> None:
    """Make an index of the vectors of each team that has many, which takes minutes for hundreds of
    thousands.
    """
    with connection.transaction():
        connection.execute("SET LOCAL ROLE omegad_owner")
        for (team,) in connection.execute("SELECT team FROM omegad.teams ORDER BY team").fetchall():
            many = connection.execute(
                "SELECT count(*) >= %s AND to_regclass(%s) IS NULL"
                " FROM (SELECT FROM omegad.vectors WHERE team = %s LIMIT %s) AS found",
                (INDEXED_FROM, f"omegad.vectors_{team}_nearest", team, INDEXED_FROM),
            ).fetchone()
            if many and many[0]:
                connection.execute(
                    f"CREATE INDEX vectors_{team}_nearest ON omegad.vectors_{team} USING hnsw"
                    f" ((v::{schema}.halfvec(384)) {schema}.halfvec_cosine_ops)".encode()
                )


def _team(connection: "psycopg.Connection", name: str) -> int:
    row = connection.execute("SELECT team FROM omegad.teams WHERE name = %s", (name,)).fetchone()
    if row is None:
        raise NotFound(f"there is no team {name}", hint="make it first, or look for its name among the teams")
    return int(row[0])


def _login(connection: "psycopg.Connection", login: str) -> str | None:
    """Make a login, or let one that was made here and ended log in again; return its new password."""
    row = connection.execute(
        "SELECT rolcanlogin, pg_has_role(oid, 'omegad_member', 'MEMBER') AND NOT rolsuper FROM pg_roles"
        " WHERE rolname = %s",
        (login,),
    ).fetchone()
    if row is not None and not row[1]:
        raise Refused(f"the login {login} is there already, and not omegad's", hint="choose another login")
    if row is not None and row[0]:
        return None
    password = secrets.token_urlsafe(24)
    scrambled = connection.pgconn.encrypt_password(
        password.encode(), login.encode(), b"scram-sha-256"
    ).decode()
    if row is None:
        connection.execute(_sql("CREATE ROLE {} CONNECTION LIMIT 20", login))
        connection.execute(_sql("GRANT omegad_member TO {}", login))
    connection.execute(_sql("ALTER ROLE {} LOGIN", login))
    connection.execute(
        _sql("ALTER ROLE {} PASSWORD ", login).as_bytes(connection) + f"'{scrambled}'".encode()
    )
    return password


def _end_connections(connection: "psycopg.Connection", login: str) -> None:
    """End a login's connections, which may hold what they saw in a transaction that is still open."""
    is_super = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    if is_super != (True,):  # who is not may end those of roles that are granted to them
        connection.execute(_sql("GRANT {} TO CURRENT_USER", login))
    connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (login,))
    if is_super != (True,):
        connection.execute(_sql("REVOKE {} FROM CURRENT_USER", login))


def _sql(text: LiteralString, login: str) -> "Composed":
    from psycopg.sql import SQL, Identifier  # noqa: PLC0415  an extra

    return SQL(text).format(Identifier(login))
