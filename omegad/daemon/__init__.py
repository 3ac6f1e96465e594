"""The daemon: put together in `composition`, and run by `serving`."""

from omegad.daemon.composition import VOCABULARY, Daemon, composed
from omegad.daemon.serving import run, serve

__all__ = ["VOCABULARY", "Daemon", "composed", "run", "serve"]
