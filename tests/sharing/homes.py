"""Homes that share, served in this process, and what they hold."""

import shutil
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from omegad.catalog.events import CODEC
from omegad.runtime.clock import Clock
from omegad.runtime.config import Config
from omegad.sharing.exchange import Exchange
from omegad.sharing.incoming import heard
from omegad.sharing.post.address import Address
from omegad.sharing.post.post import Deadlines, Post, connected
from omegad.sharing.post.reading import HeldAtPost, Reading
from omegad.sharing.state import Team, owned
from tests.builders import Served, paths_in, served
from tests.sharing import agreement

DEADLINES = Deadlines(connect_s=30.0, statement_s=60.0)


class SkewedClock(Clock):
    """The machine's clock, wrong by so many seconds."""

    def __init__(self, by_s: float) -> None:
        self._by_us = int(by_s * 1e6)

    def now_us(self) -> int:
        return time.time_ns() // 1_000 + self._by_us


class Home:
    """A home that is served until it is closed, and exchanges with its team when it is told to."""

    def __init__(self, name: str, folder: Path, address: Address, skew_s: float = 0.0) -> None:
        self.name, self.folder, self.address = name, folder, address
        self._clock = SkewedClock(skew_s)
        self._closing, self._closed = anyio.Event(), anyio.Event()
        self._stack, self._post = AsyncExitStack(), cast("Post | None", None)
        self.it: Served
        folder.mkdir(parents=True, exist_ok=True)

    async def open(self, tasks: TaskGroup) -> "Home":
        """Serve it in a task of its own."""
        self._closing, self._closed = anyio.Event(), anyio.Event()
        await tasks.start(self._serve)
        return self

    async def close(self) -> None:
        self._closing.set()
        await self._closed.wait()

    async def _serve(self, *, task_status: Any) -> None:
        async with served(paths_in(self.folder), self._clock, Config(model="none")) as self.it:
            self.exchange._connect = self.at_post
            task_status.started()
            await self._closing.wait()
            self._post = None
            await self._stack.aclose()
        self._closed.set()

    @property
    def exchange(self) -> Exchange:
        return self.it.daemon.exchange

    def at_post(self, team: Team) -> AbstractAsyncContextManager[Post]:
        return connected(self.address, team.team, DEADLINES)

    async def call(self, method: str, **params: object) -> Any:
        return await self.it.caller.call(method, **params)

    async def join(self, team: str, person: str, *projects: str) -> None:
        await self.call("share.join", team=team, person=person, machine=self.name)
        for project in projects:
            await self.call("share.choose", project=project)

    async def leave(self) -> None:
        await self.call("share.leave")
        self._post = None
        await self._stack.aclose()

    async def team(self) -> Team:
        team = (await self.exchange.known()).team
        assert team is not None
        return team

    async def meet(self) -> None:
        """Tell and receive all there is, once, over a connection that stays."""
        team = await self.team()
        if self._post is None:
            self._post = await self._stack.enter_async_context(self.at_post(team))
        await self.exchange.meet(self._post, team)

    async def held(self, project: str) -> list[agreement.Held]:
        """Return what this home holds of a project."""
        await self.it.caught_up()
        return await self.it.daemon.services.views.read(partial(_held, project=project))

    async def shares(self, project: str) -> list[agreement.Held]:
        """Return what this home holds of a project that is shared: what was over before it was told of is
        not.
        """
        held = await self.held(project)
        shared = await self.it.daemon.services.log.on_writer(
            partial(owned, memory_ids=[one.memory_id for one in held])
        )
        return [one for one in held if one.memory_id in shared]

    async def backup(self, target: Path) -> None:
        """Copy the home as it is; it must be closed."""
        shutil.copytree(self.folder, target)


def _held(connection: Any, project: str) -> list[agreement.Held]:
    ids = [row[0] for row in connection.execute("SELECT node_id FROM memories WHERE project = ?", (project,))]
    return agreement.of_views(connection, ids)


async def held_at_post(post: Post, project: str) -> list[agreement.Held]:
    """Return what the facts at the post say is held of a project."""
    facts = list[Any]()
    for one in await post.origins():
        after = 0
        while page := await post.told(one.origin, after, 500):
            facts += [heard(fact, CODEC.decode(fact.tag, fact.body)) for fact in page]
            after = page[-1].seq
    return [one for one in agreement.of_facts(facts) if one.project == project]


async def all_held(at_post: Reading, project: str) -> list[HeldAtPost]:
    """Return all that the post holds of a project, whatever became of it."""
    of_project = "SELECT number FROM omegad.held WHERE team = %s AND project = %s"
    found = await at_post.post.rows(of_project, (at_post.post.team, project))
    return await at_post.held([number for (number,) in found])
