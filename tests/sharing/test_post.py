"""What goes through a real PostgreSQL from one home to another."""

import random

import anyio
import msgspec
import pytest

from omegad.runtime.clock import Clock
from omegad.runtime.errors import OmegadError
from omegad.sharing.fact import Fact
from omegad.sharing.post.administration import SCHEMA
from omegad.sharing.post.errors import AheadOfClock, Forked, NotYours, TooLarge
from omegad.sharing.post.leaving import leave
from omegad.sharing.post.post import NO_HEAD, PULLED_BYTES_MAX, PULLED_MAX, Head, Post
from tests.sharing.posts import Posted, fact, facts, push


async def test_what_one_pushes_another_pulls(posted: Posted) -> None:
    ann, bob = posted.member("Ann", is_admin=True), posted.member("Bob")
    said = facts("ann-1", 12)
    async with posted.at(ann) as hers, posted.at(bob) as his:
        standing = await hers.check()
        assert (standing.person, standing.is_admin, standing.schema) == ("Ann", True, SCHEMA)
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


async def test_of_two_who_write_as_one_origin_one_is_told(posted: Posted) -> None:
    """A home and its copy push at the same moment: what is acknowledged is there, the other is told."""
    ann = posted.member("Ann")
    outcomes = list[Head | OmegadError]()

    async def write(post: Post, word: str) -> None:
        some = [fact("ann-1", 1, body=word.encode())]
        try:
            outcomes.append(await post.push("ann-1", some, NO_HEAD))
        except OmegadError as error:
            outcomes.append(error)

    async with posted.at(ann) as one, posted.at(ann) as other, anyio.create_task_group() as tasks:
        await one.enrol("ann-1", "desk")
        tasks.start_soon(write, one, "one")
        tasks.start_soon(write, other, "other")
    heads = [outcome for outcome in outcomes if isinstance(outcome, Head)]
    assert len(heads) == 1
    assert len([outcome for outcome in outcomes if isinstance(outcome, Forked)]) == 1
    async with posted.at(ann) as post:
        assert await post.head("ann-1") == heads[0]
        assert len(await post.told("ann-1", 0, 10)) == 1


async def test_who_pulls_all_the_while_misses_nothing(posted: Posted) -> None:
    """Six write, and wait now and then before they commit; one reads meanwhile."""
    reader = posted.member("Reader")
    writers = {f"home-{n}": posted.member(f"Writer{n}") for n in range(6)}
    said = {origin: facts(origin, 40) for origin in writers}
    left = len(writers)

    async def write(origin: str) -> None:
        nonlocal left
        chance = random.Random(origin)  # noqa: S311  no secret
        async with posted.at(writers[origin]) as post:
            head = await post.enrol(origin, "desk")
            for one in said[origin]:
                async with post._connection.transaction():
                    head = await post.push(origin, [one], head)
                    await anyio.sleep(0.02 if chance.random() < 0.1 else 0)
        left -= 1

    heard = dict[str, list[Fact]]()
    async with posted.at(reader) as post, anyio.create_task_group() as tasks:
        for origin in writers:
            tasks.start_soon(write, origin)
        done = False
        while not done:
            done = not left
            pulled = await post.pull({origin: len(some) for origin, some in heard.items()}, but="", limit=7)
            for one in pulled.facts:
                heard.setdefault(one.origin, []).append(one)
            done = done and not pulled.more
    assert heard == said


