"""What follows from what happened: what the views show to be due becomes new commands.

Boundary: asks for effects through what it is given; a rebuild never runs a reaction. That a command is carried out once is for the
log's state to see to, so a reaction may ask any number of times.
"""
