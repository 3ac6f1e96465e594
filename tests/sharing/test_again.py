"""A home that leaves its team and joins it again, and what must not go, be counted or be told twice by that."""

from pathlib import Path
from typing import Any

import pytest

from omegad.catalog.events import CODEC
from omegad.memory.events import MemoryStored
from omegad.sharing.post import administration
from omegad.sharing.post.errors import AheadOfClock
from omegad.sharing.post.leaving import leave
from tests.builders import stored
from tests.sharing.homes import Home
from tests.sharing.posts import TEAM, Posted, fact
from tests.sharing.test_hostile_member import now, opened, push, store


async def meet(*homes: Home) -> None:
    for home in homes:
        await home.meet()


async def held(home: Home) -> dict[str, tuple[str, int]]:
    return {one.memory_id: (one.wording.content, one.rating) for one in await home.held("shop")}


async def bodies(home: Home) -> list[Any]:
    team = await home.team()
    async with home.at_post(team) as post:
        return [CODEC.decode(one.tag, one.body) for one in await post.told(team.origin, 0, 500)]


async def test_what_was_stored_before_a_project_was_chosen_goes_as_it_says_then(
    posted: Posted, tmp_path: Path
) -> None:
    """However long the post was away when it was stored, and whatever had been chosen before."""
    async with opened(posted, tmp_path, "Ada") as (ada,):
        await ada.call("share.choose", project="shop", types=["lesson_learned"])
        kept = await store(ada, "the token of the till is kept in the attic")
        await ada.call("memory.edit", memory_id=kept, content="the till has no token any more")
        dropped = await store(ada, "a plan of the attic that was dropped")
        await ada.call("memory.delete", memory_id=dropped)
        assert (await ada.call("share.status"))["waiting"] == 2  # that it was chosen, twice
        await ada.call("share.choose", project="shop")
        await ada.meet()
        (said,) = await bodies(ada)
        assert isinstance(said, MemoryStored)
        assert (said.memory_id, said.content) == (kept, "the till has no token any more")


