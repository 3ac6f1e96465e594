"""The nearest vectors, the words, and the columns one filters by. It knows memories as ids."""
