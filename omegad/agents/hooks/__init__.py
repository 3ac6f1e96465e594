"""What agents' hosts tell at their hooks, in one vocabulary, and what they are told.

Boundary: the socket's `hook.dispatch`. Everything that follows from a session's events later is a reaction's.
"""

from omegad.agents.hooks.dispatch import DispatchHook

__all__ = ["DispatchHook"]
