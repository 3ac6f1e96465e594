"""What HTTP asks of the daemon: a client of the socket like the command line, which starts the daemon where
none runs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import anyio
import anyio.to_thread

from omegad.client.asynchronous import AsyncClient
from omegad.runtime.errors import Invalid, NoDaemon, Overloaded, ShuttingDown, Unavailable
from omegad.runtime.json_types import Json

CALL_S = 30.0
LINKS_MAX = 32  # connections to the daemon: one for each name that clients give themselves
FOLLOWERS_MAX = 32
FOLLOW = "log.follow"


class Link:
    """A connection to the daemon, made when it is needed and again when it is lost."""

    def __init__(self, path: Path, ensure: Callable[[], object], name: str) -> None:
        """*ensure* starts the daemon at *path* where none runs; *name* is whose connection it is."""
        self._path = path
        self._ensure = ensure
        self._name = name
        self._client: AsyncClient | None = None
        self._connecting = asyncio.Lock()
        self._open = AsyncExitStack()

    async def close(self) -> None:
        """Close the connection."""
        await self._open.aclose()

    async def ask(self, method: str, params: Mapping[str, object], within_s: float = CALL_S) -> Json:
        """Return what the daemon answers; where it ends meanwhile the next one is asked, so a call that
        changes something has an id. Raises `TimeoutError`.
        """
        with anyio.fail_after(within_s):
            connection = await self._connection()
            try:
                return await connection.call(method, **params)
            except (NoDaemon, ShuttingDown):
                await connection.close()
            return await (await self._connection()).call(method, **params)

    async def _connection(self) -> AsyncClient:
        async with self._connecting:
            if self._client is not None and self._client.is_open:
                return self._client
            await self._open.aclose()
            try:
                self._client = await self._connected()
            except (NoDaemon, ShuttingDown):
                await anyio.to_thread.run_sync(self._ensure)
                self._client = await self._connected()
            return self._client

    async def _connected(self) -> AsyncClient:
        return await self._open.enter_async_context(AsyncClient(self._path, name=self._name))


class Asking:
    """The connections to the daemon: one for each client that names itself, and one for each that follows
    the log.
    """

    def __init__(self, path: Path, ensure: Callable[[], object], name: str) -> None:
        """*ensure* starts the daemon at *path* where none runs; *name* is whose questions those are that
        nobody else asks.
        """
        self.name = name
        self._path = path
        self._ensure = ensure
        self._links: dict[str, Link] = {}
        self._followers = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *unused: object) -> None:
        for link in self._links.values():
            await link.close()

    def link(self, client: str) -> Link:
        """Return the connection for a client; those beyond `LINKS_MAX` share that of no name of theirs."""
        name = client if client in self._links or len(self._links) < LINKS_MAX else self.name
        if name not in self._links:
            self._links[name] = Link(self._path, self._ensure, name)
        return self._links[name]

    async def ask(self, method: str, /, **params: object) -> Json:
        """Return what *method* answers; raises what the daemon refuses, and `Unavailable` where it takes
        too long.
        """
        return await self.ask_as(self.name, method, params)

    async def ask_as(
        self, client: str, method: str, params: Mapping[str, object], within_s: float = CALL_S
    ) -> Json:
        """Do the same for a client of that name."""
        return await _in_time(self.link(client), method, params, within_s)

    async def ask_apart(self, method: str, params: Mapping[str, object]) -> Json:
        """Do the same on a connection of its own, of which nothing is left."""
        link = Link(self._path, self._ensure, "")
        try:
            return await _in_time(link, method, params, CALL_S)
        finally:
            await link.close()

    async def begin(self, /, **params: object) -> int:
        """Return the position after which who asks `log.follow` for this is told; raises what it refuses, and
        `Overloaded` where too many are told already.
        """
        if self._followers >= FOLLOWERS_MAX:
            raise Overloaded(f"{FOLLOWERS_MAX} follow the log already", hint="close some of them")
        after = params.pop("after", None)
        if params:
            raise Invalid(f"{FOLLOW}: there is no parameter {', '.join(map(repr, params))}")
        head = int((await self.ask("log.read", limit=1, after=0 if after is None else after))["head"])
        if after is None:
            return head
        if not isinstance(after, int) or after > head:
            raise Invalid(f"position {after} is beyond the end of the log, {head}")
        return after

    async def follow(self, /, **params: object) -> AsyncIterator[Json]:
        """Yield every event after a position, by default those to come, until the caller has enough;
        raises what `begin` does, and `NoDaemon` where the daemon ends.
        """
        after = await self.begin(**params)
        self._followers += 1
        try:
            async with AsyncClient(self._path, name=self.name) as client:
                await client.notify(FOLLOW, after=after)
                async for notification in client.notifications():
                    yield notification.params
        finally:
            self._followers -= 1


async def _in_time(link: Link, method: str, params: Mapping[str, object], within_s: float) -> Json:
    try:
        return await link.ask(method, params, within_s)
    except TimeoutError:
        raise Unavailable(
            f"omegad did not answer within {within_s:.0f} s",
            hint="it may still be done; ask again with the same request_id",
        ) from None
