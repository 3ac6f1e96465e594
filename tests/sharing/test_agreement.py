"""Whatever homes do, in whatever order they hear of it, they hold the same once everybody has spoken: and that
is what the facts at the post say.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from omegad.runtime.errors import NotFound, Refused
from tests.sharing.homes import Home, held_at_post
from tests.sharing.posts import TEAM, Posted

HISTORIES = int(os.environ.get("SHARED_HISTORIES", "200"))
SKEWS_S = (0.0, -40.0, 25.0, -3_600.0, 5.0)

DOING = ("store", "store", "edit", "upsert", "delete", "supersede", "restore", "rate", "erase")
STEPS = st.lists(
    st.tuples(
        st.sampled_from((*DOING * 3, *("meet",) * 12, "restart", "lose", "backup", "return", "leave")),
        st.integers(0, 4),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    min_size=4,
    max_size=40,
)


class Ended(Exception):
    """The process ended."""


class Team:
    """Five homes of four people that are served in one loop, which many histories are lived through in."""

    def __init__(self, posted: Posted, folder: Path) -> None:
        people = ("Ada", "Grace", "Alan", "Edsger", "Ada")
        addresses = {person: posted.member(person) for person in dict.fromkeys(people)}
        self.people = people
        self.folder = folder
        self.homes = [
            Home(f"machine-{number}", folder / f"home-{number}", addresses[person], SKEWS_S[number])
            for number, person in enumerate(people)
        ]
        self._numbers = count()

    async def run(self, *, task_status: Any) -> None:
        async with anyio.create_task_group() as self.tasks:
            for home, person in zip(self.homes, self.people, strict=True):
                await home.open(self.tasks)
                await home.join(TEAM, person)
            task_status.started()
            await anyio.sleep_forever()

    async def end(self) -> None:
        """Close every home, so that nothing of theirs is left to be found later."""
        for home in self.homes:
            await home.close()

    async def live(self, homes: int, steps: list[tuple[str, int, int, int]]) -> None:
        """Live through a history of the first *homes*, and see that they agree in the end."""
        number = next(self._numbers)
        history = History(self, number, homes)
        for home in history.homes:
            await home.call("share.choose", project=history.project)
        for at in range(2):
            await history.step("store", at, 0, 0)
        for home in (*history.homes, *history.homes):
            await home.meet()
        for step in steps:
            await history.step(*step)
        for _ in range(2):
            for at in range(homes):
                await history.step("meet", at, 0, 0)
        await history.agree()


class History:
    """What happens in one project."""

    def __init__(self, team: Team, number: int, homes: int) -> None:
        self.project = f"project-{number}"
        self.homes = team.homes[:homes]
        self._team = team
        self._memories: list[tuple[str, int]] = []
        self._said = count()
        self._backups: dict[int, Path] = {}
        self._away = set[int]()

    async def step(self, what: str, at: int, one: int, other: int) -> None:
        at %= len(self.homes)
        home = self.homes[at]
        memory_id, owner = self._memories[one % len(self._memories)] if self._memories else ("mem-none", -1)
        another = self._memories[other % len(self._memories)][0] if self._memories else "mem-none"
        with suppress(NotFound, Refused):
            match what:
                case "meet":
                    await self._meet(at)
                case "lose" | "backup" | "return" | "leave" if at in self._away:
                    pass
                case "leave":
                    self._away.add(at)
                    await home.leave()
                case "lose":
                    await self._lose(at)
                case "restart" | "backup":
                    await self._closed(at, save=what == "backup")
                case "return" if at in self._backups:
                    await self._closed(at, bring_back=True)
                case "store":
                    answer = await home.call(
                        "memory.store", **self._saying(), event_type="decision", project=self.project
                    )
                    self._memories.append((answer["memory_id"], at))
                case "erase" if self._team.people[owner] != self._team.people[at]:
                    pass  # that would be erased here alone
                case "edit" | "upsert" | "supersede" | "rate" | "delete" | "restore" | "erase":
                    await self._change(home, what, memory_id, another, other)

    async def _change(self, home: Home, what: str, memory_id: str, another: str, other: int) -> None:
        given: dict[str, dict[str, object]] = {
            "edit": self._saying(),
            "upsert": self._saying() | self._from(other),
            "supersede": {"superseded_by": another},
            "rate": {"rating": "outdated" if other % 2 else "helpful"},
        }
        await home.call(f"memory.{what}", memory_id=memory_id, **given.get(what, {}))

    async def _meet(self, at: int) -> None:
        """Tell and receive all there is; a home that has left joins again."""
        if at in self._away:
            self._away.remove(at)
            await self.homes[at].join(TEAM, self._team.people[at], self.project)
        await self.homes[at].meet()

    def _saying(self) -> dict[str, object]:
        said = next(self._said)
        return {
            "content": f"{self.project} is built of number {said}, which is all there is to say of {said * 7919}"
        }

    def _from(self, other: int) -> dict[str, object]:
        given = {"source": f"ticket {other}", "confidence": other / 4, "event_type": "decision"}
        dated = {"referenced_date": f"2026-01-{other + 1:02}"} if other % 2 else {}
        return given | dated | {"project": self.project, "timestamp": "2026-01-01"}

    async def _closed(self, at: int, *, save: bool = False, bring_back: bool = False) -> None:
        home = self.homes[at]
        await home.close()
        place = self._team.folder / f"backup-{at}"
        if save:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(home.folder, place)
            self._backups[at] = place
        if bring_back:
            shutil.rmtree(home.folder)
            shutil.copytree(place, home.folder)
        await home.open(self._team.tasks)
        if bring_back:  # it finds that it is a copy, and is another from then on
            with suppress(Exception):
                await home.meet()

    async def _lose(self, at: int) -> None:
        """Have the home end between a push and its own note of it."""
        home = self.homes[at]

        async def ends(*_: object) -> None:
            raise Ended

        home.exchange.telling._note = ends  # type: ignore[method-assign, assignment]
        with suppress(Ended):
            await home.meet()
        await self._closed(at)

    async def agree(self) -> None:
        held = [await home.shares(self.project) for home in self.homes]
        home = self.homes[0]
        async with home.at_post(await home.team()) as post:
            at_post = await held_at_post(post, self.project)
        for one in held:
            assert one == at_post


@pytest.fixture(scope="module")
def team(
    server: Any, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BlockingPortal, Team]]:
    posted = Posted.made(server, template)
    team = Team(posted, tmp_path_factory.mktemp("team"))
    with start_blocking_portal() as portal:
        running, _ = portal.start_task(team.run)
        yield portal, team
        portal.call(team.end)
        running.cancel()


@settings(max_examples=HISTORIES // 2)
@given(st.data())
def test_two_homes_agree(team: tuple[BlockingPortal, Team], data: st.DataObject) -> None:
    portal, whole = team
    portal.call(whole.live, 2, data.draw(STEPS))


@settings(max_examples=HISTORIES // 2)
@given(st.data())
def test_five_homes_agree(team: tuple[BlockingPortal, Team], data: st.DataObject) -> None:
    portal, whole = team
    portal.call(whole.live, 5, data.draw(STEPS))
