"""Who may see and do what at the post: a login of another team, one of the team, one that was removed."""

import secrets
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from omegad.runtime.errors import Invalid, NotFound, OmegadError, Refused
from omegad.sharing.post import administration
from omegad.sharing.post.address import Address
from omegad.sharing.post.errors import LoginRefused, NotAMember, PostLost
from omegad.sharing.post.post import NO_HEAD
from tests.sharing.posts import TEAM, Posted, fact, facts, push

MARK = "marked"
"""Is in every text of the team that nobody else may read."""


# What a hostile client may say, a statement a line. `LEAK` is a function that tells of each row it is shown,
# and is cheaper than the policy, so that the planner would like to ask it first.
LEAK = """CREATE OR REPLACE FUNCTION pg_temp.leak(bytea) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$BEGIN RAISE NOTICE '%', convert_from($1, 'UTF8'); RETURN true; END$$;"""
OF_EACH_TABLE = """
SELECT t::text FROM <NAME> AS t
SELECT count(*) FROM <NAME>
TABLE <NAME>
COPY <NAME> TO STDOUT
COPY (SELECT * FROM <NAME>) TO STDOUT
SELECT table_to_xml('<NAME>', true, false, '')
SELECT query_to_xml('SELECT * FROM <NAME>', true, false, '')
EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM <NAME>
CREATE TEMP TABLE mine_<TABLE> AS SELECT * FROM <NAME>; SELECT m::text FROM mine_<TABLE> AS m
SELECT t::text FROM <NAME> AS t TABLESAMPLE SYSTEM (100)
SELECT t::text FROM ONLY <NAME> AS t FOR SHARE
LOCK TABLE <NAME> IN SHARE MODE
DELETE FROM <NAME> RETURNING *
TRUNCATE <NAME> CASCADE
ALTER TABLE <NAME> DISABLE ROW LEVEL SECURITY
CREATE POLICY mine ON <NAME> USING (true)
GRANT ALL ON <NAME> TO PUBLIC
CREATE VIEW pg_temp.seen_<TABLE> AS SELECT * FROM <NAME>; SELECT s::text FROM seen_<TABLE> AS s
BEGIN; SET LOCAL row_security = off; SELECT t::text FROM <NAME> AS t; COMMIT
SELECT * FROM pgstattuple('<NAME>')
"""
AS_ANOTHER = """
SET ROLE <ROLE>; SELECT t::text FROM omegad.facts AS t
SET SESSION AUTHORIZATION <ROLE>; SELECT t::text FROM omegad.facts AS t
SELECT set_config('role', '<ROLE>', false); SELECT t::text FROM omegad.facts AS t
SELECT set_config('session_authorization', '<ROLE>', false); TABLE omegad.facts
GRANT <ROLE> TO CURRENT_USER
CREATE ROLE mine_<ROLE> IN ROLE <ROLE>
"""
TRIES = """
<LEAK> SELECT count(*) FROM omegad.facts WHERE pg_temp.leak(body)
<LEAK> SELECT count(*) FROM omegad.facts WHERE pg_temp.leak(body) AND team = <TEAM>
SELECT 1 / (length(person) - length(person)) FROM omegad.members WHERE team = <TEAM>
SELECT person::integer FROM omegad.members
SELECT count(*) FROM omegad.members AS m FULL JOIN omegad.teams AS t USING (team) WHERE m.team > 0
SET ROLE omegad_member; SELECT t::text FROM omegad.facts AS t
SELECT set_config('omegad.team', '<TEAM>', false); SELECT t::text FROM omegad.facts AS t
SELECT omegad.my_teams()
SELECT omegad.check_owner(<TEAM>, 'ann-1')
SELECT omegad.enrol(<TEAM>, 'ann-1', 'x'); SELECT t::text FROM omegad.origins AS t
SELECT omegad.enrol(<TEAM>, 'other', 'x')
SELECT omegad.report(<TEAM>, 'ann-1', ARRAY['ann-1'], ARRAY[1::bigint])
SELECT omegad.leave(<TEAM>, 'ann-1', true)
SELECT omegad.leave_all(<TEAM>, ARRAY['ann-1'], true)
SELECT omegad.retire(<TEAM>, 'ann-1')
SELECT omegad.push(<TEAM>, 'ann-1', 0, decode(repeat('00', 32), 'hex'), ARRAY[1::bigint], ARRAY[1::bigint], ARRAY['e'], ARRAY['memory.erased@1'], ARRAY['mem-ann-1-1'], ARRAY['x'::bytea], ARRAY[decode(repeat('00', 32), 'hex')], ARRAY[NULL::bytea], ARRAY[NULL::bytea])
INSERT INTO omegad.members (team, login, person) VALUES (<TEAM>, session_user, 'me')
UPDATE omegad.members SET team = <TEAM> RETURNING *
UPDATE omegad.members SET is_admin = true
SET search_path = pg_temp; CREATE TEMP TABLE members AS SELECT 1; SELECT omegad.my_teams()
CREATE FUNCTION pg_temp.session_user() RETURNS text LANGUAGE sql AS $$SELECT 'x'$$; TABLE omegad.facts
CREATE TABLE omegad.mine (a int)
CREATE OR REPLACE FUNCTION omegad.my_teams() RETURNS integer[] LANGUAGE sql AS 'SELECT ARRAY[1,2,3]'
ALTER FUNCTION omegad.my_teams() SECURITY INVOKER
SELECT last_value FROM omegad.teams_team_seq
SELECT nextval('omegad.teams_team_seq')
SELECT currval('omegad.teams_team_seq'), pg_sequence_last_value('omegad.teams_team_seq')
SELECT s::text FROM pg_stats AS s WHERE schemaname = 'omegad'
SELECT s::text FROM pg_statistic AS s
SELECT s::text FROM pg_stats_ext AS s
SELECT s::text FROM pg_stat_activity AS s
SELECT s::text FROM pg_stat_user_tables AS s
SELECT s::text FROM pg_locks AS s
SELECT s::text FROM pg_authid AS s
SELECT s::text FROM pg_shadow AS s
SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition
SELECT s::text FROM pg_policies AS s
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'omegad'::regnamespace
SELECT s::text FROM pg_cursors AS s
SELECT s::text FROM pg_prepared_statements AS s
SELECT database_to_xml(true, false, '')
SELECT schema_to_xml('omegad', true, false, '')
SELECT s::text FROM ts_stat('SELECT to_tsvector(convert_from(body, ''UTF8'')) FROM omegad.facts') AS s
SELECT pg_read_file('global/pg_control')
SELECT pg_ls_dir('.')
COPY (SELECT 1) TO PROGRAM 'id'
SELECT lo_import('/etc/passwd')
CREATE EXTENSION dblink
CREATE EXTENSION pageinspect
CREATE EXTENSION pg_stat_statements
ALTER DATABASE postgres SET row_security = off
ALTER ROLE CURRENT_USER BYPASSRLS
ALTER ROLE CURRENT_USER SUPERUSER
REASSIGN OWNED BY omegad_owner TO CURRENT_USER
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> current_user
DO $$BEGIN PERFORM FROM omegad.facts; IF FOUND THEN RAISE EXCEPTION 'marked: there'; END IF; END$$
"""


