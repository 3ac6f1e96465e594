"""What follows from what happened: events become new commands, exactly once.

Boundary: asks for effects through what it is given; a rebuild never runs a reaction. That a command is carried out once is for the
log's guards to see to, so a reaction may ask any number of times.
"""
