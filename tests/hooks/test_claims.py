"""Before an edit its file is claimed, and an edit of what another session holds is stopped; hooks of two sessions against one daemon."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Home, refusal, until
from tests.hooks.conftest import fire, payload

Hooked = Callable[..., dict[str, Any]]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a second work tree, as git lays them out."""
    main, other = tmp_path / "main", tmp_path / "other"
    (main / ".git" / "worktrees" / "other").mkdir(parents=True)
    (main / ".git" / "worktrees" / "other" / "commondir").write_text("../..\n")
    other.mkdir()
    (other / ".git").write_text(f"gitdir: {main}/.git/worktrees/other\n")
    return main


@pytest.fixture
def hooked(served: Home, repository: Path) -> Hooked:
    """Sends a hook of a session whose name is the test's own, and returns what its host reads."""

    def send(event: str, session: str, folder: Path = repository, **fields: Any) -> dict[str, Any]:
        said = payload(event, f"{repository.parent.name}-{session}", cwd=str(folder), **fields)
        host = fields.get("host", "")
        answer = served.call("hook.dispatch", event=event, payload=said, host=host)
        assert (answer["exit_code"], answer["stderr"]) == (0, "")
        found: dict[str, Any] = json.loads(answer["stdout"] or "{}")
        return found

    return send


def edit(hooked: Hooked, session: str, path: str = "a.py", event: str = "PreToolUse", **fields: Any) -> dict[str, Any]:
    folder = fields.get("folder")
    whole = str(folder / path) if folder else path
    call = {"tool_name": "Edit", "tool_input": {"file_path": whole, "old_string": "a", "new_string": "b"}, "tool_use_id": f"{session}-{path}"}
    return hooked(event, session, **call | fields)


def verdict(told: dict[str, Any]) -> str:
    return str(told.get("hookSpecificOutput", {}).get("permissionDecision", ""))


def claimed(served: Home, repository: Path) -> dict[str, str]:
    """Return who holds what in the main work tree."""
    found = served.call("claim.list", repository=str(repository / ".git"))["claims"]
    return {claim["name"]: claim["session_id"].rpartition("-")[2] for claim in found if claim["worktree"] == str(repository)}


def test_a_session_alone_is_told_nothing_and_claims_each_file_once(served: Home, hooked: Hooked, repository: Path) -> None:
    hooked("SessionStart", "a", source="startup")
    for path in ("a.py", "a.py", str(repository / "a.py"), "src/../a.py", "b.py"):
        assert edit(hooked, "a", path) == {}
        assert edit(hooked, "a", path, "PostToolUse", tool_response="ok") == {}
    assert claimed(served, repository) == {"a.py": "a", "b.py": "a"}
    session = f"{repository.parent.name}-a"
    assert [event["tag"] for event in served.events() if event["session_id"] == session].count("files.claimed@1") == 2


def test_an_edit_of_what_another_holds_is_stopped_with_who_and_why_until_that_session_ends(served: Home, hooked: Hooked, repository: Path) -> None:
    served.call("memory.store", content="exporter.py must keep fetch_size at 500", event_type="lesson_learned", project="main")
    hooked("SessionStart", "a", source="startup")
    hooked("UserPromptSubmit", "a", prompt="make the exporter\nfaster")
    edit(hooked, "a", "exporter.py")
    until(served.caught_up)
    hooked("SessionStart", "b", source="startup")
    for times in range(2):
        told = edit(hooked, "b", str(repository / "exporter.py"))
        assert verdict(told) == "deny"
        reason = told["hookSpecificOutput"]["permissionDecisionReason"]
        assert f"exporter.py is held by session {repository.parent.name}-a (claude-code) since " in reason
        assert 'for "make the exporter faster"' in reason
        assert ("fetch_size at 500" in reason) == (times == 0)
    assert edit(hooked, "b", "other.py") == {}
    hooked("SessionEnd", "a", reason="other")
    assert edit(hooked, "b", "exporter.py") == {}
    assert claimed(served, repository) == {"exporter.py": "b", "other.py": "b"}


def test_a_patch_of_many_files_is_claimed_whole_or_not_at_all(served: Home, hooked: Hooked, repository: Path) -> None:
    edit(hooked, "a", "b.py")
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** Add File: c/d.py\n+a\n*** Delete File: {}\n*** End Patch"
    tool = {"tool_name": "apply_patch", "turn_id": "t"}
    told = hooked("PreToolUse", "b", **tool, tool_input={"command": patch.format("b.py")})
    assert verdict(told) == "deny"
    assert claimed(served, repository) == {"b.py": "a"}
    assert hooked("PreToolUse", "b", **tool, tool_input={"command": patch.format("e.py")}) == {}
    assert claimed(served, repository) == {"a.py": "b", "b.py": "a", "c/d.py": "b", "e.py": "b"}


def test_the_same_file_of_another_work_tree_is_a_warning(hooked: Hooked, repository: Path) -> None:
    other = repository.parent / "other"
    edit(hooked, "a", "src/a.py")
    told = edit(hooked, "b", "src/a.py", folder=other)
    assert verdict(told) == ""
    assert f"in {repository}: the two will conflict on merge" in told["hookSpecificOutput"]["additionalContext"]
    assert edit(hooked, "b", "src/a.py", folder=other) == {}


