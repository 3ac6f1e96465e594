"""How well memories are found: `python -m tests.retrieval` stores a set of memories in a daemon, asks its
questions, and scores the answers.

The set is written for this project: notes of four fictional teams, one home and their author, and what
somebody at work would ask of them.
"""
