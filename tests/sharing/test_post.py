"""What goes through a real PostgreSQL from one home to another."""

import anyio
import pytest

from omegad.sharing.post.errors import Forked
from omegad.sharing.post.post import NO_HEAD, Head
from tests.sharing.posts import Posted, facts, push


async def test_what_one_pushes_another_pulls(posted: Posted) -> None:
    ann, bob = posted.member("Ann", is_admin=True), posted.member("Bob")
    said = facts("ann-1", 12)
    async with posted.at(ann) as hers, posted.at(bob) as his:
        standing = await hers.check()
        assert (standing.person, standing.is_admin, standing.schema) == ("Ann", True, 1)
        assert await hers.head("ann-1") is None
        assert await hers.enrol("ann-1", "desk") == NO_HEAD
        await his.enrol("bob-1", "laptop")
        head = await push(hers, "ann-1", said, NO_HEAD, at_once=5)
        assert head == await his.head("ann-1") == Head(12, head.chain, 36, "ann-1-event-12")
        pulled = await his.pull({}, but="bob-1", limit=5)
        assert pulled.facts == said[:5]
        assert pulled.more == {"ann-1"}
        rest = await his.pull({"ann-1": 5}, but="bob-1")
        assert (rest.facts, rest.more, rest.chains) == (said[5:], frozenset(), {"ann-1": head.chain})
        assert [(one.origin, one.person, one.machine, one.head) for one in rest.origins] == [
            ("ann-1", "Ann", "desk", 12),
            ("bob-1", "Bob", "laptop", 0),
        ]
        assert (await hers.pull({}, but="ann-1")).facts == []
        assert await his.told("ann-1", 10, 5) == said[10:]


async def test_a_push_that_is_repeated_adds_nothing(posted: Posted) -> None:
    said = facts("ann-1", 3)
    async with posted.at(posted.member("Ann")) as post:
        await post.enrol("ann-1", "desk")
        head = await post.push("ann-1", said, NO_HEAD)
        with pytest.raises(Forked):
            await post.push("ann-1", said, NO_HEAD)
        assert await post.head("ann-1") == head
        assert await post.told("ann-1", 0, 10) == said


async def test_who_listens_is_woken_by_others_alone(posted: Posted) -> None:
    async with posted.at(posted.member("Ann")) as hers, posted.at(posted.member("Bob")) as his:
        head = await hers.enrol("ann-1", "desk")
        assert not await his.woken(0.05)
        head = await hers.push("ann-1", facts("ann-1", 1), head)
        assert await his.woken(20)
        assert not await hers.woken(0.05)
        with anyio.move_on_after(0.05):
            await his.woken(20)
        await hers.push("ann-1", facts("ann-1", 1, after=1), head)
        assert await his.woken(20)
        assert len((await his.pull({}, but="bob-1")).facts) == 2
