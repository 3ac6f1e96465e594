"""Upkeep: what expires, proves itself, is compacted, or should be looked at again."""
