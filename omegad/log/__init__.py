"""The append-only truth.

Boundary: knows events and storage; nothing of projections, views, commands or the socket. It could be copied away alone.
Invariants: positions are dense and in commit order; an event is acknowledged only after its commit reached the disk; no row is
ever updated or deleted, except that a payload can be erased; the hash chain verifies from the first event to the last.
"""
