"""Sharing with a team as people do it: an administrator invites, homes join, memories are found on the other
machine; and what is said where something stands in the way. Daemons and the server are real processes.
"""

import re
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyring
import msgspec
import psycopg
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

from omegad.client import Client
from omegad.runtime.errors import Unavailable
from omegad.sharing import credentials
from omegad.sharing.fact import GENESIS, envelope, link, opened, sealed_hash
from omegad.sharing.post import administration
from omegad.sharing.post.administration import SCHEMA
from tests.edge.cli.conftest import PATIENCE_S, ROOT, Command
from tests.sharing.posts import TEAM
from tests.sharing.server import Server
from tests.test_docs import blocks, page

TOLD = "Billing runs on PostgreSQL 16"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server({"fsync": "off"})
    yield made
    made.remove()


class Team:
    """A post in a database of its own, and homes that may join."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.dbname = f"team_{secrets.token_hex(6)}"
        self._sql("postgres", f"CREATE DATABASE {self.dbname}")
        self.url = server.admin(self.dbname).url
        self.homes = list[Command]()
        self.omegad = self.home("administrator")
        self.first = self.init("Ann")

    def init(self, person: str) -> Any:
        told = self.omegad.json(
            "share", "init", self.url, "--team", TEAM, "--person", person, "--login", _login(person)
        )
        return told["invitation"]

    def invite(self, person: str, *more: str) -> Any:
        login = ("--login", _login(person))
        return self.omegad.json(
            "share", "member", "add", person, "--url", self.url, "--team", TEAM, *login, *more
        )

    def home(self, name: str) -> Command:
        self.homes.append(Command(self.folder / name))
        return self.homes[-1]

    def joined(self, invitation: Any, name: str = "") -> Command:
        """Return a home that has joined as an invitation says."""
        home = self.home(name or invitation["login"])
        join(home, invitation)
        return home

    def sql(self, statement: str, *values: object) -> list[Any]:
        return self._sql(self.dbname, statement, *values)

    def _sql(self, dbname: str, statement: str, *values: object) -> list[Any]:
        with psycopg.connect(**self.server.admin(dbname).parameters(), autocommit=True) as connection:  # type: ignore[arg-type]
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def end(self) -> None:
        for home in self.homes:
            home.end()


def _login(person: str) -> str:
    """Return a login that no other test has: they are the whole server's."""
    return f"{person.lower()}_{secrets.token_hex(4)}"


def join(home: Command, invitation: Any, *more: str, status: int = 0) -> Any:
    return home(
        *(
            "share",
            "join",
            invitation["url"],
            "--team",
            TEAM,
            "--machine",
            f"{invitation['person']}'s laptop",
        ),
        *more,
        stdin=f"{invitation['password']}\n".encode(),
        status=status,
    )


