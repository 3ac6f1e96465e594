"""What agents are asked that work for a session's own, where their host says it before they begin and not
when they do.
"""

from collections.abc import Mapping
from typing import NamedTuple

import anyio
import msgspec

from omegad.agents.hooks.hosts import Hook
from omegad.agents.hooks.surfacing import SAID_CHARACTERS
from omegad.runtime.clock import Clock

TOOLS = ("Agent", "Task")
"""Claude Code's tool that has an agent begin, under both its names."""
USUAL = "general-purpose"
"""What kind of agent that is where the tool is told none."""
ASKED_MAX = 64
ASKED_US = 10_000_000
"""How long the beginning may be on its way, while other programs look at the tool's use."""
TURN_S = 0.3
"""How long one waits for that before it, which is less than a hook waits."""

Whose = tuple[str, str | None]
"""A session, and a kind of agent."""


class Asked(NamedTuple):
    """What an agent is asked that has not begun."""

    tool_use_id: str | None
    prompt: str
    at_us: int
    begun: anyio.Event


class Delegated:
    """What was asked lately, and no agent has begun with: one thing of each session and kind of agent."""

    def __init__(self) -> None:
        self._asked: dict[Whose, Asked] = {}

    async def heard(self, hook: Hook, clock: Clock) -> Hook:
        """Note what an agent is to be asked, and return a hook at which one begins with what it was. Of
        several that are to begin at once each waits for the one before it: a host does not say at its
        beginning which it is, and in which order hooks come is a matter of chance.
        """
        given = hook.tool_input
        if hook.kind == "before_tool" and hook.tool_name in TOOLS and isinstance(given, Mapping):
            kind, prompt = given.get("subagent_type") or USUAL, given.get("prompt")
            if isinstance(kind, str) and isinstance(prompt, str):
                await self._note((hook.session_id, kind), hook, prompt[:SAID_CHARACTERS], clock)
        elif hook.kind == "subagent_start" and hook.text is None:
            whose = (hook.session_id, hook.agent_type)
            found = self._within(ASKED_US, whose, clock)
            if (gone := self._asked.pop(whose, None)) is not None:
                gone.begun.set()
            if found is not None:
                return msgspec.structs.replace(hook, text=found.prompt)
        return hook

    async def _note(self, whose: Whose, hook: Hook, prompt: str, clock: Clock) -> None:
        turn_us = int(TURN_S * 1e6)
        with anyio.move_on_after(TURN_S):
            while (before := self._within(turn_us, whose, clock)) is not None:
                if before.tool_use_id == hook.tool_use_id:
                    return  # a host may run a hook twice
                await before.begun.wait()
        if self._within(turn_us, whose, clock) is not None:
            return  # rather than that one is told what is for another
        self._asked.pop(whose, None)
        self._asked[whose] = Asked(hook.tool_use_id, prompt, clock.now_us(), anyio.Event())
        if len(self._asked) > ASKED_MAX:
            del self._asked[next(iter(self._asked))]

    def _within(self, time_us: int, whose: Whose, clock: Clock) -> Asked | None:
        found = self._asked.get(whose)
        return found if found is not None and abs(clock.now_us() - found.at_us) < time_us else None
