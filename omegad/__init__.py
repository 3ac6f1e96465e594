"""omegad: long-term memory for coding agents, as a background service over an append-only event log."""

__version__ = "0.1.0"