def waited_for(found: Callable[[], Any]) -> Any:
    """Return what is found once it is."""
    until = time.monotonic() + PATIENCE_S
    while not (it := found()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return it


def contents(home: Command, question: str) -> list[str]:
    with Client(home.paths.socket, timeout_s=PATIENCE_S) as client:
        return [one["content"] for one in client.call("memory.query", text=question)["results"]]


def standing(home: Command) -> Any:
    with Client(home.paths.socket, timeout_s=PATIENCE_S) as client:
        return client.call("share.status")


@pytest.fixture
def team(server: Server, tmp_path: Path) -> Iterator[Team]:
    made = Team(server, tmp_path)
    yield made
    made.end()


def test_what_is_chosen_in_one_home_is_found_in_another_and_proved_there(team: Team) -> None:
    ann, ben = team.home("ann"), team.joined(team.invite("Ben"))
    command = [sys.executable, "-m", "omegad", "seal", "--yes", "--key-file", f"{ann.home}.key"]
    subprocess.run(command, env=ann.environ, cwd=ROOT, check=True, capture_output=True)
    join(ann, team.first)
    ann.store(TOLD, event_type="decision", project="shop")
    ann.store("The keys are under the mat", event_type="decision", project="home")
    assert "nothing: `omegad share choose PROJECT`" in ann("share", "status").stdout
    assert "shop is shared from now on, and 1 memory of" in ann("share", "choose", "shop").stdout
    waited_for(lambda: TOLD in contents(ben, "PostgreSQL"))
    ann.store("Billing is deployed on Tuesdays", event_type="decision", project="shop")
    waited_for(lambda: "Billing is deployed on Tuesdays" in contents(ben, "deployed on Tuesdays"))
    assert contents(ben, "keys under the mat") == []

    assert "in touch with crew; waits: nothing" in ann("share", "now").stdout
    said = ben("share", "status").stdout
    assert f"{TEAM}, as Ben on Ben's laptop" in said
    assert "in touch" in said
    assert f"Ann     Ann's laptop  {standing(ann)['origin']}  2 of 2    20" in said
    assert "Ben's laptop  home" not in said  # who asks is not among the others
    assert "shop (all that can be shared)" in ann("share", "status").stdout
    assert ann.json("share", "status")["told"] == 2
    assert "with crew, in touch; waits to be told: nothing" in ben("status").stdout
    assert ben.json("status")["degraded"] == [] or "shared" not in str(ben.json("status")["degraded"])

    told = ben.json("share", "verify")
    (of_ann,) = [one for one in told["origins"] if one["person"] == "Ann"]
    assert told["ok"]
    assert (of_ann["facts"], of_ann["received"], of_ann["at_post"], of_ann["here"]) == (2, 2, None, None)
    assert ann("share", "verify").stdout.count("proved") >= 2
    words = [TOLD.encode(), b"Billing", b"crew", team.first["login"].encode()]
    files = [path for path in ann.home.rglob("*") if path.is_file()]
    assert [path.name for path in files if any(it in path.read_bytes() for it in words)] == ["share.toml"]


def test_the_password_is_in_a_file_of_the_owners_alone_and_nowhere_else(team: Team) -> None:
    ann = team.joined(team.first)
    password = team.first["password"]
    waited_for(lambda: standing(ann)["is_connected"])
    kept = ann.paths.share
    assert kept.stat().st_mode & 0o777 == 0o600
    assert password in kept.read_text()
    assert password not in kept.read_text().split("password", 1)[0]
    others = [one for one in ann.home.rglob("*") if one.is_file() and one != kept]
    assert ann.paths.log in others
    assert [one for one in others if password.encode() in one.read_bytes()] == []
    pid = ann.json("status")["pid"]
    process = Path(f"/proc/{pid}")
    if process.exists():
        assert password.encode() not in (process / "cmdline").read_bytes()
        assert password.encode() not in (process / "environ").read_bytes()
    for words in (
        ("share", "status"),
        ("status",),
        ("share", "verify"),
        ("log",),
        ("share", "status", "--json"),
    ):
        done = ann(*words)
        assert password not in done.stdout + done.stderr


def test_a_password_in_the_address_is_taken_out_of_it_and_the_person_is_told(team: Team) -> None:
    home = team.home("ann")
    url = team.first["url"].replace("@", f":{team.first['password']}@", 1)
    done = home("share", "join", url, "--team", TEAM)
    assert "the shell remembers the password" in done.stderr
    assert team.first["password"] not in done.stdout + done.stderr
    assert f'url = "{team.first["url"]}"' in home.paths.share.read_text()
    waited_for(lambda: standing(home)["is_connected"])


def test_a_password_file_is_read_and_one_that_is_not_there_is_told(team: Team, tmp_path: Path) -> None:
    home, file = team.home("ann"), tmp_path / "password"
    words = ("share", "join", team.first["url"], "--team", TEAM, "--password-file", str(file))
    assert "cannot be read: No such file" in home(*words, status=1).stderr
    file.write_text(team.first["password"] + "\n")
    assert f"this home shares with {TEAM} as Ann on" in home(*words).stdout


class Ring(KeyringBackend):
    """A keyring of this process."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.entries = dict[tuple[str, str], str]()

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.entries.pop((service, username), None) is None:
            raise PasswordDeleteError


@pytest.fixture
def ring() -> Iterator[Ring]:
    before, made = keyring.get_keyring(), Ring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_the_keyring_has_the_password_where_that_is_asked_for(team: Team, ring: Ring) -> None:
    home = team.home("ann")
    join(home, team.first, "--keyring")
    assert team.first["password"] not in home.paths.share.read_text()
    assert [*ring.entries.values()] == [team.first["password"]]
    assert credentials.read(home.paths.share).password == team.first["password"]
    join(home, team.first, "--keyring")  # once more, as for another password
    assert len(ring.entries) == 1
    ring.entries.clear()
    with pytest.raises(Unavailable, match=r"the keyring's omegad/share-\w+ is empty"):
        credentials.read(home.paths.share)
    join(home, team.first)
    assert team.first["password"] in home.paths.share.read_text()
    home("share", "leave")
    assert not home.paths.share.exists()
    assert ring.entries == {}


def test_a_file_that_others_can_read_is_refused_in_words(team: Team) -> None:
    ann = team.joined(team.first)
    waited_for(lambda: standing(ann)["is_connected"])
    ann("stop")
    ann.paths.share.chmod(0o640)
    ann("start")
    waited_for(lambda: standing(ann)["trouble"])
    said = ann("share", "status").stderr
    assert "is not a file of yours alone (mode 0640)" in said
    assert "chmod 600" in ann("share", "status").stdout
    (degraded,) = [one for one in ann.json("status")["degraded"] if one.startswith("shared: ")]
    assert "is not a file of yours alone" in degraded
    ann.paths.share.write_text("password = 'one two\n")
    ann.paths.share.chmod(0o600)
    assert "does not say what `omegad share join` writes" in ann("share", "now", status=1).stderr
    join(ann, team.first)
    assert "in touch" in ann("share", "now").stdout


def test_who_cannot_join_is_told_why_and_nothing_is_kept(team: Team, server: Server) -> None:
    home = team.home("ann")

    def refused(url: str, password: str = team.first["password"], of: str = TEAM) -> str:
        done = home("share", "join", url, "--team", of, stdin=password.encode(), status=1)
        assert not home.paths.share.exists()
        assert home.json("share", "status")["team"] is None
        assert password not in done.stdout + done.stderr
        return done.stderr

    url = team.first["url"]
    assert "does not accept the password" in refused(url, "another-password")
    assert "is not a member of the team others" in refused(url, of="others")
    assert "127.0.0.1:1 cannot be reached: Connection refused (" in refused(
        "postgresql://ann@127.0.0.1:1/omegad"
    )
    encrypted = f"postgresql://{team.first['login']}@127.0.0.1:{server.port}/{team.dbname}?sslmode=require"
    assert "does not offer TLS" in refused(encrypted)
    assert "would send what is shared through the network" in refused(
        "postgresql://a@db.test/o?sslmode=prefer"
    )
    elsewhere = url.replace(f"/{team.dbname}?", "/postgres?")
    assert "holds no post" in refused(elsewhere)
    assert "`omegad share init`" in refused(elsewhere)
    team.sql("INSERT INTO omegad.schema_version VALUES (99, 99)")
    assert "upgrade omegad on this machine" in refused(url)


def test_a_login_is_its_persons(team: Team) -> None:
    home = team.home("ann")
    assert "this login is Ann's" in join(home, team.first, "--person", "Ben", status=1).stderr
    assert not home.paths.share.exists()
    join(home, team.first, "--person", "Ann")
    kept = home.paths.share.read_bytes()
    said = join(home, team.invite("Ben"), status=1).stderr
    assert "this home is Ann's, that login is Ben's" in said
    assert "`omegad share leave` first" in said
    assert "another login of Ann's" in join(home, team.invite("Ann"), status=1).stderr
    assert home.paths.share.read_bytes() == kept
    assert "this home holds nothing of nowhere" in home("share", "choose", "nowhere").stderr


def test_without_the_extra_it_is_said_what_to_install(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    home = team.home("ann")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "pip install 'omegad[shared]'" in join(home, team.first, status=1).stderr
    assert "pip install 'omegad[shared]'" in home("share", "init", team.url, status=1).stderr


def test_what_is_not_said_as_it_has_to_be_is_wrong_usage(omegad: Command) -> None:
    url = "postgresql://ann@127.0.0.1:1/omegad"
    for words, said in (
        (("share", "join"), "postgresql://LOGIN@HOST/DATABASE, is needed"),
        (("share", "join", url), "--team is needed"),
        (("share", "join", "http://ann@db", "--team", TEAM), "begins with postgresql://"),
        (("share", "init", url, "--team", TEAM), "--team and --person go together"),
        (("share", "init", url, "--team", TEAM, "--person", "梅"), "--login is needed"),
        (("share", "member", "add", "--url", url), "the person's name is needed"),
        (("share", "member", "add", "Ben"), "is needed"),
        (("memory", "erase", "--text", "the phrase"), "the phrase is not an argument: type it, or give it"),
    ):
        assert said in omegad(*words, status=2).stderr


def test_a_home_in_no_team_says_nothing_of_it_but_when_asked(omegad: Command) -> None:
    assert "this home shares with no team" in omegad("share", "status").stdout
    assert "shar" not in omegad("status").stdout
    assert omegad.json("status")["share"] is None
    for verb in ("now", "verify", "leave"):
        assert "this home shares with no team" in omegad("share", verb, status=1).stderr
    assert "omegad share join" in omegad("share", "choose", "shop", status=1).stderr


def test_what_would_go_is_shown_with_what_stays_and_why(team: Team) -> None:
    ann = team.joined(team.first)
    ann.store(TOLD, event_type="decision", project="shop")
    ann.store("Halfway through the invoices", event_type="checkpoint", project="shop")
    ann.store("Invoices begin at one", event_type="lesson_learned", project="shop")
    said = ann("share", "preview", "shop").stdout
    assert "2 memories of shop would be shared; what stays: 1" in said
    assert "no: its type is never shared" in said
    told = ann.json("share", "preview", "shop", "--type", "decision")
    assert [one["content"] for one in told["go"]] == [TOLD]
    assert {one["stays"] for one in told["stay"]} == {"its type is never shared", "its type is not chosen"}
    assert standing(ann)["told"] == 0
    assert "never shared" in ann("share", "preview", "shop", "--type", "checkpoint", status=2).stderr
    assert "there is nothing in it" in ann("share", "preview", "nowhere").stdout


def test_who_said_what_would_go_is_shown_beside_it(team: Team) -> None:
    ann, ben = team.joined(team.first), team.joined(team.invite("Ben"))
    ann.store(TOLD, event_type="decision", project="shop")
    ann("share", "choose", "shop")
    waited_for(lambda: TOLD in contents(ben, "PostgreSQL"))
    ben.store("Invoices begin at one", event_type="lesson_learned", project="shop")
    preview = ben.json("share", "preview", "shop")
    assert [(one["content"], one["person"]) for one in preview["go"]] == [("Invoices begin at one", "Ben")]
    assert [(one["content"], one["person"], one["stays"]) for one in preview["stay"]] == [
        (TOLD, "Ann", "another home stored it")
    ]
    assert "Ann, " in ben("share", "preview", "shop").stdout


def test_a_home_that_was_told_to_try_now_rests_again(team: Team) -> None:
    ann = team.joined(team.first)
    waited_for(lambda: standing(ann)["is_connected"])
    assert "in touch with crew; waits: nothing" in ann("share", "now").stdout
    before = standing(ann)["in_touch_at"]
    time.sleep(1.0)  # in which one that does not would have asked a hundred times
    assert standing(ann)["in_touch_at"] == before


def test_members_are_listed_and_one_that_is_removed_is_told_so(team: Team) -> None:
    ben = team.joined(team.invite("Ben"))
    other = team.invite("Ben")
    said = team.omegad("share", "member", "list", "--url", team.url).stdout
    assert said.count("Ben") == 2
    assert [one["is_admin"] for one in team.omegad.json("share", "member", "list", "--url", team.url)] == [
        True,
        False,
        False,
    ]
    of_team = ("--url", team.url, "--team", TEAM)
    assert "name the login" in team.omegad("share", "member", "remove", "Ben", *of_team, status=1).stderr
    login = standing(ben) and ben.paths.share.read_text().split("//", 1)[1].split("@")[0]
    assert other["login"] != login
    gone = team.omegad("share", "member", "remove", str(login), *of_team).stdout
    assert "reads nothing of crew from now on" in gone
    assert "is not a member" in team.omegad("share", "member", "remove", "Eve", *of_team, status=1).stderr
    said = ben("share", "now", status=1).stderr
    assert "does not let" in said or "not a member" in said
    left = [one for one in team.omegad.json("share", "member", "list", *of_team) if one["left_at"]]
    assert [one["login"] for one in left] == [login]
    again = team.omegad.json("share", "member", "add", "Ben", *of_team, "--login", str(login))
    join(ben, again)
    assert "in touch" in ben("share", "now").stdout


def test_an_administrator_need_be_no_superuser_and_removes_who_is_connected(team: Team) -> None:
    login, dbname = _login("Boss"), f"team_{secrets.token_hex(6)}"
    team.sql(f"CREATE ROLE {login} LOGIN CREATEROLE PASSWORD 'of-the-boss'")
    team.sql(f"CREATE DATABASE {dbname} OWNER {login}")
    url = team.server.admin(dbname).url.replace("postgres@", f"{login}:of-the-boss@")
    init = ("share", "init", url, "--team", TEAM, "--person", "Ann", "--login", _login("Ann"))
    refused = team.omegad(*init, status=1).stderr  # the roles are there, made by another administrator
    assert f"{login} may not do that" in refused
    team.sql(refused.partition("another's, ")[2].partition("\n")[0])
    team.omegad(*init)
    of_ben = _login("Ben")
    ben = team.joined(team.omegad.json("share", "member", "add", "Ben", "--url", url, "--login", of_ben))
    waited_for(lambda: standing(ben)["is_connected"])
    assert "reads nothing" in team.omegad("share", "member", "remove", "Ben", "--url", url).stdout
    said = ben("share", "now", status=1)
    assert "does not let" in said.stderr
    assert "its membership was ended" in said.stdout
    again = team.omegad.json("share", "member", "add", "Ben", "--url", url, "--login", of_ben)
    join(ben, again)  # with the password that is new
    assert "in touch" in ben("share", "now").stdout


def test_who_leaves_takes_the_words_along_where_that_is_asked_for(team: Team) -> None:
    ann, ben = team.joined(team.first), team.joined(team.invite("Ben"))
    ann.store(TOLD, event_type="decision", project="shop")
    ann("share", "choose", "shop")
    waited_for(lambda: TOLD in contents(ben, "PostgreSQL"))
    memory_id = ann.json("query", "PostgreSQL")["results"][0]["memory_id"]
    would = ann("memory", "erase", memory_id, "--dry-run")
    assert f"{memory_id} would be erased for the whole team" in would.stdout
    assert "was stored by another person" in ben("memory", "erase", memory_id, "--dry-run").stderr
    phrase = ann("memory", "erase", "--text", "--dry-run", stdin=b"PostgreSQL 16")
    assert f"what {memory_id} said before, and keeps that" in phrase.stderr
    told = ann("share", "leave", "--with-facts")
    assert "the words of 1 fact are removed" in told.stdout
    assert team.sql("SELECT count(*) FROM omegad.facts WHERE body IS NOT NULL") == [(0,)]
    assert not ann.paths.share.exists()
    assert contents(ben, "PostgreSQL") == [TOLD]  # what came stays
    assert "shares with no team" in ann("share", "status").stdout
    assert ben.json("share", "verify")["ok"]
    assert "they are not told again" in told.stdout
    join(ann, team.first)
    for verb in ("choose", "preview"):
        assert "before this home left it is not told again" in ann("share", verb, "shop").stderr


def test_a_home_that_is_gone_is_retired_and_told_so_when_it_comes_back(team: Team) -> None:
    invitation = team.invite("Ben")
    password = invitation["password"].encode()
    ann, ben = team.joined(team.first), team.joined(invitation)
    said = ben("share", "retire", "Ann's laptop", status=1).stderr
    assert "is Ann's home" in said
    assert "an administrator of the team can retire it" in said
    assert "that is this home" in ann("share", "retire", "Ann's laptop", status=1).stderr
    assert "nobody waits for it any more" in ann("share", "retire", "Ben's laptop").stdout
    told = ben("share", "now", status=1)
    assert "Ann retired this home on 20" in told.stderr
    assert "`omegad share leave`, and `omegad share join`" in told.stdout
    assert "choose its projects again" in told.stdout
    assert "Ann retired this home on 20" in ben("share", "choose", "shop").stderr
    again = ben("share", "join", invitation["url"], "--team", TEAM, stdin=password, status=1)
    assert "Ann retired this home on 20" in again.stderr
    assert "is retired already: by Ann, on 20" in ann("share", "retire", "Ben's laptop", status=1).stderr
    waited_for(lambda: "retired by Ann" in ann("share", "status").stdout)
    assert "still sees this home" not in ben("share", "leave").stderr


def test_a_home_leaves_without_the_server_and_says_that_the_team_was_not_told(
    tmp_path: Path,
) -> None:
    server = Server({"fsync": "off"})
    team = Team(server, tmp_path)
    try:
        ann = team.joined(team.first)
        waited_for(lambda: standing(ann)["is_connected"])
        ann.store(TOLD, event_type="decision", project="shop")
        ann("share", "choose", "shop")
        waited_for(lambda: standing(ann)["told"] == 1)
        server.kill()
        waited_for(lambda: "cannot be reached" in (standing(ann)["trouble"] or ""))
        ann.store("Billing is deployed on Tuesdays", event_type="decision", project="shop")
        said = ann("share", "status")
        assert "1 event since 20" in said.stdout
        assert "not in touch, last on 20" in said.stdout
        assert "cannot be reached" in said.stderr
        assert "nothing is lost" in said.stdout
        (degraded,) = [one for one in ann.json("status")["degraded"] if one.startswith("shared: ")]
        assert "; waits to be told: 1, since" in degraded
        findings = ann.json("doctor")["findings"]
        (found,) = [one for one in findings if one["part"] == "sharing"]
        assert found["state"] == "warn"
        assert "1 event since" in found["seen"]
        assert "cannot be reached" in ann("share", "verify", status=1).stderr
        assert "cannot be reached" in ann("share", "leave", "--with-facts", status=1).stderr
        server.start()
        assert "in touch with crew; waits: nothing" in ann("share", "now").stdout
        assert standing(ann)["told"] == 2
        server.kill()
        told = ann("share", "leave")
        assert "the team still sees this home among its own" in told.stderr
        assert "when the server is back: `omegad share retire home-" in told.stdout
        assert not ann.paths.share.exists()
        server.start()
    finally:
        team.end()
        server.remove()


def test_a_fact_that_was_changed_at_the_server_or_replaced_with_its_whole_chain_is_named(team: Team) -> None:
    ann, ben = team.joined(team.first), team.joined(team.invite("Ben"))
    ann("share", "choose", "shop")
    for number in range(3):
        ann.store(f"Rule {number} of billing", event_type="decision", project="shop")
    waited_for(lambda: standing(ann)["told"] == 3 and len(contents(ben, "rule of billing")) == 3)
    assert ben.json("share", "verify")["ok"]
    (envelopes,) = [team.sql("SELECT envelope FROM omegad.facts ORDER BY seq")]

    # With its chain, as one would who owns the server
    chain = GENESIS
    for seq, (sealed,) in enumerate(envelopes, 1):
        fact = opened(bytes(sealed), None, None)
        forged = envelope(fact) if seq != 2 else envelope(msgspec.structs.replace(fact, project="other"))
        chain = link(chain, sealed_hash(forged))
        team.sql("UPDATE omegad.facts SET envelope = %s, chain = %s WHERE seq = %s", forged, chain, seq)
    team.sql("UPDATE omegad.origins SET head_chain = %s WHERE head = 3", chain)
    told = ben.json("share", "verify", status=1)
    (of_ann,) = [one for one in told["origins"] if one["person"] == "Ann"]
    assert (of_ann["at_post"], of_ann["here"]) == (None, "what was received is not what the post has")

    # Without
    team.sql("UPDATE omegad.facts SET chain = %s WHERE seq = 2", secrets.token_bytes(32))
    done = ben("share", "verify", status=1)
    assert "fact 2: the fact is not what was told" in done.stdout


def test_a_password_goes_to_a_file_where_one_is_named(team: Team, tmp_path: Path) -> None:
    file = tmp_path / "ben.password"
    invitation = team.invite("Ben", "--password-to", str(file))
    assert (invitation["password"], invitation["file"]) == (None, str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    login = _login("Eve")
    said = team.omegad(
        *("share", "member", "add", "Eve", "--url", team.url, "--login", login, "--password-to", str(file)),
        status=2,
    ).stderr
    assert "cannot be made: File exists" in said
    assert login not in str(team.omegad.json("share", "member", "list", "--url", team.url))
    home = team.home("ben")
    home("share", "join", invitation["url"], "--team", TEAM, "--password-file", str(file))
    waited_for(lambda: standing(home)["is_connected"])
    other = tmp_path / "none"
    again = ("share", "member", "add", "Ben", "--url", team.url, "--login", invitation["login"])
    assert "with the password that the login has" in team.omegad(*again, "--password-to", str(other)).stdout
    assert not other.exists()


def test_another_address_of_the_same_post_is_gone_by_at_once(team: Team, server: Server) -> None:
    ann = team.joined(team.first)
    waited_for(lambda: standing(ann)["is_connected"])
    login = team.first["login"]
    elsewhere = f"postgresql://{login}@127.0.0.1:{server.port}/{team.dbname}"
    join(ann, team.first | {"url": elsewhere})
    come_from = "SELECT host(client_addr) FROM pg_stat_activity WHERE usename = %s"
    waited_for(lambda: team.sql(come_from, login) == [("127.0.0.1",)])
    assert "in touch" in ann("share", "now").stdout


def test_what_the_page_shows_is_what_happens(team: Team, server: Server, tmp_path: Path) -> None:
    """Its commands run as they stand there, but for where the server is."""
    (script,) = [block.body for block in blocks(page("docs/sharing.md")) if block.marker == "command: share"]
    dbname = f"team_{secrets.token_hex(6)}"
    team.sql(f"CREATE DATABASE {dbname}")
    first, _, rest = script.partition("\n")
    assert first.startswith("POST=")
    script = f"POST={shlex.quote(server.admin(dbname).url)}\n" + rest
    script = script.replace("@localhost/omegad", f"@127.0.0.1:{server.port}/{dbname}")
    command = f'omegad() {{ {shlex.quote(sys.executable)} -m omegad "$@"; }}\n'
    homes = [Command(tmp_path / name) for name in ("ann", "ben")]
    environ = {name: value for name, value in homes[0].environ.items() if name != "OMEGAD_HOME"}
    try:
        ran = subprocess.run(
            ["bash", "-eu", "-c", command + script],
            cwd=tmp_path,
            env={**environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    finally:
        for home in homes:
            home.end()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 memory of shop would be shared" in ran.stdout
    assert re.search(
        r"mem-\w+ +decision .* shop .*Billing runs on PostgreSQL 16",
        ran.stdout.split("in touch with crew")[-1],
    )
    assert "crew, as Ben on laptop" in ran.stdout
    assert re.search(r"Ann +desk +home-\w+ +1 +proved +1 +proved", ran.stdout)


def test_a_post_is_made_once_and_upgraded_by_the_same_verb(team: Team) -> None:
    assert team.omegad.json("share", "init", team.url) == {"schema_before": SCHEMA, "schema": SCHEMA}
    said = team.omegad(
        "share", "init", team.url, "--team", TEAM, "--person", "Eve", "--login", _login("eve")
    ).stdout
    assert "with this password, which is shown this once: " in said
    assert "`omegad share member add PERSON --url" in said
    assert administration.teams(team.server.admin(team.dbname)) == [TEAM]
    team.sql("INSERT INTO omegad.schema_version VALUES (99, 99)")
    assert "upgrade omegad" in team.omegad("share", "init", team.url, status=1).stderr
