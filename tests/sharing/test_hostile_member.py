"""A member whose login pushes what no home tells: it reaches nobody, and keeps nobody from what comes after."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from omegad.catalog.events import CODEC
from omegad.sharing.exchange import AT_ONCE
from omegad.sharing.fact import Fact, envelope, link, sealed_hash
from omegad.sharing.post import post as at_post
from omegad.sharing.post.errors import TooLarge
from omegad.sharing.post.post import NO_HEAD
from tests.builders import memory_erased, stored
from tests.sharing.homes import Home
from tests.sharing.posts import TEAM, Posted, fact

ORIGIN = "home-00000000000000ee"
STORED = "memory.stored@2"


@asynccontextmanager
async def opened(posted: Posted, folder: Path, *people: str) -> AsyncIterator[list[Home]]:
    """Serve a home for each person, all of which share a project."""
    homes = [Home(f"{person}s-laptop", folder / person, posted.member(person)) for person in people]
    async with anyio.create_task_group() as tasks:
        try:
            for home, person in zip(homes, people, strict=True):
                await home.open(tasks)
                await home.join(TEAM, person, "shop")
            yield homes
        finally:
            with anyio.CancelScope(shield=True):
                for home in homes:
                    await home.close()
        tasks.cancel_scope.cancel()


async def store(home: Home, content: str) -> str:
    answer = await home.call("memory.store", content=content, event_type="decision", project="shop")
    return str(answer["memory_id"])


async def push(home: Home, told: Fact, **beside: Any) -> None:
    """Push a fact; what the post goes by of it is as it says, but for what is said otherwise *beside* it."""
    shown = {name: beside.get(name, getattr(told, name)) for name in ("hlc", "tag", "subject")}
    sealed = envelope(told)
    async with home.at_post(await home.team()) as post:
        await post.enrol(ORIGIN, "elsewhere")
        await post.rows(
            at_post._PUSH,
            (
                *(post.team, ORIGIN, 0, NO_HEAD.chain, [shown["hlc"]], [told.position]),
                *([told.event_id], [shown["tag"]], [shown["subject"]], [sealed]),
                *([link(NO_HEAD.chain, sealed_hash(sealed))], [told.salt], [told.body]),
            ),
        )


def now() -> int:
    return time.time_ns() // 1_000_000 << 16


async def test_who_may_erase_is_not_got_round_by_calling_it_otherwise(posted: Posted, tmp_path: Path) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace", "Eve") as (ada, grace, eve):
        mine = await store(ada, "the ledger is kept in cents")
        await ada.meet()
        await grace.meet()
        body = CODEC.encode(memory_erased(mine))
        told = fact(ORIGIN, 1, mine, "memory.erased@1", body=body, hlc=now())
        await push(eve, told, tag="memory.rated@1")
        for home in (ada, grace):
            await home.meet()
            assert [one.memory_id for one in await home.held("shop")] == [mine]
            status = await home.call("share.status")
            assert ORIGIN in status["trouble"]
            assert "share verify" in status["remedy"]
        async with grace.at_post(await grace.team()) as post:
            (bad,) = [one.origin for one in await post.prove(lambda _: None) if one.bad_seq]
        assert bad == ORIGIN


async def test_a_time_that_has_not_come_is_not_got_past_the_post_by_calling_it_otherwise(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Eve") as (ada, eve):
        body = CODEC.encode(stored("mem-00000000000000ee", "after this there is no time left"))
        await push(eve, fact(ORIGIN, 1, "mem-00000000000000ee", body=body, hlc=2**63 - 1), hlc=now())
        await ada.meet()
        mine = await store(ada, "there is time for more")
        assert [one.memory_id for one in await ada.held("shop")] == [mine]


SAID = {
    "type": STORED,
    "memory_id": "mem-00000000000000ee",
    "content": "x",
    "content_key": "x",
    "event_type": "decision",
}


def nested(depth: int) -> bytes:
    return msgspec.json.encode(SAID)[:-1] + b',"metadata":{"a":' + b"[" * depth + b"]" * depth + b"}}"


UNFIT: dict[str, tuple[dict[str, object] | bytes, dict[str, object]]] = {
    "endless": ({"ttl_seconds": 2**62}, {}),
    "over before": ({"ttl_seconds": -(2**62)}, {}),
    "of no calendar": ({"referenced_at": 2**62}, {}),
    "of no column": ({"referenced_at": 2**63}, {}),
    "surer than sure": ({"confidence": 1e300}, {}),
    "of a long type": ({"event_type": "z" * 1_000}, {}),
    "of no words": ({"content": ""}, {}),
    "of many tags": ({"tags": ["tag"] * 5_000}, {}),
    "deep": (nested(600), {}),
    "deeper": (nested(100_000), {}),
    "half a character": (msgspec.json.encode(SAID).replace(b'"x"', b'"\\ud800"'), {}),
    "older, of no type": (b"{}", {"tag": "memory.stored@1"}),
    "of no project": ({}, {"project": None}),
    "before the calendar": ({}, {"occurred_at": -(2**62)}),
    "before all time": ({}, {"hlc": -(2**62)}),
    "of no zone": ({}, {"tz_offset": 2**62}),
    "of no zone at all": ({}, {"tz_offset": 2**63}),
}


@pytest.mark.parametrize("unfit", UNFIT)
async def test_what_no_view_could_show_is_refused_and_what_comes_after_is_not(
    unfit: str, posted: Posted, tmp_path: Path
) -> None:
    said, placed = UNFIT[unfit]
    body = said if isinstance(said, bytes) else msgspec.json.encode(SAID | said)
    async with opened(posted, tmp_path, "Ada", "Eve") as (ada, eve):
        told = fact(ORIGIN, 1, "mem-00000000000000ee", str(placed.get("tag", STORED)), body=body, hlc=now())
        await push(eve, msgspec.structs.replace(told, **placed))
        theirs = await store(eve, "what comes after it is merged")
        await eve.meet()
        await ada.meet()
        mine = await store(ada, "and this home goes on")
        assert {one.memory_id for one in await ada.held("shop")} == {mine, theirs}
        assert (await ada.call("share.status"))["trouble"] is None
        assert (await ada.call("views.verify"))["ok"]


async def test_a_home_of_no_name_that_homes_have_is_named_and_holds_nobody_up(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Eve") as (ada, eve):
        body = CODEC.encode(stored("mem-00000000000000ee", "of nobody"))
        many = [
            fact("Eve's other home", number, "mem-00000000000000ee", body=body, hlc=now())
            for number in range(1, AT_ONCE + 2)
        ]
        async with eve.at_post(await eve.team()) as post:
            await post.enrol("Eve's other home", "elsewhere")
            await post.push("Eve's other home", many, NO_HEAD)
        theirs = await store(eve, "said after all of that")
        await eve.meet()
        await ada.meet()
        assert [one.memory_id for one in await ada.held("shop")] == [theirs]
        assert "Eve's other home" in (await ada.call("share.status"))["trouble"]


async def test_who_has_a_thousand_homes_keeps_nobody_waiting_and_has_no_more(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Eve") as (ada, eve):
        await eve.meet()
        async with eve.at_post(await eve.team()) as post:
            for number in range(999):
                await post.enrol(f"home-{number}", "\N{SNAKE}" * 200)
            with pytest.raises(TooLarge, match="1,000 homes"):
                await post.enrol("home-999", "one too many")
        theirs = await store(eve, "and one that says something")
        await eve.meet()
        await ada.meet()
        assert [one.memory_id for one in await ada.held("shop")] == [theirs]
