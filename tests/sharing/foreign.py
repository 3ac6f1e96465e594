"""Another home of the team, as this one hears of it: what it tells, without a post between."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from omegad.log.codec import tag_of
from omegad.log.decision import Proposal
from omegad.log.event import Event
from omegad.sharing.events import KnownOrigin
from omegad.sharing.fact import Fact
from omegad.sharing.incoming import Heard, ReceiveFacts, receive
from omegad.sharing.outgoing import AGENT
from tests.builders import Served, stored

TEAM = "shop-team"
HASH = bytes(16)


async def join(it: Served, person: str = "Ada", machine: str = "ada-laptop") -> None:
    """Let this home share with the team."""
    await it.caller.call("share.join", team=TEAM, person=person, machine=machine)


class ForeignHome:
    """Somebody's home, and how many facts it has told."""

    def __init__(self, it: Served, person: str = "Grace", machine: str = "grace-desktop") -> None:
        self.known = KnownOrigin(origin=f"home-of-{machine}", person=person, machine=machine)
        self.told = 0
        self._it = it

    async def tells(self, *events: Event, project: str | None = "shop", agent: str = "codex") -> None:
        """Let this home receive events, in order."""
        await self.hears([self._heard(event, project, agent) for event in events])

    async def hears(self, heard: Sequence[Heard]) -> None:
        facts = ReceiveFacts(team=TEAM, facts=tuple(heard), origins=(self.known,))
        await self._it.daemon.services.log.append(Proposal(decide=partial(receive, facts), client=AGENT))
        await self._it.caught_up()  # nobody waits for what others say but a test

    async def stores(self, memory_id: str, content: str, *, project: str = "shop", **changes: Any) -> str:
        """Let this home receive a memory; return its id."""
        await self.tells(stored(memory_id, content, **changes), project=project)
        return memory_id

    def _heard(self, event: Event, project: str | None, agent: str) -> Heard:
        self.told += 1
        now_us = self._it.daemon.services.clock.now_us()
        fact = Fact(
            origin=self.known.origin,
            seq=self.told,
            hlc=((now_us // 1000) << 16) + 0x8000 + self.told,
            event_id=f"{self.known.origin}-{self.told:08}",
            tag=tag_of(type(event)),
            subject=str(getattr(event, "memory_id", "")),
            occurred_at=now_us,
            tz_offset=0,
            project=project,
            agent=agent,
            position=self.told,
            payload_hash=HASH,
            salt=b"salt",
            body=b"{}",
        )
        return Heard(fact=fact, event=event)
