"""What keeps the projections in step with the log.

Boundary: knows the log, storage and the contract of a projection; no projection by name, no meaning of any
event. Invariants: a projection's rows and its checkpoint commit together or not at all; a checkpoint holds
the chain hash at its position, so that views of another log are refused; rebuilding from the first event
gives the same canonical rows.
"""
