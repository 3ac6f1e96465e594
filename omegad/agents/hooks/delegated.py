"""The prompts of subagents, where their host tells them before a subagent begins and not when it does."""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import anyio
import msgspec

from omegad.agents.hooks.hosts import NAME_MAX, Hook
from omegad.agents.hooks.surfacing import SAID_CHARACTERS
from omegad.runtime.clock import Clock

TOOLS = ("Agent", "Task")
"""Claude Code's tool that starts a subagent, under both its names."""
USUAL = "general-purpose"
"""The kind of subagent that it starts where it is told none."""
ASKED_MAX = 64
ASKED_US = 10_000_000
"""For so long, in microseconds, after its prompt was heard a subagent may begin."""
TURN_S = 0.3
"""How long, in seconds, a prompt waits for the subagent before it to begin; a hook waits longer."""

Whose = tuple[str, str | None]
"""A session, and a kind of subagent."""


class Asked(NamedTuple):
    """The prompt of a subagent that has not begun; empty where it may be either of two subagents'."""

    tool_use_id: str | None
    prompt: str
    at_us: int
    begun: anyio.Event


class Delegated:
    """The prompts that no subagent has begun with yet: one of each session and kind of subagent."""

    def __init__(self) -> None:
        self._asked: dict[Whose, Asked] = {}
        self._begun = deque[tuple[str, str]](maxlen=ASKED_MAX)

    async def heard(self, hook: Hook, clock: Clock) -> Hook:
        """Note the prompt that a tool is given for a subagent, and return the hook at which one begins with
        its prompt. Of several that begin at once each waits for the one before: at its beginning the host
        does not say which it is, and in which order hooks come is a matter of chance.
        """
        given = hook.tool_input
        if hook.kind == "before_tool" and hook.tool_name in TOOLS and isinstance(given, Mapping):
            kind, prompt = given.get("subagent_type") or USUAL, given.get("prompt")
            if isinstance(kind, str) and isinstance(prompt, str):
                await self._note((hook.session_id, kind[:NAME_MAX]), hook, prompt[:SAID_CHARACTERS], clock)
        elif hook.kind == "subagent_start" and hook.text is None and self._begins(hook):
            whose = (hook.session_id, hook.agent_type)
            found = self._lately(whose, clock)
            if found is not None and found.prompt:
                del self._asked[whose]
                found.begun.set()
                return msgspec.structs.replace(hook, text=found.prompt)
        return hook

    async def _note(self, whose: Whose, hook: Hook, prompt: str, clock: Clock) -> None:
        with anyio.move_on_after(TURN_S):
            while (before := self._lately(whose, clock)) is not None and before.prompt:
                if before.tool_use_id == hook.tool_use_id is not None:
                    return
                await before.begun.wait()
        if (before := self._lately(whose, clock)) is not None:
            if not before.prompt:
                return
            prompt = ""  # the next to begin may be either: better none is told than what is for the other
        self._asked.pop(whose, None)
        self._asked[whose] = Asked(hook.tool_use_id, prompt, clock.now_us(), anyio.Event())
        if len(self._asked) > ASKED_MAX:
            del self._asked[next(iter(self._asked))]

    def _begins(self, hook: Hook) -> bool:
        """Say whether a subagent begins now, and not again: a host may run a hook twice."""
        agent = (hook.session_id, hook.agent_id or "")
        is_known = agent in self._begun
        if hook.agent_id is not None and not is_known:
            self._begun.append(agent)
        return not is_known

    def _lately(self, whose: Whose, clock: Clock) -> Asked | None:
        found = self._asked.get(whose)
        return found if found is not None and abs(clock.now_us() - found.at_us) < ASKED_US else None
