"""What follows from what happened, or from the time: what a reaction is, and what carries reactions out. A
rebuild never does.
"""
