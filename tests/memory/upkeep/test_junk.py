"""What was captured unasked and never helped is listed, and dropped in one step that can be undone."""

from typing import Any

import pytest

from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import NotFound
from tests.builders import START_US, FakeClock, served

DAY_US = 86_400_000_000


async def test_junk_is_listed_with_reasons_and_dropped_at_once(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, Config(model="none")) as it:

        async def store(content: str, source: str = "auto_capture", **more: Any) -> str:
            return str(
                (
                    await it.caller.call(
                        "memory.store", content=content, source=source, project="shop", **more
                    )
                )["memory_id"]
            )

        async def junk(**more: Any) -> dict[str, str]:
            return {
                one["memory_id"]: one["why"]
                for one in (await it.caller.call("memory.junk", **more))["memories"]
            }

        unseen, shown = (
            await store("the linter prints a banner"),
            await store("invoices are numbered by quarter", session_id="s-1"),
        )
        bad, helpful, promoted = (
            await store("port 80 is free"),
            await store("canaries are deployed"),
            await store("never force-push"),
        )
        asked_for, gone = (
            await store("the API speaks JSON", source="user"),
            await store("a cat sat on the mat", source="hook:Stop"),
        )
        await it.caller.call("memory.query", text="invoices numbered quarter")
        await it.caller.call("memory.rate", memory_id=bad, rating="outdated")
        await it.caller.call("memory.rate", memory_id=helpful, rating="helpful")
        await it.caller.call("memory.promote", memory_id=promoted)
        await it.caller.call("memory.delete", memory_id=gone)
        assert await junk() == {}
        clock.us = START_US + 15 * DAY_US
        young = await store("the dashboard is green today")
        await it.caught_up()
        listed = await junk()
        assert listed == {bad: "rated badly", unseen: "never shown", shown: "shown, never used"}
        assert await junk(project="elsewhere") == {}
        assert set(await junk(days=0)) == {*listed, young}
        would = await it.caller.call(
            "tools.call", name="omega_maintain", arguments={"action": "junk"}, project="shop"
        )
        assert [one["id"] for one in would["structured"]["junk"]] == list(listed)

        await it.caller.call(
            "memory.rate", memory_id=shown, rating="helpful"
        )  # between the list and its drop
        pruned = await it.caller.call("memory.prune", memory_ids=[*listed, asked_for, bad])
        assert (set(pruned["deleted"]), set(pruned["kept"])) == ({bad, unseen}, {shown, asked_for})
        head = await it.caught_up()
        again = await it.caller.call("memory.prune", memory_ids=[*listed])
        assert (again["deleted"], set(again["kept"]), await it.caught_up()) == ([], set(listed), head)
        assert await junk() == {}
        await it.caller.call("memory.restore", memory_id=bad)
        assert set(await junk()) == {bad}
        with pytest.raises(NotFound):
            await it.caller.call("memory.prune", memory_ids=[bad, "mem-0"])
        done = await it.caller.call(
            "tools.call",
            name="omega_maintain",
            arguments={"action": "junk", "dry_run": False},
            project="shop",
        )
        assert done["structured"] == {"dry_run": False, "deleted": [bad], "left": 0}
        assert (await it.caller.call("memory.get", memory_id=bad))["status"] == "deleted"
