"""How what a home tells ends at the post: it leaves, or is retired where it is not there to leave."""

from collections.abc import Sequence

import msgspec

from omegad.runtime.errors import NotFound, Refused
from omegad.sharing.post.errors import NotYours, PostOutdated
from omegad.sharing.post.post import Origin, Post

FROM_SCHEMA = 3
"""The oldest schema that knows earlier names and retiring."""


_RETIRED = """
SELECT retired_by, to_char(retired_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM omegad.origins
WHERE team = %s AND origin = %s
"""


class Gone(msgspec.Struct, frozen=True):
    """Of how many facts the words were removed at the post; and which earlier names were left alone, since
    another machine goes on under them.
    """

    removed: int
    others: tuple[str, ...]


async def leave(post: Post, origins: Sequence[str], *, with_facts: bool) -> Gone:
    """Note that a home tells nothing any more, whose names these are, the present one last. *with_facts*, the
    words of what it told are removed at the post, too.

    Raises `PostOutdated` where these are several, and the words of all cannot be removed.
    """
    if (await post.check()).schema >= FROM_SCHEMA:
        sql = "SELECT * FROM omegad.leave_all(%s, %s::text[], %s)"
        ((removed, others),) = await post.rows(sql, (post.team, list(origins), with_facts))
        return Gone(removed, tuple(others))
    if with_facts and len(origins) > 1:
        raise PostOutdated(
            f"what was told as {', '.join(origins[:-1])} is reached from schema {FROM_SCHEMA} on"
        )
    rows = await post.rows("SELECT omegad.leave(%s, %s, %s)", (post.team, origins[-1], with_facts))
    return Gone(int(rows[0][0]), ())


async def retire(post: Post, name: str, but: str | None = None) -> Origin:
    """Retire a home, by its origin or its machine's name: nobody waits for it any more, and should it come
    back it has to join anew. Returns it.

    Raises `NotFound`; `Refused` for *but*, which is the home that asks, where several have the name, and
    where it is retired already; `NotYours` where it is another's, and this login does not administer the
    team; `PostOutdated`.
    """
    if (schema := (await post.check()).schema) < FROM_SCHEMA:
        raise PostOutdated(f"the post's schema is {schema}; homes are retired from {FROM_SCHEMA} on")
    there = [one for one in await post.origins() if name in (one.origin, one.machine)]
    found = [one for one in there if one.left_at is None] or there[:1]
    if not found:
        raise NotFound(f"no home of the team is called {name}", hint="`omegad share status` shows which are")
    if len(found) > 1:
        names = ", ".join(f"{one.origin} ({one.person})" for one in found)
        raise Refused(f"there are {len(found)} homes by the name of {name}", hint=f"name one of {names}")
    if found[0].origin == but:
        raise Refused("that is this home", hint="`omegad share leave` ends its sharing")
    gone = found[0]
    ((by, day),) = await post.rows(_RETIRED, (post.team, gone.origin))
    if day:
        raise Refused(f"{gone.person}'s home on {gone.machine} is retired already: by {by}, on {day}")
    try:
        await post.rows("SELECT omegad.retire(%s, %s)", (post.team, gone.origin))
    except NotYours:
        raise NotYours(
            f"{gone.machine} ({gone.origin}) is {gone.person}'s home",
            hint=f"{gone.person}, by the login it shares with, or an administrator of the team can retire it",
        ) from None
    return gone
