"""What preparing finds for a hook, and what an agent is told at one."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from omegad.agents.assembling import Line
from omegad.agents.hook_arrivals import Stopped
from omegad.agents.hooks.hosts import Hook
from omegad.agents.hooks.surfacing import Surfaced
from omegad.coordination.claim import Ruling, Wanted
from omegad.log.event import Event, Excerpt, Position
from omegad.requests.method import Moment, Services
from omegad.runtime.errors import Stale, Unavailable
from omegad.search.events import Returned
from omegad.session.events import Delivery
from omegad.session.merges import Merge
from omegad.session.tool_calls import Excerpts
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn


class Recalled(NamedTuple):
    """What an agent should know: memories, and reminders that are due, with the moment that they were read
    at.
    """

    shown: Surfaced | None = None
    due: tuple[Line, ...] = ()
    moment: Moment | None = None
    stopped: tuple[Stopped, ...] = ()
    """Hosts whose hooks stopped arriving."""


class Details(msgspec.Struct, frozen=True):
    """What is told of an edit that is stopped, beside who holds the file: memories about it, and for each
    holder when they edited it and why.
    """

    moment: Moment
    memories: str = ""
    results: tuple[Returned, ...] = ()
    edited: Mapping[str, str] = msgspec.field(default_factory=dict)
    asked: Mapping[str, str] = msgspec.field(default_factory=dict)


class PreparedHook(msgspec.Struct, frozen=True, kw_only=True):
    """A hook as it is understood, what is kept of it, and what its agent should know.

    `wanted` is the claim that it comes to, `claims` what becomes of an edit of what others hold, `details`
    what is told of that, and `ruling` how the claim is decided, once it is.
    """

    hook: Hook
    delivery: Delivery
    project: str | None
    occurred_at: int
    excerpts: Excerpts
    text: Excerpt | None
    query_id: str
    is_spooled: bool
    own_call: Delivery | None = None
    """As which a call of one of omegad's own tools is known that the tool has told of itself."""
    told: Recalled = Recalled()
    wanted: Wanted | None = None
    claims: str = "off"
    tasks: str = "off"
    """What becomes of an edit of a session that has no task, where its project has some that are open."""
    merges: tuple[Merge, ...] = ()
    """What git has kept of merges in the session's work tree."""
    details: Details | None = None
    ruling: Ruling = Ruling()
    is_last_try: bool = False
    """Whether it is decided on what was read, though the session was told something since."""
    is_paused: bool = False
    """Whether nothing is kept of it but a claim, and nothing told but who holds what."""


class Notice(NamedTuple):
    """What an agent is told: lines, the events of its being told, and the verdict on what it is about to
    do, "" for none.
    """

    lines: Sequence[str] = ()
    events: Sequence[Event] = ()
    verdict: str = ""


T = TypeVar("T")


async def looked(
    services: Services,
    work: Callable[[Connection, Moment], T],
    otherwise: T,
    *,
    at_least: Position,
    names: Sequence[str],
    wait_s: float,
) -> T:
    """Return what *work* finds in the views, *otherwise* where they cannot be read now or in time, as after
    an upgrade; whoever reads for it says so in the log.
    """
    try:
        return await services.look(work, at_least=at_least, names=names, wait_s=wait_s, turn=Turn.FIRST)
    except (Stale, Unavailable):
        return otherwise
