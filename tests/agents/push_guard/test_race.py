"""A push race in real repositories: the push that would leave out what another has pushed is stopped, and
says what that is.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from omegad.agents.push_guard import checking
from omegad.agents.push_guard.commands import Push
from omegad.agents.push_guard.repository import Repository
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.agents.push_guard.conftest import Race
from tests.edge.hook.conftest import begin, payload, spooled

LACKED = "Round the total in the first tree"
STALE = "HEAD:main"


def reason(told: dict[str, Any] | None) -> str:
    assert told is not None
    output = told["hookSpecificOutput"]
    assert {**output, "permissionDecisionReason": ""} == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "",
    }
    return str(output["permissionDecisionReason"])


@pytest.mark.parametrize(
    "command",
    [
        "git push origin HEAD:main",
        "git push -q origin work:refs/heads/main",
        "git -C {second} push origin HEAD:main",
        (
            "cd {second} && GIT_TRACE=0 git -c push.default=upstream push -o ci.skip origin HEAD:main 2>&1 |"
            " tail -3"
        ),
        (
            "cd / && (cd {first}; git status); git --work-tree={second} --git-dir"
            " {first}/.git/worktrees/second push origin HEAD:main"
        ),
        (
            "git commit --allow-empty -m \"$(cat <<'EOF'\nit's done\ngit push nowhere\nEOF\n)\" && git push"
            " origin HEAD:main"
        ),
        'bash -lc "git push origin HEAD:main"',
        "git push --force origin HEAD:main",
        "git push origin +work:main",
    ],
)
def test_a_command_that_pushes_without_what_is_there_is_denied(home: Home, still: Race, command: str) -> None:
    before = still.refs()
    folder = still.second if "{second}" not in command else still.folder
    why = reason(still.told(home, folder, command.format(first=still.first, second=still.second)))
    assert LACKED in why
    assert "git pull --rebase origin main" in why
    assert ("discard" in why) == ("force" in command or "+" in command)
    assert still.refs() == before


@pytest.mark.parametrize(
    "command",
    [
        "git push {remote} HEAD:main",
        "git push ../remote HEAD:main",
        "git push file://{remote} +HEAD:main",
        "git push --repo={remote} HEAD:main || git push {remote} HEAD:main",
        "git push origin +HEAD:heads/main",
        "GIT_DIR={first}/.git/worktrees/second git push origin HEAD:main",
        "sudo -u ann git push origin HEAD:main",
        "eval 'git push origin HEAD:main'",
        'echo "$(git push origin HEAD:main)"',
        "echo `git push origin HEAD:main`",
        "`git push origin HEAD:main`",
    ],
)
def test_a_push_is_denied_under_whatever_name_and_in_whatever_words_it_goes_there(
    home: Home, still: Race, command: str
) -> None:
    assert LACKED in reason(
        still.told(home, still.second, command.format(first=still.first, remote=still.remote))
    )


@pytest.mark.parametrize(
    "address",
    [
        "ssh://git@Host.invalid:22/team/shop",
        "git@host.invalid:team/shop.git",
        "https://host.invalid/team/shop.git/",
    ],
)
def test_of_an_address_the_remote_is_asked_that_is_the_same_place(race: Race, address: str) -> None:
    race.git(race.second, "remote", "add", "far", "https://host.invalid/team/shop.git")
    repository = Repository(str(race.second))
    assert repository.meant(address) == "far"
    assert repository.meant("https://host.invalid/team/other") is None
    assert repository.meant("ext::sh -c true") is None


def test_a_push_is_looked_at_whose_hook_has_a_number_of_any_length(home: Home, still: Race) -> None:
    given = {"command": "git push origin HEAD:main", "timeout": 0}
    said = json.dumps(
        payload("PreToolUse", tool_name="Bash", tool_input=given, tool_use_id="t-1")
        | {"cwd": str(still.second)}
    )
    said = said.replace('"timeout": 0', f'"timeout": {"9" * 5_000}')
    process = begin(home, "PreToolUse", PATH=os.environ["PATH"])
    out, _ = process.communicate(said.encode(), PATIENCE_S)
    assert LACKED in reason(json.loads(out))


def test_what_is_configured_says_where_a_push_without_names_goes(home: Home, race: Race) -> None:
    race.git(race.second, "config", "push.default", "upstream")
    assert LACKED in reason(race.told(home, race.second, "git push"))
    race.git(
        race.second, "config", "push.default", "simple"
    )  # refused by git itself, and `work` is nowhere yet
    assert race.told(home, race.second, "git push") is None
    race.git(race.second, "config", "remote.origin.push", "work:main")
    assert LACKED in reason(race.told(home, race.second, "git push --verbose"))


@pytest.mark.parametrize(
    ("command", "checked"),
    [
        ("git push origin work", 1),
        ("git -C {first} push", 1),
        ("git pull --rebase && git push origin HEAD:main", 1),
        ("git push --force-with-lease origin HEAD:main", 1),
        ('git push origin "$BRANCH":main', 1),
        ("git push https://example.invalid/x.git HEAD:main", 1),
        ("git push --dry-run origin HEAD:main", 0),
        ("git push origin :main", 1),
        ("git push origin --delete main", 1),
        ("echo git push origin HEAD:main", 0),
        ("git commit -m 'git push origin HEAD:main'", 0),
        ("cat > notes <<EOF\ngit push origin HEAD:main\nEOF", 0),
        ("git stash push; ls # git push origin HEAD:main", 0),
        ("git push origin 'HEAD:main", 0),
    ],
)
def test_any_other_command_is_let_pass_and_its_push_recorded(
    home: Home, still: Race, command: str, checked: int
) -> None:
    assert still.told(home, still.second, command.format(first=still.first)) is None
    (path,) = spooled(home)
    pushes = json.loads(path.read_bytes()).get("pushes", [])
    assert [push["verdict"] for push in pushes] == ["allowed"] * checked


def test_what_this_clone_does_not_have_is_told_by_where_it_is(home: Home, race: Race) -> None:
    race.git(race.other, "pull", "-q")
    there = race.commit(race.other, "Unseen")
    race.git(race.other, "push", "-q", "origin", "HEAD:main")
    before = race.refs()
    why = reason(race.told(home, race.first, "git push origin main"))
    assert there[:12] in why
    assert "does not have that commit" in why
    assert race.refs() == before


def test_a_remote_that_does_not_answer_lets_pass_and_is_recorded(home: Home, race: Race) -> None:
    race.git(race.second, "remote", "set-url", "origin", str(race.folder / "gone"))
    assert race.told(home, race.second, "git push origin HEAD:main") is None
    (push,) = json.loads(spooled(home)[0].read_bytes())["pushes"]
    assert (push["verdict"], push["refs"][0]["found"]) == ("allowed", "unasked")
    assert "was not heard" in push["reason"]


def test_a_remote_that_never_answers_is_not_waited_for(race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    race.git(race.second, "remote", "set-url", "origin", "ssh://nobody@example.invalid/x")
    monkeypatch.setenv("GIT_SSH_COMMAND", "sh -c 'sleep 60'")
    found = checking.check(Push(str(race.second), (), ("origin", STALE)), 2.0)
    assert found is not None
    assert not found.is_stopped
    assert "no answer in time" in found.reason


@pytest.mark.parametrize(
    "setting",
    ["core.sshCommand", "remote.origin.uploadpack", "credential.helper", "credential.https://x.helper"],
)
def test_a_program_that_the_repository_names_is_not_run_before_anybody_agrees(
    home: Home, race: Race, setting: str
) -> None:
    trace = race.folder / "trace"
    race.git(race.second, "config", setting, f"!touch {trace}; touch {trace}")
    assert race.told(home, race.second, f"git push origin {STALE}") is None
    (push,) = json.loads(spooled(home)[0].read_bytes())["pushes"]
    assert setting.lower() in push["reason"]
    assert not trace.exists()


@pytest.mark.parametrize(("mode", "decision"), [("ask", "ask"), ("warn", None), ("off", None)])
def test_what_is_done_about_it_can_be_set(home: Home, still: Race, mode: str, decision: str | None) -> None:
    (home.path / "config.toml").write_text(f'push_guard = "{mode}"\n')
    told = still.told(home, still.second, f"git push origin {STALE}")
    output = {} if told is None else told["hookSpecificOutput"]
    assert output.get("permissionDecision") == decision
    assert (LACKED in output.get("additionalContext", "")) == (mode == "warn")
    assert reason(still.told(home, still.second, f"git push origin {STALE}", OMEGAD_PUSH_GUARD="deny"))


HOSTS: list[tuple[str, dict[str, Any], dict[str, str], list[str]]] = [
    ("PreToolUse", {"turn_id": "1"}, {}, ["hookSpecificOutput", "permissionDecisionReason"]),
    ("preToolUse", {"cursor_version": "1"}, {"CURSOR_VERSION": "1"}, ["agent_message"]),
    ("BeforeTool", {}, {"GEMINI_PROJECT_DIR": "/x"}, ["reason"]),
    ("preToolUse", {}, {}, ["permissionDecisionReason"]),
]


@pytest.mark.parametrize(("event", "fields", "environ", "where"), HOSTS)
def test_each_host_is_told_in_its_own_words(
    home: Home, still: Race, event: str, fields: Any, environ: Any, where: list[str]
) -> None:
    said = {
        "session_id": "s",
        "hook_event_name": event,
        "cwd": str(still.second),
        "tool_name": "shell",
        **fields,
    }
    said["tool_input"] = {"command": ["bash", "-lc", "git push origin HEAD:main"]}
    process = begin(home, event, **{"PATH": os.environ["PATH"], "CLAUDE_PROJECT_DIR": "", **environ})
    out, err = process.communicate(json.dumps(said).encode(), PATIENCE_S)
    assert (process.returncode, err) == (0, b"")
    told = json.loads(out)
    assert "deny" in json.dumps(told)
    for key in where:
        told = told[key]
    assert LACKED in told


def test_the_daemon_hears_of_it_once(daemon: Home, race: Race) -> None:
    for _ in range(2):
        assert reason(race.told(daemon, race.second, f"git push origin {STALE}", "t-1"))
    race.told(daemon, race.first, "git push origin main")
    until(lambda: not spooled(daemon))
    denied, allowed = (event for event in daemon.events() if event["tag"] == "git.push_checked@1")
    assert (
        denied["session_id"],
        denied["project"],
        denied["data"]["verdict"],
        allowed["data"]["verdict"],
    ) == ("s-1", "first", "denied", "allowed")
    (ref,) = denied["data"]["refs"]
    assert (ref["ref"], ref["found"], ref["lacks"]) == ("refs/heads/main", "stale", 1)
    assert LACKED in ref["commits"][0]
    assert allowed["data"]["refs"][0]["found"] == "same"
    daemon.check()


HELD = [
    "git push origin main",
    "cd ..; git -C {second} push origin HEAD:main",
    "git push --force-with-lease origin HEAD:main",
    "git push --force-with-lease",
    "git push origin --delete main",
    "git push origin work :main",
    "git pull -q --rebase && git push origin main",
]


@pytest.mark.parametrize("command", HELD)
def test_a_push_of_a_branch_that_another_session_holds_is_stopped_until_it_lets_go(
    daemon: Home, race: Race, command: str
) -> None:
    race.git(race.second, "rebase", "-q", "origin/main")
    race.commit(race.first, "more")
    line, folder = command.format(second=race.second), race.folder if "{" in command else race.first
    daemon.call("claim.branch", session_id="s-2", ref="main", folder=str(race.second))
    why = reason(race.told(daemon, folder, line))
    assert "refs/heads/main is held by session s-2 since" in why
    assert "omegad claim branch --help" in why
    assert race.told(daemon, race.second, "git push origin HEAD:mine") is None
    for mode in ("off", "warn"):  # which is for pushes that lack something
        assert "is held by" in reason(race.told(daemon, folder, line, OMEGAD_PUSH_GUARD=mode))
    daemon.call("claim.release", session_id="s-2")
    assert race.told(daemon, folder, line) is None
    assert {one["session_id"] for one in daemon.call("claim.list", ended=True)["claims"]} == {"s-2"}
    daemon.check()


@pytest.fixture
def hooked(race: Race, home: Home) -> Race:
    """The race, with git's own hook."""
    assert set_up(race, home, race.second, "--yes").returncode == 0
    race.git(race.second, "config", "alias.send", "push origin HEAD:main")
    (race.second / "send.sh").write_text('#!/bin/sh\nexec git push "$@" origin HEAD:main\n')
    return race


