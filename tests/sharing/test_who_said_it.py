"""Whose a memory is: shown wherever a memory is, and asked for by name."""

from typing import Any

import pytest

from omegad.memory import owner
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid
from tests.builders import FakeClock, Served, edited, served
from tests.sharing.foreign import ForeignHome, join

KEYWORDS = Config(model="none")
OWNED = ("person", "machine", "agent")
EXPORT, RETRY = "The export needs fetch_size 500", "Retries of the export back off with jitter"


def who(memory: Any) -> tuple[str | None, ...]:
    return tuple(memory.get(name) for name in OWNED)


def ids(page: Any, of: str = "memories") -> set[str]:
    return {one["memory_id"] for one in page[of]}


async def store(it: Served, content: str, **changes: Any) -> str:
    answer = await it.other("claude-code").call(
        "memory.store", content=content, project="shop", event_type="decision", **changes
    )
    memory_id: str = answer["memory_id"]
    return memory_id


async def team(it: Served) -> tuple[str, str, ForeignHome]:
    """Let Ada's home have a memory of its own, and one of Grace's."""
    own = await store(it, EXPORT)
    await join(it)
    grace = ForeignHome(it)
    await grace.stores("mem-of-grace", RETRY, event_type="decision")
    return own, "mem-of-grace", grace


async def test_who_said_each_of_a_list_is_looked_up_once(paths: Paths, clock: FakeClock) -> None:
    sql = f"EXPLAIN QUERY PLAN SELECT {owner.OWNER} FROM {owner.OWNED} ORDER BY m.id DESC"
    async with served(paths, clock, KEYWORDS) as it:
        plan = await it.daemon.services.views.read(lambda views: views.execute(sql).fetchall())
    steps = [step for *_, step in plan]
    assert [step.split()[1] for step in steps] == ["m", "w", "o"], steps


async def test_who_said_a_memory_is_told_wherever_it_is_shown(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        own, other, grace = await team(it)
        call = it.caller.call
        said = {own: ("Ada", "ada-laptop", "claude-code"), other: ("Grace", "grace-desktop", "codex")}
        for memory_id, expected in said.items():
            assert who(await call("memory.get", memory_id=memory_id)) == expected
        for page, of in (
            (await call("memory.list"), "memories"),
            (await call("memory.query", text="export", mode="keyword"), "results"),
        ):
            assert {one["memory_id"]: who(one) for one in page[of]} == said
            assert {one["memory_id"]: one.get("elsewhere", False) for one in page[of]} == {
                own: False,
                other: True,
            }
        days = (await call("memory.timeline"))["days"]
        assert {one["memory_id"]: who(one) for day in days for one in day["memories"]} == said
        await call("memory.link", memory_id=own, target_id=other)
        assert {
            one["memory_id"]: who(one) for one in (await call("memory.traverse", memory_id=own))["nodes"]
        } == said
        (like,) = (await call("memory.similar", memory_id=own))["results"]
        assert who(like) == said[other]
        await grace.tells(edited(other, f"{RETRY}, at most five"))
        await call("memory.edit", memory_id=other, content=f"{RETRY}, at most six")
        life = (await call("memory.history", memory_id=other))["events"]
        assert [(one["tag"].partition("@")[0], one["person"], one["machine"]) for one in life] == [
            ("memory.stored", "Grace", "grace-desktop"),
            ("memory.linked", "Ada", "ada-laptop"),
            ("memory.edited", "Grace", "grace-desktop"),
            ("memory.edited", "Ada", "ada-laptop"),
        ]


async def test_nobody_is_named_of_a_home_that_is_in_no_team(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        call = it.caller.call
        own = await store(it, EXPORT)
        assert who(await call("memory.get", memory_id=own)) == (None, None, None)
        (found,) = (await call("memory.query", text="export", mode="keyword"))["results"]
        assert not {*OWNED, "elsewhere"} & found.keys()
        (event,) = (await call("memory.history", memory_id=own))["events"]
        assert (event["person"], event["machine"]) == (None, None)
        assert ids(await call("memory.list", whose="mine")) == {own}
        assert ids(await call("memory.list", whose="others")) == set()
        with pytest.raises(Invalid, match="nobody is called 'Ada'"):
            await call("memory.list", person="Ada")


async def test_what_others_said_stays_theirs_when_the_home_leaves_the_team(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        own, other, _ = await team(it)
        await it.caller.call("share.leave")
        assert who(await it.caller.call("memory.get", memory_id=own)) == (None, None, None)
        assert who(await it.caller.call("memory.get", memory_id=other))[0] == "Grace"
        assert ids(await it.caller.call("memory.list", whose="others")) == {other}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("settings", [KEYWORDS, Config()], ids=["by words", "with vectors"])
async def test_memories_are_asked_for_by_who_said_them(
    paths: Paths, clock: FakeClock, settings: Config
) -> None:
    async with served(paths, clock, settings) as it:
        own, other, _ = await team(it)
        await ForeignHome(it, "Ada", "ada-desktop").stores(
            "mem-of-ada", "The export of Ada", event_type="decision"
        )
        if settings is not KEYWORDS:
            await it.worked_off()
        for asked, expected in (
            ({"person": "Grace"}, {other}),
            ({"person": "Ada"}, {own, "mem-of-ada"}),
            ({"whose": "mine"}, {own, "mem-of-ada"}),
            ({"whose": "others"}, {other}),
            ({"whose": "mine", "person": "Grace"}, set()),
        ):
            assert ids(await it.caller.call("memory.list", **asked)) == expected
            assert ids(await it.caller.call("memory.similar", memory_id=own, **asked), "results") == (
                expected - {own}
            )
            for mode in ("keyword", "hybrid"):
                found = await it.caller.call("memory.query", text="the export", mode=mode, **asked)
                assert ids(found, "results") <= expected
                assert mode == "hybrid" or ids(found, "results") == expected


async def test_a_person_that_is_called_otherwise_later_is_shown_so(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        _, other, grace = await team(it)
        grace.known = type(grace.known)(origin=grace.known.origin, person="Grace H.", machine="grace-tower")
        await grace.stores("mem-2", "Ports are above 9000")
        assert who(await it.caller.call("memory.get", memory_id=other)) == (
            "Grace H.",
            "grace-tower",
            "codex",
        )
