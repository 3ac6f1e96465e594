"""Nothing secret and nothing endless enters the log, whichever field of whichever event it comes in."""

import builtins
import json
import types
import typing
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.catalog.events import CODEC
from omegad.coordination.message import SendMessage
from omegad.log.event import Event, Excerpt, NewEvent
from omegad.log.sanitise import EXCERPT_BYTES, excerpt, excerpt_of, sanitise, without_credentials
from omegad.memory.store import StoreMemory
from omegad.search import QueryMemory
from tests.builders import append, everything, queried, running_log, stored, tool_called
from tests.text.test_secrets import EXAMPLES

SECRET = "ghp_" + "a1B2" * 10

MADE = {
    # The fields that are not searched, wherever they stand: ids of which omegad refuses any that it has not
    # made, and its own digests.
    "omegad drew or counted it itself, and refuses one that it has not made": {
        "before",
        "checkpoint_id",
        "contradicted_by",
        "depends_on",
        "evidence_id",
        "memories",
        "memory_id",
        "memory_ids",
        "message_id",
        "message_ids",
        "origin",
        "query_id",
        "stored",
        "superseded_by",
        "target_id",
        "task_id",
        "thesis_id",
    },
    "omegad made it, in digits, of what stays in the log or with the home's key": {
        "content_key",
        "digest",
        "hashes",
        "remains",
        "row_hash",
        "sha256",
        "text_hashes",
    },
}


class Filling(msgspec.Struct):
    """Makes events: with `text` wherever a text can be, `name` in what is marked as one, and a word in
    what is not searched; that is noted.
    """

    text: str
    name: str
    excused: dict[str, set[str]] = msgspec.field(default_factory=dict)

    def of(self, hint: Any, field: str = "") -> Any:  # noqa: PLR0911  one for each kind of type
        """Return a value of a type."""
        arguments = typing.get_args(hint)
        match typing.get_origin(hint):
            case typing.Annotated:
                marks = {
                    key: value
                    for meta in hint.__metadata__
                    if isinstance(meta, msgspec.Meta)
                    for key, value in (meta.extra or {}).items()
                }
                if reason := marks.get("unsearched"):
                    self.excused.setdefault(reason, set()).add(field)
                    return "word"
                return self.name if "name" in marks else self.of(arguments[0], field)
            case typing.Literal:
                return arguments[0]
            case typing.Union | types.UnionType:
                return self.of(arguments[0], field)
            case builtins.tuple | builtins.list as kind:
                return kind([self.of(arguments[0], field)])
            case builtins.dict:
                return {self.of(arguments[0], field): self.of(arguments[1], field)}
            case _:
                pass
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            hints = typing.get_type_hints(hint, include_extras=True)
            return hint(**{name: self.of(hints[name], name) for name in hint.__struct_fields__})
        if hint is object:
            return {self.text: [self.text, {"deep": [{self.text: self.text}]}], "number": 1}
        return {str: self.text, int: 1, float: 0.5, bool: False}[hint]


def an_event(kind: type[Event], text: str, name: str | None = None) -> Event:
    """Return an event of *kind* with *text* in every place of it that is searched, or *name* where that is
    one.
    """
    event: Event = Filling(text, text if name is None else name).of(kind)
    return event


def texts(value: object) -> Iterator[str]:
    """Yield every text in what JSON has, keys of what is free among them."""
    if isinstance(value, str):
        yield value
    for one in (
        [*value, *value.values()]
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else ()
    ):
        yield from texts(one)


@pytest.mark.parametrize("tag", CODEC.kinds)
def test_every_text_of_every_event_is_searched_unless_its_type_says_why_not(tag: str) -> None:
    event = an_event(CODEC.kinds[tag], SECRET)
    clean = list(texts(msgspec.to_builtins(sanitise(event))))
    assert not [text for text in clean if SECRET in text]
    marks = sum(text.startswith("[REDACTED:github_token") for text in clean)
    assert marks == sum(SECRET in text for text in texts(msgspec.to_builtins(event)))


def test_few_texts_are_not_searched_and_each_for_a_reason() -> None:
    filling = Filling(SECRET, SECRET)
    for kind in CODEC.kinds.values():
        filling.of(kind)
    assert filling.excused == MADE


def test_what_nobody_has_marked_is_searched() -> None:
    class Part(msgspec.Struct, frozen=True):
        words: dict[str, list[tuple[str, ...]]]

    class Thought(Event, frozen=True, kw_only=True, tag="thought.had@1"):
        said: str
        names: dict[str, int]
        parts: tuple[Part | None, ...]
        anything: typing.Any

    thought = Thought(
        said=SECRET,
        names={SECRET: 1},
        parts=(None, Part({SECRET: [(SECRET,)]})),
        anything={"password": ["swordfish", 1]},
    )
    mark = "[REDACTED:github_token]"
    assert sanitise(thought) == Thought(
        said=mark,
        names={mark: 1},
        parts=(None, Part({mark: [(mark,)]})),
        anything={"password": ["[REDACTED:assigned_secret]", 1]},
    )


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
    event = sanitise(
        stored(
            metadata={
                "password": "swordfish",
                "note": "nothing",
                "nested": {"api_key": "it's 'abcd1234efgh'"},
                "token": "optional",
            }
        )
    )
    assert event.metadata == {
        "password": "[REDACTED:assigned_secret]",
        "note": "nothing",
        "nested": {"api_key": "it's 'abcd1234efgh'"},
        "token": "optional",
    }
    event = sanitise(stored(metadata={"api_key": "abcd1234efgh", "db_password": "it's'9"}))
    assert event.metadata == {
        "api_key": "[REDACTED:assigned_secret]",
        "db_password": "[REDACTED:assigned_secret]",
    }


