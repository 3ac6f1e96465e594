"""What two texts have to do with each other, read from their words alone. Pure, and linear in their
length.
"""
