"""The way in: JSON-RPC 2.0 over a Unix socket that belongs to one user.

Boundary: knows nothing of memories; whoever starts a server hands it one function that answers calls.
Invariant: every request with an id gets exactly one answer, and one client's fault reaches no other.
"""