def set_up(race: Race, home: Home, folder: Path, *options: str) -> Any:
    return race.run(folder, sys.executable, "-m", "omegad", "setup", "git-hook", *options, home=home)


@pytest.mark.parametrize(
    "command", ["git -C {second} push origin HEAD:main", "git -C {second} send", "cd {second}; sh send.sh"]
)
@pytest.mark.parametrize("force", ["", " --force"])
def test_gits_own_hook_says_what_a_push_lacks_however_it_is_run(
    hooked: Race, home: Home, command: str, force: str
) -> None:
    there = hooked.git(hooked.remote, "rev-parse", "main")
    line = command.format(second=hooked.second) + force
    done = hooked.run(hooked.first, "sh", "-c", line, home=home)
    assert done.returncode != 0
    assert LACKED in done.stderr
    assert hooked.git(hooked.remote, "rev-parse", "main") == there
    assert len(spooled(home)) == bool(force)  # git itself refuses the other, and says nothing to the hook


def test_gits_own_hook_lets_pass_what_has_all(hooked: Race, home: Home) -> None:
    assert (
        hooked.run(hooked.first, "git", "push", "origin", "main", home=home).stderr
        == "Everything up-to-date\n"
    )
    hooked.git(hooked.second, "rebase", "-q", "origin/main")
    assert (
        hooked.run(hooked.second, "git", "push", "-q", "origin", "HEAD:main", home=home, is_fine=True).stderr
        == ""
    )
    hooked.git(hooked.second, "commit", "-q", "--amend", "--allow-empty", "-m", "Fix it better")
    refused = hooked.run(hooked.second, "git", "push", "--force", "origin", "HEAD:main", home=home)
    assert refused.returncode != 0
    assert "--force-with-lease" in refused.stderr
    hooked.run(
        hooked.second,
        "git",
        "push",
        "-q",
        "--force-with-lease",
        "origin",
        "HEAD:main",
        home=home,
        is_fine=True,
    )
    hooked.run(
        hooked.second,
        "git",
        "push",
        "-q",
        "--no-verify",
        "--force",
        "origin",
        "HEAD~1:main",
        home=home,
        is_fine=True,
    )