REMOTE = f"https://bob:{SECRET}@github.com/o/r.git"
CLEAN_REMOTE = "https://bob:[REDACTED:github_token]@github.com/o/r.git"


def test_the_names_in_an_event_hold_no_credentials() -> None:
    assert sanitise(stored(entity_id=REMOTE)).entity_id == CLEAN_REMOTE
    assert SECRET not in sanitise(tool_called(tool_name=SECRET, tool_use_id=SECRET)).tool_name
    assert sanitise(stored(entity_id="order-17")).entity_id == "order-17"


def test_what_stores_and_what_asks_name_the_same_thing() -> None:
    envelope = without_credentials(NewEvent(event=stored(), session_id=SECRET, project=REMOTE))
    command = without_credentials(
        StoreMemory(content="kept", session_id=SECRET, project=REMOTE, entity_id=REMOTE, request_id=SECRET)
    )
    query = without_credentials(QueryMemory(text="kept", session_id=SECRET, project=REMOTE, entity_id=REMOTE))
    assert envelope.project == command.project == query.project == CLEAN_REMOTE
    message = without_credentials(SendMessage(text="kept", session_id="s-1", to_session=SECRET))
    assert envelope.session_id == command.session_id == query.session_id == message.to_session
    assert command.entity_id == query.entity_id == CLEAN_REMOTE
    assert SECRET not in f"{envelope.session_id} {command.request_id}"
    assert without_credentials(command) is command


def test_a_request_without_credentials_is_left_as_it_is() -> None:
    command = StoreMemory(content=f"kept for later: {SECRET}", session_id="s-1", project="/home/bob/shop")
    assert without_credentials(command) is command


async def test_the_log_sanitises_what_is_appended(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await append(
            log,
            stored(content=f"the token is {SECRET}", metadata={"a": {"b": [SECRET]}}),
            queried(text=SECRET, filters={"tags": [SECRET]}),
        )
        first, second = await everything(log)
    assert SECRET not in f"{first.event} {second.event}"
    assert SECRET.encode() not in (tmp_path / "log.db").read_bytes()


def test_a_short_text_is_kept_whole() -> None:
    text = "a" * 2 * EXCERPT_BYTES
    assert excerpt(text) == Excerpt(
        head=text, tail="", bytes=len(text), sha256=sha256(text.encode()).hexdigest()
    )
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
async def test_neither_hash_nor_size_of_a_call_tells_its_secret_from_a_guess(
    rest: str, tmp_path: Path
) -> None:
    """Whoever reads the log knows the text but for the secret, and tries passwords until the hash fits."""
    async with running_log(tmp_path / "log.db") as log:
        for number, guess in enumerate(("hunter2!", "c0rrect-horse"), 1):
            ends: dict[str, Any] = {
                "tool_input": excerpt(f"password: {guess}\n{rest}"),
                "result": excerpt(f"{rest}\nDB_PASSWORD={guess}"),
            }
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
    """What lies beyond the cut is searched for secrets that cross it, and is not kept, however short the
    rest becomes.
    """
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA" * 180 + "\n-----END RSA PRIVATE KEY-----\n"
    half = f"{key}{key}"
    text = half + "." * (2 * EXCERPT_BYTES - len(half) - 20) + " " + SECRET + "." * 30_000
    assert SECRET[:12] not in excerpt(text).head
    text = "." * 30_000 + key + "." * 500 + key
    assert "MIIEpAIBAAKCAQEA" not in excerpt(text).tail


def test_texts_that_shrink_draw_none_into_an_excerpt_that_nobody_has_searched() -> None:
    secret = "q7Zt3Lx9Vb2N" * 90
    kept = excerpt_of([f"{'x ' * 40}password={secret}" for _ in range(100)])
    assert kept is not None
    assert secret[:24] not in f"{kept.head}{kept.tail}"


def test_a_tools_excerpts_are_sanitised_too() -> None:
    event = tool_called(
        tool_input=Excerpt(
            head=SECRET, tail=SECRET, bytes=2 * len(SECRET), sha256=sha256(SECRET.encode()).hexdigest()
        )
    )
    clean = sanitise(event)
    mark = "[REDACTED:github_token]"
    assert clean.tool_input == Excerpt(
        head=mark, tail=mark, bytes=2 * len(mark), sha256=sha256((mark + mark).encode()).hexdigest()
    )


@pytest.mark.parametrize(
    "body",
    [
        '{"password": "\\\\"}',
        json.dumps({"t": json.dumps({"command": 'export PASSWORD="hunter2Xq"'})}),
        json.dumps({"t": json.dumps({"command": 'mysql --password="hunter2Xq ab!"'})}),
    ],
)
def test_what_is_kept_of_json_within_json_is_json_without_its_secrets(body: str) -> None:
    kept = excerpt_of({"body": body})
    assert kept is not None
    assert "[REDACTED:" in kept.head
    assert "hunter2Xq" not in kept.head
    inner = json.loads(json.loads(kept.head)["body"])
    assert inner.keys() == json.loads(body).keys()
    assert "t" not in inner or json.loads(inner["t"]).keys() == {"command"}
