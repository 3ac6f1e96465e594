"""A memory that is erased is in no file of the home, and the log and the views verify."""

import json
import shutil
from collections.abc import Awaitable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from omegad.catalog.events import CODEC
from omegad.edge.transfer import log_file
from omegad.embedding import cache
from omegad.embedding.cache import FileLookup, text_hash
from omegad.log import erasure
from omegad.log.aging import PayloadsAged
from omegad.log.decision import Cursor
from omegad.log.erasure import PayloadErased
from omegad.log.event_log import EventLog
from omegad.log.sanitise import excerpt
from omegad.memory.events import MemoryStored
from omegad.operations import erasing
from omegad.operations.copies import find
from omegad.operations.copies import find_phrase as find_held
from omegad.runtime.config import Config, Paths
from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.search.events import QueryAged
from omegad.session.events import SurfacingAged, ToolCallAged
from omegad.storage import searching
from omegad.storage.driver import sqlite
from omegad.views import past
from omegad.views.erasing import PausedViews
from omegad.views.past import PastViews
from tests.builders import (
    EMBEDDER,
    PATIENCE_S,
    FakeClock,
    FakeModel,
    Served,
    append,
    everything,
    intent_announced,
    paths_in,
    prompt_submitted,
    queried,
    served,
    stored,
    surfaced,
    tool_called,
    until,
    vector_of,
)
from tests.embedding.fakes import get_many, put_many
from tests.log.test_sanitise import an_event

CODE = "4711 0815"
SAID = f'Anna\'s door opens with {CODE},\nnot with "ünder" the mat'
KEYWORDS = Config(model="none")
KINDS = [
    kind
    for kind in CODEC.kinds.values()
    if not kind.__name__.startswith("Memory")
    and kind not in {PayloadErased, PayloadsAged, ToolCallAged, QueryAged, SurfacingAged}
]


def holding(home: Path, *forms: bytes) -> set[str]:
    """Return the files of a home, by their place in it, that hold some bytes; looked for in another
    process, which takes no lock from this one.
    """
    return {
        str(path.relative_to(home))
        for path in searching.holding([path for path in home.rglob("*") if path.is_file()], forms)
    }


async def check(it: Served) -> None:
    await it.caught_up()
    log = await it.caller.call("log.verify")
    assert log["ok"], log
    views = await it.caller.call("views.verify")
    assert views["ok"], {name: view["problem"] for name, view in views["views"].items() if not view["equal"]}


async def store(it: Served, content: str, **more: object) -> str:
    return str((await it.caller.call("memory.store", content=content, **more))["memory_id"])


@pytest.mark.parametrize(
    "kind", [*(pytest.param(kind, marks=pytest.mark.long, id=kind.__name__) for kind in KINDS), None]
)
async def test_each_kind_of_event_that_holds_a_copy_is_cleaned_and_live_equals_a_replay(
    kind: type | None, paths: Paths, clock: FakeClock
) -> None:
    """With a copy in every text of the event that is no name; at last of all of them together."""
    async with served(paths, clock, KEYWORDS) as it:
        await append(
            it.daemon.services.log, *(an_event(one, SAID, "word") for one in KINDS if kind in {one, None})
        )
        memory_id = await store(it, SAID)
        would = await it.caller.call("memory.erase", memory_id=memory_id, dry_run=True)
        done = await it.caller.call("memory.erase", memory_id=memory_id)
        assert would["copies"] == done["copies"]
        assert len(done["copies"]) == 1 + sum(
            SAID in str(an_event(one, SAID, "word")) or "4711" in str(an_event(one, SAID, "word"))
            for one in KINDS
            if kind in {one, None}
        )
        assert (done["left"], done["rebuilt"], would["wordings"], done["wordings"]) == ([], [], [SAID], [])
        await check(it)
        assert holding(paths.home, CODE.encode()) == set()


async def test_it_is_gone_from_every_file_that_held_it(
    paths: Paths, clock: FakeClock, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "COPY_EVERY", 1)
    async with served(paths, clock) as it:
        kept = await store(it, "the cellar is dry and has shelves")
        memory_id = await store(
            it, "Anna's door has a code", session_id="s-1", tags=["door"], request_id="r-1"
        )
        await it.caller.call("memory.edit", memory_id=memory_id, content=SAID)
        vector = next(one for one in map(vector_of, model.texts) if one == vector_of(SAID))
        await it.caller.call("memory.query", text=SAID)
        position = await it.caught_up()
        await it.caller.call("memory.list", as_of=position)
        await it.daemon.services.past.copies.take()
        similar = await it.other("b").call("memory.store", content=f"{SAID} but with 4712", request_id="r-2")
        assert similar["may_replace"] or similar["related"]
        await it.caller.call("views.rebuild")
        await it.daemon.vector_sweep.write()
        before = holding(paths.home, CODE.encode())
        assert {name.removesuffix("-wal") for name in before} >= {"log.db", "views-1.db", "views-2.db"}
        assert [name.startswith("asof/copy-") for name in sorted(before) if name.startswith("asof/")] == [
            False,
            True,
        ]
        assert {name.removesuffix("-wal") for name in holding(paths.home, vector)} >= {
            "views-1.db",
            "embeddings.db",
        }
        (paths.home / "spool" / "unreadable").mkdir(parents=True)
        (paths.home / "spool" / "unreadable" / "1.json").write_text(SAID, "utf-8")
        (paths.home / "notes.txt").write_text(msgspec.json.encode(SAID).decode(), "utf-8")
        done = await it.caller.call("memory.erase", memory_id=memory_id, reason=f"it said {SAID}")
        assert {Path(one["file"]).name for one in done["left"]} == {"notes.txt"}
        (paths.home / "notes.txt").unlink()
        await check(it)
        assert holding(paths.home, CODE.encode()) | holding(paths.home, vector) == set()
        found = await it.caller.call("memory.list", as_of=position)
        assert [one["memory_id"] for one in found["memories"]] == [kept]
        assert found["as_of"]["erased"] >= 2
        for method in ("memory.get", "memory.erase", "memory.edit", "memory.restore"):
            with pytest.raises(NotFound):
                await it.caller.call(
                    method, memory_id=memory_id, **({"content": "else"} if method == "memory.edit" else {})
                )
        assert kept in {
            one["memory_id"]
            for one in (await it.caller.call("memory.query", text="the cellar is dry"))["results"]
        }
        again = await it.other("b").call("memory.store", content=f"{SAID} but with 4712", request_id="r-2")
        assert (again["memory_id"], CODE in str(again)) == (similar["memory_id"], False)