def test_gits_hook_goes_in_and_out_without_a_trace(race: Race, home: Home) -> None:
    hook = race.first / ".git" / "hooks" / "pre-push"
    before = race.refs()
    assert set_up(race, home, race.second, "--check").returncode == 1
    assert set_up(race, home, race.second).returncode == 0  # shows it, and writes nothing
    assert race.refs() == before
    assert set_up(race, home, race.second, "--yes").returncode == 0
    assert hook.stat().st_mode & 0o777 == 0o755
    assert set_up(race, home, race.first, "--check").returncode == 0
    assert set_up(race, home, race.first, "--remove", "--yes").returncode == 0
    assert race.refs() == before
    hook.write_text("#!/bin/sh\ntrue\n")
    refused = set_up(race, home, race.first, "--yes")
    assert refused.returncode == 1
    assert "hook_client.py pre-push" in refused.stderr
    assert set_up(race, home, race.first, "--remove", "--yes").returncode == 0
    assert hook.read_text() == "#!/bin/sh\ntrue\n"
    race.git(race.first, "config", "core.hooksPath", "own/hooks")
    assert set_up(race, home, race.second, "--yes").returncode == 0
    assert (race.second / "own" / "hooks" / "pre-push").exists()
    assert set_up(race, home, race.second, "--yes", "--remove").returncode == 0
    assert not (race.second / "own").exists()
    assert set_up(race, home, race.folder, "--check").returncode == 1
