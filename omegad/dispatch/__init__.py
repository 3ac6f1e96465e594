"""From a request to its answer: the effects around the pure parts.

Boundary: hands commands to the log and questions to the views; knows both, and the embedder; nothing of sockets or of projections.
Invariants: a command is answered when its events are on the disk; a query sees its own connection's writes always, and everyone's
within a stated bound; a query is logged after it is answered.
"""
