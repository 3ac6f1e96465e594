"""What happens between this home and its team."""

from typing import Literal

import msgspec

from omegad.log.event import Event, GivenName, MadeDigest, MadeId, Position

Outcome = Literal["applied", "older", "known", "erased", "unknown", "refused"]
"""What a fact came to: it changed something; a later one had been applied; it was known; what it is about is
erased, or is not known here; it is none that a home tells.
"""


class ShareJoined(Event, frozen=True, kw_only=True, tag="share.joined@1"):
    """The home shares with a team from now on, as `origin`; `person` and `machine` are shown there."""

    team: GivenName
    origin: MadeId
    person: GivenName
    machine: GivenName


class ShareLeft(Event, frozen=True, kw_only=True, tag="share.left@1"):
    """The home shares with no team any more; what it received stays."""

    team: GivenName


class ShareRenewed(Event, frozen=True, kw_only=True, tag="share.renewed@1"):
    """The home was copied, or restored from a backup: another may go on under its name, `before`. It is
    `origin` from now on. It had told `seq` facts under the old name, the last of them at `told_to`; what
    the old name told after those is received as anybody's. With `is_lost` it is the server that was restored:
    what it has of the old name is received, and what it lacks is told again.
    """

    team: GivenName
    origin: MadeId
    before: MadeId
    seq: int
    told_to: Position
    is_lost: bool = False


class ShareChosen(Event, frozen=True, kw_only=True, tag="share.chosen@1"):
    """Memories of a project are shared with the team from now on, of these types, and those that there are
    already; empty for every type that can be. What others store there is `on_probation` where that is said.
    """

    project: GivenName
    types: tuple[GivenName, ...] = ()
    on_probation: bool = False


class ShareWithdrawn(Event, frozen=True, kw_only=True, tag="share.withdrawn@1"):
    """What is stored in a project from now on is not shared. What was shared stays so."""

    project: GivenName


class FactsTold(Event, frozen=True, kw_only=True, tag="share.told@1"):
    """The team was told all there was to tell up to a position of this log, `seq` facts in all; `memories`
    were shared by that.
    """

    origin: MadeId
    seq: int
    told_to: Position
    memories: tuple[MadeId, ...] = ()


class KnownOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Whose an origin is."""

    origin: MadeId
    person: GivenName
    machine: GivenName


class ReceivedFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that came in, and what it came to; the hash proves the chain of its origin. `stored` is the
    memory that is shared by it.
    """

    origin: MadeId
    seq: int
    row_hash: MadeDigest
    outcome: Outcome
    stored: MadeId | None = None


class FactsReceived(Event, frozen=True, kw_only=True, tag="share.received@1"):
    """Facts of others came in; those that changed something are the events of this append before it, as
    their origins recorded them. `origins` are those that were not known before, or are called otherwise now.
    """

    facts: tuple[ReceivedFact, ...]
    origins: tuple[KnownOrigin, ...] = ()
