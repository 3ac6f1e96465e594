"""What two texts say of each other: the same, more, or something that cannot be true as well.

Boundary: pure functions of texts; imports nothing else of omegad. English first, and harmless elsewhere: what is not understood proves nothing.
"""
