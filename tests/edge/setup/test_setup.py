"""`omegad setup` on the files of every host: what it adds, and that taking it out leaves every byte as it
was.
"""

import json
import re
import stat
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omegad.edge.cli import main
from omegad.edge.setup import entries, hosts, jsonc, planning
from omegad.edge.setup.commands import Commands, installed, is_ours
from omegad.edge.setup.files import Originals
from omegad.edge.setup.planning import World
from omegad.runtime.errors import OmegadError

EDITS = "Agent|Task|Edit|MultiEdit|NotebookEdit|Write"
OLDER = "/old/venv/bin/python -I -S /old/site-packages/omegad/hook_client.py"
FOREIGN = {"matcher": "Bash", "hooks": [{"type": "command", "command": "~/bin/audit --all", "timeout": 9}]}

ODD: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\n",
    "braces": b"{}",
    "a space": b"{ }\n",
    "on two lines": b"{\n}\n",
    "one line": b'{"model": "x","hooks":{"Stop":[]},"mcpServers":{}}',
    "comments": (
        b'// mine\n{\n  // first\n  "a": 1, /* why */\n  "hooks": {\n    // none yet\n  }\n  // last\n}\n//'
        b" bye\n"
    ),
    "trailing comma": b'{\n  "a": [1, 2,],\n  "b": {"c": null,},\n}\n',
    "carriage returns": (
        b'{\r\n    "a": 1,\r\n    "hooks": {\r\n        "Stop": [\r\n        ]\r\n    }\r\n}\r\n'
    ),
    "tabs": b'{\n\t"z": {"y": [true, 1e3]},\n\t"hooks": {}\n}',
    "byte order mark": b'\xef\xbb\xbf{\n  "a": "\xc3\xa9\\u00e9"\n}\n',
    "unknown keys": (
        json.dumps(
            {
                "hooks": {"Made.Up": [{"hooks": []}], "SessionStart": [FOREIGN]},
                "x": {"mcpServers": {"omegad": 1}},
            }
        ).encode()
    ),
    "someone else's hooks": (
        json.dumps({"hooks": {"SessionStart": [FOREIGN], "Stop": [FOREIGN, FOREIGN]}}, indent=4).encode()
    ),
    "an older omegad": (
        json.dumps(
            {
                "hooks": {
                    "SessionStart": [
                        FOREIGN,
                        {"hooks": [{"type": "command", "command": f"{OLDER} SessionStart"}]},
                    ],
                    "Odd": [{"command": f"{OLDER} Odd"}],
                }
            },
            indent=2,
        ).encode()
    ),
    "a key twice": b'{"hooks": {"a": 1}, "hooks": {"b": []}}',
}
ODD_TOML = {
    "empty": b"",
    "comments": b'# mine\nmodel = "x" # why\n\n[mcp_servers.other]\ncommand = "y"',
    "carriage returns": b'a = 1\r\n[t]\r\nb = """\r\nx"""\r\n',
    "byte order mark": b"\xef\xbb\xbfa = 1\n",
}
ODD_TEXT = {
    "empty": b"",
    "no last line end": b"# Mine\n\ntext",
    "carriage returns": b"# Mine\r\n\r\ntext\r\n",
    "an end of lines": b"text\n\n\n",
}
SAMPLES = {"json": ODD, "toml": ODD_TOML, "markdown": ODD_TEXT, "javascript": {}}
EVERY = [(host.name, place) for host in hosts.ALL for place, file in enumerate(host.files) if file.user]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        {"HOME": str(tmp_path / "person"), "PATH": ""},
        Originals(tmp_path / "omegad" / "setup"),
        installed(),
        None,
        is_macos=False,
    )


def write(world: World, *names: str, removing: bool = False) -> list[planning.Change]:
    changes = planning.plan(planning.named(names), world, removing=removing)
    for change in changes:
        planning.carry_out(change, world, removing=removing)
    return changes


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("host", "event"), [("claude-code", "PreToolUse"), ("codex", "PreToolUse"), ("gemini", "BeforeTool")]
)
def test_a_host_asks_before_the_tools_of_servers_that_change_files_and_no_others(
    host: str, event: str
) -> None:
    matchers = [hook.matcher for hook in hosts.BY_NAME[host].hooks if hook.event == event]
    prefix = "mcp_" if host == "gemini" else "mcp__"

    def asks(tool: str) -> bool:
        return any(re.search(f"^(?:{matcher})$", f"{prefix}{tool}") for matcher in matchers)

    assert all(
        map(
            asks,
            (
                "filesystem__edit_file",
                "fs__write_file",
                "fs__move_file",
                "serena__replace_symbol_body",
                "x__insertText",
            ),
        )
    )
    assert not any(
        map(
            asks,
            (
                "filesystem__read_text_file",
                "filesystem__list_directory",
                "omegad__omega_store",
                "omegad__omega_memory",
            ),
        )
    )