def test_who_takes_over_says_why_and_the_one_before_is_told_at_the_next_hook(served: Home, hooked: Hooked, repository: Path) -> None:
    prefix = repository.parent.name
    edit(hooked, "a")
    ask = {"session_id": f"{prefix}-b", "paths": ["a.py"], "folder": str(repository)}
    refused = refusal(lambda: served.call("claim.files", **ask))
    assert f"a.py is held by session {prefix}-a" in str(refused)
    assert "reason" in str(refusal(lambda: served.call("claim.files", **ask, force=True)))
    before = served.call("claim.check", paths=["a.py"], folder=str(repository))["claims"][0]["position"]
    token = served.call("claim.files", **ask, force=True, reason="a hangs", intent="mend it")["position"]
    assert token > before
    assert served.call("claim.files", **ask)["position"] == token
    told = hooked("UserPromptSubmit", "a", prompt="go on")["hookSpecificOutput"]["additionalContext"]
    assert f"your claim on a.py has ended (taken over by {prefix}-b because a hangs)" in told
    assert "your claim" not in json.dumps(hooked("UserPromptSubmit", "a", prompt="go on, please"))
    told = edit(hooked, "a")
    assert verdict(told) == "deny"
    assert 'for "mend it"' in told["hookSpecificOutput"]["permissionDecisionReason"]
    assert served.call("claim.release", session_id=f"{prefix}-b")["count"] == 1
    assert edit(hooked, "a") == {}
    history = served.call("claim.list", repository=str(repository / ".git"), ended=True)["claims"]
    assert [(one["session_id"][-1], one["ended"], one["reason"]) for one in history] == [
        ("a", None, None),
        ("b", "released", "released"),
        ("a", "taken_over", f"taken over by {prefix}-b because a hangs"),
    ]
    served.check()


def test_a_branch_is_held_in_all_work_trees(served: Home, repository: Path) -> None:
    ask = {"ref": "main", "folder": str(repository)}
    served.call("claim.branch", session_id="a", **ask)
    refused = refusal(lambda: served.call("claim.branch", session_id="b", ref="refs/heads/main", folder=str(repository.parent / "other")))
    assert "refs/heads/main is held by session a" in str(refused)
    assert "--force" not in str(refusal(lambda: served.call("claim.release", session_id="b", refs=["main"], folder=str(repository))))
    assert served.call("claim.release", refs=["main"], folder=str(repository), force=True, reason="released in haste")["count"] == 1
    served.call("claim.branch", session_id="b", **ask)


@pytest.mark.parametrize(
    "form",
    [
        ("gemini", "BeforeTool", "replace", "decision"),
        ("cursor", "preToolUse", "edit_file", "permission"),
        ("codex", "PreToolUse", "apply_patch", "hookSpecificOutput"),
    ],
)
def test_an_edit_is_stopped_in_its_hosts_own_words(served: Home, hooked: Hooked, repository: Path, form: tuple[str, str, str, str]) -> None:
    host, event, tool, key = form
    edit(hooked, "a")
    given = {"input": "*** Begin Patch\n*** Update File: a.py\n*** End Patch"} if tool == "apply_patch" else {"file_path": "a.py"}
    said = payload(event, f"{repository.parent.name}-b", cwd=str(repository), tool_name=tool, tool_input=given)
    told = json.loads(served.call("hook.dispatch", event=event, payload=said, host=host)["stdout"])
    assert (told[key] if isinstance(told[key], str) else told[key]["permissionDecision"]) == "deny"


@pytest.mark.parametrize(("mode", "expected"), [("ask", "ask"), ("warn", ""), ("off", "")])
def test_what_becomes_of_an_edit_is_for_the_configuration_to_say(homes: Callable[..., Home], repository: Path, mode: str, expected: str) -> None:
    home = homes(OMEGAD_CLAIMS=mode).start()

    def tell(session: str) -> dict[str, Any]:
        said = payload("PreToolUse", session, cwd=str(repository), tool_name="Edit", tool_input={"file_path": "a.py"})
        found: dict[str, Any] = json.loads(home.call("hook.dispatch", event="PreToolUse", payload=said)["stdout"] or "{}")
        return found

    tell("a")
    told = tell("b")
    assert verdict(told) == expected
    assert bool(told) == (mode != "off")


def test_without_a_daemon_an_edit_goes_ahead_and_is_claimed_afterwards(home: Home, repository: Path) -> None:
    def call(event: str) -> str:
        return fire(home, event, "s-1", cwd=str(repository), tool_name="Edit", tool_input={"file_path": "a.py"}, tool_response="ok", tool_use_id="u")

    assert call("PreToolUse") == ""
    assert call("PostToolUse") == ""
    home.start()
    until(lambda: claimed(home, repository) == {"a.py": "1"})
    home.kill()
    home.start()
    assert claimed(home, repository) == {"a.py": "1"}
    home.check()
