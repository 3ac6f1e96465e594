"""The tables of a log, and whose it is."""

from importlib import resources

from omegad.log import requests
from omegad.log.event import Position
from omegad.log.inline import Inline
from omegad.log.reading import FORMAT, check_format
from omegad.runtime.clock import Clock, uuid7
from omegad.storage.driver import Connection
from omegad.storage.transaction import run_script, writing


def create(connection: Connection, clock: Clock, inline: Inline) -> tuple[str, Position | None]:
    """Make the tables that are not there yet; return the installation's name, and where `Inline.prepare`
    says that catching up begins.
    """
    with writing(connection):
        run_script(
            connection, resources.files("omegad.log").joinpath("schema.sql").read_text(encoding="utf-8")
        )
        connection.execute(
            "INSERT OR IGNORE INTO identity VALUES (1, ?, ?)", (uuid7(clock).replace("-", ""), FORMAT)
        )
        check_format(connection)
        connection.execute("UPDATE identity SET format = ?1 WHERE format < ?1", (FORMAT,))
        requests.forget_unkeyed(connection)
        origin: str = connection.execute("SELECT origin FROM identity").fetchone()[0]
        return origin, inline.prepare(connection)
