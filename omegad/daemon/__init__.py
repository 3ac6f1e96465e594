"""The daemon: put together, and run, in `composition`."""

from omegad.daemon.composition import VOCABULARY, Daemon, composed, run, serve

__all__ = ["VOCABULARY", "Daemon", "composed", "run", "serve"]