def samples() -> Iterator[Any]:
    for name, place in EVERY:
        for odd in SAMPLES[hosts.BY_NAME[name].files[place].format]:
            yield pytest.param(name, place, odd, id=f"{name}-{place}-{odd}")


@pytest.mark.parametrize(("name", "place", "odd"), list(samples()))
def test_what_was_there_is_there_again_to_the_byte(world: World, name: str, place: int, odd: str) -> None:
    file = hosts.BY_NAME[name].files[place]
    path = world.path_of(file)
    assert path is not None
    before = SAMPLES[file.format][odd]
    path.parent.mkdir(parents=True)
    path.write_bytes(before)
    path.chmod(0o640)
    assert {change.problem for change in write(world, name)} == {""}
    written = tree(Path(world.environ["HOME"]))
    assert path.read_bytes() != before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert {change.state for change in write(world, name)} == {"right"}
    assert tree(Path(world.environ["HOME"])) == written
    write(world, name, removing=True)
    assert {one: held for one, held in tree(Path(world.environ["HOME"])).items() if held is not None} == {
        str(path.relative_to(world.environ["HOME"])): before
    }
    assert not world.originals.folder.exists()


def test_where_nothing_was_nothing_is_left(world: World) -> None:
    home = Path(world.environ["HOME"])
    home.mkdir()
    names = list(hosts.BY_NAME)
    write(world, *names)
    assert len([path for path in tree(home).values() if path is not None]) == 22
    assert planning.registered(world) == list(hosts.ALL)
    write(world, *names, removing=True)
    assert tree(home) == {}
    world.path("{claude}/settings.json").parent.mkdir(parents=True)
    world.path("{claude}/settings.json").write_text("")
    assert planning.touched(world) == []
    assert {change.state for change in planning.plan(hosts.ALL, world, removing=True)} == {"right"}


def test_a_projects_files_come_and_go_too(world: World, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "AGENTS.md").write_text("# House rules\n")
    within = world._replace(project=project)
    before = tree(project)
    write(within, *hosts.BY_NAME)
    assert not Path(world.environ["HOME"]).exists()
    assert (project / "AGENTS.md").read_text().count("omegad:begin") == 1
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["omegad"]["tools"] == ["*"]
    assert {change.state for change in write(within, *hosts.BY_NAME)} == {"right"}
    assert planning.shared([hosts.BY_NAME["zed"]], within) == {
        project / "AGENTS.md": ["codex", "copilot", "devin", "opencode"]
    }
    write(within, *hosts.BY_NAME, removing=True)
    assert tree(project) == before


@pytest.mark.parametrize("name", [host.name for host in hosts.ALL])
def test_what_others_add_meanwhile_stays(world: World, name: str) -> None:
    write(world, name)
    for change in planning.plan(planning.named([name]), world):
        text = change.path.read_text()
        if change.parts[0].file.format == "json":
            change.path.write_text(
                json.dumps({"first": [], **json.loads(text), "last": {"hooks": None}}, indent=1)
            )
        elif change.parts[0].file.format == "toml":
            change.path.write_text(f'first = 1\n{text}\n[projects."/x"]\ntrust = true\n')
        else:
            change.path.write_text(f"// first\n\n{text}\n// last\n")
    assert {change.state for change in planning.plan(planning.named([name]), world)} == {"right"}
    write(world, name, removing=True)
    for change in planning.plan(planning.named([name]), world):
        text = change.path.read_text()
        assert "omegad" not in text
        if change.parts[0].file.format == "json":
            left = json.loads(text)
            assert (left.pop("first"), left.pop("last")) == ([], {"hooks": None})
            assert left == dict(change.parts[0].file.fixed)
        elif change.parts[0].file.format == "toml":
            assert tomllib.loads(text) == {"first": 1, "projects": {"/x": {"trust": True}}}


