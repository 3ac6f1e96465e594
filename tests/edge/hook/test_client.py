"""That a hook never hurts: it ends in time with status 0, and what happened is recorded once, whatever the
daemon does.
"""

import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omegad.rpc import endpoint
from omegad.runtime.times import parse_time
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.edge.hook.conftest import HURRIED, begin, fire, payload, spooled, written

SLOW_S = 30.0  # far more than any deadline, on a machine that is busy


def tags(home: Home) -> list[str]:
    return [event["tag"] for event in home.events()]


def test_what_happens_while_no_daemon_runs_is_taken_in_by_the_next_one(home: Home) -> None:
    assert fire(home, "SessionStart", source="startup") == ""
    fire(home, "UserPromptSubmit", prompt="make the export faster")
    fire(
        home,
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "ls"},
        tool_response={"stdout": "a.py"},
        tool_use_id="t-1",
    )
    assert [json.loads(path.read_bytes())["event"] for path in spooled(home)] == [
        "SessionStart",
        "UserPromptSubmit",
        "PostToolUse",
    ]
    assert {path.stat().st_mode & 0o777 for path in spooled(home)} == {0o600}
    assert (home.path / "spool").stat().st_mode & 0o777 == 0o700
    home.start()
    until(lambda: not spooled(home))
    events = home.events()
    assert [event["tag"] for event in events] == ["session.started@1", "prompt.submitted@1", "tool.called@1"]
    assert {event["project"] for event in events} == {"shop"}
    assert all(event["occurred_at"] < event["recorded_at"] for event in events)
    home.check()


def test_a_frozen_daemon_holds_nobody_up_and_misses_nothing(daemon: Home) -> None:
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert fire(daemon, "SessionStart", "s-1", HURRIED, source="startup") == ""
        fire(
            daemon,
            "PostToolUse",
            "s-1",
            HURRIED,
            tool_name="Read",
            tool_input={},
            tool_response="x",
            tool_use_id="t-1",
        )
        assert time.monotonic() - started < SLOW_S
        assert len(spooled(daemon)) == 2
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    until(lambda: not spooled(daemon))
    assert sorted(tags(daemon)) == ["session.started@1", "tool.called@1"]
    daemon.check()


@pytest.mark.parametrize(
    ("event", "is_asked"),
    [
        ("SessionStart", True),
        ("UserPromptSubmit", True),
        ("PreToolUse", True),
        ("PostToolUse", False),
        ("Stop", False),
    ],
)
def test_behind_what_waits_in_the_spool_questions_alone_are_asked(
    home: Home, event: str, *, is_asked: bool
) -> None:
    fire(home, "Stop")
    with endpoint.listening(home.socket) as deaf:
        deaf.settimeout(0)
        fire(home, event, "s-1", HURRIED)
        try:
            deaf.accept()[0].close()
            was_asked = True
        except BlockingIOError:
            was_asked = False
    assert (was_asked, len(spooled(home))) == (is_asked, 2)


def test_a_daemon_whose_home_is_removed_takes_in_nothing_for_the_next_one(daemon: Home) -> None:
    shutil.rmtree(daemon.path.rename(daemon.path.with_name("gone")))  # while it may make files in it
    fire(daemon, "Stop")
    assert daemon.process.wait(PATIENCE_S) == 0
    daemon.start()
    until(lambda: tags(daemon) == ["turn.ended@1"])
    daemon.check()


def test_a_host_that_leaves_the_pipe_open_is_not_waited_for(served: Home) -> None:
    before = len(tags(served))
    reading, writing = os.pipe()
    os.write(writing, json.dumps(payload("UserPromptSubmit", prompt="what is in {braces}")).encode())
    silent, speaking = (
        begin(served, "SessionStart", HURRIED),
        begin(served, "UserPromptSubmit", HURRIED, reading),
    )
    assert [process.wait(PATIENCE_S) for process in (silent, speaking)] == [0, 0]
    for process in (silent, speaking):
        process.communicate()
    for end in (reading, writing):
        os.close(end)
    until(lambda: tags(served)[before:] == ["prompt.submitted@1"])


@pytest.mark.parametrize(
    "said", [b"", b"null", b"[1]", b"{", b'{"session_id": 7}', b"\xff\xfe{}", b'{"a":' + b"[" * 5_000 + b"}"]
)
def test_nonsense_is_passed_over(served: Home, said: bytes) -> None:
    before = tags(served)
    process = begin(served, "SessionStart")
    assert process.communicate(said, PATIENCE_S) == (b"", b"")
    assert process.returncode == 0
    assert tags(served) == before
    assert spooled(served) == []


CUT = b"\\ud83d"
DEEP = b"[" * 20_000 + b"]" * 20_000


def test_an_edit_of_a_held_file_is_stopped_whatever_text_is_in_it(served: Home, tmp_path: Path) -> None:
    call = {
        "cwd": str(tmp_path),
        "tool_name": "Write",
        "tool_input": {"file_path": str(tmp_path / "a.py"), "content": "X"},
    }
    fire(served, "PreToolUse", "holder", **call)
    before = lost(served)
    for number, text in enumerate((b'"%s"' % CUT, b'"\xed\xa0\xbd"', b'"caf\xe9"', DEEP)):
        said = json.dumps(payload("PreToolUse", f"other-{number}", **call)).encode().replace(b'"X"', text)
        out, err = begin(served, "PreToolUse").communicate(said, PATIENCE_S)
        assert (b'"permissionDecision":"deny"' in out, err) == (True, b""), text[:9]
    assert (spooled(served), lost(served)) == ([], before)


