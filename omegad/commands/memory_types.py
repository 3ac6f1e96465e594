"""The types a memory can have, and how alike two of a type must be to be the same.

The word-Jaccard thresholds are those that a public memory product arrived at in use.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

from omegad.errors import Invalid

DAY_SECONDS = 86_400

JACCARD: Mapping[str, float] = MappingProxyType(
    {
        "memory": 0.90,
        "decision": 0.80,
        "lesson_learned": 0.85,
        "user_preference": 0.85,
        "error_pattern": 0.70,
        "task_completion": 0.85,
        "session_summary": 0.75,
        "checkpoint": 0.90,
        "handoff": 0.90,
        "advisor_insight": 0.85,
        "reminder": 0.90,
        "constraint": 0.85,
    }
)
"""Above which share of common words a memory of the type may be a duplicate."""

TTL_SECONDS: Mapping[str, int] = MappingProxyType({"session_summary": DAY_SECONDS, "checkpoint": 7 * DAY_SECONDS})
"""How long memories of a type last when nothing else is said; types that are not here are permanent."""


class MemoryTypes:
    """The built-in types and those of the configuration."""

    def __init__(self, extra: Mapping[str, float]) -> None:
        """Take the configured types with their Jaccard thresholds."""
        self._jaccard = {**JACCARD, **extra}

    def check(self, name: str) -> None:
        """Raise `Invalid`, with the list of types, for a name that is none."""
        if name not in self._jaccard:
            near = get_close_matches(name, self._jaccard, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise Invalid(f"unknown event_type {name[:60]!r}", hint=f"{hint}known are: {', '.join(self._jaccard)}; config.toml can add some")

    def jaccard(self, name: str) -> float:
        """Return the type's threshold; that of a plain memory for a type that is configured no more, whose memories there still are."""
        return self._jaccard.get(name, JACCARD["memory"])