def tries(team: int, login: str) -> Iterator[str]:
    """Yield what a hostile client says to read of a team, or to become one of its logins."""
    tables = ("schema_version", "teams", "members", "origins", "facts", "erased", "cursors", f"facts_{team}")
    said = [OF_EACH_TABLE.replace("<NAME>", f"omegad.{table}").replace("<TABLE>", table) for table in tables]
    said += [AS_ANOTHER.replace("<ROLE>", role) for role in ("omegad_owner", "postgres", login)]
    for statement in "\n".join((*said, TRIES)).split("\n"):
        if statement:
            yield statement.replace("<TEAM>", str(team)).replace("<LEAK>", LEAK)


def heard(connection: "psycopg.Connection[Any]", statement: str) -> str:
    """Return everything that a client hears of a statement: rows, what is copied, notices, errors."""
    said = list[str]()

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        said.append(f"{diagnostic.message_primary} {diagnostic.message_detail}")

    connection.add_notice_handler(note)
    try:
        if statement.startswith("COPY") and "STDOUT" in statement:
            with connection.cursor().copy(statement.encode()) as copy:
                said += [bytes(part).decode() for part in copy]
        else:
            cursor = connection.execute(statement.encode())
            while True:
                if cursor.description:
                    said += [str(row) for row in cursor.fetchall()]
                if not cursor.nextset():
                    break
    except psycopg.Error as error:
        said.append(f"{error} {error.diag.message_detail}")
    finally:
        connection.remove_notice_handler(note)
    return "\n".join(said)


def raw(address: Address) -> "psycopg.Connection[Any]":
    return psycopg.connect(**address.parameters(), autocommit=True)  # type: ignore[arg-type]


