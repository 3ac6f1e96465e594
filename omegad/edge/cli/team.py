"""The verbs of an administrator of the database: make a post, teams and members. They ask no daemon."""

import os
import re
import shlex
import sys
import unicodedata
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.passwords import address_given, asked_for, required
from omegad.edge.cli.printing import is_terminal, moment, safe, tell, warn, write_json, write_table
from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.runtime.times import rfc3339
from omegad.sharing.post import administration
from omegad.sharing.post.address import Address
from omegad.sharing.post.errors import LoginRefused

LOGIN_CHARACTERS = 63

T = TypeVar("T")


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """What a person needs to join. `password` is None for a login that has one already."""

    team: str
    person: str
    login: str
    url: str
    password: str | None

    file: str | None = None
    """The file that the password is in, where it is not to be shown."""

    @property
    def sentences(self) -> list[str]:
        """Say it to the administrator, who passes it on."""
        join = f"omegad share join {shlex.quote(self.url)} --team {shlex.quote(self.team)}"
        how = "with the password that the login has"
        if self.file:
            how = safe(f"with the password that is in {self.file}")
        elif self.password:
            how = f"with this password, which is shown this once: {self.password}"
        return [
            safe(f"{self.person} joins {self.team} on each of their machines by"),
            f"  {safe(join)}",
            how,
        ]


def init(arguments: Namespace, _instance: Instance) -> None:
    """Make or upgrade the post, and where a team is named that and its first member, who administers it."""
    if bool(arguments.team) != bool(arguments.person):
        raise WrongUsage("--team and --person go together")
    login = _login(arguments) if arguments.team else ""
    where, (before, after) = _as_administrator(arguments, administration.install)
    made = f"the post at {where.place}, database {where.dbname}, "
    made += f"has schema {after}" + ("" if before == after else f", made now from {before}" if before else "")
    told: dict[str, object] = {"schema_before": before, "schema": after}
    if not arguments.team:
        tell(arguments, told, safe(made))
        return
    if arguments.team not in administration.teams(where):
        administration.create_team(where, arguments.team)
    invitation = _invited(arguments, where, arguments.team, login, is_admin=True)
    of_team = f"--url {shlex.quote(where.url)} --team {shlex.quote(arguments.team)}"
    tell(
        arguments,
        told | {"invitation": invitation},
        safe(made),
        "",
        *invitation.sentences,
        "",
        f"others are invited by `omegad share member add PERSON {safe(of_team)}`",
    )


def add(arguments: Namespace, _instance: Instance) -> None:
    """Add a person to a team."""
    login = _login(arguments)
    where, team = _team(arguments)
    invitation = _invited(arguments, where, team, login, is_admin=arguments.admin)
    tell(arguments, invitation, *invitation.sentences)


def remove(arguments: Namespace, _instance: Instance) -> None:
    """End a membership, by the person's name or login."""
    person = required(arguments.person, "whom to remove")
    where, team = _team(arguments)
    found = [
        one
        for one in administration.members(where, team)
        if one.left_at is None and person in (one.person, one.login)
    ]
    if not found:
        raise NotFound(f"{person} is not a member of {team}", hint="`omegad share member list` shows who is")
    if len(found) > 1:
        logins = ", ".join(one.login for one in found)
        raise Refused(f"there are {len(found)} by the name of {person}", hint=f"name the login: {logins}")
    administration.remove_member(where, team, found[0].login)
    tell(
        arguments,
        {"team": team, "person": found[0].person, "login": found[0].login},
        safe(f"{found[0].person} ({found[0].login}) reads nothing of {team} from now on"),
        "what came to their machines before stays there",
    )


def members(arguments: Namespace, _instance: Instance) -> None:
    """List who is, and was, in a team."""
    where, team = _team(arguments)
    found = administration.members(where, team)
    if arguments.json:
        write_json(
            [
                msgspec.structs.asdict(one)
                | {
                    "joined_at": rfc3339(one.joined_at),
                    "left_at": rfc3339(one.left_at) if one.left_at else None,
                }
                for one in found
            ]
        )
        return
    write_table(
        ("PERSON", "LOGIN", "ADMIN", "JOINED", "LEFT"),
        (
            (
                *(one.person, one.login, "yes" if one.is_admin else "", moment(rfc3339(one.joined_at))),
                moment(rfc3339(one.left_at)) if one.left_at else "-",
            )
            for one in found
        ),
        none=f"nobody is in {team}",
    )


def _as_administrator(arguments: Namespace, work: Callable[[Address], T]) -> tuple[Address, T]:
    """Do something at the server; where it asks for a password that was not given, ask for it."""
    where = address_given(arguments)
    try:
        return where, work(where)
    except LoginRefused:
        if where.password or not is_terminal(sys.stdin):
            raise
    where = asked_for(where)
    return where, work(where)


def _team(arguments: Namespace) -> tuple[Address, str]:
    """Return where the post is, and which team is meant: the only one where none was named."""
    where, teams = _as_administrator(arguments, administration.teams)
    if arguments.team:
        return where, arguments.team
    if len(teams) != 1:
        raise WrongUsage(f"--team is needed: there are {', '.join(teams) or 'none'}")
    return where, teams[0]


def _login(arguments: Namespace) -> str:
    """Return the login that was given, or one made of the person's name."""
    person = required(arguments.person, "the person's name")
    plain = unicodedata.normalize("NFKD", person).encode("ascii", "ignore").decode().lower()
    login: str = arguments.login or re.sub(r"[^a-z0-9]+", "_", plain).strip("_")[:LOGIN_CHARACTERS]
    if not re.match("[a-z_]", login):
        raise WrongUsage(f"--login is needed: none can be made of {person}")
    return login


def _invited(arguments: Namespace, where: Address, team: str, login: str, *, is_admin: bool) -> Invitation:
    with _file(arguments.password_to) as write:
        password = administration.add_member(where, team, login, arguments.person, is_admin=is_admin)
        if write and password:
            write(password)
    theirs = msgspec.structs.replace(where, user=login, password="", sslcert="", sslkey="")
    if where.is_local and not arguments.json:
        warn(f"{where.place} is this machine: on others the address has to name it as they reach it")
    return Invitation(
        team=team,
        person=arguments.person,
        login=login,
        url=theirs.url,
        password=None if arguments.password_to else password,
        file=arguments.password_to if password else None,
    )


@contextmanager
def _file(name: str | None) -> Iterator[Callable[[str], object] | None]:
    """Hand out what writes to a new file of the owner's alone, which is gone again where nothing was written;
    None where no file is named. Raises `Invalid` where the file cannot be made.
    """
    if name is None:
        yield None
        return
    path = Path(name).expanduser()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Invalid(
            f"{path} cannot be made: {error.strerror}", hint="name a file that is not there yet"
        ) from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield lambda password: file.write(f"{password}\n")
    finally:
        if not path.stat().st_size:
            path.unlink()
