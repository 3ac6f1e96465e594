"""SQLite, and nothing about what is stored.

Boundary: imports only `omegad.runtime.errors`; knows no event, view or memory. Invariant: only the writer of
a file opens a transaction on it, and a whole transaction is one call on the writer's thread.
"""
