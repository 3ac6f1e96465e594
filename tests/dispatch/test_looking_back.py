"""Queries as of an earlier moment: the answer that was given then, and what they cost and leave behind."""

import asyncio
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omegad.config import Config, Paths
from omegad.errors import Invalid, NotFound, OmegadError, Stale
from omegad.log.erasure import PayloadErased
from omegad.queries.search import answering
from omegad.views import past
from tests.builders import FakeClock, FakeModel, Served, append, everything, served

KEYWORDS = Config(model="none")


async def told(it: Served, method: str, **params: object) -> Any:
    """Return an answer without what is of the asking itself."""
    answer = await it.caller.call(method, **params)
    return {name: value for name, value in answer.items() if name not in {"as_of", "took_ms", "query_id", "stale_by"}}


def kept(paths: Paths) -> list[str]:
    return sorted(path.name for path in (paths.home / past.FOLDER).glob("*.db"))


async def test_every_query_answers_as_of_a_position_a_time_and_a_query(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        first = (await it.caller.call("memory.store", content="alpha runs on blue", project="p"))["memory_id"]
        then = await it.caller.call("memory.query", text="alpha")
        position = await it.caught_up()
        await it.caller.call("memory.edit", memory_id=first, content="alpha runs on green")
        at = (await everything(it.daemon.services.log))[position - 1]
        await it.caller.call("memory.delete", memory_id=first)
        assert (await it.caller.call("memory.query", text="alpha"))["abstained"]
        for as_of in (position, str(position), then["query_id"]):
            found = await it.caller.call("memory.query", text="alpha", as_of=as_of)
            assert [one["content"] for one in found["results"]] == ["alpha runs on blue"], as_of
        assert found["results"] == then["results"]
        assert found["as_of"]["is_comparable"]
        assert found["as_of"]["changed"] == {}
        assert (await told(it, "memory.get", memory_id=first, as_of=position))["status"] == "active"
