"""Memories: how they are stored, related, changed, compacted, and how they end."""
