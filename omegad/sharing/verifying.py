"""What this home's log proves of what others told: the hash chain of each origin, computed again of what was
received of it.
"""

from typing import NamedTuple

import anyio.lowlevel
import msgspec

from omegad.log.codec import tag_of
from omegad.log.event_log import EventLog
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.sharing.events import FactsReceived, ReceivedFact, ShareJoined, ShareRenewed
from omegad.sharing.fact import GENESIS, link

AT_ONCE = 4  # events, of hundreds of facts each; others are served in between
TAGS = tuple(tag_of(kind) for kind in (ShareJoined, ShareRenewed, FactsReceived))


class ShareChains(Request, frozen=True, kw_only=True, tag="share.chains"):
    """Compute the hash chain of every origin again, of what the log says was received of it.

    `omegad share verify` compares these with the post's.
    """


class ReceivedChain(msgspec.Struct, frozen=True, kw_only=True):
    """An origin's chain after its fact `seq`, the latest that was received, in hexadecimal.

    It begins with the fact after `begins_after`, and there with GENESIS: facts up to that one this home told
    itself, before it was copied or restored. `gap_at` is the first fact that does not follow the one before.
    """

    origin: str
    seq: int
    chain: str
    begins_after: int = 0
    gap_at: int | None = None


class ReceivedChains(msgspec.Struct, frozen=True, kw_only=True):
    """Every origin of which something was received."""

    origins: tuple[ReceivedChain, ...]


class _Reached(NamedTuple):
    seq: int
    chain: bytes = GENESIS
    begins_after: int = 0
    gap_at: int | None = None


async def chains(log: EventLog) -> ReceivedChains:
    """Go through all that was received since this home joined its team."""
    reached = dict[str, _Reached]()
    left = await log.tagged(TAGS, 0)
    while left:
        for recorded in await log.read_at(left[:AT_ONCE]):
            match recorded.event:
                case ShareJoined():
                    reached.clear()  # everything is received anew
                case ShareRenewed(before=before, seq=seq):
                    reached[before] = _Reached(seq, begins_after=seq)
                case FactsReceived() as received:
                    for fact in received.facts:
                        before_it = reached.get(fact.origin, _Reached(0))
                        reached[fact.origin] = _after(before_it, fact)
        left = left[AT_ONCE:]
        await anyio.lowlevel.checkpoint()
    return ReceivedChains(
        origins=tuple(
            ReceivedChain(
                origin=origin,
                seq=one.seq,
                chain=one.chain.hex(),
                begins_after=one.begins_after,
                gap_at=one.gap_at,
            )
            for origin, one in sorted(reached.items())
            if one.seq > one.begins_after
        )
    )


def _after(before: _Reached, fact: ReceivedFact) -> _Reached:
    """Return how far an origin's chain has come with one fact more."""
    follows = fact.seq == before.seq + 1
    return before._replace(
        seq=fact.seq,
        chain=link(before.chain, bytes.fromhex(fact.row_hash)),
        gap_at=before.gap_at if follows or before.gap_at is not None else fact.seq,
    )


METHODS = (ServiceMethod(params=ShareChains, answer=ReceivedChains, verb=None),)