def traces(home: Path, *texts: str, alike: str = "") -> dict[str, set[str]]:
    """Return, for each text of which there are, the files that hold its hash, as hex or as it is, or its
    vector, or a part of that.

    The vector of a text like *alike* is that of the other.
    """
    found = {}
    for text in texts:
        digest, vector = text_hash(text), vector_of(text)
        parts = (
            [vector[at : at + 64] for at in range(0, len(vector), 512)] if vector != vector_of(alike) else []
        )
        forms = (digest.encode(), bytes.fromhex(digest), *parts)
        if held := holding(home, *forms):
            found[text] = held
    return found


async def test_what_was_refused_or_only_said_again_leaves_no_hash_and_no_vector(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    """Whether or not something is erased: no event names them."""
    refused, again, said = (
        "the attic is full of wasps",
        "The cellar is dry and has shelves!",
        "the cellar is dry and has shelves",
    )
    async with served(paths, clock) as it:
        kept = await store(it, said)
        with pytest.raises(NotFound):
            await it.caller.call("memory.edit", memory_id="mem-none", content=refused)
        answer = await it.caller.call("memory.store", content=again)
        assert (answer["memory_id"], answer["outcome"]) == (kept, "duplicate")
        assert {refused, again} <= set(model.texts)
        await it.worked_off()
        await until(
            lambda: {"embeddings.db-wal", "views-1.db-wal"} <= traces(paths.home, said).get(said, set())
        )
        assert traces(paths.home, refused, again, alike=said) == {}
    assert traces(paths.home, refused, again, alike=said) == {}


async def test_vectors_that_nothing_names_are_swept_from_a_home_of_before(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    said, again, refused = (
        "the cellar is dry and has shelves",
        "The cellar is dry and has shelves!",
        "the attic is full of wasps",
    )
    async with served(paths, clock) as it:
        memory_id = await store(it, said)
        await store(it, again)
        await it.worked_off()
        await until(lambda: traces(paths.home, said))
    async with cache.opened(
        paths.embeddings
    ) as vectors:  # as releases left it that wrote whatever they had computed
        await put_many(
            vectors, EMBEDDER, {text_hash(text): vector_of(text) for text in (said, again, refused)}
        )
        await vectors._run(lambda connection: connection.execute("PRAGMA user_version=0"))
    model.texts.clear()
    async with served(paths, clock) as it:
        await until(lambda: traces(paths.home, again, refused, alike=said) == {})
        assert traces(paths.home, said)
        assert await get_many(it.daemon.vector_sweep._cache, EMBEDDER, [text_hash(said)])
        await put_many(it.daemon.vector_sweep._cache, EMBEDDER, {text_hash(again): vector_of(again)})
        await it.caller.call("memory.erase", memory_id=memory_id)
        assert traces(paths.home, said, again, refused) == {}
        await check(it)


@pytest.mark.usefixtures("model")
async def test_vectors_of_what_was_stored_just_now_are_written_when_they_are_asked_for_and_at_the_end(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omegad.operations.vector_sweep.GATHER_S", 60.0)
    first, second = "the cellar is dry and has shelves", "the attic is full of wasps"
    with FileLookup(paths.embeddings) as cached:
        async with served(paths, clock) as it:
            await store(it, first)
            assert cached.find(EMBEDDER, text_hash(first)) is None
            await it.daemon.vector_sweep.write()
            assert cached.find(EMBEDDER, text_hash(first))
            await store(it, second)
            assert cached.find(EMBEDDER, text_hash(second)) is None
        assert cached.find(EMBEDDER, text_hash(second))


@pytest.mark.usefixtures("model")
async def test_vectors_that_only_a_replaced_log_named_are_swept(paths: Paths, clock: FakeClock) -> None:
    kept, later = "the cellar is dry and has shelves", "the attic is full of wasps"
    backup = paths.home / "backup"
    async with served(paths, clock) as it:
        await store(it, kept)
        await it.worked_off()
        log_file.copy(paths.log, backup, lambda _done, _total, _what: None)
        await store(it, later)
        await it.worked_off()
    assert "embeddings.db" in traces(paths.home, later)[later]
    for moved in log_file.put_in_place(backup, paths.log, datetime.now(UTC)):
        moved.unlink()
    async with served(paths, clock) as it:
        await until(lambda: traces(paths.home, later, alike=kept) == {})
        assert traces(paths.home, kept)
        await check(it)


async def test_other_memories_lose_the_copy_and_those_that_say_just_that_go(
    paths: Paths, clock: FakeClock, model: FakeModel
) -> None:
    model.same = False
    async with served(paths, clock) as it:
        twin = await store(it, SAID, project="twin")
        memory_id = await store(it, SAID, project="own")
        holder = await store(
            it,
            f"Of the house: {' '.join(SAID.split())}. The cellar is dry.",
            project="a",
            tags=["house"],
            metadata={"said": SAID},
        )
        hidden = await store(it, f"Elsewhere {SAID} holds", project="b")
        await it.caller.call("memory.delete", memory_id=hidden)
        once = await store(it, f"It was said that {SAID}", project="c")
        await it.caller.call("memory.edit", memory_id=once, content="It was said that she moved")
        await it.worked_off()
        done = await it.caller.call("memory.erase", memory_id=memory_id)
        expected = {twin: "erased", holder: "edited", hidden: "edited", once: "history"}
        assert {one["memory_id"]: one["outcome"] for one in done["memories"]} == expected
        await it.worked_off()
        await check(it)
        assert holding(paths.home, CODE.encode()) == set()
        assert (await it.caller.call("memory.get", memory_id=holder))[
            "content"
        ] == "Of the house: [erased]. The cellar is dry."
        await it.caller.call("memory.restore", memory_id=hidden)
        found = await it.caller.call("memory.query", text="elsewhere holds", project="b")
        assert [one["content"] for one in found["results"]] == ["Elsewhere [erased] holds"]
        await check(it)


async def test_what_is_cut_or_written_as_json_in_json_is_found_too(paths: Paths, clock: FakeClock) -> None:
    long = " ".join(f"Paragraph {number} speaks of {CODE} once." for number in range(400))
    nested = msgspec.json.encode({"content": msgspec.json.encode({"text": SAID}).decode()}).decode()
    async with served(paths, clock, KEYWORDS) as it:
        await append(
            it.daemon.services.log,
            tool_called(1, tool_input=excerpt(f"say: {long} end")),
            tool_called(2, tool_input=excerpt(nested)),
        )
        await it.caller.call("memory.erase", memory_id=await store(it, long))
        assert (await it.caller.call("memory.erase", memory_id=await store(it, SAID)))["copy_count"] == 2
        await check(it)
        events = [one.event for one in await everything(it.daemon.services.log)]
        heads = [msgspec.to_builtins(event)["tool_input"]["head"] for event in events[:2]]
        assert heads == ["say: [erased]", '{"content":"{\\"text\\":\\"[erased]\\"}"}']
        assert holding(paths.home, CODE.encode()) == set()


async def test_of_a_common_word_only_whole_values_are_copies(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, "tabs")
        await append(
            it.daemon.services.log,
            queried(text=" tabs ", query_id="q-1"),
            queried(text="tabs or spaces", query_id="q-2"),
        )
        done = await it.caller.call("memory.erase", memory_id=memory_id)
        assert ([one["position"] for one in done["copies"]], done["whole_values_only"]) == ([1, 2], 1)
        assert done["rebuilt"] == ["retrievals"]  # where so short a text may stand for something else
        await check(it)


async def test_a_short_password_is_erased_wherever_it_stands_alone(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        said = "the door opens with {}, and {}bird is a bird"
        memory_id = await store(it, said.format("walrus7", "walrus7"))
        await append(
            it.daemon.services.log,
            queried(text="walrus7", query_id="q-1"),
            queried(text='{"text":"first\\nwalrus7\\tlast"}', query_id="q-2"),
            queried(text="walrus72 is another", query_id="q-3"),
        )
        done = await it.caller.call("memory.erase", text="walrus7")
        assert ([one["position"] for one in done["copies"]], done["whole_values_only"]) == ([1, 2, 3], 0)
        content = (await it.caller.call("memory.get", memory_id=memory_id))["content"]
        assert content == said.format("[erased]", "walrus7")
        events = [one.event for one in await everything(it.daemon.services.log)]
        asked = [msgspec.to_builtins(one)["text"] for one in events if type(one).__name__ == "MemoryQueried"]
        assert asked == ["[erased]", '{"text":"first\\n[erased]\\tlast"}', "walrus72 is another"]
        assert holding(paths.home, b"with walrus7", b'"walrus7"', b"nwalrus7") == set()
        await check(it)


@pytest.mark.parametrize(("times", "copies"), [(1, 2), (20, 7)])
async def test_what_comes_while_it_is_being_erased_goes_too(
    times: int, copies: int, paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and again and again whenever it was looked for: the act is one append all the same."""
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, SAID)
        log = it.daemon.services.log
        genuine, numbers = log.append, iter(range(times))

        async def late(proposal: object) -> object:
            monkeypatch.setattr(log, "append", genuine)
            await append(log, queried(text=f"late: {SAID}", query_id=f"late-{next(numbers)}"))
            return await genuine(proposal)  # type: ignore[arg-type]

        found = await it.caller.call("memory.erase", memory_id=memory_id, dry_run=True)
        assert found["copy_count"] == 1
        wanted = iter(range(times))

        async def then_late(*given: object) -> object:
            result = await find(*given)  # type: ignore[arg-type]
            if next(wanted, None) is not None:
                monkeypatch.setattr(log, "append", late)
            return result

        monkeypatch.setattr("omegad.operations.erasing.find", then_late)
        assert (await it.caller.call("memory.erase", memory_id=memory_id))["copy_count"] == copies
        await check(it)
        assert holding(paths.home, CODE.encode()) == set()


LONG = f"The door of the house opens with {CODE} and with nothing else. " + " ".join(
    f"Room {number} is painted in the colour number {number * 37} of the catalogue." for number in range(30)
)
"""Longer than anything that omegad cuts."""


def leaves(text: str, of: str, least: int = 20) -> list[str]:
    """Return the runs of so many characters that a text has from another."""
    return [of[at : at + least] for at in range(len(of) - least + 1) if of[at : at + least] in text]


async def everything_shown(it: Served) -> str:
    """Return all that the log and the live views show, as text."""
    await it.worked_off() if it.daemon.services.near.embedder.embedder_id else await it.caught_up()
    events = [str(msgspec.to_builtins(one.event)) for one in await everything(it.daemon.services.log)]
    rows = await it.daemon.services.views.read(
        lambda connection: [
            str(row)
            for (table,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
            ).fetchall()
            for row in connection.execute(f'SELECT * FROM "{table}"').fetchall()
        ]
    )
    return "\n".join([*events, *rows]).replace("\\n", " ")


async def hook(it: Served, event: str, **payload: object) -> None:
    given = {"session_id": "s-1", "hook_event_name": event, "cwd": "/", **payload}
    await it.caller.call(
        "hook.dispatch", event=event, payload=given, delivery_id=f"d-{event}-{len(str(payload))}"
    )


async def test_what_omegad_cut_from_it_goes_too(paths: Paths, clock: FakeClock) -> None:
    """The checkpoint of a session, its lessons, what was shown for a prompt, what a store said that it may
    replace, what a tool showed.
    """
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, LONG, event_type="decision", request_id="r-1")
        await hook(it, "UserPromptSubmit", prompt=LONG)
        for number in range(3):
            await store(
                it, f"note {number}: the {['cellar', 'attic', 'garden'][number]} was swept", session_id="s-1"
            )
        handoff = await store(it, f"Go on: {LONG}", event_type="handoff", session_id="s-1")
        for number in range(24):
            failed = (
                {"error": LONG}
                if number in {3, 21, 22}
                else {"tool_response": {"stdout": f"it went well {number}"}}
            )
            kind = "PostToolUseFailure" if "error" in failed else "PostToolUse"
            await hook(
                it,
                kind,
                tool_name="Bash",
                tool_use_id=f"t-{number}",
                tool_input={"command": "make"},
                **failed,
            )
        shown = {"results": [{"id": memory_id, "content": f"{LONG[:100]}…"}]}
        await hook(
            it,
            "PostToolUse",
            tool_name="mcp__omegad__omega_query",
            tool_use_id="t-q",
            tool_input={"query": "door"},
            tool_response=shown,
        )
        await hook(it, "SessionEnd", reason="exit")
        await it.caught_up()
        before = [one.event for one in await everything(it.daemon.services.log)]
        made = {
            one.source: one.made_of
            for one in before
            if isinstance(one, MemoryStored) and one.made_of is not None
        }
        assert {"auto_checkpoint", "auto_procedural"} <= made.keys()
        assert made["auto_checkpoint"].memories == (handoff,)
        assert leaves(await everything_shown(it), LONG)
        done = await it.caller.call("memory.erase", memory_id=memory_id)
        assert {one["outcome"] for one in done["memories"]} == {"edited"}
        assert leaves(await everything_shown(it), LONG) == []
        found = await it.caller.call("memory.query", text="door house painted colour catalogue", limit=20)
        assert leaves(str(found), LONG) == []
        await check(it)
        assert (
            holding(paths.home, *(LONG[at : at + 40].encode() for at in range(0, len(LONG) - 40, 40)))
            == set()
        )


async def test_a_summary_is_made_again_of_what_is_left(paths: Paths, clock: FakeClock) -> None:
    contents = [
        f"The nightly export of the shop ran for {word} minutes; nothing else was slow"
        for word in ("ten", "twenty", "thirty")
    ]
    contents[1] = f"{contents[1]}. The attic door opens with {CODE}."
    async with served(paths, clock, KEYWORDS) as it:
        ids = [
            await store(it, content, event_type="advisor_insight", session_id=f"s-{number}")
            for number, content in enumerate(contents)
        ]
        done = await it.caller.call("memory.compact", threshold=0.5, request_id="r-1")
        assert [set(one["originals"]) for one in done["clusters"]] == [set(ids)]
        summary = done["clusters"][0]["memory_id"]
        assert CODE in (await it.caller.call("memory.get", memory_id=summary))["content"]
        erased = await it.caller.call("memory.erase", memory_id=ids[1])
        assert {"memory_id": summary, "outcome": "edited"} in erased["memories"]
        content = (await it.caller.call("memory.get", memory_id=summary))["content"]
        assert ("[erased]" in content, CODE in content, "twenty" in content) == (False, False, False)
        assert "thirty minutes" in content
        assert "ten minutes" in content
        await check(it)
        assert holding(paths.home, CODE.encode()) == set()


@pytest.mark.parametrize(
    "said_since",
    [
        (),
        ("memory.edit", {}),
        ("memory.upsert", {"source": "a person", "confidence": 1.0, "timestamp": "2020-01-05"}),
    ],
)
async def test_a_report_loses_its_digest_with_a_part_of_what_it_said(
    said_since: tuple[str, dict[str, Any]], paths: Paths, clock: FakeClock
) -> None:
    """Whatever somebody has had it say since: the log and the views agree, and no hash is left."""
    async with served(paths, clock, KEYWORDS) as it:
        await store(it, "Ada likes tea", entity_id="Ada", project="shop")
        saved = (await it.caller.call("lint.save"))["memory_id"]
        digest = (await it.caller.call("memory.get", memory_id=saved))["metadata"]["digest"]
        if said_since:
            method, more = said_since
            await it.caller.call(method, memory_id=saved, content="Ada is known well", **more)
        await it.caller.call("memory.erase", text="theses 0, asked in vain")
        assert "digest" not in (await it.caller.call("memory.get", memory_id=saved))["metadata"]
        await check(it)
        assert holding(paths.home, digest.encode()) == set()


async def test_what_was_shown_for_another_prompt_of_the_same_words_stays_as_it_is(
    paths: Paths, clock: FakeClock
) -> None:
    """One of them was cut from what is erased, the other was not; their rows have the same text."""
    said = f"{SAID}: {LONG[:60]}"
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, said)
        subject = said[:30]
        fillers = [intent_announced(f"paint room {number}") for number in range(9)]
        await append(
            it.daemon.services.log,
            prompt_submitted(said),
            surfaced("mem-1", how="prompt", subject=subject),
            *fillers,
        )
        await append(it.daemon.services.log, surfaced("mem-2", how="prompt", subject=subject, query_id="q-2"))
        await it.caught_up()
        await it.caller.call("memory.erase", memory_id=memory_id)
        await check(it)


async def test_a_text_with_a_nul_in_it_stays_whole_beside_what_is_taken_out(
    paths: Paths, clock: FakeClock
) -> None:
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, SAID)
        await append(it.daemon.services.log, prompt_submitted(f"{SAID}\0 and then \0 {LONG[:60]}"))
        await it.caught_up()
        await it.caller.call("memory.erase", memory_id=memory_id)
        await check(it)
        found = await it.caller.call("audit.sql", sql="SELECT content FROM conversations")
        assert "\0 and then \0" in found["rows"][0][0]


async def compacted(it: Served) -> tuple[dict[str, str], dict[str, str]]:
    """Return what was compacted, a summary among it once more, and a word of each that stands in nothing
    else; and summaries with their words.

    Each holds runs that the others have, too, and what is shorter than any run that is looked for.
    """
    marks = {
        name: f"k{number}9{name[0]}7"
        for number, name in enumerate(("ivy", "oak", "elm", "yew", "fir"), start=1)
    }
    ids = dict[str, str]()

    async def lesson(name: str) -> None:
        content = f"{marks[name]} the nightly export times out at step {name}4. Pin {marks[name]}."
        ids[name] = await store(
            it,
            content,
            project="atlas",
            event_type="lesson_learned",
            tags=[f"of {name}"],
            session_id=f"s-{name}",
        )

    async def compact(number: int, *of: str) -> str:
        asked = {"project": "atlas", "event_types": ["lesson_learned"], "threshold": 0.4, "min_cluster": 2}
        (cluster,) = (await it.other("c").call("memory.compact", **asked, request_id=f"c-{number}"))[
            "clusters"
        ]
        assert set(cluster["originals"]) == {ids[name] for name in of}
        return str(cluster["memory_id"])

    for name in ("ivy", "oak", "elm"):
        await lesson(name)
    ids["first"] = await compact(1, "ivy", "oak", "elm")
    await lesson("yew")
    ids["second"] = await compact(2, "first", "yew")
    return ids, marks


ORDERS = (
    "ivy oak elm yew",
    "yew elm oak ivy",
    "oak first ivy yew elm",
    "first elm yew ivy oak",
    "elm second oak first ivy yew",
    "ivy edit oak yew elm",
    "edit elm ivy second oak yew",
    "edit first yew oak ivy elm",
)


@pytest.mark.parametrize(
    "order", [*ORDERS[-3:], *(pytest.param(order, marks=pytest.mark.long) for order in ORDERS[:-3])]
)
async def test_nothing_is_left_in_summaries_of_what_was_erased_one_after_the_other(
    order: str, paths: Paths, clock: FakeClock
) -> None:
    """In whatever order members, members of members and summaries go, with an edit by hand between: no
    fragment, and nothing of what stays goes.
    """
    async with served(paths, clock, KEYWORDS) as it:
        ids, marks = await compacted(it)
        there = {"ivy", "oak", "elm", "yew"}
        for step in order.split():
            if step == "edit":
                said = (await it.caller.call("memory.get", memory_id=ids["second"]))["content"]
                await it.caller.call(
                    "memory.edit",
                    memory_id=ids["second"],
                    content=f"We moved it to six. {said.replace('.', ' -')}",
                )
                continue
            await it.caller.call("memory.erase", memory_id=ids[step])
            there.discard(step)
            for name in {"ivy", "oak", "elm", "yew"} - there:
                fragments = (marks[name].encode(), f"{name}4".encode(), f"of {name}".encode())
                assert holding(paths.home, *fragments) == set(), (step, name)
            for name in there:
                assert (await it.caller.call("memory.get", memory_id=ids[name]))["content"].count(
                    marks[name]
                ) == 2
        for summary in {"first", "second"} - set(order.split()):
            if "edit" in order.split() and summary == "second":
                assert (
                    "We moved it to six."
                    in (await it.caller.call("memory.get", memory_id=ids[summary]))["content"]
                )
            else:
                with pytest.raises(NotFound):
                    await it.caller.call("memory.get", memory_id=ids[summary])
        await check(it)


async def test_a_checkpoint_of_before_loses_what_it_was_cut_from(paths: Paths, clock: FakeClock) -> None:
    """Nothing in it says what it is made of; what is set in all of them stays, and so does another memory
    that begins in the same way.
    """
    old = stored(
        "mem-00000000000000a1",
        f"Checkpoint of a session in no project: 3 tool calls. Asked last: {LONG[:599]}…",
        source="auto_checkpoint",
    )
    other = stored("mem-00000000000000a2", f"{LONG[:80]} It was painted anew since.", source="me")
    async with served(paths, clock, KEYWORDS) as it:
        await append(it.daemon.services.log, old, other)
        memory_id = await store(it, LONG, project="house")
        done = await it.caller.call("memory.erase", memory_id=memory_id)
        assert done["memories"] == [{"memory_id": old.memory_id, "outcome": "edited"}]
        content = (await it.caller.call("memory.get", memory_id=old.memory_id))["content"]
        assert content == "Checkpoint of a session in no project: 3 tool calls. Asked last: [erased]…"
        assert (await it.caller.call("memory.get", memory_id=other.memory_id))["content"] == other.content
        await check(it)


async def test_what_cannot_be_finished_in_time_is_told_and_finished_as_soon_as_it_can(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "FINISH_S", 0.3)
    monkeypatch.setattr(erasing, "RETRY_S", 0.05)
    async with served(paths, clock, KEYWORDS) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.daemon.erasing.run)
        memory_id = await store(it, SAID)
        await it.caught_up()
        with closing(sqlite.connect(str(paths.home / "views-1.db"), isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            done = await it.caller.call("memory.erase", memory_id=memory_id)
            assert (done["copy_count"], bool(done["unfinished"])) == (1, True)
            assert await it.daemon.services.log.is_erasing()
            monkeypatch.setattr(erasing, "FINISH_S", PATIENCE_S)
        await until(lambda: holding(paths.home, CODE.encode()) == set())
        while await it.daemon.services.log.is_erasing():  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.01)
        await check(it)
        tasks.cancel_scope.cancel()


async def test_erasures_that_wait_for_each_other_share_one_deadline_or_are_told(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first can finish nothing; what was acknowledged is erased, and what was not is as it was."""
    monkeypatch.setattr(erasing, "FINISH_S", 1.0)
    monkeypatch.setattr(erasing, "TURN_S", 1.1)
    genuine, released = PausedViews.take_out, anyio.Event()

    async def held(*given: Any, **named: Any) -> list[str]:
        await released.wait()
        return await genuine(*given, **named)

    monkeypatch.setattr(PausedViews, "take_out", held)
    monkeypatch.setattr(erasing, "RETRY_S", 0.05)
    async with served(paths, clock, KEYWORDS) as it:
        ids = [await store(it, f"{SAID} {number * 37}") for number in range(8)]
        await it.caught_up()
        outcomes: dict[str, object] = {}

        async def erase(memory_id: str) -> None:
            try:
                outcomes[memory_id] = (await it.caller.call("memory.erase", memory_id=memory_id))[
                    "unfinished"
                ]
            except Refused as error:
                outcomes[memory_id] = error

        async with anyio.create_task_group() as asking:
            for memory_id in ids:
                asking.start_soon(erase, memory_id)
        released.set()
        refused = {memory_id for memory_id, outcome in outcomes.items() if isinstance(outcome, Refused)}
        assert 0 < len(refused) < len(ids), outcomes
        assert all(outcomes[memory_id] for memory_id in ids)
        for memory_id in refused:
            assert (await it.caller.call("memory.get", memory_id=memory_id))["content"]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.daemon.erasing.run)
            while await it.daemon.services.log.is_erasing():  # noqa: ASYNC110  nothing tells of it
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        await check(it)


async def test_an_erasure_under_way_is_left_to_itself_by_what_finishes_others(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first one's end is noted, which could not be in its time, the second one begins."""
    monkeypatch.setattr(erasing, "FINISH_S", 0.3)
    monkeypatch.setattr(erasing, "RETRY_S", 0.05)
    take_out, advance, called, begun = PausedViews.take_out, EventLog.advance, 0, anyio.Event()

    async def held(*given: Any, **named: Any) -> list[str]:
        nonlocal called
        called += 1
        if called == 1:
            await anyio.sleep_forever()
        if called == 3:
            begun.set()
            await anyio.sleep(0.15)  # so that there is another look for what is unfinished
        return await take_out(*given, **named)

    async def noted(log: EventLog, cursor: Cursor) -> None:
        if cursor == Cursor(erasure.CURSOR, erasure.DONE):
            await begun.wait()
        await advance(log, cursor)

    monkeypatch.setattr(PausedViews, "take_out", held)
    monkeypatch.setattr(EventLog, "advance", noted)
    async with served(paths, clock, KEYWORDS) as it, anyio.create_task_group() as tasks:
        first, second = await store(it, SAID), await store(it, f"{SAID} twice")
        await it.caught_up()
        assert (await it.caller.call("memory.erase", memory_id=first))["unfinished"]
        tasks.start_soon(it.daemon.erasing.run)
        monkeypatch.setattr(erasing, "FINISH_S", PATIENCE_S)
        await until(lambda: called == 2)
        assert (await it.caller.call("memory.erase", memory_id=second))["unfinished"] is None
        while await it.daemon.services.log.is_erasing():  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.01)
        await check(it)
        tasks.cancel_scope.cancel()


async def test_views_that_cannot_be_built_again_in_time_are_told_and_built_as_soon_as_they_can(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "RETRY_S", 0.05)
    async with served(paths, clock, KEYWORDS) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.daemon.erasing.run)
        views, genuine, released = it.daemon.services.views, it.daemon.services.views.rebuild, anyio.Event()
        built = erasing.Erasing._built

        async def held(*given: Any) -> object:
            await released.wait()
            return await genuine(*given)

        def built_soon(of: erasing.Erasing, ends: float) -> Awaitable[str]:
            return built(of, ends if released.is_set() else anyio.current_time() + 0.1)

        monkeypatch.setattr(views, "rebuild", held)
        monkeypatch.setattr(erasing.Erasing, "_built", built_soon)
        await it.caller.call("memory.query", text="vault")
        memory_id = await store(it, "vault")
        await it.caught_up()
        with anyio.fail_after(PATIENCE_S):
            done = await it.caller.call("memory.erase", memory_id=memory_id)
        assert done["rebuilt"] == ["retrievals"]
        assert "retrievals" in done["unfinished"]
        assert await it.daemon.services.log.is_erasing()
        released.set()
        while await it.daemon.services.log.is_erasing():  # noqa: ASYNC110  nothing tells of it
            await anyio.sleep(0.01)
        await check(it)
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("owner", "name"), [(PausedViews, "take_out"), (PastViews, "forget"), (EventLog, "advance")]
)
@pytest.mark.usefixtures("model")
async def test_what_was_interrupted_is_finished_by_the_next_start(
    owner: type, name: str, paths: Paths, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files as they are before a step, as a crash would leave them, are served anew."""
    monkeypatch.setattr(past, "COPY_EVERY", 1)
    genuine = getattr(owner, name)
    (tmp_path / "left").mkdir()
    left = paths_in(tmp_path / "left")

    async def interrupted(*given: object, **named: object) -> object:
        if not (left.home / "log.db").exists():
            shutil.copytree(paths.home, left.home, symlinks=True, dirs_exist_ok=True)
        return await genuine(*given, **named)

    async with served(paths, clock) as it:
        kept = await store(it, "the cellar is dry and has shelves")
        memory_id = await store(it, SAID)
        await append(
            it.daemon.services.log,
            tool_called(1, tool_input=excerpt(f"say: {SAID}")),
            intent_announced(f"say: {SAID}"),
        )
        await it.caught_up()
        await it.daemon.services.past.copies.take()
        with monkeypatch.context() as crashing:
            crashing.setattr(owner, name, interrupted)
            await it.caller.call("memory.erase", memory_id=memory_id)
    shutil.copytree(paths.models, left.models, dirs_exist_ok=True)
    assert (holding(left.home, CODE.encode()) == set()) == (name == "advance")
    async with served(left, clock) as it:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it.daemon.erasing.run)
                while await it.daemon.services.log.is_erasing():  # noqa: ASYNC110  nothing tells of it
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
        await it.worked_off()
        await check(it)
        assert (await it.caller.call("memory.get", memory_id=kept))["content"]
        assert holding(left.home, CODE.encode()) | holding(left.home, vector_of(SAID)) == set()
        assert not await it.daemon.services.log.is_erasing()


PHRASE = 'tok_"Zq8\\kk7/ü-41 x'
PHRASE_FORMS = (
    PHRASE.encode(),
    msgspec.json.encode(PHRASE)[1:-1],
    json.dumps(PHRASE).encode()[1:-1],
    b"Zq8",
    PHRASE.encode().hex().encode(),
)


@pytest.mark.usefixtures("model")
async def test_a_phrase_is_erased_wherever_it_stands(paths: Paths, clock: FakeClock) -> None:
    async with served(paths, clock) as it:
        said = f"the token of the shop is {PHRASE} until May"
        only = await store(it, PHRASE)
        holder = await store(
            it, said, project="shop", tags=[PHRASE], entity_id=f"account {PHRASE}", request_id=f"r {PHRASE}"
        )
        await hook(it, "UserPromptSubmit", prompt=f"use {PHRASE} please")
        await hook(
            it,
            "PostToolUse",
            tool_name="Bash",
            tool_use_id="t-1",
            tool_input={"command": f"login '{PHRASE}'"},
            tool_response={"stdout": PHRASE},
        )
        await it.caller.call("memory.query", text=f"what is {PHRASE}?")
        await it.caller.call("message.send", text=f"take {PHRASE}", to_project="shop", session_id="s-1")
        task = (await it.caller.call("task.create", title=f"rotate {PHRASE}", project="shop"))["task_id"]
        await it.caller.call("task.claim", task_id=task, session_id="s-1")
        await it.caller.call("thesis.state", statement=f"{PHRASE} is still valid", project="shop")
        await append(it.daemon.services.log, *(an_event(kind, f"in {PHRASE} out") for kind in KINDS))
        await it.caught_up()
        would = await it.caller.call("memory.erase", text=PHRASE, dry_run=True)
        assert ({one["outcome"] for one in would["memories"]}, PHRASE in str(would)) == (
            {"edited", "erased"},
            False,
        )
        assert holding(paths.home, *PHRASE_FORMS)
        done = await it.caller.call(
            "memory.erase", text=f" {PHRASE}\n", reason=f"{PHRASE} leaked", request_id="e-1"
        )
        assert (done["copy_count"], done["memory_id"], done["left"], done["names"]) == (
            would["copy_count"],
            None,
            [],
            [],
        )
        await it.worked_off()
        await check(it)
        assert holding(paths.home, *PHRASE_FORMS) == set()
        assert traces(paths.home, PHRASE, said) == {}
        assert (await it.caller.call("memory.get", memory_id=holder))[
            "content"
        ] == "the token of the shop is [erased] until May"
        assert (await it.caller.call("task.get", task_id=task))["title"] == "rotate [erased]"
        with pytest.raises(NotFound):
            await it.caller.call("memory.get", memory_id=only)
        again = await it.caller.call("memory.erase", text=PHRASE)
        assert (again["copy_count"], again["position"]) == (0, 0)
        for text in ("short one", "configuration", "ab12", "471123", holder):
            with pytest.raises(Invalid):
                await it.caller.call("memory.erase", text=text)
        with pytest.raises(Invalid):
            await it.caller.call("memory.erase", text=PHRASE, memory_id=holder)


async def test_half_a_phrase_where_omegad_cut_a_text_goes_too(paths: Paths, clock: FakeClock) -> None:
    """At the ends of what is kept of a long text, and of what was shown for a prompt."""
    phrase = "correct-horse-battery-staple-4711"
    long = f"{'x y ' * 1_018}pre {phrase}{'z w ' * 2_000}"
    async with served(paths, clock, KEYWORDS) as it:
        cut = excerpt(long)
        assert (cut.head[-16:] in phrase, phrase in cut.head) == (True, False)
        prompt = f"{'a b ' * 55}{phrase} and more of it"
        shown = surfaced("mem-1", how="prompt", subject=prompt[:240])
        await append(it.daemon.services.log, tool_called(1, result=cut), prompt_submitted(prompt), shown)
        done = await it.caller.call("memory.erase", text=phrase)
        assert done["copy_count"] == 3
        assert holding(paths.home, phrase[:10].encode(), phrase[-10:].encode()) == set()
        await check(it)


async def test_the_skill_that_a_phrase_was_noted_in_is_named(
    paths: Paths, clock: FakeClock, tmp_path: Path
) -> None:
    """Wherever it is: it is a file of the person's."""
    note = tmp_path / "skills" / "deploy" / "SKILL.md"
    note.parent.mkdir(parents=True)
    note.write_text("# deploy\n", "utf-8")
    async with served(paths, clock, Config(model="none", skills=str(tmp_path / "skills"))) as it:
        await hook(it, "UserPromptSubmit", prompt="how do we deploy this, and with what?")
        await hook(
            it, "Stop", last_assistant_message=f"Done.\nSKILL_IMPROVE: deploy | log in with {PHRASE} first"
        )
        await until(lambda: PHRASE in note.read_text("utf-8"))
        await it.caught_up()
        done = await it.caller.call("memory.erase", text=PHRASE)
        assert [one["file"] for one in done["left"]] == [str(note)]
        assert "skill.improved@1" in {one["tag"] for one in done["copies"]}
        assert holding(paths.home, *PHRASE_FORMS) == set()
        await check(it)


async def test_a_name_that_is_what_a_text_says_stays_as_it_is(paths: Paths, clock: FakeClock) -> None:
    """What goes, and the name beside another event, are the same characters in one table."""
    said = "the door opens with 4711"
    async with served(paths, clock, KEYWORDS) as it:
        memory_id = await store(it, said)
        await it.caller.call("intent.announce", session_id="s-1", text=said, paths=["door.py"])
        await it.caller.call("intent.announce", session_id=said, text="paint the door", paths=["door.py"])
        await it.caught_up()
        await it.caller.call("memory.erase", memory_id=memory_id)
        await it.caught_up()
        rows = (
            await it.caller.call("audit.sql", sql="SELECT session_id, text FROM coord_intents ORDER BY id")
        )["rows"]
        assert rows[1][0] == said
        assert said not in rows[0][1]
        await check(it)


async def test_where_copies_come_without_end_what_was_found_goes_after_some_time(
    paths: Paths, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    phrase, looks, acts = "xylophone quartz 88", list[str](), list[Any]()
    look, append_one = find_held, EventLog.append

    async def find_phrase(services: Any, text: str) -> Any:
        looks.append(text)
        return await look(services, text)

    async def append_after_another(log: EventLog, proposal: Any) -> Any:
        is_act = proposal.cursor == Cursor(erasure.CURSOR, erasure.UNDER_WAY)
        if is_act and len(acts) < 3:
            acts.append(proposal)
            await it.caller.call("memory.store", content=f"{phrase} once more {len(acts)}")
        return await append_one(log, proposal)

    async with served(paths, clock, KEYWORDS) as it:
        await it.caller.call("memory.store", content=f"the code is {phrase}")
        monkeypatch.setattr(erasing, "find_phrase", find_phrase)
        monkeypatch.setattr(EventLog, "append", append_after_another)
        monkeypatch.setattr(erasing, "TRY_S", -1.0)
        answer = await it.caller.call("memory.erase", text=phrase)
        assert len(looks) == 1
        monkeypatch.setattr(EventLog, "append", append_one)
        await it.caught_up()
    assert answer["position"]
    assert not holding(paths.home, phrase.encode())
