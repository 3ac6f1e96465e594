"""Views are thrown away and come back the same: the same memories, in the same order, with the same
scores.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import product
from typing import Any

import pytest

from omegad.client import AsyncClient
from omegad.runtime.errors import OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, until

SUBJECTS = (
    "the parser",
    "the scheduler",
    "the cache",
    "the deploy script",
    "the login page",
    "the importer",
    "the test runner",
    "the log shipper",
)
FACTS = (
    "fails when {} reads a file with Windows line ends",
    "was made twice as fast by batching writes in {}",
    "needs PostgreSQL 15 in {}, and breaks on 14",
    "keeps its settings in config/{}.toml, not in the environment",
    "must never call the network while {} is under test",
    "logs to /var/log/{}.log and rotates every night",
    "was decided to stay in Python; rewriting {} in Rust was refused",
    "retries {} three times, with jitter, before giving up",
)
QUESTIONS = (
    *(
        "Windows line ends",
        "batching writes",
        "which PostgreSQL version",
        "where are the settings",
        "is the network allowed in tests",
    ),
    *(
        "log rotation",
        "why not Rust",
        "how many retries",
        "parser",
        "scheduler",
        "cache",
        "deploy script",
        "login page",
        "importer",
        "test runner",
    ),
    *(
        "the log shipper keeps its settings",
        "config/cache.toml",
        "/var/log",
        "jitter",
        "PostgreSQL 14",
        "fails file",
        "never",
        "decided",
        "nothing of",
    ),
    "something that no memory speaks of: zebras",
)
MODES = ("hybrid", "keyword")


def _memories() -> list[dict[str, Any]]:
    kinds = ("constraint", "lesson_learned", "user_preference", "memory")
    return [
        {
            "content": (
                f"{subject.capitalize()} {fact.format(subject.removeprefix('the ').replace(' ', '_'))}"
            ),
            "event_type": kinds[number % len(kinds)],
            "tags": [subject.split()[-1]],
            "project": "atlas" if number % 3 else None,
            "priority": number % 5 + 1,
        }
        for number, (subject, fact) in enumerate(product(SUBJECTS, FACTS))
    ]


def _fill(home: Home) -> None:
    """Store the memories, one again, and delete and use some, so that the views hold more than first
    states.
    """

    async def fill() -> None:
        async with AsyncClient(home.socket, name="filler", timeout_s=PATIENCE_S) as client:
            stored = [await client.call("memory.store", **memory) for memory in _memories()]
            assert {answer["outcome"] for answer in stored} == {"stored"}
            assert (await client.call("memory.store", **_memories()[0]))["outcome"] == "duplicate"
            for answer in stored[5:50:15]:
                await client.call("memory.delete", memory_id=answer["memory_id"])
            for number in range(20):
                await client.call(
                    "tool.record",
                    session_id=f"s{number % 3}",
                    tool_name="Bash",
                    status="error" if number % 4 else "ok",
                )

    asyncio.run(fill())


def _answers(home: Home) -> list[list[tuple[Any, ...]]]:
    """Return what is found, by id: being found makes memories stronger, which orders those anew that are
    as near.
    """
    with home.client() as client:
        found = [
            client.call("memory.query", text=text, mode=mode, limit=100)
            for text, mode in product(QUESTIONS, MODES)
        ]
        assert len(found) == 50
        listed = client.call("memory.list", limit=1_000)["memories"]
    return [
        sorted((one["memory_id"], one["content"], answer["degraded"]) for one in answer["results"])
        for answer in found
    ] + [
        [
            (memory["memory_id"], memory["content"], memory["status"], memory["repeated"], memory["tags"])
            for memory in listed
        ]
    ]


def _remove(home: Home, pattern: str) -> None:
    found = list(home.path.glob(pattern))
    assert found
    for path in found:
        path.unlink()


def _lose(home: Home, *lost: str) -> None:
    assert home.stop() == 0
    for pattern in lost:
        _remove(home, pattern)
    home.start()


def _everything_is_answered_as_before(home: Home, *lost: str) -> None:
    _fill(home)
    before = _answers(home)
    assert sum(map(bool, before)) > 40, "most questions find something, so that there is something to compare"
    _lose(home, *lost)
    until(home.caught_up)
    assert _answers(home) == before
    home.check()


def test_views_that_were_removed_come_back_and_answer_the_same(daemon: Home) -> None:
    _everything_is_answered_as_before(daemon, "views*.db*")


def test_only_the_name_of_the_current_views_was_removed(daemon: Home) -> None:
    _everything_is_answered_as_before(daemon, "views.db")


def test_views_rebuilt_while_serving_answer_the_same(daemon: Home) -> None:
    _fill(daemon)
    before = _answers(daemon)
    assert daemon.call("views.rebuild")["ok"]
    assert _answers(daemon) == before
    for name in sorted(daemon.call("system.status")["views"])[::5]:
        assert daemon.call("views.rebuild", name=name)["ok"]
    assert _answers(daemon) == before
    daemon.check()


def test_what_was_stored_before_a_start_is_waited_for_and_not_taken_for_missing(
    homes: Callable[..., Home],
) -> None:
    """A daemon answers before its views are built again; what they lack is then no reason to say that it
    does not exist.
    """
    home = homes(OMEGAD_FRESH_WAIT_MS="50000").start()

    async def fill() -> str:
        async with AsyncClient(home.socket, timeout_s=PATIENCE_S) as client:
            for _ in range(40):
                await asyncio.gather(
                    *(client.call("tool.record", session_id="s", tool_name="Read") for _ in range(50))
                )
            return str(
                (await client.call("memory.store", content="The last thing before the end"))["memory_id"]
            )

    memory_id = asyncio.run(fill())
    for asked in ("memory.get", "memory.list", "memory.query"):
        _lose(home, "views*.db*")
        match asked:
            case "memory.get":
                assert home.call(asked, memory_id=memory_id)["memory_id"] == memory_id
            case "memory.list":
                assert [memory["memory_id"] for memory in home.call(asked)["memories"]] == [memory_id]
            case _:
                answer = home.call(asked, text="the last thing")
                assert ([result["memory_id"] for result in answer["results"]], answer["stale_by"]) == (
                    [memory_id],
                    0,
                )


def test_views_that_are_being_built_claim_nothing(homes: Callable[..., Home]) -> None:
    """What they do not show yet is stale, and never an answer that nothing is known."""
    home = homes(OMEGAD_FRESH_WAIT_MS="0").start()

    async def fill() -> None:
        async with AsyncClient(home.socket, timeout_s=PATIENCE_S) as client:
            for _ in range(40):
                await asyncio.gather(
                    *(client.call("tool.record", session_id="s", tool_name="Read") for _ in range(50))
                )
            await client.call("memory.store", content="The last thing before the end")

    asyncio.run(fill())
    _lose(home, "views*.db*")
    refused: list[str] = []

    def is_found() -> bool:
        try:
            answer = home.call("memory.query", text="the last thing")
        except OmegadError as error:
            refused.append(f"{error.kind}: {error}")
            return False
        assert [result["content"] for result in answer["results"]] == ["The last thing before the end"]
        return True

    until(is_found)
    assert all(message.startswith("stale: ") for message in refused)


@pytest.mark.parametrize(
    "change", ["version = version - 1", "schema_digest = 'another'"], ids=["other rows", "other tables"]
)
def test_a_daemon_of_another_version_answers_from_the_old_views_or_not_at_all(
    homes: Callable[..., Home], change: str
) -> None:
    home = homes(OMEGAD_FRESH_WAIT_MS="0").start()

    async def fill() -> None:
        async with AsyncClient(home.socket, timeout_s=PATIENCE_S) as client:
            await client.call("memory.store", content="The first thing")
            for _ in range(40):
                await asyncio.gather(
                    *(client.call("tool.record", session_id="s", tool_name="Read") for _ in range(50))
                )

    asyncio.run(fill())
    until(home.caught_up)
    before = home.call("memory.list")["memories"]
    assert home.stop() == 0
    file = home.path / (home.path / "views.db").readlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"UPDATE checkpoints SET {change} WHERE name = 'memories'")
    home.start()
    refused: list[str] = []

    def is_built() -> bool:
        state = home.call("system.status")["views"]["memories"]["state"]
        for ask in (
            partial(home.call, "memory.list"),
            partial(home.call, "memory.query", text="the first thing", mode="keyword"),
        ):
            try:
                answer = ask()
                assert "The first thing" in [
                    memory["content"] for memory in answer.get("memories") or answer["results"]
                ]
            except OmegadError as error:
                refused.append(f"{state}: {error.kind}: {error}")
        return file.name != (home.path / "views.db").readlink().name and state != "rebuilding"

    stored = home.call("memory.store", content="Stored meanwhile")
    until(is_built)
    assert stored["outcome"] == "stored"
    assert all(
        message.startswith("rebuilding: stale: the view 'memories' is being built again")
        for message in refused
    )
    if change.startswith("version"):
        assert refused == []
    until(home.caught_up)
    home.check()
    assert home.call("memory.get", memory_id=before[0]["memory_id"])["content"] == "The first thing"


@pytest.mark.model
def test_views_that_were_removed_take_their_vectors_from_the_cache(model_daemon: Home) -> None:
    _everything_is_answered_as_before(model_daemon, "views*.db*")


@pytest.mark.model
def test_vectors_that_were_removed_with_the_views_are_computed_again(model_daemon: Home) -> None:
    _fill(model_daemon)
    before = _answers(model_daemon)
    _lose(model_daemon, "views*.db*", "embeddings.db*")
    until(lambda: _answers(model_daemon) == before, lambda: f"{model_daemon.call('system.status')}")
    model_daemon.check()
