"""How a home ends at the post: it is retired where its machine is gone, or leaves with all that it ever told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from omegad.runtime.errors import NotFound, Refused, Unavailable
from omegad.sharing.post.errors import NotYours, PostOutdated, Retired
from omegad.sharing.post.leaving import leave, retire
from omegad.sharing.post.post import NO_HEAD, Post
from tests.sharing.homes import Home
from tests.sharing.posts import TEAM, Posted, fact, facts, push
from tests.sharing.server import Server
from tests.sharing.test_again import held
from tests.sharing.test_hostile_member import opened, store


@asynccontextmanager
async def at(home: Home) -> AsyncIterator[Post]:
    async with home.at_post(await home.team()) as post:
        yield post


async def waited_for(home: Home) -> list[str]:
    async with at(home) as post:
        return [name for one in await post.waiting() for name in one.homes]


async def test_nobody_waits_for_a_home_that_was_retired_and_it_joins_anew_should_it_come_back(
    posted: Posted, tmp_path: Path
) -> None:
    async with opened(posted, tmp_path, "Ada", "Grace", "Alan") as (ada, grace, alan):
        erased, kept = (
            await store(ada, "the till is under the mat"),
            await store(ada, "the ledger is in cents"),
        )
        for home in (ada, grace, alan):
            await home.meet()
        said = await store(grace, "said by Grace while she was not in touch")
        await ada.call("memory.erase", memory_id=erased)
        await ada.meet()
        assert await waited_for(ada) == ["Alan (Alans-laptop)", "Grace (Graces-laptop)"]
        lost = await grace.team()
        async with at(alan) as his:
            with pytest.raises(NotYours):
                await retire(his, "Graces-laptop")
        posted.sql("UPDATE omegad.members SET is_admin = true WHERE person = 'Ada'")
        async with at(ada) as hers:
            with pytest.raises(NotFound, match="no home of the team is called nowhere"):
                await retire(hers, "nowhere")
            with pytest.raises(Refused, match="that is this home"):
                await retire(hers, "Adas-laptop", but=(await ada.team()).origin)
            assert (await retire(hers, "Graces-laptop")).origin == lost.origin
        await alan.meet()
        assert await waited_for(ada) == []
        with pytest.raises(Retired, match=r"Ada retired this home on 20\d\d-") as caught:
            await grace.meet()
        assert "share leave" in caught.value.hint
        assert {*await held(grace)} == {erased, kept, said}
        async with at(grace) as post:  # as `omegad share leave` does
            await leave(post, [lost.origin], with_facts=False)
        await grace.leave()
        await grace.join(TEAM, "Grace", "shop")
        for home in (grace, ada):
            await home.meet()
        assert {*await held(grace)} == {kept, said} == {*await held(ada)}


async def test_a_person_retires_a_machine_of_theirs_and_goes_on_with_the_others(posted: Posted) -> None:
    async with posted.at(posted.member("Ann")) as post:
        await post.enrol("home-1", "laptop")
        head = await push(post, "home-2", facts("home-2", 1), await post.enrol("home-2", "desk"))
        await post.enrol("home-3", "desk")
        with pytest.raises(Refused, match="2 homes by the name of desk") as caught:
            await retire(post, "desk")
        assert "home-2 (Ann), home-3 (Ann)" in caught.value.hint
        await retire(post, "home-2")
        await retire(post, "desk")  # the other
        for refused in (
            post.push("home-2", facts("home-2", 1, after=1), head),
            post.report("home-3", {"home-2": 1}),
            post.enrol("home-2", "desk"),
        ):
            with pytest.raises(Retired):
                await refused
        await push(post, "home-1", [fact("home-1", 1)], NO_HEAD)
        assert [one.origin for one in await post.origins() if one.left_at is None] == ["home-1"]


async def test_a_home_that_leaves_with_its_words_reaches_the_names_that_it_had_before(
    posted: Posted, tmp_path: Path
) -> None:
    """Of an earlier stay, and of before it was restored; not what another machine goes on with."""
    async with opened(posted, tmp_path, "Ada") as (ada,):
        await store(ada, "said in an earlier stay")
        await ada.meet()
        await ada.leave()
        await ada.join(TEAM, "Ada", "shop")
        await store(ada, "said before the backup was made")
        await ada.meet()
        await ada.close()
        await ada.backup(tmp_path / "copy")
        copy = Home("copy", tmp_path / "copy", ada.address)
        async with opened_again(copy, ada):
            await store(ada, "said by the other")
            await ada.meet()
            await store(copy, "said by the copy")
            with pytest.raises(Unavailable, match="copied or restored"):
                await copy.meet()
            await copy.meet()
            standing = await copy.call("share.status")
            first, second = standing["earlier"]
            async with at(copy) as post:
                await post.report(second, {})  # the other is in touch
                gone = await leave(post, [first, second, standing["origin"]], with_facts=True)
                assert (gone.removed, gone.others) == (2, (second,))
                assert [one.body is None for one in await post.told(first, 0, 9)] == [True]
                assert not any(one.body is None for one in await post.told(second, 0, 9))
                # Nobody goes on under it where nobody was in touch since
                posted.sql("UPDATE omegad.origins SET seen_at = joined_at WHERE origin = %s", second)
                assert (await leave(post, [second, standing["origin"]], with_facts=True)).removed == 2
                assert all(one.bad_seq is None for one in await post.prove(lambda _: None))


@asynccontextmanager
async def opened_again(*homes: Home) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        for home in homes:
            await home.open(tasks)
        yield
        for home in homes:
            await home.close()
        tasks.cancel_scope.cancel()


async def test_a_post_that_knows_nothing_of_it_is_upgraded_first(server: Server) -> None:
    posted = Posted.of_schema(server, 2)
    try:
        async with posted.at(posted.member("Ann")) as post:
            await push(post, "home-1", facts("home-1", 2), await post.enrol("home-1", "desk"))
            with pytest.raises(PostOutdated, match="retired from 3 on"):
                await retire(post, "desk")
            with pytest.raises(PostOutdated, match="home-0"):
                await leave(post, ["home-0", "home-1"], with_facts=True)
            assert (await leave(post, ["home-0", "home-1"], with_facts=False)).removed == 0
            assert (await leave(post, ["home-1"], with_facts=True)).removed == 2
    finally:
        posted.drop()
