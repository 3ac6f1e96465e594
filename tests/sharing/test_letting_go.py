"""Homes of a team let go of details whose time is over: what they share stays, also for who joins later, and in
a home that was restored.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from omegad.edge.transfer import log_file
from omegad.log.event import NewEvent
from omegad.runtime.errors import Unavailable
from tests.builders import append, excerpt, paths_in, queried, surfaced, tool_called
from tests.operations.test_erasing import check
from tests.sharing.homes import Home, SkewedClock, held_at_post
from tests.sharing.posts import TEAM, Posted

DAY_S = 86_400.0


async def lived(home: Home, *memory_ids: str) -> None:
    """Have a session ask for memories, be shown them, and call tools."""
    log, at = home.it.daemon.services.log, home._clock.now_us()
    for number in range(4):
        events = (
            queried(*((one, 0.9) for one in memory_ids), query_id=f"q-{home.name}-{number}", at=at),
            surfaced(*memory_ids, how="prompt", query_id=f"p-{home.name}-{number}", at=at),
            tool_called(number + 1, tool_input=excerpt("the vault" * 9), result=excerpt(memory_ids[0])),
        )
        await append(log, *(NewEvent(event=one, session_id="s-1", project="shop") for one in events))
    await home.it.caught_up()


async def later(home: Home, tasks: Any) -> None:
    """Open a home when its time is right, and have it let go."""
    home._clock = SkewedClock(0.0)
    await home.open(tasks)
    await home.it.caught_up()
    home.it.daemon.services.steadiness.accept()
    before = await counts(home)
    assert (await home.call("retention.apply"))["freed_bytes"]
    await home.it.caught_up()
    assert await counts(home) == before
    await check(home.it)


async def counts(home: Home) -> Any:
    return await home.it.daemon.services.views.read(
        lambda connection: connection.execute(
            "SELECT node_id, access_count, surfaced, last_accessed FROM memories WHERE access_count > 0 ORDER BY 1"
        ).fetchall()
    )


async def store(home: Home, content: str) -> str:
    answer = await home.call("memory.store", content=content, event_type="decision", project="shop")
    return str(answer["memory_id"])


@pytest.mark.long
async def test_what_is_shared_stays_whoever_joins_or_is_restored(posted: Posted, tmp_path: Path) -> None:
    ada = Home("ada-laptop", tmp_path / "a", posted.member("Ada"), -200 * DAY_S)
    grace = Home("grace-desktop", tmp_path / "g", posted.member("Grace"), -200 * DAY_S)
    late = Home("edith-tower", tmp_path / "e", posted.member("Edith"))
    async with anyio.create_task_group() as tasks:
        for home, person in ((ada, "Ada"), (grace, "Grace")):
            await home.open(tasks)
            await home.join(TEAM, person, "shop")
        ids = [await store(ada, "the mill runs on water"), await store(ada, "the ledger is in cents")]
        ids.append(await store(grace, "the wheel turns left"))
        for home in (ada, grace, ada):
            await home.meet()
        for home in (ada, grace):
            await lived(home, *ids)
        backup = tmp_path / "backup.db"
        await ada.close()
        log_file.copy(paths_in(tmp_path / "a").log, backup, lambda _done, _total, _what: None)
        await grace.close()
        for home in (ada, grace):
            await later(home, tasks)
        await ada.call("memory.edit", memory_id=ids[0], content="the mill runs on steam")
        for home in (ada, grace):
            await home.meet()
        await late.open(tasks)
        await late.join(TEAM, "Edith", "shop")
        await late.meet()
        async with late.at_post(await late.team()) as post:
            told = sorted(one.memory_id for one in await held_at_post(post, "shop"))
        for home in (ada, grace, late):
            assert sorted(one.memory_id for one in await home.held("shop")) == told == sorted(ids)
        await ada.close()
        log_file.put_in_place(backup, paths_in(tmp_path / "a").log, datetime.now(UTC))
        await later(ada, tasks)
        with pytest.raises(Unavailable, match="under a new name"):
            await ada.meet()
        for home in (ada, grace, late, ada):
            await home.meet()
        for home in (ada, grace, late):
            assert sorted(one.memory_id for one in await home.held("shop")) == sorted(ids)
            assert {one.wording.content for one in await home.held("shop")} == {
                "the mill runs on steam",
                "the ledger is in cents",
                "the wheel turns left",
            }, home.name
            await check(home.it)
        for home in (ada, grace, late):
            await home.close()
        tasks.cancel_scope.cancel()
