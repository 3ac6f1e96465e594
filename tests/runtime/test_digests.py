"""What is kept to tell requests and hooks apart says nothing of what they said to whoever has the log and
not the home's key.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omegad.agents.hooks import hosts
from omegad.log.event import RecordedEvent
from omegad.runtime import digests
from omegad.runtime.config import Config, Paths
from omegad.runtime.digests import DigestKey, differ
from omegad.runtime.errors import Conflict, StorageFailed
from omegad.storage.database import open_writer
from omegad.storage.driver import Connection
from tests.builders import FakeClock, Served, append, delivery, everything, prompt_submitted, served

KEYWORDS = Config(model="none")
SAID = "password: hunter2"


@contextmanager
def log_of(paths: Paths) -> Iterator[Connection]:
    """Open a log that nobody serves."""
    connection = open_writer(paths.log, durable=False)
    try:
        yield connection
    finally:
        connection.close()


def guesses(method: str, params: dict[str, Any]) -> set[bytes]:
    """Return the digests that somebody makes who guessed what was said, and has no key."""
    ordered = method.encode() + b"\0" + msgspec.json.encode(params, order="deterministic")
    return {blake2b(ordered, digest_size=size).digest() for size in (16, 20, 32)}


async def hooks_in(it: Served) -> list[RecordedEvent]:
    return [one for one in await everything(it.daemon.services.log) if getattr(one.event, "delivery", None)]


async def test_nothing_in_the_log_is_a_digest_that_a_guess_can_be_held_against(
    paths: Paths, clock: FakeClock
) -> None:
    stored = {"content": SAID, "request_id": "r"}
    prompt: dict[str, Any] = {
        "event": "UserPromptSubmit",
        "payload": {"session_id": "s", "prompt": SAID, "cwd": "/"},
    }
    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call("memory.store", **stored)
        await it.caller.call("hook.dispatch", **prompt)
        (hook,) = await hooks_in(it)
        understood = hosts.understood(prompt["event"], prompt["payload"], "")
        assert understood
        guessed = {
            blake2b(msgspec.json.encode(understood.said), digest_size=size).hexdigest() for size in (16, 20)
        }
        assert hook.event.delivery.digest not in guessed  # type: ignore[union-attr]
    with log_of(paths) as connection:
        ((digest,),) = connection.execute("SELECT params_digest FROM requests").fetchall()
    assert digest not in guesses("memory.store", stored)
    key = paths.digest_key.read_bytes()
    assert DigestKey(key).of(b"memory.store\0" + msgspec.json.encode(stored, order="deterministic")) == digest
    assert (len(key), stat.S_IMODE(paths.digest_key.stat().st_mode)) == (32, 0o600)
    assert [
        path.name
        for path in paths.home.rglob("*")
        if path.is_file() and path != paths.digest_key and key in path.read_bytes()
    ] == []


async def test_the_same_hook_counts_once_and_the_same_request_conflicts_with_another_after_a_restart(
    paths: Paths, clock: FakeClock
) -> None:
    prompt = {
        "event": "UserPromptSubmit",
        "payload": {"session_id": "s", "prompt": SAID, "cwd": "/"},
        "occurred_at": "2026-01-01T00:00:01Z",
    }
    async with served(paths, clock, KEYWORDS) as it:
        first = await it.caller.call("memory.store", content=SAID, request_id="r")
        await it.caller.call("hook.dispatch", **prompt)
    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call("hook.dispatch", **prompt)
        assert len(await hooks_in(it)) == 1
        assert await it.caller.call("memory.store", content=SAID, request_id="r") == first
        with pytest.raises(Conflict):
            await it.caller.call("memory.store", content="something else", request_id="r")


async def test_under_another_key_the_same_request_id_is_the_same_request(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        first = await it.caller.call("memory.store", content=SAID, request_id="r")
    paths.digest_key.unlink()
    async with served(paths, clock, KEYWORDS) as it:
        assert await it.caller.call("memory.store", content=SAID, request_id="r") == first
        assert await it.caller.call("memory.store", content="something else", request_id="r") == first


async def test_digests_of_versions_that_had_no_key_are_forgotten_at_the_start_and_their_answers_are_not(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        first = await it.caller.call("memory.store", content=SAID, request_id="r")
        await append(it.daemon.services.log, prompt_submitted(SAID, delivery=delivery("d", "ab" * 16)))
    unkeyed = blake2b(SAID.encode(), digest_size=16).digest()
    with log_of(paths) as connection:
        connection.execute("UPDATE requests SET params_digest = ?", (unkeyed,))
        connection.execute(
            "INSERT INTO requests VALUES ('mcp', ?, ?, 1, 1, '{}')", (f"use-1/{unkeyed.hex()}/0", unkeyed)
        )
        connection.execute("DROP INDEX requests_unkeyed")
        connection.commit()
    async with served(paths, clock, KEYWORDS) as it:
        assert await it.caller.call("memory.store", content=SAID, request_id="r") == first
    with log_of(paths) as connection:
        assert connection.execute("SELECT client, params_digest FROM requests").fetchall() == [("", b"")]
        assert connection.execute("SELECT * FROM state_payloads").fetchall() == []
    assert unkeyed not in paths.log.read_bytes()


async def test_what_an_erasure_leaves_of_a_hook_has_no_digest_of_what_it_said(
    paths: Paths, clock: FakeClock
) -> None:
    said = "The door of the cellar opens with 4711 0815"
    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call(
            "hook.dispatch", event="UserPromptSubmit", payload={"session_id": "s", "prompt": said, "cwd": "/"}
        )
        await append(it.daemon.services.log, prompt_submitted(said, delivery=delivery("d", "ab" * 16)))
        memory_id = (await it.caller.call("memory.store", content=said))["memory_id"]
        await it.caller.call("memory.erase", memory_id=memory_id)
        found = [one.event.delivery.digest for one in await hooks_in(it)]  # type: ignore[union-attr]
        assert found == ["0" * 40, "0" * 32]
        assert await it.daemon.services.compare_state(lambda *_: None) == ()


@pytest.mark.parametrize("left", [b"", b"short", bytes(33)])
def test_a_key_that_is_none_is_made_anew(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "digest.key"
    path.write_bytes(left)
    path.with_name("digest.key.unfinished").write_bytes(b"half")
    made = digests.opened(path)
    assert len(path.read_bytes()) == digests.KEY_BYTES
    assert made.of(b"one") == digests.opened(path).of(b"one")
    assert [one.name for one in tmp_path.iterdir()] == ["digest.key"]


def test_a_key_that_others_could_read_is_made_private_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "digest.key"
    digests.opened(path)
    path.chmod(0o644)
    digests.opened(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageFailed, match="digest"):
        digests.opened(path)


def test_digests_differ_only_where_they_can_be_compared() -> None:
    one, other = DigestKey(bytes(32)), DigestKey(b"1" * 32)
    assert not differ(one.of(b"a"), one.of(b"a"))
    assert differ(one.of(b"a"), one.of(b"b"))
    assert not differ(one.of(b"a"), other.of(b"b"))
    assert not differ(b"", one.of(b"a"))