def test_older_entries_are_brought_up_to_date_and_never_doubled(world: World) -> None:
    path = world.path("{claude}/settings.json")
    path.parent.mkdir(parents=True)
    stacked = [
        FOREIGN,
        *({"matcher": "*", "hooks": [{"type": "command", "command": f"{OLDER} Stop"}]} for _ in range(3)),
    ]
    mixed = {"hooks": [FOREIGN["hooks"][0], {"type": "command", "command": f"{OLDER} SessionStart"}]}
    path.write_text(
        json.dumps(
            {
                "hooks": {
                    "Stop": stacked,
                    "SessionStart": [mixed],
                    "Gone": [stacked[1]],
                    "PreToolUse": stacked[:2],
                }
            },
            indent=2,
        )
    )
    write(world, "claude-code")
    there = json.loads(path.read_text())["hooks"]
    assert "/old/" not in path.read_text()
    assert [len(there["Stop"]), there["Stop"][0], there["SessionStart"][0]] == [
        2,
        FOREIGN,
        {"hooks": FOREIGN["hooks"]},
    ]
    assert [sum(map(is_ours, there[event])) for event in ("Stop", "SessionStart")] == [1, 1]
    assert [there["PreToolUse"][0], [group["matcher"] for group in there["PreToolUse"][1:]]] == [
        FOREIGN,
        [EDITS, f"mcp__.*{hosts.OF_SERVERS}", "Bash", "Bash", "Bash"],
    ]
    assert "Gone" not in there


def test_a_hook_that_was_asynchronous_is_so_no_more(world: World) -> None:
    write(world, "claude-code")
    path = world.path("{claude}/settings.json")
    there = json.loads(path.read_text())
    (hook,) = there["hooks"]["PostToolUse"][0]["hooks"]
    hook["async"] = True
    path.write_text(json.dumps(there))
    write(world, "claude-code")
    assert '"async": true' not in path.read_text()


def test_an_entry_keeps_what_its_person_added_to_it(world: World) -> None:
    write(world, "claude-code")
    path = world.path("{claude_state}/.claude.json")
    there = json.loads(path.read_text())
    there["mcpServers"]["omegad"] |= {"env": {"OMEGAD_HOME": "/x"}, "command": "/old/python"}
    path.write_text(json.dumps(there))
    write(world, "claude-code")
    assert json.loads(path.read_text())["mcpServers"]["omegad"] == {
        "type": "stdio",
        "command": world.commands.python,
        "args": world.commands.server()[1:],
        "env": {"OMEGAD_HOME": "/x"},
    }


REFUSED: list[tuple[str, int, bytes]] = [
    ("claude-code", 0, b'{"hooks": '),
    ("claude-code", 0, b'{"a": 1} x'),
    ("claude-code", 0, b"[]"),
    ("claude-code", 0, b'{"hooks": null}'),
    ("claude-code", 0, b'{"hooks": {"Stop": {}}}'),
    ("claude-code", 0, b'{"hooks": {"Stop": null}}'),
    ("claude-code", 0, b'{"a": 01}'),
    ("claude-code", 0, b'{"a" 1}'),
    ("claude-code", 0, b'{"a": "\n"}'),
    ("claude-code", 0, b"{/* }"),
    ("claude-code", 0, b"[" * 5000),
    ("claude-code", 0, b"\xff\xfe{\x00}\x00"),
    ("claude-code", 1, b'{"mcpServers": []}'),
    ("claude-code", 1, b'{"mcpServers": {"omegad": {"url": "http://localhost:1"}}}'),
    ("claude-code", 1, b'{"mcpServers": {"omegad": {"command": "other", "args": []}}}'),
    ("claude-code", 2, b"<!-- omegad:begin -->\nhalf\n"),
    ("claude-code", 2, b"<!-- omegad:end -->\n<!-- omegad:begin -->\n"),
    ("codex", 1, b"a = = 1\n"),
    ("codex", 1, b"mcp_servers = {x = {command = 'y'}}\n"),
    ("codex", 1, b"mcp_servers = 1\n"),
    ("codex", 1, b"[mcp_servers.omegad]\ncommand = 'mine'\n"),
    ("cursor", 0, b'{"version": 2, "hooks": {}}'),
]


@pytest.mark.parametrize(("name", "place", "text"), REFUSED)
def test_a_file_that_cannot_be_changed_safely_is_left_alone(
    world: World, name: str, place: int, text: bytes
) -> None:
    path = world.path_of(hosts.BY_NAME[name].files[place])
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    changes = {change.path: change for change in write(world, name)}
    assert changes.pop(path).problem
    assert {change.state for change in changes.values()} == {"create"}, "the other files are another matter"
    write(world, name, removing=True)
    assert path.read_bytes() == text


