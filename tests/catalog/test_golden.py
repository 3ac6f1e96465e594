"""Every shape of every event that was ever released decodes for ever. A golden file is written once, at
its release.
"""

import hashlib
import json
import re
import shutil
import subprocess
import typing
from pathlib import Path

import msgspec
import pytest

import projections
from omegad.catalog.events import CODEC, AnyEvent
from omegad.coordination.events import TaskMissed
from omegad.log.codec import Codec, Payload, tag_of
from omegad.log.erasure import PayloadErased
from omegad.log.event import Erased, Event, Unknown
from omegad.search.events import MemoryRead
from omegad.session.events import DeliveriesExpired, HookNoted
from omegad.sharing.events import FactsTold, ShareChosen, ShareWithdrawn
from tests.builders import append, everything, proof, queried, recorded, running_log
from tests.released import FILES, SUMS, tag_in

EACH = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
KINDS: tuple[type[Event], ...] = typing.get_args(AnyEvent)

NOT_SHOWN: dict[type[Event], str] = {
    PayloadErased: (
        "speaks of payloads, which no view shows; what it erases is absent when its own event is read again"
    ),
    TaskMissed: "keeps from telling a session twice; nobody is asked for it",
    DeliveriesExpired: "speaks of what decisions rely on; what happened stays in every view",
    MemoryRead: "is there for the log's readers, and says nothing of what the memories are",
    **dict.fromkeys(
        (ShareChosen, ShareWithdrawn, FactsTold),
        "says what the exchange with the team relies on; `share.status` shows it",
    ),
    HookNoted: "is there for the log's readers: nothing followed from it",
}


@EACH
def test_a_released_payload_decodes_to_its_event(path: Path) -> None:
    body, tag = path.read_bytes(), tag_in(path)
    event = CODEC.decode(tag, body)
    assert isinstance(event, Event)
    if tag in CODEC.kinds:
        assert type(event) is CODEC.kinds[tag]
        assert _with_the_names_of(json.loads(body), json.loads(CODEC.encode(event))) == json.loads(body)
    else:
        assert tag in CODEC.upcasters


def test_between_them_the_golden_payloads_of_an_event_leave_no_field_at_its_default() -> None:
    """A field that is in none of them would be one whose change nothing notices."""
    given: dict[str, set[str]] = {}
    for path in FILES:
        given.setdefault(tag_in(path), set()).update(json.loads(path.read_bytes()))
    assert {
        f"{tag} {name}"
        for tag, kind in CODEC.kinds.items()
        for name in {"type", *kind.__struct_fields__} - given[tag]
    } == set()


def test_no_golden_payload_was_ever_written_again() -> None:
    """A shape that changes is a file of its own: `tag@N.2.json`, with a line of its own in `SHA256SUMS`
    (`sha256sum *.json` there).
    """
    found = {f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in FILES}
    assert found == set(SUMS.read_text().splitlines())


