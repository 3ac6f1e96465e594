"""A week of sessions on one home: what is to happen by itself does, and transcripts are read as what they
tell of.
"""

import json
from pathlib import Path

import pytest

from tests.week.run import Week
from tests.week.sessions import Step, scripted, transcribed

LINES = (
    {"type": "user", "cwd": "/src/shop", "message": {"content": "why is it slow?"}},
    {"type": "user", "isMeta": True, "message": {"content": "a caveat"}},
    {
        "type": "assistant",
        "message": {
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "make"}},
            ]
        },
    },
    {
        "type": "user",
        "message": {
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": "no rule", "is_error": True}]
        },
    },
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "There is no Makefile."}]}},
)


def test_a_transcript_is_read_as_what_it_tells_of(tmp_path: Path) -> None:
    lines = [*map(json.dumps, LINES), "cut off: {"]
    (tmp_path / "one.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (session,) = transcribed(tmp_path)
    assert session.folder == "/src/shop"
    assert session.steps == (
        Step(kind="prompt", text="why is it slow?"),
        Step(kind="own", tool="omega_query", given={"query": "why is it slow?"}),
        Step(kind="tool", tool="Bash", given={"command": "make"}, text="no rule", is_failed=True),
        Step(kind="answer", text="There is no Makefile."),
    )


def test_the_script_has_sessions_of_three_projects() -> None:
    assert {one.folder for one in scripted()} == {"/src/shop", "/src/site", "/src/ledger"}


@pytest.mark.long
def test_in_a_week_all_that_is_to_happen_by_itself_does(tmp_path: Path) -> None:
    told = list[str]()
    lived = Week(tmp_path, scripted(), 60, told.append).live()
    assert lived.wrong + lived.unshown == [], "\n".join(told)
