"""Nothing secret and nothing endless enters the log, whichever field of whichever event it comes in."""

import builtins
import types
import typing
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.commands.store import StoreMemory
from omegad.events import CODEC
from omegad.log.event import Event, Excerpt, NewEvent
from omegad.queries.search import QueryMemory
from omegad.redaction.sanitise import EXCERPT_BYTES, excerpt, sanitise, without_credentials
from tests.builders import append, everything, queried, running_log, stored, tool_called
from tests.redaction.test_secrets import EXAMPLES

SECRET = "ghp_" + "a1B2" * 10

PLAIN = {
    # Text fields that people and programs do not write in: ids, names, and words from fixed lists.
    "memory.stored@2": {"memory_id", "content_key", "event_type", "entity_id", "related", "redacted", "made_of"},
    "memory.embedded@1": {"memory_id", "embedder_id", "text_hashes"},
    "memory.repeated@2": {"memory_id", "likeness", "made_of"},
    "memory.related@1": {"memory_id", "related"},
    "memory.superseded@1": {"memory_id", "superseded_by"},
    "memory.erased@1": {"memory_id"},
    "memory.deleted@1": {"memory_id"},
    "memory.evolved@1": {"memory_id", "content_key", "made_of"},
    "memory.edited@1": {"memory_id", "content_key", "redacted"},
    "memory.contradicted@1": {"memory_id", "contradicted_by"},
    "memory.restored@1": {"memory_id"},
    "memory.expired@1": {"memory_id"},
    "memory.rated@1": {"memory_id", "rating"},
    "memory.promoted@1": {"memory_id", "evidence"},
    "memory.linked@1": {"memory_id", "target_id", "edge_type"},
    "memory.unlinked@1": {"memory_id", "target_id", "edge_types"},
    "memory.queried@1": {"query_id", "mode", "results", "embedder_id", "degraded", "versions"},
    "memory.surfaced@1": {"query_id", "how", "results", "embedder_id", "versions"},
    "tool.called@1": {"tool_name", "status", "tool_use_id", "delivery"},
    "session.started@1": {"host", "delivery"},
    "prompt.submitted@1": {"host", "delivery"},
    "turn.ended@1": {"host", "delivery"},
    "session.ended@1": {"host", "delivery"},
    "git.push_checked@1": {"how", "host", "verdict", "delivery"},
    "identity.changed@1": {"sha256", "revision"},
    "subagent.ended@1": {"host", "agent_id", "agent_type", "delivery"},
    "session.compacted@1": {"host", "delivery"},
    "memory.rippled@1": {"memory_id", "origin", "effects"},
    "thesis.stated@1": {"thesis_id", "memory_id"},
    "thesis.evidenced@1": {"thesis_id", "evidence_id", "memory_id", "side", "origin", "by"},
    "thesis.evidence_retracted@1": {"thesis_id", "evidence_id"},
    "thesis.revised@1": {"thesis_id", "memory_id"},
    "thesis.predicted@1": {"thesis_id"},
    "thesis.resolved@1": {"thesis_id", "outcome"},
    "finding.dismissed@1": {"rule"},
    "profile.updated@1": set(),
    "skill.improved@1": set(),
    "skill.improve_failed@1": {"reason"},
    "skill.confirmed@1": set(),
    "files.claimed@1": {"repository", "worktree", "paths", "how"},
    "branch.claimed@1": {"repository", "ref"},
    "claims.released@1": {"how", "repository", "worktree", "paths", "refs", "by"},
    "claims.contested@1": {"how", "holder", "repository", "worktree", "paths", "refs", "tool_use_id"},
    "claims.reported@1": set(),
    "task.created@1": {"task_id", "depends_on"},
    "task.claimed@1": {"task_id", "owner", "taken_from"},
    "task.progressed@1": {"task_id"},
    "task.completed@1": {"task_id"},
    "task.failed@1": {"task_id"},
    "task.cancelled@1": {"task_id"},
    "task.reopened@1": {"task_id", "owner", "checkpoint_id"},
    "task.dependency_changed@1": {"task_id", "depends_on"},
    "message.posted@1": {"message_id", "to_session", "to_project", "memory_id"},
    "message.delivered@1": {"message_ids", "intents_of"},
    "intent.announced@1": set(),
    "payload.erased@1": {"remains"},
}


def can_hold_text(hint: object) -> bool:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return any(map(can_hold_text, typing.get_type_hints(hint).values()))
    return hint in {str, object} or any(map(can_hold_text, typing.get_args(hint))) or typing.get_origin(hint) is typing.Literal