@pytest.fixture
async def marked(posted: Posted) -> Address:
    """A team with all that a team has, every text of it marked; return where its member finds the post."""
    ann = posted.member(f"Ann {MARK}".replace(" ", "_"))
    async with posted.at(ann) as post:
        head = await post.enrol("ann-1", f"desk {MARK}")
        said = [
            fact("ann-1", seq, f"mem-{MARK}-{seq}", body=f"{MARK} words {seq}".encode())
            for seq in range(1, 60)
        ]
        said.append(fact("ann-1", 60, f"mem-{MARK}-1", "memory.erased@1", body=MARK.encode()))
        await post.push("ann-1", said, head)
        await post.enrol("ann-2", f"laptop {MARK}")
        await post.report("ann-2", {"ann-1": 3})
    posted.sql("UPDATE omegad.teams SET name = %s", f"crew {MARK}")
    posted.sql("ANALYZE")
    return ann


async def test_a_login_of_another_team_reads_nothing_by_any_sql(posted: Posted, marked: Address) -> None:
    administration.create_team(posted.admin, "others")
    eve = posted.member("Eve", team="others")
    ((team,),) = posted.sql("SELECT team FROM omegad.teams WHERE name <> 'others'")
    before = posted.sql("SELECT f::text FROM omegad.facts AS f ORDER BY seq")
    seen = dict[str, str]()
    for statement in tries(team, marked.user):
        with raw(eve) as connection:
            found = heard(connection, statement)
            if MARK in found.replace(statement, "").replace(marked.user, ""):
                seen[statement] = found[:300]
            # What a statement set stays for the session: what everyone may read shows nothing either.
            later = "\n".join(
                heard(connection, f"TABLE omegad.{name}") for name in ("facts", "members", "teams")
            )
            if MARK in later:
                seen[f"{statement}; then"] = later[:300]
    assert seen == {}
    assert posted.sql("SELECT f::text FROM omegad.facts AS f ORDER BY seq") == before
    with raw(eve) as connection:
        counted = [
            heard(connection, f"SELECT count(*) FROM omegad.{name}")
            for name in ("teams", "members", "origins", "facts", "erased", "cursors")
        ]
    assert counted == ["(1,)", "(1,)", "(0,)", "(0,)", "(0,)", "(0,)"]
    with raw(marked) as connection:  # the same statements show the team what is its own
        assert MARK in heard(connection, "TABLE omegad.facts")
        assert heard(connection, "SELECT count(*) FROM omegad.facts") == "(60,)"


@pytest.mark.usefixtures("marked")
async def test_whoever_asks_as_a_member_of_another_team_is_told(posted: Posted) -> None:
    administration.create_team(posted.admin, "others")
    eve = posted.member("Eve", team="others")
    with pytest.raises(NotAMember, match="not a member of the team"):
        async with posted.at(eve, f"crew {MARK}"):
            pass
    with pytest.raises(NotAMember, match="not a member of the team"):
        async with posted.at(eve, "no such team"):
            pass
    async with posted.at(eve, "others") as post:
        ((team,),) = posted.sql("SELECT team FROM omegad.teams WHERE name <> 'others'")
        post.team = team
        assert (await post.pull({}, but="")).facts == []
        assert await post.told("ann-1", 0, 10) == []
        assert await post.waiting() == []
        with pytest.raises(NotAMember):
            await post.push("ann-1", facts("ann-1", 1), NO_HEAD)
        with pytest.raises(NotAMember):
            await post.enrol("eve-1", "desk")


async def test_members_write_by_the_functions_alone(posted: Posted) -> None:
    with raw(posted.member("Bob")) as connection:
        for statement in (
            "UPDATE omegad.facts SET body = NULL",
            "DELETE FROM omegad.facts",
            "INSERT INTO omegad.facts SELECT * FROM omegad.facts",
            "UPDATE omegad.origins SET login = session_user",
            "UPDATE omegad.members SET is_admin = true WHERE login = session_user",
            "INSERT INTO omegad.erased SELECT team, 'x', origin, 1 FROM omegad.origins",
        ):
            assert "permission denied" in heard(connection, statement)