@pytest.mark.skipif(
    not (Path(__file__).parents[2] / ".git").exists() or not shutil.which("git"),
    reason="the history is not here",
)
def test_the_list_of_golden_payloads_only_ever_gained_lines() -> None:
    """A line that was there once stands for bytes that are in somebody's log."""
    asked = ["git", "log", "--follow", "--format=", "-p", "--unified=0", "--", SUMS.name]
    history = subprocess.run(
        asked, cwd=SUMS.parent, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    ever = set(re.findall(r"^\+([0-9a-f]{64}  .+)$", history, re.MULTILINE))
    assert ever - set(SUMS.read_text().splitlines()) == set()


def test_files_of_one_version_are_numbered_from_the_first() -> None:
    numbered = {tag: sorted(path.stem for path in FILES if tag_in(path) == tag) for tag in map(tag_in, FILES)}
    assert {
        tag: sorted([tag, *(f"{tag}.{n}" for n in range(2, len(names) + 1))])
        for tag, names in numbered.items()
    } == numbered


def test_every_event_has_a_golden_payload() -> None:
    assert {tag_of(kind) for kind in KINDS} - set(map(tag_in, FILES)) == set()


def test_every_golden_payload_is_an_event_of_today_or_can_be_lifted_to_one() -> None:
    assert set(map(tag_in, FILES)) - set(CODEC.kinds) - set(CODEC.upcasters) == set()


def test_tags_are_unique_and_say_noun_past_verb_and_version() -> None:
    tags = [tag_of(kind) for kind in KINDS]
    assert len(set(tags)) == len(tags) == len(CODEC.kinds)
    assert [
        tag
        for tag in tags
        if not re.fullmatch(r"[a-z]+\.(?:[a-z_]+ed|read|left|chosen|told|withdrawn)@[1-9][0-9]*", tag)
    ] == []


def test_every_event_is_shown_by_a_projection_or_excused_by_name() -> None:
    shown = {kind for projection in projections.ALL for kind in projection.EVENTS}
    assert set(KINDS) - shown == set(NOT_SHOWN)
    assert all(NOT_SHOWN.values())


def test_every_event_is_frozen_and_described() -> None:
    for kind in KINDS:
        assert kind.__struct_config__.frozen
        assert kind.__doc__


def test_an_old_payload_is_lifted_step_by_step() -> None:
    def one(payload: Payload) -> Payload:
        return {**payload, "type": "memory.hidden@2", "reason": "none given"}

    def two(payload: Payload) -> Payload:
        return {"type": "memory.deleted@1", "memory_id": payload["id"], "reason": payload["reason"]}

    codec = Codec(AnyEvent, {"memory.hidden@1": one, "memory.hidden@2": two})
    event = codec.decode("memory.hidden@1", b'{"type":"memory.hidden@1","id":"mem-1"}')
    assert event == CODEC.decode(
        "memory.deleted@1", b'{"type":"memory.deleted@1","memory_id":"mem-1","reason":"none given"}'
    )
    assert codec.decode("memory.hidden@2", b'{"type":"memory.hidden@2","id":"mem-1","reason":"r"}') != event


def test_a_step_that_leads_nowhere_is_told_and_keeps_the_bytes() -> None:
    body = b'{"type":"memory.hidden@1"}'
    found = Codec(AnyEvent, {"memory.hidden@1": lambda payload: {**payload, "type": "memory.gone@1"}}).decode(
        "memory.hidden@1", body
    )
    assert isinstance(found, Unknown)
    assert (found.tag, found.body, bool(found.problem)) == ("memory.hidden@1", body, True)


def test_an_unknown_tag_is_kept_byte_for_byte() -> None:
    body = b'{"type":"memory.merged@7",  "z":1,"a":[1.0,1e400,"\\u00e9"]}'
    assert CODEC.decode("memory.merged@7", body) == Unknown(tag="memory.merged@7", body=body)
    assert CODEC.decode("memory.merged@7", body.decode()) == Unknown(tag="memory.merged@7", body=body)


def test_an_absent_payload_is_erased_whatever_its_tag() -> None:
    assert CODEC.decode("memory.stored@1", None) == Erased(tag="memory.stored@1")
    assert CODEC.decode("memory.merged@7", None) == Erased(tag="memory.merged@7")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"type":"memory.deleted@1"}',
        b'{"type":"memory.deleted@1","memory_id":"m","mood":"a field of tomorrow"}',
        b'{"type":"memory.stored@1","memory_id":3}',
        b"\xff",
        CODEC.encode(queried()),
    ],
)
def test_a_payload_that_is_not_what_its_tag_promises_is_kept_with_what_is_wrong_with_it(body: bytes) -> None:
    found = CODEC.decode("memory.deleted@1", body)
    assert isinstance(found, Unknown)
    assert (found.tag, found.body) == ("memory.deleted@1", body)
    assert found.problem


async def test_a_log_with_an_unknown_event_opens_and_keeps_its_bytes(tmp_path: Path) -> None:
    class MemoryMerged(Event, frozen=True, kw_only=True, tag="memory.merged@7"):
        into: str

    async with running_log(tmp_path / "log.db") as log:
        await append(log, MemoryMerged(into="mem-1"), queried())
    async with running_log(tmp_path / "log.db") as log:
        first, second = await everything(log)
        assert first.event == Unknown(
            tag="memory.merged@7", body=b'{"type":"memory.merged@7","into":"mem-1"}'
        )
        assert second.event == queried()
        assert proof(log).ok


def test_a_recorded_event_is_told_apart_by_its_place() -> None:
    assert recorded(queried(), 1) != recorded(queried(), 2)
    assert msgspec.structs.replace(recorded(queried(), 2), position=1) != recorded(queried(), 1)


def _with_the_names_of(wanted: object, found: object) -> object:
    """Return *found* without the fields that *wanted* does not have, at any depth: what has its default
    there.
    """
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {
            name: _with_the_names_of(value, found[name]) for name, value in wanted.items() if name in found
        }
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [_with_the_names_of(*pair) for pair in zip(wanted, found, strict=True)]
    return found
