"""What a tool of agents is that asks one method."""

from collections.abc import Mapping
from typing import NamedTuple

NOTHING: Mapping[str, str] = {}


class AgentTool(NamedTuple):
    """A method as agents get it. What it takes is of the same names as the method's parameters: of a tool
    of its own all of them, of an action of a tool that others have actions of, what that tool takes and
    the method requires. A command's `session_id` is the session that calls.
    """

    words: str
    """The name of the tool; after it the action, where the tool has several."""
    by: str = ""
    """The function of `omegad/agents/tools/` that says the answer, as `module.function`; field by field,
    or as `says` has it, where there is none.
    """
    says: str = ""
    """The sentence that tells the answer, with its fields and what was given in braces."""
    takes: Mapping[str, str] = NOTHING
    """Which argument of the tool a parameter is, where they differ; `session.project` is the session's."""
    limit: int | None = None
    """How many of a list are worth their tokens, where the tool does not take that."""
