"""Which files a tool's call is to change, as each host names its tools and their input; and that no read
is taken for a change.
"""

import json
from typing import Any

import pytest

from omegad.session.tool_inputs import TOOLS, changed, changes

PATCH = (
    "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-a\n+b\n*** Add File: c.py\n+a\n  ***"
    " Delete File: d e.py\n*** End Patch"
)
PATCHED = ("a.py", "b.py", "c.py", "d e.py")

CHANGING: list[tuple[str, Any, tuple[str, ...]]] = [
    ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, ("a.py",)),
    ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "path", "new_string": "b"}]}, ("a.py",)),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "b"}, ("a.ipynb",)),
    ("mcp__filesystem__edit_file", {"path": "a.py", "edits": [{"oldText": "a", "newText": "b"}]}, ("a.py",)),
    ("mcp__filesystem__write_file", {"path": "a.py", "content": "*** Update File: x.py"}, ("a.py",)),
    ("mcp__my__own__server__move_file", {"source": "a.py", "destination": "b.py"}, ("a.py", "b.py")),
    ("MCP:write_file", {"path": "a.py"}, ("a.py",)),
    ("filesystem_write_file", {"path": "a.py"}, ("a.py",)),
    ("mcp_filesystem_edit_file", {"path": "a.py"}, ("a.py",)),
    (
        "str_replace_based_edit_tool",
        {"command": "str_replace", "path": "a.py", "old_str": "a", "new_str": "b"},
        ("a.py",),
    ),
    ("str_replace_based_edit_tool", {"command": "insert", "path": "a.py"}, ("a.py",)),
    ("str_replace_editor", {"command": "create", "path": "a.py", "file_text": ""}, ("a.py",)),
    ("apply_patch", PATCH, PATCHED),
    ("apply_patch", {"input": PATCH}, PATCHED),
    ("apply_patch", {"patchText": PATCH.replace("\n", "\r\n")}, PATCHED),
    ("apply_patch", {"command": ["apply_patch", PATCH]}, PATCHED),
    ("copilot_applyPatch", {"input": PATCH}, PATCHED),
    (
        "shell",
        {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"], "workdir": "/src"},
        tuple(f"/src/{one}" for one in PATCHED),
    ),
    ("exec_command", {"cmd": f"applypatch <<EOF\n{PATCH}\nEOF"}, PATCHED),
    (
        "patch",
        {"patch": "--- a/a.py\t2026\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/b.py\n"},
        ("a.py", "b.py"),
    ),
    ("replace", {"file_path": "a.py", "instruction": "x"}, ("a.py",)),
    ("create_file", {"filePath": "a.py"}, ("a.py",)),
    ("insert_edit_into_file", {"filePath": "a.py", "code": "x"}, ("a.py",)),
    (
        "multi_replace_string_in_file",
        {"replacements": [{"filePath": "a.py"}, {"filePath": "b.py"}, {"filePath": "a.py"}]},
        ("a.py", "b.py"),
    ),
    ("editFiles", {"files": ["a.py", "b.py"]}, ("a.py", "b.py")),
    ("create", json.dumps({"path": "a.py", "file_text": ""}), ("a.py",)),
    ("search_replace", {"file_path": "a.py"}, ("a.py",)),
    ("edit_file", {"target_file": "a.py", "code_edit": "x"}, ("a.py",)),
    ("Delete", {"path": "a.py"}, ("a.py",)),
    (
        "replace_file_content",
        {"TargetFile": "/a.py", "ReplacementChunks": [{"TargetContent": "a"}]},
        ("/a.py",),
    ),
    ("write_to_file", {"TargetFile": "file:///a.py"}, ("file:///a.py",)),
    ("move_path", {"source_path": "a.py", "destination_path": "b.py"}, ("a.py", "b.py")),
    ("copy_path", {"source_path": "a.py", "destination_path": "b.py"}, ("b.py",)),
    ("save_file", {"paths": ["a.py", "b.py"]}, ("a.py", "b.py")),
    ("mcp__serena__replace_symbol_body", {"relative_path": "a.py", "body": "x"}, ("a.py",)),
    ("mcp__other__RewriteSection", {"uri": "file:///a.py"}, ("file:///a.py",)),
    ("mcp__other__rename_file", {"from": "a.py", "to": "b.py"}, ("a.py", "b.py")),
    ("mcp__jetbrains__replace_text_in_file", {"pathInProject": "a.py", "newText": "b"}, ("a.py",)),
    ("mcp__git__git_apply", {"diff": "--- a/a.py\n+++ b/a.py\n@@\n"}, ("a.py",)),
    ("smartRelocate", {"sourcePath": "a.py", "destinationPath": "b.py"}, ("a.py", "b.py")),
    ("mcp__other__delete_directory", {"path": "src"}, ("src",)),
    ("mcp__other__edit", {"path": "a.py", "command": ["insert", {"line": 2}]}, ("a.py",)),
    ("mcp__other__edit", {"path": "a.py", "command": {"insert": 2}}, ("a.py",)),
]
READING: list[tuple[str, Any]] = [
    ("Read", {"file_path": "a.py"}),
    ("mcp__filesystem__read_text_file", {"path": "a.py"}),
    ("mcp__filesystem__read_multiple_files", {"paths": ["a.py"]}),
    ("mcp__filesystem__get_file_info", {"path": "a.py"}),
    ("mcp__filesystem__search_files", {"path": "a.py"}),
    ("mcp__filesystem__create_directory", {"path": "a"}),
    ("mcp__filesystem__edit_file", {"path": "a.py", "dryRun": True}),
    ("str_replace_based_edit_tool", {"command": "view", "path": "a.py"}),
    ("mcp__other__preview_edit", {"path": "a.py"}),
    ("mcp__other__list_changes", {"path": "a.py"}),
    ("mcp__mail__create_draft", {"to": "ann@example.org", "from": "bob"}),
    ("mcp__web__update_page", {"uri": "https://example.org/a.py"}),
    ("TodoWrite", {"todos": [{"content": "write a.py"}]}),
    ("Bash", {"command": "sed -i s/a/b/ a.py"}),
    ("Grep", {"path": "a.py", "pattern": "*** Begin Patch"}),
    ("Bash", {"command": f"cat <<EOF\n{PATCH}\nEOF"}),
    ("Edit", {"file_path": ""}),
    ("Edit", {"file_path": 7}),
    ("Edit", None),
    ("Edit", "{"),
    ("Edit", "{" * 100_000),
    ("???", {"path": "a.py"}),
    ("", {"path": "a.py"}),
]


@pytest.mark.parametrize(("tool", "given", "files"), CHANGING)
def test_what_a_tool_changes_is_found_where_it_says_it(tool: str, given: Any, files: tuple[str, ...]) -> None:
    assert changed(tool, given) == files


@pytest.mark.parametrize(("tool", "given"), READING)
def test_what_only_reads_changes_nothing(tool: str, given: Any) -> None:
    assert changed(tool, given) == ()


def test_the_table_says_of_each_tool_that_it_changes_files() -> None:
    assert all(changes(tool) for tool in TOOLS)
    assert not any(
        changes(tool)
        for tool in ("Read", "Bash", "Glob", "mcp__filesystem__list_directory", "omega_store", "WebFetch")
    )