@pytest.mark.parametrize("text", [b'"%s"' % CUT, b'"\xed\xa0\xbd"', DEEP], ids=repr)
def test_what_was_cut_or_is_deep_and_waited_in_the_spool_is_taken_in(home: Home, text: bytes) -> None:
    said = json.dumps(
        payload("PostToolUse", tool_name="Bash", tool_input={"command": "X"}, tool_use_id="t-1")
    ).encode()
    begin(home, "PostToolUse").communicate(said.replace(b'"X"', text), PATIENCE_S)
    assert len(spooled(home)) == 1
    home.start()
    until(lambda: not spooled(home))
    assert (tags(home), lost(home)) == (["tool.called@1"], 0)


def test_what_nobody_can_read_is_counted(served: Home) -> None:
    before = lost(served)
    for said in (b"{", b"[1]", b'{"a": nonsense}', b'{"session_id": "s", "tool_name": NaN}', b""):
        assert begin(served, "PreToolUse").communicate(said, PATIENCE_S) == (b"", b"")
    assert served.call("system.status")["spool"]["lost"] - before == lost(served) - before == 4


def lost(home: Home) -> int:
    counted = home.path / "spool" / "lost"
    return counted.stat().st_size if counted.exists() else 0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), JSON, max_size=5),
    indent=st.sampled_from([None, 1]),
)
def test_whatever_a_host_says_is_spooled_as_it_said_it(
    home: Home, said: dict[str, Any], indent: int | None
) -> None:
    begin(home, "Stop").communicate(json.dumps(said, indent=indent, ensure_ascii=False).encode(), PATIENCE_S)
    (path,) = spooled(home)
    kept = json.loads(path.read_bytes())
    path.unlink()
    assert kept["payload"] == said
    assert path.name == f"{parse_time(kept['occurred_at'], 'it'):020}-{kept['delivery_id']}.json"


def test_a_home_that_cannot_be_written_is_no_reason_to_fail(home: Home) -> None:
    process = begin(home, "Stop", OMEGAD_HOME="/proc/nothing")
    assert process.communicate(b'{"session_id":"s"}', PATIENCE_S) == (b"", b"")
    assert process.returncode == 0


def test_a_prompt_on_many_lines_comes_whole(served: Home) -> None:
    process = begin(served, "UserPromptSubmit")
    process.communicate(
        json.dumps(
            payload("UserPromptSubmit", prompt="one\ntwo “three”"), indent=2, ensure_ascii=False
        ).encode(),
        PATIENCE_S,
    )
    assert served.events()[-1]["data"]["prompt"]["head"] == "one\ntwo “three”"


def test_a_file_of_the_spool_that_cannot_be_read_is_set_aside(daemon: Home) -> None:
    folder = daemon.path / "spool"
    folder.mkdir(exist_ok=True)
    good = {
        "event": "Stop",
        "delivery_id": "d",
        "occurred_at": "2026-01-01T00:00:00Z",
        "host": "",
        "payload": payload("Stop"),
    }
    for name, data in (
        ("1.json", b"{"),
        ("2.json", b'{"event":"Stop"}'),
        ("3.json", json.dumps(good).encode()),
    ):
        (folder / f".{name}").write_bytes(data)
        (folder / f".{name}").rename(folder / name)
    (folder / "0.json").symlink_to("/etc/passwd")
    until(lambda: not spooled(daemon))
    assert sorted(path.name for path in (folder / "unreadable").iterdir()) == ["0.json", "1.json", "2.json"]
    assert tags(daemon) == ["turn.ended@1"]


def test_hooks_that_come_all_at_once_while_the_spool_is_emptied_are_all_kept(daemon: Home) -> None:
    """Whoever counts what lies in the spool finds files gone that were there a moment ago."""
    for number in range(4):
        daemon.process.send_signal(signal.SIGSTOP)
        clients = []
        for place in range(6):
            with written(payload("Stop", f"s-{number}-{place}")) as said:
                clients.append(begin(daemon, "Stop", HURRIED, said))
        time.sleep(0.1)
        daemon.process.send_signal(signal.SIGCONT)
        assert [client.wait(PATIENCE_S) for client in clients] == [0] * 6
        for client in clients:
            client.communicate()
    until(lambda: not spooled(daemon))
    until(lambda: len(tags(daemon)) == 24, lambda: str(len(tags(daemon))))


def test_what_is_too_large_or_too_much_for_the_spool_is_counted(home: Home) -> None:
    fire(home, "Stop", last_assistant_message="x" * (15 << 20))
    folder = home.path / "spool"
    (folder / "big").write_bytes(b"")
    os.truncate(folder / "big", 64 << 20)
    fire(home, "Stop")
    assert spooled(home) == []
    home.start()
    assert [trouble for trouble in home.call("system.status")["degraded"] if "2 hooks were let go" in trouble]
    assert tags(home) == []


def test_the_verb_does_the_same(served: Home) -> None:
    before = len(tags(served))
    told = json.dumps(payload("UserPromptSubmit", prompt="hello there"))
    done = served.verb("hook", "UserPromptSubmit", said=told)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    until(lambda: tags(served)[before:] == ["prompt.submitted@1"])


def test_of_ten_at_once_that_say_the_same_one_counts_and_one_is_answered(daemon: Home) -> None:
    daemon.call("memory.store", content="no network in tests", event_type="constraint", project="shop")
    clients = [begin(daemon, "SessionStart") for _ in range(10)]
    said = json.dumps(payload("SessionStart", source="startup")).encode()
    printed = [client.communicate(said, PATIENCE_S)[0] for client in clients]
    until(lambda: not spooled(daemon))
    assert tags(daemon).count("session.started@1") == 1
    assert sum(map(bool, printed)) == tags(daemon).count("memory.surfaced@1") <= 1