def filled(hint: object, text: str) -> Any:  # noqa: PLR0911  one for each kind of type
    """Return a value of a type with *text* wherever free text can be."""
    arguments = typing.get_args(hint)
    match typing.get_origin(hint):
        case typing.Literal:
            return arguments[0]
        case typing.Union | types.UnionType:
            return filled(arguments[0], text)
        case builtins.tuple:
            return (filled(arguments[0], text),)
        case builtins.dict:
            return {"key": text, text: [text, {"deep": [{"er": text}]}], "number": 1}
        case _:
            pass
    if hint is Excerpt:
        return Excerpt(head=text, tail=text, bytes=1, sha256="")
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint(**{name: filled(part, text) for name, part in typing.get_type_hints(hint).items()})
    return {str: text, int: 1, float: 0.5, bool: False}[hint]  # type: ignore[index]


def an_event(kind: type[Event], text: str) -> Event:
    """Return an event of *kind* with *text* in every field that is free text, and a word in those that are not."""
    hints = typing.get_type_hints(kind)
    plain = PLAIN[str(kind.__struct_config__.tag)]
    values = {name: filled(hints[name], "word" if name in plain else text) for name in kind.__struct_fields__}
    return kind(**values)


@pytest.mark.parametrize("tag", CODEC.kinds)
def test_every_text_field_is_searched_or_named_as_plain(tag: str) -> None:
    kind = CODEC.kinds[tag]
    textual = {name for name, hint in typing.get_type_hints(kind).items() if can_hold_text(hint)} - {"type"}
    event = sanitise(an_event(kind, SECRET))
    assert SECRET.encode() not in CODEC.encode(event)
    assert PLAIN[tag] <= textual
    for name in textual - PLAIN[tag]:
        assert "[REDACTED:github_token]" in msgspec.json.encode(getattr(event, name)).decode(), name


@pytest.mark.parametrize("tag", CODEC.kinds)
@given(text=st.sampled_from(sorted(EXAMPLES.values())), before=st.sampled_from(["", "see ", "(", "a=1\n"]))
def test_no_secret_of_any_kind_survives_in_any_event(tag: str, text: str, before: str) -> None:
    event = sanitise(an_event(CODEC.kinds[tag], f"{before}{text} and so on"))
    assert text not in CODEC.encode(event).decode()
    assert sanitise(event) is event


@pytest.mark.parametrize("tag", CODEC.kinds)
def test_an_event_without_secrets_is_left_as_it_is(tag: str) -> None:
    event = an_event(CODEC.kinds[tag], "plain words")
    assert sanitise(event) is event


def test_a_value_whose_name_says_that_it_is_a_secret_is_taken_out() -> None:
    event = sanitise(stored(metadata={"password": "swordfish", "note": "nothing", "nested": {"api_key": "it's 'abcd1234efgh'"}, "token": "optional"}))
    assert event.metadata == {
        "password": "[REDACTED:assigned_secret]",
        "note": "nothing",
        "nested": {"api_key": "it's 'abcd1234efgh'"},
        "token": "optional",
    }
    event = sanitise(stored(metadata={"api_key": "abcd1234efgh", "db_password": "it's'9"}))
    assert event.metadata == {"api_key": "[REDACTED:assigned_secret]", "db_password": "[REDACTED:assigned_secret]"}


REMOTE = f"https://bob:{SECRET}@github.com/o/r.git"
CLEAN_REMOTE = "https://bob:[REDACTED:github_token]@github.com/o/r.git"


def test_the_names_in_an_event_hold_no_credentials() -> None:
    assert sanitise(stored(entity_id=REMOTE)).entity_id == CLEAN_REMOTE
    assert SECRET not in sanitise(tool_called(tool_name=SECRET, tool_use_id=SECRET)).tool_name
    assert sanitise(stored(entity_id="order-17")).entity_id == "order-17"


def test_what_stores_and_what_asks_name_the_same_thing() -> None:
    envelope = without_credentials(NewEvent(event=stored(), session_id=SECRET, project=REMOTE))
    command = without_credentials(StoreMemory(content="kept", session_id=SECRET, project=REMOTE, entity_id=REMOTE, request_id=SECRET))
    query = without_credentials(QueryMemory(text="kept", session_id=SECRET, project=REMOTE, entity_id=REMOTE))
    assert envelope.project == command.project == query.project == CLEAN_REMOTE
    assert envelope.session_id == command.session_id == query.session_id
    assert command.entity_id == query.entity_id == CLEAN_REMOTE
    assert SECRET not in f"{envelope.session_id} {command.request_id}"
    assert without_credentials(command) is command