@pytest.mark.parametrize("ends_connections", [True, False])
async def test_a_removed_member_reads_nothing_from_that_moment_on(
    posted: Posted, *, ends_connections: bool
) -> None:
    bob = posted.member("Bob")
    async with posted.at(posted.member("Ann")) as hers, posted.at(bob) as his:
        head = await push(hers, "ann-1", facts("ann-1", 5), await hers.enrol("ann-1", "desk"))
        his_head = await his.enrol("bob-1", "laptop")
        assert len((await his.pull({}, but="bob-1")).facts) == 5
        if ends_connections:
            with raw(bob) as held:
                held.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
                assert heard(held, "SELECT count(*) FROM omegad.facts") == "(5,)"
                administration.remove_member(posted.admin, TEAM, bob.user)
                assert "terminat" in heard(held, "TABLE omegad.facts")
            with pytest.raises(PostLost):
                await his.pull({}, but="bob-1")
            with pytest.raises(LoginRefused, match="not let"):
                async with posted.at(bob):
                    pass
        else:
            posted.sql("UPDATE omegad.members SET left_at = now() WHERE login = %s", bob.user)
            assert (await his.pull({}, but="bob-1")).facts == []
            assert await his.origins() == []
            assert await his.told("ann-1", 0, 9) == []
            for attempt in (
                his.check(),
                his.push("bob-1", facts("bob-1", 1), his_head),
                his.enrol("bob-1", "laptop"),
            ):
                with pytest.raises(NotAMember):
                    await attempt
            with pytest.raises(NotAMember):
                async with posted.at(bob):
                    pass
        assert (await hers.push("ann-1", facts("ann-1", 1, after=5), head)).seq == 6


async def test_who_was_removed_comes_back_with_another_password(posted: Posted) -> None:
    bob = posted.member("Bob")
    administration.remove_member(posted.admin, TEAM, bob.user)
    with pytest.raises(NotFound):
        administration.remove_member(posted.admin, TEAM, bob.user)
    password = administration.add_member(posted.admin, TEAM, bob.user, "Bob")
    assert password
    assert password != bob.password
    async with posted.at(bob.with_password(password)) as post:
        assert (await post.check()).person == "Bob"
    with pytest.raises(LoginRefused):
        async with posted.at(bob):
            pass


async def test_a_login_in_two_teams_keeps_its_password_and_sees_of_each_its_own(posted: Posted) -> None:
    administration.create_team(posted.admin, "others")
    bob = posted.member("Bob")
    assert administration.add_member(posted.admin, "others", bob.user, "Bobby") is None
    async with posted.at(bob) as here, posted.at(bob, "others") as there:
        await push(here, "bob-1", facts("bob-1", 2), await here.enrol("bob-1", "desk"))
        await push(there, "bob-1", facts("bob-1", 3), await there.enrol("bob-1", "desk"))
        assert len((await here.pull({}, but="")).facts) == 2
        assert len((await there.pull({}, but="")).facts) == 3
        assert (await there.check()).person == "Bobby"
    administration.remove_member(posted.admin, "others", bob.user)
    async with posted.at(bob) as here:
        assert len((await here.pull({}, but="")).facts) == 2


def test_what_an_administrator_gets_wrong_is_said(posted: Posted) -> None:
    bob = posted.member("Bob")
    tried: list[tuple[type[OmegadError], str, Any]] = [
        (Refused, "already", lambda: administration.create_team(posted.admin, TEAM)),
        (Invalid, "characters", lambda: administration.create_team(posted.admin, " ")),
        (NotFound, "no team", lambda: administration.members(posted.admin, "nobody's")),
        (
            NotFound,
            "no team",
            lambda: administration.add_member(posted.admin, "x", f"new_{secrets.token_hex(4)}", "X"),
        ),
        (Refused, "not omegad's", lambda: administration.add_member(posted.admin, TEAM, "postgres", "Root")),
        (Refused, "not omegad's", lambda: administration.add_member(posted.admin, TEAM, "omegad_owner", "X")),
        (Invalid, "login", lambda: administration.add_member(posted.admin, TEAM, 'a"; DROP', "X")),
        (Invalid, "name", lambda: administration.add_member(posted.admin, TEAM, bob.user, "")),
        (Refused, "may not do that", lambda: administration.create_team(bob, "mine")),
    ]
    for kind, words, attempt in tried:
        with pytest.raises(kind, match=words) as caught:
            attempt()
        assert caught.value.hint
    assert administration.teams(posted.admin) == [TEAM]
    assert [(one.login, one.person, one.is_admin) for one in administration.members(posted.admin, TEAM)] == [
        (bob.user, "Bob", False)
    ]


def test_a_member_that_is_refused_leaves_no_login_behind(posted: Posted) -> None:
    login = f"new_{secrets.token_hex(4)}"
    with pytest.raises(NotFound):
        administration.add_member(posted.admin, "nobody's", login, "New")
    assert posted.sql("SELECT 1 FROM pg_roles WHERE rolname = %s", login) == []
