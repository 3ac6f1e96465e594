"""Processes that are not the daemon."""
