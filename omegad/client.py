"""Talk to a running omegad: `AsyncClient` for asyncio, `Client` for everything else, at `default_path()`."""

from pathlib import Path

from omegad.rpc.answers import Notification
from omegad.rpc.async_client import AsyncClient
from omegad.rpc.client import Client
from omegad.runtime.config import find_paths

__all__ = ["AsyncClient", "Client", "Notification", "default_path"]


def default_path() -> Path:
    """Return the socket of the home that the environment names, the user's own where it names none."""
    return find_paths().socket
