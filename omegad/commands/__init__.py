"""What may be asked to happen: a Struct for each command and, beside it, what is prepared for it and the pure decision what it comes to.

Boundary: knows events, the decision state, decisions, queries and errors; opens no file, and knows no socket, model or clock but through
the services that preparing is given.
"""
