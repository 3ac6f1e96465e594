"""The types a memory can have, and what follows from a type: when two are the same, how long one lasts, what
it weighs.

The word-Jaccard thresholds are those that a public memory product arrived at in use.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.runtime.errors import BadConfiguration, Invalid

DAY_SECONDS = 86_400
TTL_SECONDS_MAX = 100 * 366 * DAY_SECONDS  # a hundred years; what is to stay longer has no time to live


class MemoryType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for the memories of a type; every field is a key of `[event_types.NAME]` in config.toml.

    `jaccard` is the share of common words above which two are the same; `ttl_seconds` and `priority` hold
    where a store names none. `weight` is how much the type counts in a ranking (1 is ordinary), and `decays`
    whether a memory that nobody asks for fades.
    """

    jaccard: Annotated[float, Meta(ge=0.5, le=1.0)] = 0.85
    ttl_seconds: Annotated[int, Meta(ge=1, le=TTL_SECONDS_MAX)] | None = None
    priority: Annotated[int, Meta(ge=1, le=5)] = 3
    weight: Annotated[float, Meta(ge=0.25, le=4)] = 1.0
    decays: bool = True


BUILT_IN: Mapping[str, MemoryType] = MappingProxyType(
    {
        "memory": MemoryType(jaccard=0.90),
        "decision": MemoryType(jaccard=0.80, priority=4, weight=2.0),
        "lesson_learned": MemoryType(jaccard=0.85, priority=4, weight=2.0),
        "user_preference": MemoryType(jaccard=0.85, priority=4, weight=2.0, decays=False),
        "error_pattern": MemoryType(jaccard=0.70, priority=4, weight=2.0, decays=False),
        "task_completion": MemoryType(jaccard=0.85),
        "session_summary": MemoryType(jaccard=0.75, ttl_seconds=DAY_SECONDS, priority=2, weight=0.8),
        "checkpoint": MemoryType(jaccard=0.90, ttl_seconds=7 * DAY_SECONDS, weight=0.8),
        "handoff": MemoryType(jaccard=0.90),
        "advisor_insight": MemoryType(jaccard=0.85, priority=2, weight=0.8),
        "reminder": MemoryType(jaccard=0.90),
        "constraint": MemoryType(jaccard=0.85, priority=5, weight=2.0, decays=False),
    }
)
"""A type without a time to live is permanent: nothing removes its memories unasked."""

EPISODIC_TYPES = frozenset({"session_summary", "checkpoint", "handoff", "task_completion", "reminder"})
"""What happened stays true when things change, and what a session left behind belongs to that session.

Memories of these types do not grow, and only what the same session says again is a duplicate of them. Of
others, none is denied or offered for replacement but a completed task, which can be undone.
"""


class _Configured(msgspec.Struct, frozen=True, kw_only=True):
    event_types: dict[str, MemoryType]


class MemoryTypes:
    """The built-in types and those of the configuration."""

    @classmethod
    def configured(cls, tables: Mapping[str, object]) -> "MemoryTypes":
        """Return the types that config.toml has tables of, beside the built-in ones. Raises
        `BadConfiguration` for a table that is none.

        What is said of a built-in type changes that and nothing else of it.
        """
        whole = {
            name: (
                {**msgspec.to_builtins(BUILT_IN[name]), **table}
                if name in BUILT_IN and isinstance(table, dict)
                else table
            )
            for name, table in tables.items()
        }
        try:
            return cls(msgspec.convert({"event_types": whole}, _Configured, strict=False).event_types)
        except msgspec.ValidationError as error:
            raise BadConfiguration(str(error)) from error

    def __init__(self, extra: Mapping[str, MemoryType]) -> None:
        """Take the configured types; one with a built-in name takes its place."""
        self._types = {**BUILT_IN, **extra}

    def check_named(self, params: msgspec.Struct) -> None:
        """Raise `Invalid` for a type that parameters name and that there is not."""
        named = getattr(params, "event_type", None)
        for event_type in (*getattr(params, "event_types", ()), *([named] if named else ())):
            self.check(event_type)

    def check(self, name: str) -> None:
        """Raise `Invalid`, with the list of types, for a name that is none."""
        if name not in self._types:
            near = get_close_matches(name, self._types, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise Invalid(
                f"unknown event_type {name[:60]!r}",
                hint=f"{hint}known are: {', '.join(self._types)}; config.toml can add some",
            )

    def of(self, name: str) -> MemoryType:
        """Return a type; a plain memory's for one that is configured no more, whose memories there still
        are.
        """
        return self._types.get(name, BUILT_IN["memory"])