def test_links_and_folders_are_left_alone(world: World, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    link, folder = world.path("{claude}/settings.json"), world.path("{codex}/hooks.json")
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    folder.mkdir(parents=True)
    problems = {change.path: change.problem for change in write(world, "claude-code", "codex")}
    assert "symbolic link" in problems[link]
    assert "not a file" in problems[folder]
    assert (target.read_text(), link.is_symlink(), list(folder.iterdir())) == ("{}", True, [])


def test_a_file_changed_since_it_was_shown_is_not_written(world: World) -> None:
    change = planning.plan(planning.named(["claude-code"]), world)[0]
    change.path.parent.mkdir(parents=True)
    change.path.write_text("{}")
    with pytest.raises(OmegadError, match="meanwhile"):
        planning.carry_out(change, world)
    assert change.path.read_text() == "{}"


def test_the_first_backup_is_kept(world: World) -> None:
    path = world.path("{claude}/settings.json")
    path.parent.mkdir(parents=True)
    path.write_text('{"first": 1}')
    write(world, "claude-code")
    path.write_text('{"second": 2}')
    write(world, "claude-code")
    original = world.originals.of(path)
    assert original is not None
    assert original.text == '{"first": 1}'
    write(world, "claude-code", removing=True)
    assert json.loads(path.read_text()) == {"second": 2}
    assert world.originals.of(path) == original, "it is not what was left, and so the only copy"


def test_what_was_emptied_since_stays_empty(world: World) -> None:
    path = world.path("{codex}/AGENTS.md")
    path.parent.mkdir(parents=True)
    path.write_text("# Mine\n")
    write(world, "codex")
    path.write_text(path.read_text().removeprefix("# Mine\n\n"))
    write(world, "codex", removing=True)
    assert path.read_text() == ""


def test_another_omegad_is_put_back_and_goes_when_asked_again(world: World) -> None:
    path = world.path("{claude}/settings.json")
    path.parent.mkdir(parents=True)
    path.write_bytes(ODD["an older omegad"])
    write(world, "claude-code")
    write(world, "claude-code", removing=True)
    assert path.read_bytes() == ODD["an older omegad"]
    write(world, "claude-code", removing=True)
    assert json.loads(path.read_text()) == {"hooks": {"SessionStart": [FOREIGN]}}


def test_what_two_hosts_read_stays_for_the_other(world: World) -> None:
    write(world, "copilot")
    assert planning.shared([hosts.BY_NAME["vscode"]], world) == {
        world.path("{copilot}/hooks/omegad.json"): ["copilot"]
    }
    assert planning.shared([hosts.BY_NAME["copilot"]], world) == {}


def test_a_variable_moves_a_hosts_files(world: World, tmp_path: Path) -> None:
    moved = world._replace(
        environ={
            **world.environ,
            "CLAUDE_CONFIG_DIR": str(tmp_path / "c"),
            "XDG_CONFIG_HOME": str(tmp_path / "x"),
        }
    )
    code = hosts.BY_NAME["vscode"].files[1]
    assert moved.path("{claude_state}/.claude.json") == tmp_path / "c" / ".claude.json"
    assert moved.path_of(code) == tmp_path / "x" / "Code" / "User" / "mcp.json"
    on_mac = moved._replace(is_macos=True)
    assert (
        on_mac.path_of(code)
        == Path(world.environ["HOME"]) / "Library" / "Application Support" / "Code" / "User" / "mcp.json"
    )


def test_timeouts_are_in_the_hosts_unit(world: World) -> None:
    write(world, "claude-code", "gemini", "copilot", "cursor")
    claude, gemini, copilot, cursor = (
        json.loads(world.path(path).read_text())["hooks"]
        for path in (
            "{claude}/settings.json",
            "{home}/.gemini/settings.json",
            "{copilot}/hooks/omegad.json",
            "{home}/.cursor/hooks.json",
        )
    )
    assert [host["SessionEnd"][0]["hooks"][0]["timeout"] for host in (claude, gemini)] == [3, 3000]
    assert [copilot["SessionEnd"][0]["timeoutSec"], cursor["sessionEnd"][0]["timeout"]] == [3, 3]


def test_a_host_that_keeps_its_environment_to_itself_passes_on_where_omegad_is(world: World) -> None:
    write(world, "codex")
    server = tomllib.loads(world.path("{codex}/config.toml").read_text())["mcp_servers"]["omegad"]
    assert {"OMEGAD_HOME", "OMEGAD_SOCKET", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"} == set(server["env_vars"])


def test_commands_survive_a_shell() -> None:
    commands = Commands("/Users/a b/it's/python", "/x y/omegad")
    assert is_ours({"command": commands.hook("Stop")})
    assert commands.hook("Stop") == """'/Users/a b/it'"'"'s/python' -I -S '/x y/omegad/hook_client.py' Stop"""
    assert installed().python == sys.executable
    assert [path for path in (installed().package,) if not (Path(path) / "edge" / "setup").is_dir()] == []


@pytest.mark.parametrize(
    "value",
    [
        {"command": "python -I -S /x/hook_client.py Stop"},
        {"command": "python /x/omegad/hook_client.py Stop"},
        {"command": "python -I -S /x/omegad/hook_client.py Stop; rm -rf /"},
        {"command": "'unended"},
        {"command": None, "args": "x"},
        {"hooks": []},
        {"hooks": [{"command": f"{OLDER} Stop"}, {"command": "other"}]},
        [f"{OLDER} Stop"],
    ],
)
def test_nothing_else_is_taken_for_ours(value: object) -> None:
    assert not is_ours(value)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["setup", *arguments])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_the_command_shows_then_writes_then_undoes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"HOME": str(tmp_path), "OMEGAD_HOME": str(tmp_path / ".omegad"), "PATH": ""}.items():
        monkeypatch.setenv(name, value)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert run(capsys)[0] == 1, "no agent is there"
    (tmp_path / ".codex").mkdir()
    status, out, _ = run(capsys)
    assert (status, "AGENTS.md is new: 14 lines" in out, "--yes" in out) == (0, True, True)
    assert "+# omegad:begin" in run(capsys, "--diff")[1]
    assert tree(tmp_path) == {".codex": None}
    assert run(capsys, "--check", "codex")[0] == 1
    status, out, _ = run(capsys, "--yes")
    assert (status, "/hooks" in out) == (0, True)
    assert run(capsys, "--check")[0] == 0
    status, out, _ = run(capsys, "--check", "--json")
    assert (json.loads(out)["ok"], json.loads(out)["agents"]) == (True, ["codex"])
    (tmp_path / ".codex" / "hooks.json").write_text("{oops")
    status, _, err = run(capsys, "--yes")
    assert (status, "line 1, column 2" in err) == (1, True)
    (tmp_path / ".codex" / "hooks.json").unlink()
    _, out, _ = run(capsys, "--remove", "--json")
    assert {file["state"] for file in json.loads(out)["files"]} == {"right", "delete"}
    assert run(capsys, "--remove", "--yes")[0] == 0
    assert [path for path in tree(tmp_path) if not path.startswith(".omegad")] == [".codex"]
    assert run(capsys, "claude")[2].splitlines()[1] == "  hint: did you mean 'claude-code'?"


