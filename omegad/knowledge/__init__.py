"""Theses and what speaks for and against them, what follows from what changed, and what does not fit
together.
"""
