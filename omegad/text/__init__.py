"""What is read out of words: secrets, noise, tags, statements, evidence, terms. It knows texts, and
nothing of where they go.
"""
