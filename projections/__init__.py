"""The views: one file each, a pure function from events to rows.

Boundary: a projection knows the events, the contract, and what is read off a text by rule (authorship,
terms); nothing else of omegad, and no other projection. Where such a rule changes, `VERSION` goes up with it.
To add one: write its file, its test, and its name in `ALL`.
"""

from omegad.log.projection import modules

ALL = modules(
    __name__,
    "memories",
    "edges",
    "conflicts",
    "vectors",
    "fulltext",
    "sessions",
    "histories",
    "audit",
    "retrievals",
    "aged",
    "conversations",
    "git_events",
    "identity",
    "feedback",
    "theses",
    "ripples",
    "dismissals",
    "upkeeps",
    "facts",
    "reminders",
    "skills",
    "coord_tasks",
    "coord_messages",
    "coord_intents",
    "coord_snapshots",
    "coord_claims",
    "owners",
)
