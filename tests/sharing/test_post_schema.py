"""The post's schema: made, upgraded, and met by a program that is older or newer."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import psycopg
import pytest

from omegad.runtime.errors import OmegadError
from omegad.sharing.post import administration
from omegad.sharing.post.errors import HomeOutdated, NotInstalled, PostOutdated, PostRefused
from omegad.sharing.post.post import connected
from tests.sharing.posts import DEADLINES, TEAM, Posted, facts, push

NOW = administration.SCHEMA
LATER = {
    NOW + 1: b"CREATE TABLE omegad.pages (page integer)",
    NOW + 2: b"CREATE TABLE omegad.more (a integer); SELECT 1 / 0",
}


@pytest.fixture
def empty(posted: Posted) -> Posted:
    """A database without a post."""
    posted.sql("DROP SCHEMA omegad CASCADE")
    return posted


def test_who_installs_beside_another_waits_and_finds_it_made(empty: Posted) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: administration.install(empty.admin), range(4)))
    assert sorted(made) == [(0, NOW), (NOW, NOW), (NOW, NOW), (NOW, NOW)]
    assert administration.teams(empty.admin) == []


async def test_a_database_without_a_post_is_said(posted: Posted) -> None:
    ann = posted.member("Ann")
    posted.sql("DROP SCHEMA omegad CASCADE")
    with pytest.raises(NotInstalled, match="holds no post") as caught:
        async with posted.at(ann):
            pass
    assert "share init" in caught.value.hint
    with pytest.raises(NotInstalled):
        administration.create_team(posted.admin, "late")


async def test_an_upgrade_is_done_step_by_step_and_keeps_what_is_there(
    posted: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(administration, "_statements", LATER.__getitem__)
    monkeypatch.setattr(administration, "WORKS_FROM", {NOW + 1: 1, NOW + 2: NOW + 2})
    ann = posted.member("Ann")
    async with posted.at(ann) as post:
        head = await push(post, "ann-1", facts("ann-1", 3), await post.enrol("ann-1", "desk"))
        monkeypatch.setattr(administration, "SCHEMA", NOW + 1)
        assert administration.install(posted.admin) == (NOW, NOW + 1)
        # Who knows the schema before alone goes on, since this one says that they can.
        assert (await post.check()).schema == NOW + 1
        assert (await post.push("ann-1", facts("ann-1", 1, after=3), head)).seq == 4

        monkeypatch.setattr(administration, "SCHEMA", NOW + 2)
        with pytest.raises(PostRefused, match="division by zero"):
            administration.install(posted.admin)
        latest = "SELECT version, works_from FROM omegad.schema_version ORDER BY 1 DESC LIMIT 1"
        assert posted.sql(latest) == [(NOW + 1, 1)]
        assert posted.sql("SELECT to_regclass('omegad.more')::text") == [(None,)]
        assert (await post.check()).schema == NOW + 1


async def test_a_newer_schema_is_left_alone(posted: Posted) -> None:
    ann = posted.member("Ann")
    posted.sql("INSERT INTO omegad.schema_version VALUES (9, 8)")
    with pytest.raises(HomeOutdated, match=f"schema is 9; this version of omegad knows {NOW}") as caught:
        async with posted.at(ann):
            pass
    assert "upgrade omegad" in caught.value.hint
    with pytest.raises(HomeOutdated):
        administration.install(posted.admin)
    assert posted.sql("SELECT max(version) FROM omegad.schema_version") == [(9,)]


async def test_an_older_schema_is_said(posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omegad.sharing.post.post.OLDEST_SCHEMA", NOW + 1)
    with pytest.raises(
        PostOutdated, match=f"schema is {NOW}; this version of omegad needs {NOW + 1}"
    ) as caught:
        async with posted.at(posted.member("Ann")):
            pass
    assert "share init" in caught.value.hint


def test_whoever_may_make_roles_and_owns_the_database_can_administer_it(empty: Posted) -> None:
    """As at providers, who give nobody the superuser."""
    dbname = empty.admin.dbname
    name = f"chief_{dbname[-8:]}"
    empty.sql(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD 'for the test'")
    empty.sql(f"ALTER DATABASE {dbname} OWNER TO {name}")
    empty.sql(f"GRANT omegad_owner, omegad_member TO {name} WITH ADMIN OPTION")  # who made them there, has it
    chief = empty.of(name, "for the test")
    assert administration.install(chief) == (0, NOW)
    administration.create_team(chief, TEAM)
    login = f"bob_{dbname[-8:]}"
    password = administration.add_member(chief, TEAM, login, "Bob")
    assert password
    assert [one.person for one in administration.members(chief, TEAM)] == ["Bob"]
    with psycopg.connect(**empty.of(login, password).parameters()) as connection:  # type: ignore[arg-type]
        assert connection.execute("SELECT count(*) FROM omegad.members").fetchone() == (1,)
        administration.remove_member(chief, TEAM, login)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT count(*) FROM omegad.members")
    empty.sql(f"DROP OWNED BY {name} CASCADE")


async def test_a_dump_restored_elsewhere_is_the_same_post(posted: Posted) -> None:
    ann = posted.member("Ann")
    said = facts("ann-1", 5)
    async with posted.at(ann) as post:
        head = await push(post, "ann-1", said, await post.enrol("ann-1", "desk"))
    there = f"{posted.admin.dbname}_2"
    posted.sql(f"CREATE DATABASE {there}")
    try:
        posted.server.run("pg_dump", "-Fc", "-f", "dump", "-d", posted.admin.url)
        posted.server.run("pg_restore", "--exit-on-error", "-d", posted.server.admin(there).url, "dump")
        async with connected(msgspec.structs.replace(ann, dbname=there), TEAM, DEADLINES) as post:
            assert await post.told("ann-1", 0, 9) == said
            assert (await post.push("ann-1", facts("ann-1", 1, after=5), head)).seq == 6
            assert [one.bad_seq for one in await post.prove(lambda _: None)] == [None]
        assert administration.install(posted.server.admin(there)) == (NOW, NOW)
    finally:
        posted.sql(f"DROP DATABASE {there} WITH (FORCE)")


def test_every_table_has_policies_that_bind_its_owner_too(posted: Posted) -> None:
    unbound = posted.sql(
        "SELECT relname FROM pg_class WHERE relnamespace = 'omegad'::regnamespace AND relkind IN ('r', 'p')"
        " AND NOT (relrowsecurity AND relforcerowsecurity)"
    )
    assert unbound == []
    owners = posted.sql(
        "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'omegad'::regnamespace"
    )
    assert owners == [("omegad_owner",)]
    assert posted.sql(
        "SELECT rolcanlogin, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = 'omegad_owner'"
    ) == [(False, False, False)]
    unpinned = posted.sql(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'omegad'::regnamespace"
        " AND NOT (prosecdef AND 'search_path=pg_catalog, pg_temp' = ANY (proconfig))"
    )
    assert unpinned == []
    for_anyone = posted.sql(
        "SELECT proname FROM pg_proc, aclexplode(proacl) WHERE pronamespace = 'omegad'::regnamespace AND grantee = 0"
    )
    assert for_anyone == []


def test_errors_are_ours(posted: Posted) -> None:
    with pytest.raises(OmegadError) as caught:
        administration.install(posted.of("nobody_at_all", "a secret word"))
    assert "a secret word" not in f"{caught.value}{caught.value.hint}"
