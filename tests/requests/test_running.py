"""Every method that takes a request_id: what was answered is neither prepared nor checked again, and
prepared once where it comes twice at once.
"""

import dataclasses
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from omegad.catalog.methods import ALL, SERVED
from omegad.log.decision import Cursor, Decision, RequestKey
from omegad.memory.types import MemoryTypes
from omegad.operations.past import PastReader
from omegad.operations.services import DaemonServices
from omegad.requests.method import CommandMethod, RequestContext, ServiceMethod
from omegad.requests.running import RequestRunner
from omegad.runtime.config import Config, Paths
from omegad.runtime.digests import DigestKey
from omegad.runtime.errors import Conflict
from tests.builders import FakeClock, Served, Written, proposal, served, stored

KEYWORDS = Config(model="none")
COMMANDS = [method for method in ALL.values() if isinstance(method, CommandMethod)]


def runner_of(services: DaemonServices) -> RequestRunner:
    """Return what runs requests, as the daemon has it."""
    return RequestRunner(
        services, ALL, PastReader(services).query, services[MemoryTypes].check_named, fresh_wait_s=0
    )


def key(name: str, digest: bytes = b"the same") -> RequestKey:
    return RequestKey(client="agent", request_id=name, params_digest=DigestKey(b"key").of(digest))


def anything(kind: type[msgspec.Struct]) -> msgspec.Struct:
    """Return parameters that no check would let pass."""
    given: dict[str, Any] = {field.name: object() for field in msgspec.structs.fields(kind) if field.required}
    return kind(**given | ({"event_type": "no such type"} if "event_type" in kind.__struct_fields__ else {}))


def watched(method: CommandMethod, prepared: list[str]) -> CommandMethod:
    """Return *method* so that it notes what is done of it."""

    async def prepare(*_: object) -> None:
        prepared.append(method.name)
        await anyio.lowlevel.checkpoint()  # so that another one can come between

    def decide(*_: object) -> Decision:
        return Decision(events=proposal(stored(f"of {method.name}")).decide(None, 0).events, answer=Written())

    return dataclasses.replace(method, prepare=prepare, decide=decide, is_internal=True)


async def test_no_command_that_was_answered_is_prepared_or_checked_again(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        runner, prepared = runner_of(it.daemon.services), list[str]()
        for method in COMMANDS:
            context = RequestContext(client="agent", delivery=key(method.name))
            first = await runner.command(watched(method, prepared), anything(method.params), context)
            head = it.daemon.services.head
            again = await runner.command(
                dataclasses.replace(watched(method, prepared), is_internal=False),
                anything(method.params),
                context,
            )
            assert (again.position, it.daemon.services.head) == (first.position, head)
            assert again.answer == msgspec.Raw(msgspec.json.encode(first.answer))
            other = RequestContext(client="agent", delivery=key(method.name, b"another"))
            with pytest.raises(Conflict):
                await runner.command(watched(method, prepared), anything(method.params), other)
        assert prepared == [method.name for method in COMMANDS]


async def test_the_same_request_twice_at_once_is_prepared_once(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        runner, prepared, positions = runner_of(it.daemon.services), list[str](), list[int]()
        method = watched(COMMANDS[0], prepared)

        async def ask() -> None:
            outcome = await runner.command(
                method, anything(method.params), RequestContext(client="agent", delivery=key("r"))
            )
            positions.append(outcome.position)

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(ask)
        assert (len(prepared), len(positions), len(set(positions))) == (1, 20, 1)
        assert not runner._under_way


async def test_one_that_is_cancelled_or_fails_lets_the_next_have_its_turn(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        runner, prepared = runner_of(it.daemon.services), list[str]()
        method, context = watched(COMMANDS[0], prepared), RequestContext(client="agent", delivery=key("r"))

        async def for_ever(*_: object) -> None:
            await anyio.sleep_forever()

        async def badly(*_: object) -> None:
            raise Conflict("as it is")

        with anyio.move_on_after(0.01):
            await runner.command(
                dataclasses.replace(method, prepare=for_ever), anything(method.params), context
            )
        with pytest.raises(Conflict):
            await runner.command(dataclasses.replace(method, prepare=badly), anything(method.params), context)
        assert (await runner.command(method, anything(method.params), context)).position
        assert len(prepared) == 1


async def test_a_reactions_command_that_was_carried_out_before_moves_its_cursor_all_the_same(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        runner, prepared = runner_of(it.daemon.services), list[str]()
        method, context = (
            watched(COMMANDS[0], prepared),
            RequestContext(client="reaction:test", delivery=key("1/1/0")),
        )
        await runner.command(method, anything(method.params), context)
        await runner.command(method, anything(method.params), context, Cursor("test", 7))
        assert (await it.daemon.services.log.cursors())["test"].position == 7
        assert len(prepared) == 1


def test_everything_that_changes_something_takes_a_request_id() -> None:
    changing = [
        method
        for method in SERVED.values()
        if isinstance(method, CommandMethod) or (isinstance(method, ServiceMethod) and method.writes)
    ]
    assert [method.name for method in changing if "request_id" not in method.params.__struct_fields__] == []


async def test_tools_that_only_look_are_asked_again(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        asked = {"name": "omega_query", "arguments": {"query": "which database?"}, "request_id": "r"}
        before = await it.caller.call("tools.call", **asked)
        await it.caller.call("memory.store", content="The database is Postgres 16")
        assert await it.caller.call("tools.call", **asked) != before
        assert await remembered(it) == 0


async def remembered(it: Served) -> int:
    """Return how many answers are kept."""
    found = await it.daemon.services.log.on_writer(
        lambda connection: connection.execute("SELECT count(*) FROM requests").fetchone()
    )
    return int(found[0])
