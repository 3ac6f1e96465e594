"""Talk to a running omegad: `AsyncClient` for asyncio, `Client` for everything else, at `default_path()`."""

from pathlib import Path
from typing import TYPE_CHECKING

from omegad.client.blocking import Client, Notification
from omegad.runtime.config import find_paths

if TYPE_CHECKING:
    from omegad.client.asynchronous import AsyncClient
else:

    def __getattr__(name: str) -> type:
        if name != "AsyncClient":
            raise AttributeError(name)
        from omegad.client.asynchronous import AsyncClient  # noqa: PLC0415  a tenth of a verb

        return AsyncClient


__all__ = ["AsyncClient", "Client", "Notification", "default_path"]


def default_path() -> Path:
    """Return the socket of the home that the environment names, the user's own where it names none."""
    return find_paths().socket
