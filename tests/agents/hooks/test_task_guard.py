"""A session that has no task is told, before it edits, that its project has open ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Home
from tests.edge.hook.conftest import payload


def edited(home: Home, session_id: str, folder: Path, file: str = "a.py") -> dict[str, Any]:
    """Return what a host reads before an edit."""
    given = {"file_path": str(folder / file), "old_string": "a", "new_string": "b"}
    said = payload("PreToolUse", session_id, cwd=str(folder), tool_name="Edit", tool_input=given)
    answer = home.call("hook.dispatch", event="PreToolUse", payload=said)
    told: dict[str, Any] = json.loads(answer["stdout"] or "{}").get("hookSpecificOutput", {})
    return told


def test_an_edit_without_a_task_is_told_of_the_open_ones_once(served: Home, tmp_path: Path) -> None:
    shop = tmp_path / f"shop-{tmp_path.name}"
    shop.mkdir()
    assert edited(served, "t-1", shop) == {}
    served.call("task.create", title="of no project")
    task = served.call("task.create", title="Round the total", project=shop.name)["task_id"]
    told = edited(served, "t-1", shop)
    assert told.get("permissionDecision") is None
    assert task in told["additionalContext"]
    assert edited(served, "t-1", shop, "b.py") == {}
    served.call("task.claim", task_id=task, session_id="t-2")
    assert edited(served, "t-2", shop, "c.py") == {}
    assert edited(served, "t-3", shop, "d.py") == {}
    served.check()


@pytest.mark.parametrize("mode", ["deny", "ask", "off"])
def test_what_becomes_of_it_is_a_setting(home: Home, tmp_path: Path, mode: str) -> None:
    (home.path / "config.toml").write_text(f'task_guard = "{mode}"\n')
    home.start()
    shop = tmp_path / "shop"
    shop.mkdir()
    task = home.call("task.create", title="Round the total", project="shop")["task_id"]
    for file in ("a.py", "b.py"):
        assert edited(home, "t-1", shop, file).get("permissionDecision", "off") == mode
    assert len(home.call("claim.list")["claims"]) == (0 if mode == "deny" else 2)
    home.call("task.claim", task_id=task, session_id="t-1")
    assert edited(home, "t-1", shop) == {}


def test_a_task_that_waits_for_another_stops_nobody(home: Home, tmp_path: Path) -> None:
    (home.path / "config.toml").write_text('task_guard = "deny"\n')
    home.start()
    (tmp_path / "shop").mkdir()
    first = home.call("task.create", title="Round the total", project="shop")["task_id"]
    home.call("task.claim", task_id=first, session_id="t-1")
    waits = home.call("task.create", title="Tell of it", project="shop", depends_on=[first])["task_id"]
    assert edited(home, "t-2", tmp_path / "shop") == {}
    home.call("task.complete", task_id=first, session_id="t-1")
    assert waits in edited(home, "t-2", tmp_path / "shop")["permissionDecisionReason"]
