"""Recording tool calls: each once, counted by session."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omegad.catalog import service
from omegad.daemon import VOCABULARY
from omegad.log.decision import Decision, Outcome, Proposal
from omegad.log.erasure import Erasure, remnant
from omegad.log.event import END, NewEvent
from omegad.log.event_log import EventLog
from omegad.log.sanitise import excerpt_of
from omegad.requests.command import Acknowledged
from omegad.runtime.errors import Invalid
from omegad.session import tool_calls as tool
from omegad.session.events import DeliveriesExpired, ToolCalled
from omegad.session.tool_calls import RecordToolCall
from omegad.session.tool_state import ToolCalls
from tests.builders import FakeClock, Written, erased, everything, proof, proposal, running_log

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2


async def record(log: EventLog, **changes: Any) -> dict[str, Any]:
    command = RecordToolCall(**{"session_id": "s", "tool_name": "Bash"} | changes)
    outcome = await log.append(
        Proposal(decide=lambda guards, now: tool.record(command, tool.cut(command), guards, now))
    )
    return {"outcome": outcome.position, **msgspec.to_builtins(outcome.answer)}


async def test_the_same_tool_use_counts_once_across_a_restart(tmp_path: Path, clock: FakeClock) -> None:
    async with running_log(tmp_path / "log.db", clock) as log:
        first = await record(log, tool_use_id="t1")
        assert first == {"outcome": 1, "position": 1, "call_index": 1}
        assert await record(log, tool_use_id="t2") == {"outcome": 2, "position": 2, "call_index": 2}
        assert await record(log, tool_use_id="t1", status="error") == first
    async with running_log(tmp_path / "log.db", clock) as log:
        assert await record(log, tool_use_id="t1") == first
        assert await record(log, tool_use_id="t1", session_id="other") == {
            "outcome": 3,
            "position": 3,
            "call_index": 1,
        }
        assert await record(log, tool_use_id="t3") == {"outcome": 4, "position": 4, "call_index": 3}
        assert log.head == 4


async def test_calls_that_share_a_commit_are_numbered_as_one_after_the_other(tmp_path: Path) -> None:
    calls = [("s", "t1"), ("s", "t2"), ("other", "t1"), ("s", None), ("s", "t1"), ("s", "kept"), ("s", None)]
    commands = [
        RecordToolCall(session_id=session_id, tool_name="Bash", tool_use_id=use) for session_id, use in calls
    ]
    proposals = [Proposal(decide=partial(tool.record, command, tool.cut(command))) for command in commands]
    forgotten = proposal(DeliveriesExpired(before=END))
    states, answers = list[object](), list[list[object]]()
    for name, all_at_once in (
        ("one", False),
        ("many", True),
    ):
        async with running_log(tmp_path / name) as log:
            await record(log, tool_use_id="kept")
            for some in (proposals, [*proposals[:2], forgotten, *proposals]):
                came_to = (
                    await log.append_all(some) if all_at_once else [await log.append(one) for one in some]
                )
                answers.append([one.answer for one in came_to if isinstance(one, Outcome)])
            states.append(await log.on_writer(VOCABULARY.inline.digests))
            assert proof(log).ok
    numbers = [answer.call_index for answer in answers[0] if isinstance(answer, tool.ToolCallRecorded)]
    assert numbers == [2, 3, 1, 4, 2, 1, 5]
    assert answers[2:] == answers[:2]
    assert states[0] == states[1]


async def test_a_use_that_was_erased_in_the_same_commit_is_not_known_any_more(tmp_path: Path) -> None:
    use, left = "toolu_who_is_erased", "toolu_that_remains"
    again = RecordToolCall(session_id="s", tool_name="Bash", tool_use_id=use)
    proposals = Proposal(decide=partial(tool.record, again, tool.cut(again)))
    async with running_log(tmp_path / "log.db") as log:
        await record(log, tool_use_id=use)
        (was,) = await everything(log)
        assert isinstance(was.event, ToolCalled)
        remains = remnant(was, msgspec.structs.replace(was.event, tool_use_id=left), log.codec)
        erasing = Decision(
            events=(NewEvent(event=erased(1)),),
            answer=Acknowledged(),
            erasure=Erasure((remains,), (), lambda whole: whole, (), lambda whole: whole),
        )
        came_to = await log.append_all([proposals, Proposal(decide=lambda *_: erasing), proposals])
        numbers = [
            one.answer.call_index
            for one in came_to
            if isinstance(one, Outcome) and isinstance(one.answer, tool.ToolCallRecorded)
        ]
        assert numbers == [1, 2]


async def test_what_shares_a_commit_is_there_for_who_asks_which_use_is_the_oldest(tmp_path: Path) -> None:
    used = RecordToolCall(session_id="s", tool_name="Bash", tool_use_id="t1")
    using = Proposal(decide=partial(tool.record, used, tool.cut(used)))
    asking = Proposal(
        decide=lambda state, _now_us: Decision(answer=Written(position=state[ToolCalls].kept_from()))
    )
    async with running_log(tmp_path / "log.db") as log:
        *_, last = await log.append_all([using, using, asking])
        assert isinstance(last, Outcome)
        assert last.answer == Written(position=1)


async def test_calls_without_an_id_count_each_time(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        assert [(await record(log))["call_index"] for _ in range(3)] == [1, 2, 3]


async def test_what_went_in_and_out_is_cut_and_free_of_secrets(tmp_path: Path) -> None:
    async with running_log(tmp_path / "log.db") as log:
        await record(
            log,
            tool_input={"command": f"curl -H {TOKEN}"},
            result="x" * 100_000,
            duration_ms=1.5,
            status="denied",
        )
        event = (await everything(log))[0].event
    assert isinstance(event, ToolCalled)
    assert event.tool_input
    assert event.result
    assert event.tool_input.head == '{"command":"curl -H [REDACTED:github_token]"}'
    assert (len(event.result.head), len(event.result.tail), event.result.bytes) == (4_096, 4_096, 100_000)
    assert (event.status, event.duration_ms) == ("denied", 1.5)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("text", "text"),
        (None, None),
        ({"a": 1}, '{"a":1}'),
        ([1, None], "[1,null]"),
        (0, "0"),
        (False, "false"),
        ("", ""),
    ],
)
def test_anything_but_a_string_is_kept_as_its_json(value: Any, kept: str | None) -> None:
    found = tool.cut(RecordToolCall(session_id="s", tool_name="t", result=value)).result
    assert (found and found.head) == kept if kept is None else found is not None and found.head == kept


@pytest.mark.parametrize(
    "params",
    [
        b'{"tool_name":"t"}',
        b'{"session_id":"s"}',
        b'{"session_id":"s","tool_name":"t","duration_ms":-1}',
        b'{"session_id":"s","tool_name":"t","status":"x"}',
    ],
)
def test_parameters_that_are_missing_or_wrong_are_refused(params: bytes) -> None:
    with pytest.raises(Invalid):
        service.parse("tool.record", params)


@pytest.mark.parametrize("filling", ["", "line\n" * 20_000], ids=["short", "long"])
@pytest.mark.parametrize(
    "text",
    [
        "services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: ⟨swordfish⟩\n      TZ: UTC\n",
        "kind: Secret\ndata:\n  username: YWRtaW4=\n  url: ⟨cG9zdGdyZXM6Ly9hcHA6dGlnZXJAZGIvc2hvcA==⟩\n",
        "user,password\nalice,⟨Winter2024!⟩\n",
        "curl -u \\\n  bob:⟨swordfish⟩ https://x.example\n",
        'requests.get(url, auth=("bob", "⟨swordfish9⟩"))\n',
    ],
)
def test_each_text_that_a_tool_took_is_searched_as_it_is(text: str, filling: str) -> None:
    plain, secret = text.replace("⟨", "").replace("⟩", ""), text.partition("⟨")[2].partition("⟩")[0]
    for content in (f"{plain}{filling}", f"{filling}{plain}"):
        kept = excerpt_of({"path": "a.txt", "edits": [{"new": content}]})
        assert kept is not None
        assert secret not in f"{kept.head}{kept.tail}"
        assert "[REDACTED:" in f"{kept.head}{kept.tail}"
        if not kept.tail:
            assert json.loads(kept.head)["edits"][0]["new"].startswith(plain.partition(secret)[0])


@pytest.mark.parametrize("value", ["swordfish", "Tr0ub4dor" * 20])
def test_a_key_tells_what_a_text_is_however_long(value: str) -> None:
    kept = excerpt_of({"path": "a.txt", "password": value, "text": "as\nbefore " * 30})
    assert kept is not None
    assert json.loads(kept.head)["password"].startswith("[REDACTED:")
    assert json.loads(kept.head)["text"].startswith("as\nbefore as")


def test_what_nobody_has_searched_does_not_take_the_place_of_what_was_taken_out() -> None:
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 95
        + "-----END PRIVATE KEY-----\n"
    )
    filling = "".join(f"line {number} of a log\n" for number in range(2_000))
    kept = excerpt_of({"stdout": key * 8 + "mysql -pWinter24! db\n" + filling})
    assert kept is not None
    assert "MIIEvQ" not in kept.head + kept.tail
    assert "Winter24" not in kept.head + kept.tail
    assert "line 1999 of a log" in kept.tail