async def test_a_pull_is_bounded_and_has_something_of_everyone_who_is_behind(
    posted: Posted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.sharing.post.post.PULLED_MAX", 6)
    monkeypatch.setattr("omegad.sharing.post.post.PULLED_BYTES_MAX", 2_000)
    assert PULLED_MAX * 4 << 10 > PULLED_BYTES_MAX
    large = [fact("ann-2", seq, body=bytes(1_500)) for seq in range(1, 4)]
    async with posted.at(posted.member("Ann")) as post:
        for origin, some in (("ann-1", facts("ann-1", 9)), ("ann-2", large)):
            await push(post, origin, some, await post.enrol(origin, "desk"))
        pulled = await post.pull({}, but="")
        assert [(one.origin, one.seq) for one in pulled.facts] == [
            ("ann-1", 1), ("ann-1", 2), ("ann-1", 3), ("ann-2", 1),
        ]  # fmt: skip
        assert pulled.more == {"ann-1", "ann-2"}
        next_ones = await post.pull({"ann-1": 9, "ann-2": 1}, but="")
        assert [one.seq for one in next_ones.facts] == [2, 3]


async def test_what_is_stamped_ahead_of_the_posts_clock_waits(posted: Posted) -> None:
    now = (Clock().now_us() // 1000) << 16
    ahead = [fact("ann-1", 1, hlc=now), fact("ann-1", 2, hlc=now + (120_000 << 16))]
    async with posted.at(posted.member("Ann")) as post:
        await post.enrol("ann-1", "desk")
        with pytest.raises(AheadOfClock, match=r"stamped (2|1)[.][0-9] min ahead of"):
            await post.push("ann-1", ahead, NO_HEAD)
        assert await post.head("ann-1") == NO_HEAD
        within = msgspec.structs.replace(ahead[1], hlc=now + (30_000 << 16))
        assert (await post.push("ann-1", [ahead[0], within], NO_HEAD)).seq == 2


async def test_an_origin_is_its_logins_alone(posted: Posted) -> None:
    async with posted.at(posted.member("Ann")) as hers, posted.at(posted.member("Bob")) as his:
        head = await push(hers, "ann-1", facts("ann-1", 2), await hers.enrol("ann-1", "desk"))
        for attempt in (
            lambda: his.enrol("ann-1", "laptop"),
            lambda: his.push("ann-1", facts("ann-1", 1, after=2), head),
            lambda: his.report("ann-1", {}),
            lambda: leave(his, ["ann-1"], with_facts=True),
            lambda: his.push("nobody", facts("nobody", 1), NO_HEAD),
        ):
            with pytest.raises(NotYours):
                await attempt()
        assert await hers.head("ann-1") == head


async def test_more_than_the_post_takes_is_refused_before_anything_is_written(posted: Posted) -> None:
    async with posted.at(posted.member("Ann")) as post:
        await post.enrol("ann-1", "desk")
        with pytest.raises(TooLarge, match="1001 facts"):
            await post.push("ann-1", facts("ann-1", 1001), NO_HEAD)
        with pytest.raises(TooLarge, match="body"):
            await post.push("ann-1", [fact("ann-1", 1), fact("ann-1", 2, body=bytes(4 << 20 | 1))], NO_HEAD)
        assert await post.head("ann-1") == NO_HEAD
        assert await post.told("ann-1", 0, 10) == []


async def test_what_is_erased_is_gone_at_once_and_the_chains_still_prove(posted: Posted) -> None:
    ann, bob = posted.member("Ann"), posted.member("Bob")
    async with posted.at(ann) as hers, posted.at(bob) as his:
        head = await hers.enrol("ann-1", "desk")
        stored = [fact("ann-1", 1, "mem-x", body=b"the secret"), fact("ann-1", 2, "mem-y")]
        head = await hers.push("ann-1", stored, head)
        edited = [fact("bob-1", 1, "mem-x", "memory.edited@1", body=b"the secret, too")]
        his_head = await his.push("bob-1", edited, await his.enrol("bob-1", "laptop"))
        erasing = fact("ann-1", 3, "mem-x", "memory.erased@1")
        head = await hers.push("ann-1", [erasing], head)
        late = [fact("bob-1", 2, "mem-x", "memory.edited@1", body=b"the secret, late")]
        await his.push("bob-1", late, his_head)

        assert posted.sql(
            "SELECT count(*) FROM omegad.facts WHERE position('secret'::bytea IN body) > 0"
        ) == [(0,)]
        for said in (stored[0], edited[0], late[0]):
            (told,) = await his.told(said.origin, said.seq - 1, 1)
            assert told == msgspec.structs.replace(said, salt=None, body=None)
        assert (await his.told("ann-1", 1, 5)) == [stored[1], erasing]
        assert len((await his.pull({}, but="")).facts) == 5
        seen = list[int]()
        proofs = await his.prove(seen.append)
        assert [(one.origin, one.facts, one.bad_seq) for one in proofs] == [
            ("ann-1", 3, None),
            ("bob-1", 2, None),
        ]
        assert seen == [3, 5]


async def test_what_is_said_while_it_is_erased_is_gone_too(posted: Posted) -> None:
    """One is pushing words about a memory, and has not committed, when another erases it."""
    async with posted.at(posted.member("Ann")) as hers, posted.at(posted.member("Bob")) as his:
        head = await hers.push("ann-1", [fact("ann-1", 1, "mem-x")], await hers.enrol("ann-1", "desk"))
        his_head = await his.enrol("bob-1", "laptop")
        async with anyio.create_task_group() as tasks, his._connection.transaction():
            await his.push("bob-1", [fact("bob-1", 1, "mem-x", "memory.edited@1")], his_head)
            tasks.start_soon(hers.push, "ann-1", [fact("ann-1", 2, "mem-x", "memory.erased@1")], head)
            await anyio.sleep(0.2)
            (before,) = posted.sql("SELECT count(*) FROM omegad.facts")
            assert before == (1,)  # who erases waits
        assert [one.body for one in await hers.told("bob-1", 0, 5)] == [None]


async def test_only_who_stored_it_or_an_administrator_erases(posted: Posted) -> None:
    ann, bob = posted.member("Ann"), posted.member("Bob")
    async with (
        posted.at(ann) as hers,
        posted.at(bob) as his,
        posted.at(posted.member("Chief", is_admin=True)) as chief,
    ):
        stored = [fact("ann-1", seq, f"mem-{seq}") for seq in (1, 2)]
        await hers.push("ann-1", stored, await hers.enrol("ann-1", "desk"))
        head = await his.enrol("bob-1", "laptop")
        claimed = [fact("bob-1", 1, "mem-1"), fact("bob-1", 2, "mem-1", "memory.erased@1")]
        with pytest.raises(NotYours, match="mem-1"):
            await his.push("bob-1", claimed, head)
        assert await his.head("bob-1") == NO_HEAD
        assert await his.told("ann-1", 0, 5) == stored

        erasing = [fact("chief-1", 1, "mem-1", "memory.erased@1")]
        await chief.push("chief-1", erasing, await chief.enrol("chief-1", "server"))
        assert [one.body is None for one in await his.told("ann-1", 0, 5)] == [True, False]
        # What nobody told of is whose it is who tells of it first.
        own = [fact("bob-1", 1, "mem-own"), fact("bob-1", 2, "mem-own", "memory.erased@1")]
        await his.push("bob-1", own, head)
    async with posted.at(ann) as elsewhere:  # the same person, on another machine
        erasing = [fact("ann-2", 1, "mem-2", "memory.erased@1")]
        await elsewhere.push("ann-2", erasing, await elsewhere.enrol("ann-2", "laptop"))
        assert [one.body for one in await elsewhere.told("ann-1", 0, 5)] == [None, None]


async def test_who_has_not_heard_of_an_erasure_is_listed_until_they_have(posted: Posted) -> None:
    bob = posted.member("Bob")
    async with posted.at(posted.member("Ann")) as hers, posted.at(bob) as his:
        head = await hers.enrol("ann-1", "desk")
        await his.enrol("bob-1", "laptop")
        await his.enrol("bob-2", "server")
        await leave(his, ["bob-2"], with_facts=False)
        head = await push(hers, "ann-1", [fact("ann-1", 1, "mem-x")], head)
        await his.report("bob-1", {"ann-1": 1})
        await hers.push("ann-1", [fact("ann-1", 2, "mem-x", "memory.erased@1")], head)
        await his.enrol("bob-3", "phone")  # which was not there when it could be read
        (waiting,) = await hers.waiting()
        assert (waiting.subject, waiting.homes) == ("mem-x", ("Bob (laptop)",))
        await his.report("bob-1", {"ann-1": 1})
        assert await hers.waiting() == [waiting]
        await his.report("bob-1", {"ann-1": 2})
        assert await hers.waiting() == []
        await his.report("bob-1", {"ann-1": 1, "nobody": 7})
        assert await hers.waiting() == []


async def test_who_leaves_may_take_the_words_along(posted: Posted) -> None:
    async with posted.at(posted.member("Ann")) as post:
        head = await push(post, "ann-1", facts("ann-1", 3), await post.enrol("ann-1", "desk"))
        await push(post, "ann-2", facts("ann-2", 1), await post.enrol("ann-2", "laptop"))
        assert (await leave(post, ["ann-1"], with_facts=False)).removed == 0
        with pytest.raises(Forked):
            await post.push("ann-1", facts("ann-1", 1, after=3), head)
        assert all(one.body for one in await post.told("ann-1", 0, 5))
        assert (await leave(post, ["ann-1"], with_facts=True)).removed == 3
        assert [one.body for one in await post.told("ann-1", 0, 5)] == [None] * 3
        assert all(one.body for one in await post.told("ann-2", 0, 5))
        assert all(one.bad_seq is None for one in await post.prove(lambda _: None))
        (left, _) = await post.origins()
        assert left.left_at is not None
        assert await post.enrol("ann-1", "desk") == head


@pytest.mark.parametrize(
    ("change", "bad", "problem"),
    [
        ("UPDATE omegad.facts SET body = 'other' WHERE seq = 3", 3, "not what was told"),
        ("UPDATE omegad.facts SET salt = NULL WHERE seq = 3", 3, "not what was told"),
        ("UPDATE omegad.facts SET envelope = envelope || '\\x00'::bytea WHERE seq = 3", 3, "not what was told"),
        ("UPDATE omegad.facts SET envelope = (SELECT envelope FROM omegad.facts WHERE seq = 2) WHERE seq = 3", 3, "not what"),
        ("UPDATE omegad.facts SET chain = sha256(chain) WHERE seq = 3", 3, "not what was told"),
        ("DELETE FROM omegad.facts WHERE seq = 3", 3, "not what was told"),
        ("DELETE FROM omegad.facts WHERE seq >= 5", 5, "missing"),
        ("UPDATE omegad.origins SET head_chain = sha256(head_chain)", 5, "end of the chain"),
    ],
)  # fmt: skip
async def test_what_is_changed_at_the_post_is_found(
    posted: Posted, change: str, bad: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.sharing.post.post.PROVED_AT_ONCE", 2)
    async with posted.at(posted.member("Ann")) as post:
        await push(post, "ann-1", facts("ann-1", 5), await post.enrol("ann-1", "desk"))
        assert [one.bad_seq for one in await post.prove(lambda _: None)] == [None]
        posted.sql(change)
        (proof,) = await post.prove(lambda _: None)
        assert proof.bad_seq == bad
        assert problem in proof.problem
        pulled = await post.pull({}, but="")
        if "not" in problem:
            assert ([one.seq for one in pulled.facts], pulled.damaged) == ([1, 2], {"ann-1": 3})
            assert not pulled.more
            later = await post.pull({"ann-1": 2}, but="")
            assert (later.facts, later.damaged) == ([], {"ann-1": 3})