def test_a_plugin_folder_is_written_again_but_never_over_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGAD_HOME", str(tmp_path / ".omegad"))
    folder = tmp_path / "plugin"
    assert run(capsys, "plugin", str(folder))[0] == 0
    written = tree(folder)
    assert run(capsys, "plugin", str(folder))[0] == 0
    assert tree(folder) == written
    there = json.loads((folder / "hooks" / "hooks.json").read_text())["hooks"]
    assert set(there) == {hook.event for hook in hosts.CLAUDE_HOOKS}
    assert run(capsys, "plugin", str(tmp_path))[0] == 1
    assert run(capsys, "plugin")[0] == 2


def test_comments_and_order_stay_where_they_are() -> None:
    text = (
        '{\n    "a": 1, // one\n    "hooks": {\n        // mine\n        "Stop": [ {"command": "x"} ]  //'
        " theirs\n    }\n}\n"
    )
    wanted = {"hooks": {"Stop": [{"command": f"{OLDER} Stop"}]}, "version": 1}
    changed = entries.put(text, wanted)
    assert (
        changed
        == '{\n    "a": 1, // one\n    "hooks": {\n        // mine\n        "Stop": [ {"command": "x"},'
        f' {{"command": "{OLDER} Stop"}} ]  // theirs\n    }},\n    "version": 1\n}}\n'
    )
    assert jsonc.parse(changed).value["hooks"]["Stop"][0] == {"command": "x"}
