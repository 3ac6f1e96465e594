"""One question to the daemon, and all that it says until it has answered."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from omegad.client.asynchronous import AsyncClient
from omegad.runtime.json_types import Json


def stream(
    socket: Path, name: str, method: str, params: dict[str, object], on_notice: Callable[[Json], None]
) -> Json:
    """Return what *method* answers; hand to *on_notice* the parameters of every notification until then."""
    return asyncio.run(_stream(socket, name, method, params, on_notice))


async def _stream(
    socket: Path, name: str, method: str, params: dict[str, object], on_notice: Callable[[Json], None]
) -> Json:
    async with AsyncClient(socket, name=name) as client:

        async def call() -> object:
            try:
                return await client.call(method, **params)
            finally:
                await client.close()  # which ends the notifications

        async def listen() -> None:
            async for notification in client.notifications():
                on_notice(notification.params)

        answer, _ = await asyncio.gather(call(), listen())
        return answer
