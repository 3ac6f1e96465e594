"""Hostile operations and frames at every door of a daemon, and the proof that nobody else notices: `python
-m tests.fuzz`.
"""
