"""The append-only truth: an event store, which could stand as a package of its own.

Boundary: knows storage, and of events only what all have in common. Which there are, what is folded with them
and what decisions are given, it is told once, by a `Vocabulary`; of projections that follow it, views,
commands and the socket it knows nothing. Invariants: positions are dense and in commit order; an event is
acknowledged only after its commit reached the disk; no row of the log is ever updated or deleted, except that
a payload can be erased; the hash chain verifies from the first event to the last; an inline projection is
relied on only while it shows every event.
"""
