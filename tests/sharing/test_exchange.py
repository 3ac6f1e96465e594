"""Homes and their post, as it goes by itself: what wakes them, and what keeps them from each other."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from omegad.catalog.events import CODEC
from omegad.memory.events import MemorySuperseded
from omegad.runtime.errors import Unavailable
from omegad.sharing import exchange
from omegad.sharing.events import ShareLeft
from omegad.sharing.post import reading
from tests.builders import PATIENCE_S, deleted, edited, erased, memory_erased, stored, until
from tests.sharing import agreement
from tests.sharing.homes import DEADLINES, Home, all_held, held_at_post
from tests.sharing.posts import TEAM, Posted, fact
from tests.sharing.server import Server

LARGE, CHECKPOINT, FINE = (f"mem-{number:016x}" for number in range(3))
HOSTILE = "home-badbadbadbadbad0"


@asynccontextmanager
async def going(*homes: Home) -> AsyncIterator[None]:
    """Serve homes whose exchange goes by itself."""
    async with anyio.create_task_group() as tasks:
        for home in homes:
            await home.open(tasks)
            tasks.start_soon(home.exchange.run)
        yield
        for home in homes:
            await home.close()
        tasks.cancel_scope.cancel()


async def told(home: Home) -> Any:
    return await home.call("share.status")


async def holds(home: Home, said: str) -> bool:
    await home.it.caught_up()
    return any(said in one.wording.content for one in await home.held("shop"))


async def in_time(condition: Callable[[], Any]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.01)


@pytest.fixture
def homes(posted: Posted, tmp_path: Path) -> tuple[Home, Home]:
    return (
        Home("ada-laptop", tmp_path / "a", posted.member("Ada")),
        Home("grace-desktop", tmp_path / "g", posted.member("Grace")),
    )


async def store(home: Home, content: str, **params: object) -> str:
    answer = await home.call("memory.store", content=content, event_type="decision", project="shop", **params)
    return str(answer["memory_id"])


async def test_what_one_stores_the_other_finds_by_itself(
    homes: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "POLL_S", 600.0)  # so that nothing but the word of it can wake the other
    ada, grace = homes
    async with going(*homes):
        await ada.join(TEAM, "Ada", "shop")
        await grace.join(TEAM, "Grace", "shop")
        for home in homes:
            await until(partial(getattr, home.exchange, "is_connected"))
        memory_id = await store(ada, "the ledger is kept in cents")
        await in_time(lambda: holds(grace, "in cents"))
        await grace.call("memory.edit", memory_id=memory_id, content="the ledger is kept in tenths of cents")
        await in_time(lambda: holds(ada, "tenths of cents"))
        assert (await told(ada))["waiting"] == 0


async def test_tags_that_rules_find_in_an_edit_are_the_same_with_everybody(homes: tuple[Home, Home]) -> None:
    ada, grace = homes
    async with going(*homes):
        early = await store(ada, "the ledger is a file")
        await ada.call(
            "memory.edit", memory_id=early, content="the ledger is kept in PostgreSQL, src/ledger.py"
        )
        await ada.join(TEAM, "Ada", "shop")
        await grace.join(TEAM, "Grace", "shop")
        late = await store(ada, "exports are files")
        await ada.call(
            "memory.edit", memory_id=late, content="exports are written by Python to src/export.py"
        )
        await in_time(lambda: holds(grace, "written by Python"))
        for one in (early, late):
            (of_ada, of_grace) = [await home.call("memory.get", memory_id=one) for home in homes]
            assert of_ada["auto_tags"]
            assert of_grace["auto_tags"] == of_ada["auto_tags"]


async def test_what_a_project_held_travels_as_it_says_now_when_it_is_chosen(homes: tuple[Home, Home]) -> None:
    ada, grace = homes
    async with going(*homes):
        memory_id = await store(ada, "the token of the till is kept in the attic")
        await ada.call("memory.edit", memory_id=memory_id, content="the till has no token any more")
        await ada.call("memory.rate", memory_id=memory_id, rating="helpful")
        await store(ada, "what was dropped is of no use to anybody")
        dropped = await store(ada, "a plan that was given up after a week")
        await ada.call("memory.delete", memory_id=dropped)
        await ada.call(
            "memory.store", content="half way through the move", event_type="checkpoint", project="shop"
        )
        await ada.call(
            "memory.store", content="another project's business", event_type="decision", project="farm"
        )
        await ada.join(TEAM, "Ada", "shop")
        await grace.join(TEAM, "Grace", "shop")
        await in_time(lambda: holds(grace, "of no use"))
        held = {one.wording.content: one.rating for one in await grace.held("shop")}
        assert held == {"the till has no token any more": 1, "what was dropped is of no use to anybody": 0}
        async with ada.at_post(await ada.team()) as post:
            facts = await post.told((await ada.team()).origin, 0, 100)
        assert not any(b"attic" in (fact.body or b"") for fact in facts)


async def test_what_nobody_chose_stays(homes: tuple[Home, Home]) -> None:
    ada, grace = homes
    async with going(*homes):
        await ada.join(TEAM, "Ada")
        await grace.join(TEAM, "Grace", "shop")
        await store(ada, "nobody is told of this")
        await ada.call("share.choose", project="shop", types=["lesson_learned"])
        await ada.call("memory.store", content="look twice", event_type="lesson_learned", project="shop")
        await in_time(lambda: holds(grace, "look twice"))
        assert len(await grace.held("shop")) == 1
        await ada.call("share.withdraw", project="shop")
        await ada.call("memory.store", content="look thrice", event_type="lesson_learned", project="shop")
        await ada.call("share.choose", project="farm")
        await ada.call("memory.store", content="sow in May", event_type="decision", project="farm")

        async def has_farm() -> bool:
            await grace.it.caught_up()
            return len(await grace.held("farm")) == 1

        await in_time(has_farm)
        assert not await holds(grace, "thrice")


async def test_a_server_that_ends_in_the_middle_keeps_nobody_waiting_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "RETRY_MAX_S", 0.2)
    monkeypatch.setattr(exchange, "RETRY_S", 0.1)
    server = Server({"fsync": "off"})
    posted = Posted.made(server, Posted.make_template(server))
    ada = Home("ada-laptop", tmp_path / "a", posted.member("Ada"))
    grace = Home("grace-desktop", tmp_path / "g", posted.member("Grace"))
    try:
        async with going(ada, grace):
            await ada.join(TEAM, "Ada", "shop")
            await grace.join(TEAM, "Grace", "shop")
            await store(ada, "said before it ended")
            await in_time(lambda: holds(grace, "before it ended"))
            await anyio.to_thread.run_sync(server.kill)
            for number in range(20):
                await store(ada, f"said number {number} while it was gone, of {number * 7919}")
            await until(lambda: ada.exchange.trouble)
            status = await told(ada)
            assert (status["waiting"], status["is_connected"]) == (20, False)
            assert status["waiting_since"] is not None
            assert status["trouble"]
            await anyio.to_thread.run_sync(server.start)
            await in_time(lambda: holds(grace, "number 19"))
            assert await ada.held("shop") == await grace.held("shop")
            await until(lambda: ada.exchange.trouble is None)
    finally:
        server.remove()


async def test_what_one_erases_is_gone_at_once_at_the_server_and_elsewhere_when_it_is_heard(
    posted: Posted, homes: tuple[Home, Home]
) -> None:
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        for home, person in zip(homes, ("Ada", "Grace"), strict=True):
            await home.open(tasks)
            await home.join(TEAM, person, "shop")
        memory_id = await store(ada, "the password of the till is under the mat")
        await ada.meet()
        await grace.meet()
        await grace.call("memory.edit", memory_id=memory_id, content="the password of the till is on the mat")
        await grace.meet()
        await ada.meet()
        await ada.call("memory.erase", memory_id=memory_id)
        await ada.meet()
        left = posted.sql(
            "SELECT count(*) FROM omegad.facts WHERE position('the mat' IN encode(body, 'escape')) > 0"
        )
        assert left == [(0,)]
        (waiting,) = (await told(ada))["erasing"]
        assert (waiting["memory_id"], waiting["homes"]) == (memory_id, ["Grace (grace-desktop)"])
        await grace.meet()
        await grace.it.caught_up()
        files = [path for path in (grace.folder / "home").rglob("*") if path.is_file()]
        assert not [path.name for path in files if b"of the till is" in path.read_bytes()]
        await ada.meet()
        assert (await told(ada))["erasing"] == []
        for home in homes:
            assert (await home.call("views.verify"))["ok"]
            await home.close()
        tasks.cancel_scope.cancel()


async def test_a_home_that_was_copied_or_restored_goes_on_under_another_name(
    homes: tuple[Home, Home], tmp_path: Path
) -> None:
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        for home, person in zip(homes, ("Ada", "Grace"), strict=True):
            await home.open(tasks)
            await home.join(TEAM, person, "shop")
        await store(ada, "said before the backup was made")
        await ada.meet()
        await ada.close()
        await ada.backup(tmp_path / "copy")
        await ada.open(tasks)
        await store(ada, "said after the backup was made")
        await ada.meet()
        first = (await ada.team()).origin
        copy = Home("ada-desktop", tmp_path / "copy", ada.address)
        await copy.open(tasks)
        await store(copy, "said by the copy alone")
        with pytest.raises(Unavailable, match="copied or restored"):
            await copy.meet()
        for home in (copy, ada, grace, copy):
            await home.meet()
        assert (await copy.team()).origin != first == (await ada.team()).origin
        held = await ada.held("shop")
        assert {one.wording.content for one in held} == {
            "said before the backup was made",
            "said after the backup was made",
            "said by the copy alone",
        }
        assert held == await grace.held("shop") == await copy.held("shop")
        for home in (ada, grace, copy):
            await home.close()
        tasks.cancel_scope.cancel()


async def test_what_a_member_sends_that_no_home_tells_is_refused_and_keeps_nobody_waiting(
    homes: tuple[Home, Home],
) -> None:
    """A member's login may push what its holder likes; only memories' own events are merged, as what they
    say that they are about, and within bounds.
    """
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        for home, person in zip(homes, ("Ada", "Grace"), strict=True):
            await home.open(tasks)
            await home.join(TEAM, person, "shop")
        mine = await store(ada, "the ledger is kept in cents")
        await ada.meet()
        await grace.meet()
        bodies: list[tuple[str, str, Any]] = [
            ("share.left@1", mine, ShareLeft(team=TEAM)),
            ("payload.erased@1", mine, erased(1, 2, 3)),
            ("memory.edited@1", "mem-00000000000000aa", edited(mine, "the ledger is kept in the attic")),
            ("memory.edited@1", mine, b'{"type":"memory.edited@1","memory_id":7}'),
            ("memory.edited@1", mine, b"\xff\xfe"),
            ("memory.stored@2", LARGE, stored(LARGE, "x" * 1_500_000)),
            (
                "memory.superseded@1",
                mine,
                MemorySuperseded(memory_id=mine, superseded_by="ghp_0123456789abcdefghij", reason="no"),
            ),
            (
                "memory.stored@2",
                CHECKPOINT,
                stored(CHECKPOINT, "half way", event_type="checkpoint"),
            ),
            ("memory.stored@2", FINE, stored(FINE, "what comes after is merged", priority=77)),
        ]
        async with grace.at_post(await grace.team()) as post:
            head = await post.enrol(HOSTILE, "elsewhere")
            hlc = time.time_ns() // 1_000_000 << 16
            for number, (tag, subject, body) in enumerate(bodies, 1):
                data = body if isinstance(body, bytes) else CODEC.encode(body)
                one = fact(HOSTILE, number, subject, tag, body=data, hlc=hlc + number)
                head = await post.push(HOSTILE, [one], head)
        await ada.meet()
        held = {one.memory_id: one for one in await ada.held("shop")}
        assert {*held} == {mine, FINE}
        assert held[mine].wording.content == "the ledger is kept in cents"
        assert held[FINE].wording.priority == 5
        status = await told(ada)
        assert (status["trouble"], status["team"]) == (None, TEAM)
        assert (await ada.call("log.verify"))["ok"]
        for home in homes:
            await home.close()
        tasks.cancel_scope.cancel()


async def serve_and_join(tasks: TaskGroup, *homes: Home) -> None:
    for home, person in zip(homes, ("Ada", "Grace"), strict=True):
        await home.open(tasks)
        await home.join(TEAM, person, "shop")


async def both_hold_the_same(ada: Home, grace: Home) -> list[agreement.Held]:
    for home in (ada, grace, ada, grace):
        await home.meet()
    held = await ada.held("shop")
    assert held == await grace.held("shop")
    async with ada.at_post(await ada.team()) as post:
        assert held == await held_at_post(post, "shop")
    return held


async def test_who_leaves_and_comes_back_has_missed_nothing_and_counts_nothing_twice(
    homes: tuple[Home, Home],
) -> None:
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        await serve_and_join(tasks, *homes)
        first = await store(ada, "the ledger is kept in cents")
        await ada.meet()
        await grace.meet()
        for home in homes:
            await home.call("memory.rate", memory_id=first, rating="helpful")
        await both_hold_the_same(*homes)
        await ada.call("share.leave")
        await ada.close()
        await ada.open(tasks)
        await grace.call("memory.edit", memory_id=first, content="the ledger is kept in tenths of cents")
        await grace.call("memory.rate", memory_id=first, rating="helpful")
        await store(ada, "said while nobody was told of it")
        await grace.meet()
        await ada.join(TEAM, "Ada")
        await ada.meet()
        await ada.call("share.choose", project="shop")
        held = await both_hold_the_same(*homes)
        assert [(one.wording.content, one.rating) for one in held if one.memory_id == first] == [
            ("the ledger is kept in tenths of cents", 3)
        ]
        assert len(held) == 2
        for home in homes:
            await home.close()
        tasks.cancel_scope.cancel()


async def test_the_later_of_two_rewordings_made_apart_holds_in_all_that_it_says(
    homes: tuple[Home, Home],
) -> None:
    """It tells of no day, so the memory is of none any more, in whatever order the two are heard."""
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        await serve_and_join(tasks, *homes)
        memory_id = await store(ada, "the ledger is kept in cents")
        for home in homes:
            await home.meet()
        await ada.call(
            "memory.upsert",
            memory_id=memory_id,
            content="the ledger is kept in tenths of cents",
            event_type="decision",
            project="shop",
            source="ticket 7",
            confidence=0.5,
            referenced_date="2026-01-31",
            timestamp="2026-01-01",
        )
        await grace.call("memory.edit", memory_id=memory_id, content="the ledger is kept in mills")
        (held,) = await both_hold_the_same(*homes)
        wording = held.wording
        assert wording.content == "the ledger is kept in mills"
        assert (wording.source, wording.confidence, wording.referenced_at) == ("unnamed client", 1.0, None)
        async with reading.connected(ada.address, TEAM, DEADLINES) as at_post:
            while await at_post.fold(500):
                pass
            (there,) = await all_held(at_post, "shop")
        assert (there.content, there.source, there.referenced_us) == (wording.content, wording.source, None)
        for home in homes:
            assert (await home.call("views.verify"))["ok"]
            await home.close()
        tasks.cancel_scope.cancel()


async def test_a_server_that_was_restored_from_a_backup_is_told_again_what_it_lacks(
    posted: Posted, homes: tuple[Home, Home]
) -> None:
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        await serve_and_join(tasks, *homes)
        first = await store(ada, "the ledger is kept in cents")
        await both_hold_the_same(*homes)
        saved = posted.sql("SELECT origin, head, head_chain, head_position, head_event FROM omegad.origins")
        await store(ada, "said after the backup of the server")
        for home in homes:
            await home.call("memory.rate", memory_id=first, rating="helpful")
        await grace.call("memory.edit", memory_id=first, content="the ledger is kept in tenths of cents")
        before = await both_hold_the_same(*homes)
        for origin, head, chain, position, event_id in saved:
            posted.sql("DELETE FROM omegad.facts WHERE origin = %s AND seq > %s", origin, head)
            posted.sql(
                "UPDATE omegad.origins SET (head, head_chain, head_position, head_event) = (%s, %s, %s, %s)"
                " WHERE origin = %s",
                *(head, chain, position, event_id, origin),
            )
        for home in homes:
            with pytest.raises(Unavailable, match="restored from a backup"):
                await home.meet()
        assert await both_hold_the_same(*homes) == before
        for home in homes:
            assert (await home.call("log.verify"))["ok"]
            await home.close()
        tasks.cancel_scope.cancel()


async def test_nobody_changes_or_erases_what_was_never_shared(homes: tuple[Home, Home]) -> None:
    ada, grace = homes
    async with anyio.create_task_group() as tasks:
        await serve_and_join(tasks, *homes)
        answer = await ada.call(
            "memory.store", content="nobody is told of the attic", event_type="decision", project="diary"
        )
        private = answer["memory_id"]
        async with grace.at_post(await grace.team()) as post:
            head = await post.enrol(HOSTILE, "elsewhere")
            hlc = time.time_ns() // 1_000_000 << 16
            told: list[tuple[str, Any]] = [
                ("memory.stored@2", stored(private, "nobody is told of the attic")),
                ("memory.edited@1", edited(private, "everybody is told of the attic")),
                ("memory.deleted@1", deleted(private)),
                ("memory.erased@1", memory_erased(private)),
            ]
            for number, (tag, event) in enumerate(told, 1):
                one = fact(HOSTILE, number, private, tag, body=CODEC.encode(event), hlc=hlc + number)
                head = await post.push(HOSTILE, [one], head)
        await ada.meet()
        await ada.it.caught_up()
        there = await ada.call("memory.get", memory_id=private)
        assert (there["content"], there["status"]) == ("nobody is told of the attic", "active")
        for home in homes:
            await home.close()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("is_admin", [False, True])
async def test_an_administrator_erases_for_all_and_another_for_themselves_alone(
    posted: Posted, tmp_path: Path, *, is_admin: bool
) -> None:
    ada = Home("ada-laptop", tmp_path / "a", posted.member("Ada"))
    grace = Home("grace-desktop", tmp_path / "g", posted.member("Grace", is_admin=is_admin))
    async with anyio.create_task_group() as tasks:
        await serve_and_join(tasks, ada, grace)
        memory_id = await store(ada, "the password of the till is under the mat")
        for home in (ada, grace):
            await home.meet()
        await grace.call("memory.erase", memory_id=memory_id)
        for home in (grace, ada):
            await home.meet()
        assert [len(await home.held("shop")) for home in (ada, grace)] == [not is_admin, 0]
        for home in (ada, grace):
            assert home.exchange.trouble is None
            await home.close()
        tasks.cancel_scope.cancel()
