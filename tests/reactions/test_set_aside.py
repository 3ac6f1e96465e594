"""What a reaction failed on is kept over restarts, listed, and tried again when somebody says so."""

import io
from pathlib import Path
from typing import Any

import pytest

from omegad.edge.transfer import lines
from omegad.knowledge.ripple_reaction import Ripple
from omegad.log import dead_letters
from omegad.log.dead_letters import DeadLetter
from omegad.log.event import RecordedEvent
from omegad.memory.upkeep import expiry
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, NotFound, StorageFull
from tests.builders import FakeClock, Served, append, everything, rated, running_log, served, stored, until

KEYWORDS = Config(model="none")
SAID = "The door of the cellar opens with 4711 0815"


def broken(*_: object) -> Any:
    raise RuntimeError(f"a mistake; it had {SAID} before it")


async def fails(it: Served, monkeypatch: pytest.MonkeyPatch) -> str:
    """Store a memory on which a reaction fails, and return its id."""
    with monkeypatch.context() as patched:
        patched.setattr(Ripple, "react", broken)
        memory_id = str((await it.caller.call("memory.store", content=SAID))["memory_id"])
        await until(lambda: it.daemon.reactions.status()["ripple"].set_aside)
    return memory_id


async def test_what_was_set_aside_is_listed_after_a_restart_and_done_when_it_is_tried_again(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        await fails(it, monkeypatch)
    async with served(paths, clock, KEYWORDS) as it:
        await it.caught_up()  # the reaction, which goes through what it has not saved having done
        (one,) = (await it.caller.call("reaction.list"))["set_aside"]
        assert (one["reaction"], one["position"], one["is_slot"], one["tries"]) == ("ripple", 1, False, 3)
        assert one["error"].startswith("RuntimeError: a mistake")
        status = await it.caller.call("system.status")
        assert [told for told in status["degraded"] if "ripple" in told and "omegad reaction retry" in told]
        with monkeypatch.context() as patched:
            patched.setattr(Ripple, "react", broken)
            again = await it.caller.call("reaction.retry")
            assert (again["done"], [(left["position"], left["tries"]) for left in again["failed"]]) == (
                0,
                [(1, 4)],
            )
        asked: list[int] = []

        def note(_self: Ripple, recorded: RecordedEvent, _reader: object) -> tuple[()]:
            asked.append(recorded.position)
            return ()

        with monkeypatch.context() as patched:
            patched.setattr(Ripple, "react", note)
            assert await it.caller.call("reaction.retry", reaction="ripple", position=1) == {
                "done": 1,
                "forgotten": 0,
                "failed": [],
            }
        assert asked == [1]
        assert (await it.caller.call("reaction.list"))["total"] == 0
        assert (await it.caller.call("system.status"))["reactions"]["ripple"]["set_aside"] == 0
    async with served(paths, clock, KEYWORDS) as it:
        assert (await it.caller.call("reaction.list"))["total"] == 0


async def test_a_slot_that_was_set_aside_is_tried_again(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        with monkeypatch.context() as patched:
            patched.setattr(expiry, "due", broken)
            await it.expire()
        found = [
            one for one in (await it.caller.call("reaction.list"))["set_aside"] if one["reaction"] == "expiry"
        ]
        assert [one["is_slot"] for one in found][:1] == [True]
        assert (await it.caller.call("reaction.retry", reaction="expiry"))["failed"] == []


async def test_what_nobody_can_do_any_more_is_let_go_of(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        gone = DeadLetter(
            "a reaction of long ago",
            7,
            is_slot=False,
            failed_at=clock.now_us(),
            tries=3,
            error="KeyError: 'x'",
        )
        await it.daemon.services.log.on_writer(lambda connection: dead_letters.add(connection, gone))
        (left,) = (await it.caller.call("reaction.retry"))["failed"]
        assert "there is no reaction" in left["error"]
        with pytest.raises(NotFound):
            await it.caller.call("reaction.retry", reaction="another")
        with pytest.raises(Invalid):
            await it.caller.call("reaction.retry", position=7)
        first = await it.caller.call("reaction.retry", forget=True, request_id="r")
        assert first == {"done": 0, "forgotten": 1, "failed": []}
        assert (await it.caller.call("reaction.list"))["total"] == 0


async def test_one_that_cannot_be_tried_now_stays_as_it_is(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Any:
        raise StorageFull("the disk is full")

    async with served(paths, clock, KEYWORDS) as it:
        await fails(it, monkeypatch)
        before = await it.caller.call("reaction.list")
        with monkeypatch.context() as patched:
            patched.setattr(Ripple, "react", full)
            with pytest.raises(StorageFull):
                await it.caller.call("reaction.retry")
        assert await it.caller.call("reaction.list") == before


async def test_an_erasure_takes_the_words_out_of_what_is_told_of_a_failure(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await fails(it, monkeypatch)
        assert SAID in str(await it.caller.call("reaction.list"))
        await it.caller.call("memory.erase", memory_id=memory_id)
        assert SAID not in str([await it.caller.call("reaction.list"), await it.caller.call("system.status")])
        assert (await it.caller.call("reaction.retry"))["failed"] == []  # its event says nothing any more
    assert SAID.encode() not in paths.log.read_bytes()


async def test_only_so_much_is_kept_of_each(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:

        def many(connection: Any) -> list[DeadLetter]:
            for position in range(dead_letters.KEPT_MAX + 5):
                dead_letters.add(
                    connection,
                    DeadLetter("a", position, is_slot=False, failed_at=1, tries=3, error="E: " + "x" * 2_000),
                )
            dead_letters.add(
                connection, DeadLetter("b", 1, is_slot=True, failed_at=1, tries=3, error="E: \ud800")
            )
            return dead_letters.every(connection)

        found = await log.on_writer(many)
        assert (len(found), found[0].position, len(found[0].error), found[-1].name) == (
            dead_letters.KEPT_MAX + 1,
            5,
            dead_letters.ERROR_CHARACTERS,
            "b",
        )


async def test_it_goes_along_when_the_log_is_exported(tmp_path: Path) -> None:
    one = DeadLetter("capture", 1, is_slot=False, failed_at=5, tries=3, error="KeyError: 'x'")
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored(), rated())
        assert len(await everything(log)) == 2
        await log.on_writer(lambda connection: dead_letters.add(connection, one))
    out = io.BytesIO()
    lines.export(tmp_path / "log.db", out, lambda *_: None)
    (tmp_path / "made.db").touch()
    lines.make_log(io.BytesIO(out.getvalue()), tmp_path / "made.db", lambda *_: None)
    async with running_log(tmp_path / "made.db") as log:
        assert await log.on_writer(dead_letters.every) == [one]