async def test_a_home_that_joins_again_catches_up_and_counts_nothing_twice(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace") as (ada, grace):
        of_ada = await store(ada, "the ledger is kept in cents")
        of_grace = await store(grace, "exports are written as Parquet files")
        await ada.call("memory.rate", memory_id=of_ada, rating="helpful")
        await meet(ada, grace, ada)
        await ada.leave()
        await grace.call("memory.edit", memory_id=of_ada, content="the ledger is kept in tenths of cents")
        await grace.call("memory.rate", memory_id=of_ada, rating="helpful")
        await grace.meet()
        await ada.call("memory.edit", memory_id=of_grace, content="exports are compressed Parquet files")
        await ada.join(TEAM, "Ada", "shop")
        await meet(ada, grace, ada)
        assert await held(ada) == await held(grace)
        assert await held(ada) == {
            of_ada: ("the ledger is kept in tenths of cents", 2),
            of_grace: ("exports are compressed Parquet files", 0),
        }
        told = [one for one in await bodies(ada) if isinstance(one, MemoryStored)]
        assert told == []  # the team has all of it


async def test_what_was_erased_stays_so_when_a_home_joins_again(posted: Posted, tmp_path: Path) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace") as (ada, grace):
        here_alone = await store(grace, "what Grace stored is erased by Ada here alone")
        own = await store(ada, "what Ada erases while she is away is erased for all")
        await meet(grace, ada, grace)
        await ada.call("memory.erase", memory_id=here_alone)
        await ada.leave()
        await ada.call("memory.erase", memory_id=own)
        await ada.join(TEAM, "Ada", "shop")
        await meet(ada, grace)
        assert await held(ada) == {}
        assert [*await held(grace)] == [here_alone]


async def test_another_team_is_told_nothing_of_what_others_said(posted: Posted, tmp_path: Path) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace") as (ada, grace):
        of_grace = await store(grace, "what Grace told her own team")
        own = await store(ada, "what Ada says to everybody")
        await meet(ada, grace, ada)
        await ada.leave()
        administration.create_team(posted.admin, "another")
        posted.sql(
            "INSERT INTO omegad.members (team, login, person) SELECT teams.team, login, person"
            " FROM omegad.teams, omegad.members WHERE name = 'another' AND person = 'Ada'"
        )
        await ada.join("another", "Ada", "shop")
        preview = await ada.call("share.preview", project="shop")
        assert [one["memory_id"] for one in preview["go"]] == [own]
        assert [one["stays"] for one in preview["stay"]] == ["another home stored it"]
        await ada.call("memory.delete", memory_id=of_grace)
        await ada.call("memory.restore", memory_id=of_grace)
        await ada.meet()
        told = [one.memory_id for one in await bodies(ada)]
        assert told == [own]


async def test_an_erasure_that_the_post_refuses_keeps_nothing_from_being_told(
    posted: Posted, tmp_path: Path
) -> None:
    """Somebody else had told of a memory by this id, which the home cannot know."""
    async with opened(posted, tmp_path, "Ada", "Eve") as (ada, eve):
        mine = await store(ada, "the ledger is kept in cents")
        body = CODEC.encode(stored(mine, "what Eve says of it"))
        await push(eve, fact("home-00000000000000ee", 1, mine, body=body, hlc=now()))
        await ada.meet()
        await ada.call("memory.erase", memory_id=mine)
        later = await store(ada, "what comes after is told")
        await meet(ada, eve)
        assert later in await held(eve)
        assert (await ada.call("share.status"))["waiting"] == 0


async def test_who_erases_is_told_for_whom_and_what_the_team_keeps(posted: Posted, tmp_path: Path) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace") as (ada, grace):
        held_once = await store(ada, "the word is grey heron 77, and the till is in the hall")
        await ada.meet()
        await ada.call("memory.edit", memory_id=held_once, content="the till is in the hall")
        holds = await store(ada, "the word of the till, grey heron 77, is written in the ledger")
        private = await ada.call(
            "memory.store", content="my own word is grey heron 77", event_type="decision", project="diary"
        )
        of_grace = await store(grace, "exports are written as Parquet files")
        await meet(ada, grace, ada)
        answer = await ada.call("memory.erase", text="grey heron 77", dry_run=True)
        touched = {one["memory_id"] for one in answer["memories"]}
        assert touched == {held_once, holds, private["memory_id"]}
        answer = await ada.call("memory.erase", text="grey heron 77")
        assert {*answer["still_told"]} == {held_once, holds}
        assert (answer["for_team"], answer["here_alone"]) == ([], [])
        answer = await ada.call("memory.erase", memory_id=held_once)
        assert (answer["for_team"], answer["here_alone"]) == ([held_once], [])
        answer = await ada.call("memory.erase", memory_id=of_grace)
        assert (answer["for_team"], answer["here_alone"]) == ([], [of_grace])


async def test_what_was_said_before_a_clock_ran_ahead_is_told_and_the_rest_waits(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace") as (ada, grace):
        before = await store(ada, "said while the clock was right")
        ada._clock._by_us = 3 * 24 * 3_600 * 1_000_000
        ahead = await store(ada, "said while the clock was three days ahead")
        ada._clock._by_us = 0
        after = await store(ada, "said after it was set right")
        of_grace = await store(grace, "exports are written as Parquet files")
        await grace.meet()
        with pytest.raises(AheadOfClock, match=r"stamped [23]\.\d days ahead") as caught:
            await ada.meet()
        assert "told by itself when that time has come" in caught.value.hint
        await grace.meet()
        assert {*await held(ada)} == {before, ahead, after, of_grace}
        assert {*await held(grace)} == {before, of_grace}
        assert (await ada.call("share.status"))["waiting"] >= 2


async def test_an_erasure_is_heard_though_its_home_left_with_its_words(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace") as (ada, grace):
        mine = await store(ada, "the ledger is kept in cents")
        await meet(ada, grace)
        await ada.call("memory.erase", memory_id=mine)
        await ada.meet()
        async with ada.at_post(await ada.team()) as post:
            await leave(post, [(await ada.team()).origin], with_facts=True)
        await grace.meet()
        assert await held(grace) == {}
