"""Several pieces of work at once, of which none is left behind."""

from collections.abc import Awaitable, Callable

import anyio

from omegad.runtime.errors import OmegadError


async def concurrently(*works: Callable[[], Awaitable[None]]) -> None:
    """Do all of *works* at once. Where one fails, end the others, and raise what it raised."""
    failures: list[OmegadError] = []

    async def do(work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except OmegadError as error:
            failures.append(error)  # raised below, since a task group would wrap it
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for work in works:
            tasks.start_soon(do, work)
    if failures:
        raise failures[0]
