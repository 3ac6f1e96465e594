"""The nearest vectors, the words, and the columns one filters by. It knows memories as ids."""

VIEWS = ("memories", "vectors", "fulltext", "sessions", "owners")
"""What is read to find something."""
