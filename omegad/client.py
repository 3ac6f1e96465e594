"""Talk to a running omegad: `AsyncClient` for asyncio, `Client` for everything else."""

from omegad.rpc.client import AsyncClient, Client, Notification

__all__ = ["AsyncClient", "Client", "Notification"]
