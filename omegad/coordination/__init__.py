"""Agents beside each other: claims, tasks, messages, intents, and who is there."""