def test_a_request_without_credentials_is_left_as_it_is() -> None:
    command = StoreMemory(content=f"kept for later: {SECRET}", session_id="s-1", project="/home/bob/shop")
    assert without_credentials(command) is command


async def test_the_log_sanitises_what_is_appended(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(log, stored(content=f"the token is {SECRET}", metadata={"a": {"b": [SECRET]}}), queried(text=SECRET, filters={"tags": [SECRET]}))
        first, second = await everything(log)
    assert SECRET not in f"{first.event} {second.event}"
    assert SECRET.encode() not in (tmp_path / "log.db").read_bytes()


def test_a_short_text_is_kept_whole() -> None:
    text = "a" * 2 * EXCERPT_BYTES
    assert excerpt(text) == Excerpt(head=text, tail="", bytes=len(text), sha256=sha256(text.encode()).hexdigest())
    assert excerpt("") == Excerpt(head="", tail="", bytes=0, sha256=sha256(b"").hexdigest())


@given(text=st.text(st.sampled_from("aé漢😀\n"), min_size=1), times=st.integers(1, 30_000))
def test_a_long_text_keeps_its_head_and_tail_and_its_size(text: str, times: int) -> None:
    whole = (text * times)[:40_000]
    found, data = excerpt(whole), whole.encode()
    assert (found.bytes, found.sha256) == (len(data), sha256((found.head + found.tail).encode()).hexdigest())
    assert whole.startswith(found.head)
    assert whole.endswith(found.tail)
    if len(data) > 2 * EXCERPT_BYTES:
        assert EXCERPT_BYTES - 4 < len(found.head.encode()) <= EXCERPT_BYTES
        assert EXCERPT_BYTES - 4 < len(found.tail.encode()) <= EXCERPT_BYTES


@pytest.mark.parametrize("rest", ["", "." * 30_000])
async def test_neither_hash_nor_size_of_a_call_tells_its_secret_from_a_guess(rest: str, tmp_path: Path) -> None:
    """Whoever reads the log knows the text but for the secret, and tries passwords until the hash fits."""
    async with running_log(tmp_path / "log.db") as log:
        for number, guess in enumerate(("hunter2!", "c0rrect-horse"), 1):
            ends: dict[str, Any] = {"tool_input": excerpt(f"password: {guess}\n{rest}"), "result": excerpt(f"{rest}\nDB_PASSWORD={guess}")}
            await append(log, tool_called(number, **ends))
        first, second = [msgspec.to_builtins(recorded.event) for recorded in await everything(log)]
    assert [first[end] for end in ends] == [second[end] for end in ends]
    assert "[REDACTED:assigned_secret]" in first["tool_input"]["head"]


@pytest.mark.parametrize("offset", range(EXCERPT_BYTES - 60, EXCERPT_BYTES + 60, 7))
def test_a_secret_across_a_cut_shows_no_part_of_itself(offset: int) -> None:
    text = "." * offset + " " + SECRET + " " + "." * 30_000
    for whole in (text, text[::-1].replace(SECRET[::-1], SECRET)):
        found = excerpt(whole)
        assert SECRET[:12] not in found.head + found.tail
        assert SECRET[-12:] not in found.head + found.tail


def test_secrets_that_shrink_the_text_draw_no_part_of_another_into_it() -> None:
    """What lies beyond the cut is searched for secrets that cross it, and is not kept, however short the rest becomes."""
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA" * 180 + "\n-----END RSA PRIVATE KEY-----\n"
    half = f"{key}{key}"
    text = half + "." * (2 * EXCERPT_BYTES - len(half) - 20) + " " + SECRET + "." * 30_000
    assert SECRET[:12] not in excerpt(text).head
    text = "." * 30_000 + key + "." * 500 + key
    assert "MIIEpAIBAAKCAQEA" not in excerpt(text).tail


def test_a_tools_excerpts_are_sanitised_too() -> None:
    event = tool_called(tool_input=Excerpt(head=SECRET, tail=SECRET, bytes=2 * len(SECRET), sha256=sha256(SECRET.encode()).hexdigest()))
    clean = sanitise(event)
    mark = "[REDACTED:github_token]"
    assert clean.tool_input == Excerpt(head=mark, tail=mark, bytes=2 * len(mark), sha256=sha256((mark + mark).encode()).hexdigest())
