"""What is known of the person."""

import msgspec

from omegad.requests.method import Moment, QueryMethod
from omegad.requests.query import Query
from omegad.storage.driver import Connection


class GetProfile(Query, frozen=True, kw_only=True, tag="profile.get"):
    """Show the facts of the profile, which hold in every project."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Every fact by its key, in the order of the keys."""

    facts: dict[str, str]
    position: int
    stale_by: int


def get(connection: Connection, query: GetProfile, moment: Moment) -> Profile:
    """Read all facts."""
    del query
    facts: dict[str, str] = dict(connection.execute("SELECT key, value FROM facts ORDER BY key").fetchall())
    return Profile(facts=facts, position=moment.position, stale_by=moment.stale_by)


METHODS = (QueryMethod(params=GetProfile, answer=Profile, views=("facts",), read=get),)
