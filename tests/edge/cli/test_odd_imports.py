"""Files as no program writes them: what can be read of them is stored, the rest is told, and nothing ends
in a traceback.
"""

import gzip
import json
import os
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.edge.cli.conftest import Command

AT = "2026-01-02T03:04:05Z"
SAID = "From now on, always run the {} before you commit anything in this repository."
OMEGA = {
    "node_id": "mem-1",
    "content": "We deploy on Fridays",
    "event_type": "decision",
    "created_at": AT,
    "project": "shop",
    "priority": 4,
    "metadata": '{"tags": ["ops"]}',
    "ttl_seconds": None,
    "status": "active",
}
MCP = {
    "content_hash": "abc",
    "content": "We deploy on Fridays",
    "tags": "ops",
    "memory_type": "decision",
    "metadata": "{}",
    "created_at": 1.7e9,
}
CLAUDE = {
    "project": "shop",
    "type": "decision",
    "title": "Deploys",
    "narrative": "We deploy on Fridays",
    "facts": "[]",
    "created_at": AT,
}
ENTITY = {"type": "entity", "name": "shop", "entityType": "project", "observations": ["We deploy on Fridays"]}
RELATION = {"type": "relation", "from": "Ana", "to": "shop", "relationType": "works_on"}
MEM0 = {"id": "m-1", "memory": "We deploy on Fridays", "created_at": AT}
LINE = {"sessionId": "s-1", "cwd": "/srv/shop", "timestamp": AT, "uuid": "u-1", "type": "user"}
DEEP = '{"a":' * 3_000 + "1" + "}" * 3_000

OPENED = f'"payload":{{"a":{DEEP},'

Write = Callable[[Path], None]
Row = dict[str, Any]
ODD_CELLS: tuple[Any, ...] = (
    None,
    7,
    2.5,
    b"\xff\xfe\x00",
    "",
    "\ud800".encode("utf-8", "surrogatepass"),
    float("inf"),
    "x" * 3_000_000,
    "\0\x1b[31m",
    DEEP,
)


def database(table: str, *rows: Row, also: str = "") -> Write:
    """Rows may lack columns of the first."""

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, {', '.join(rows[0])})")
            for row in rows:
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
                    list(row.values()),
                )
            connection.executescript(also)

    return write


def each_cell(table: str, row: Row, key: str) -> Write:
    """A good row, and every odd value in every column."""
    odd = [
        row | {key: f"{name}-{number}"} | {name: cell}
        for name in row
        for number, cell in enumerate(ODD_CELLS)
    ]
    return database(table, row, *odd)


def damaged(table: str, row: Row, key: str) -> Write:
    """Pages in the middle of the table are overwritten."""

    def write(path: Path) -> None:
        database(
            table,
            *(
                row | {key: f"m-{number}", "content": f"Service {number} listens on {5_000 + number} " * 20}
                for number in range(400)
            ),
        )(path)
        with path.open("r+b") as file:
            file.seek(20 * 4_096)
            file.write(b"\xff" * 2 * 4_096)

    return write


def cut(table: str, row: Row, key: str) -> Write:
    def write(path: Path) -> None:
        damaged(table, row, key)(path)
        os.truncate(path, 50 * 4_096)

    return write


def text(content: str | bytes, encoding: str = "utf-8") -> Write:
    def write(path: Path) -> None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))

    return write


def lines(*values: object) -> Write:
    return text("".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values))


def said(tool: str, **more: object) -> Row:
    return LINE | {"uuid": tool, "message": {"role": "user", "content": SAID.format(tool)}} | more


ODD_TIMES = (
    "NaN",
    "-1",
    "1e400",
    "1e308",
    '"99999-01-01T00:00:00Z"',
    '"0000-00-00"',
    '"0001-01-01T00:00:00+14:00"',
    "[]",
    "true",
    "9" * 400,
    '"tomorrow"',
)
TIMED = (
    "["
    + ",".join(
        f'{{"id":"t-{number}","memory":"Fact number {number}","created_at":{at}}}'
        for number, at in enumerate(ODD_TIMES)
    )
    + "]"
)
NESTED: list[Any] = [
    1,
    None,
    "text",
    [],
    {},
    {"memory": 1},
    {"memory": ["a"]},
    MEM0 | {"id": {"a": 1}, "metadata": 5, "categories": {"a": 1}},
    MEM0 | {"id": [1]},
    MEM0,
]
SURROGATES = (
    '[{"id":"\\ud800","memory":"Half \\udc00 a pair, \\ud83d\\ude00 a whole'
    ' one","metadata":{"\\ud800":"\\ud800"}}]'
)
GRAPH = (
    ENTITY,
    "nonsense",
    "5",
    "null",
    "[]",
    ENTITY | {"name": 5},
    ENTITY | {"name": "bad", "observations": [1, None, {"a": 1}, "It is written in Go"]},
    ENTITY | {"name": "map", "observations": {"a": 1}},
    {"type": "relation", "from": 1, "to": "shop", "relationType": "works_on"},
    RELATION,
    DEEP,
    '{"type":"entity","name":"torn"',
)
TRANSCRIPT = (
    said("linter"),
    '{"type": "user", "sess',
    DEEP,
    said("tests", timestamp=1e300),
    said("types", message=["no", "object"]),
    said(
        "build",
        message={
            "content": [{"type": "text", "text": SAID.format("build")}, 5, None, {"type": "text", "text": 5}]
        },
    ),
    json.dumps(said("check")).replace("From now", "From \\ud800 now"),
    said("formatter", cwd=5, sessionId=["a"], uuid=None),
    said("scanner", cwd="/srv/\0/shop"),
    "\0\0\0",
)

# What a file is called, how it is written, its format where its content does not show it, and how many
# memories of it are good; None: it is refused.
CASES: dict[str, tuple[str, Write, str | None, int | None]] = {
    "omega: every odd value in every column": ("o.db", each_cell("memories", OMEGA, "node_id"), None, 72),
    "omega: damaged pages": ("o.db", damaged("memories", OMEGA, "node_id"), None, 300),
    "omega: a missing column": (
        "o.db",
        database("memories", {name: OMEGA[name] for name in ("node_id", "content")}),
        "omega-memory",
        1,
    ),
    "omega: no content": (
        "o.db",
        database("memories", {"node_id": "m", "event_type": "x", "created_at": AT}),
        "omega-memory",
        None,
    ),
    "omega: no table": ("o.db", database("other", {"a": 1}), "omega-memory", None),
    "omega: a view": (
        "o.db",
        database("m", OMEGA, also="CREATE VIEW memories AS SELECT * FROM m"),
        "omega-memory",
        None,
    ),
    "omega: odd edges": (
        "o.db",
        database(
            "memories",
            OMEGA,
            OMEGA | {"node_id": "mem-2", "content": "Go"},
            also="CREATE TABLE edges (id INTEGER PRIMARY KEY, source_id, target_id, edge_type, weight);"
            "INSERT INTO edges VALUES (1, 'mem-1', 'mem-2', x'ff', 'heavy'), (2, NULL, 5, NULL, NULL), (3, 'mem-1', 'mem-1', 'a', 1e999)",
        ),
        None,
        2,
    ),
    "omega: edges of another shape": (
        "o.db",
        database("memories", OMEGA, also="CREATE TABLE edges (a); INSERT INTO edges VALUES (1)"),
        None,
        1,
    ),
    "omega: an empty table": ("o.db", database("memories", OMEGA, also="DELETE FROM memories"), None, 0),
    "omega: cut": ("o.db", cut("memories", OMEGA, "node_id"), None, 50),
    "omega: an empty file": ("o.db", text(b""), "omega-memory", None),
    "omega: only a header": ("o.db", text(b"SQLite format 3\0" + b"\xff" * 4_096), None, None),
    "mcp: every odd value in every column": ("v.db", each_cell("memories", MCP, "content_hash"), None, 47),
    "mcp: damaged pages": ("v.db", damaged("memories", MCP, "content_hash"), None, 300),
    "mcp: a missing column": (
        "v.db",
        database("memories", {name: MCP[name] for name in ("content_hash", "content")}),
        "mcp-memory-service",
        1,
    ),
    "mcp: an odd graph": (
        "v.db",
        database(
            "memories",
            MCP,
            also="CREATE TABLE memory_graph (source_hash, similarity); INSERT INTO memory_graph VALUES (1, 'x')",
        ),
        None,
        1,
    ),
    "claude-mem: every odd value in every column": (
        "c.db",
        each_cell("observations", CLAUDE, "title"),
        None,
        59,
    ),
    "claude-mem: odd summaries": (
        "c.db",
        database(
            "observations",
            CLAUDE,
            also="CREATE TABLE session_summaries (request); INSERT INTO session_summaries VALUES (x'ff'), (5), ('Do it')",
        ),
        None,
        1,
    ),
    "claude-mem: missing columns": (
        "c.db",
        database("observations", {"text": "We deploy on Fridays"}),
        "claude-mem",
        1,
    ),
    "graph: odd lines": ("memory.json", lines(*GRAPH), None, 3),
    "graph: entities are no list": (
        "memory.json",
        text(json.dumps({"entities": {"a": 1}, "relations": [1, RELATION]})),
        "knowledge-graph",
        1,
    ),
    "graph: null": ("memory.json", text('{"entities":null,"relations":null}'), "knowledge-graph", 0),
    "graph: a list": ("memory.json", text('["entities"]'), "knowledge-graph", None),
    "graph: UTF-16": (
        "memory.json",
        text(json.dumps(ENTITY) + "\n" + json.dumps(ENTITY | {"name": "b"}), "utf-16"),
        None,
        2,
    ),
    "graph: a byte order mark": ("memory.json", text(json.dumps(ENTITY) + "\n", "utf-8-sig"), None, 1),
    "graph: latin-1": (
        "memory.json",
        text(json.dumps(ENTITY | {"name": "café"}, ensure_ascii=False) + "\n", "latin-1"),
        None,
        1,
    ),
    "graph: empty": ("memory.json", text(b""), None, None),
    "graph: compressed": ("memory.json.gz", text(gzip.compress(json.dumps(ENTITY).encode())), None, None),
    "graph: one endless line": (
        "memory.json",
        text(b'{"type":"entity","name":"' + b"x" * 70_000_000),
        None,
        None,
    ),
    "mem0: odd times": ("all.json", text(TIMED), None, len(ODD_TIMES)),
    "mem0: wrongly nested": ("all.json", text(json.dumps(NESTED)), None, 3),
    "mem0: an object of objects": ("all.json", text('{"memory": {"results": {}}}'), "mem0", None),
    "mem0: a number": ("all.json", text("5"), "mem0", None),
    "mem0: a text": ("all.json", text('"memory"'), "mem0", None),
    "mem0: halves of pairs": ("all.json", text(SURROGATES), None, 1),
    "mem0: deep": ("all.json", text(f'[{{"memory":"a b","metadata":{DEEP}}}]'), None, 1),
    "mem0: UTF-16": ("all.json", text(json.dumps([MEM0]), "utf-16"), None, 1),
    "mem0: latin-1": (
        "all.json",
        text(json.dumps([MEM0 | {"memory": "Le café est fermé"}], ensure_ascii=False), "latin-1"),
        None,
        1,
    ),
    "mem0: a byte order mark": ("all.json", text(json.dumps([MEM0]), "utf-8-sig"), None, 1),
    "mem0: large": (
        "all.json",
        text(json.dumps([MEM0, MEM0 | {"id": "large", "memory": "x " * 10_000_000}])),
        None,
        1,
    ),
    "mem0: torn": ("all.json", text('[{"memory": "a"}, {"mem'), None, None),
    "mem0: empty": ("all.json", text(b""), "mem0", None),
    "mem0: NULs": ("all.json", text(b"\0" * 5_000), "mem0", None),
    "transcript: odd lines": ("s.jsonl", lines(*TRANSCRIPT), None, 6),
    "transcript: UTF-16": ("s.jsonl", text(json.dumps(said("linter")) + "\r\n", "utf-16"), None, 1),
    "transcript: empty": ("s.jsonl", text(b""), "claude-code", 0),
    "transcript: a binary": ("s.jsonl", text(os.urandom(50_000)), "claude-code", None),
    "transcript: torn end": ("s.jsonl", text(json.dumps(said("linter")) + '\n{"type": "us'), None, 1),
    "instructions: NULs": (
        "CLAUDE.md",
        text(b"# Rules\n\n- Never deploy\0 on Fridays\n- Prefer short answers always\n"),
        None,
        2,
    ),
    "instructions: UTF-16": ("CLAUDE.md", text("- Never deploy on Fridays\n", "utf-16"), None, 1),
    "instructions: a byte order mark": (
        "CLAUDE.md",
        text("- Never deploy on Fridays\n", "utf-8-sig"),
        None,
        1,
    ),
    "instructions: latin-1": ("CLAUDE.md", text("- Jamais de café ici\n", "latin-1"), None, None),
    "instructions: empty": ("CLAUDE.md", text(b""), None, 0),
    "instructions: one long point": ("CLAUDE.md", text("- " + "never deploy " * 70_000), None, 0),
    "export: an event is missing": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: all_[:2] + all_[3:]),
        None,
        None,
    ),
    "export: the header is missing": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: all_[1:]),
        None,
        None,
    ),
    "export: twice the header": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: all_[:1] * 2 + all_[1:]),
        None,
        None,
    ),
    "export: huge numbers": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: [_with(all_[0], cursors=[["a", 2**70, 1]]), *all_[1:]]),
        None,
        None,
    ),
    "export: no hex": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: [all_[0], _with(all_[1], payload_hash="zz"), *all_[2:]]),
        None,
        None,
    ),
    "export: times out of range": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: [all_[0], _with(all_[1], hlc=2**63), *all_[2:]]),
        None,
        None,
    ),
    "export: a deep payload": (
        "e.jsonl",
        lambda path: _export(path, lambda all_: [all_[0], all_[1].replace('"payload":{', OPENED)]),
        None,
        None,
    ),
    "export: only the format": ("e.jsonl", text('{"format":"omegad-log"}'), None, None),
}


def _export(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(change((path.parent / "whole.jsonl").read_text().splitlines(keepends=True))))


def _with(line: str, **fields: object) -> str:
    return json.dumps(json.loads(line) | fields) + "\n"


def test_what_can_be_read_is_stored_and_the_rest_is_told(omegad: Command, tmp_path: Path) -> None:
    omegad("start")
    for number in range(5):
        omegad.store(f"Kept number {number}")
    whole = tmp_path / "whole.jsonl"
    omegad("export", str(whole))
    other = Command(tmp_path / "other")
    wrong: list[tuple[object, ...]] = []
    for name, (file, write, format_, count) in CASES.items():
        path = tmp_path / file
        write(path)
        chosen = [] if format_ is None else ["--from", format_]
        home = other if file == "e.jsonl" else omegad
        try:
            done = home.run("import", str(path), "--json", *chosen)
        except Exception as error:  # noqa: BLE001  a process would end with a traceback
            wrong.append((name, repr(error)))
            continue
        finally:
            path.unlink()
        told = json.loads(done.stdout) if done.stdout else {}
        good = told.get("stored", 0) + told.get("duplicate", 0) + told.get("already_imported", 0)
        is_right = (
            good >= count and done.returncode == (1 if told["problems"] else 0)
            if told and count is not None
            else count is None and done.returncode == 2
        )
        if not is_right or "Traceback" in done.stderr:
            wrong.append((name, done.returncode, good, count, told, done.stderr[-1_000:]))
    assert not wrong, "\n".join(str(one)[:1_000] for one in wrong)
    assert omegad.json("verify")["ok"]


@pytest.mark.parametrize("format_", [None, "mem0", "claude-code", "omega-memory", "instructions"])
def test_what_is_no_file_is_refused_at_once(omegad: Command, tmp_path: Path, format_: str | None) -> None:
    os.mkfifo(tmp_path / "CLAUDE.md")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "CLAUDE.md")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        for path in (
            tmp_path / "CLAUDE.md",
            tmp_path / "link.jsonl",
            tmp_path / "s",
            Path("/dev/zero"),
            tmp_path / "loop",
            tmp_path / ("n" * 300),
        ):
            told = omegad(
                "import", str(path), *([] if format_ is None else ["--from", format_]), status=2
            ).stderr
            assert any(why in told for why in ("and no file", "cannot be read", "there is no file")), told


def test_a_folder_with_odd_transcripts_is_read_as_far_as_it_goes(omegad: Command, tmp_path: Path) -> None:
    folder = tmp_path / "projects"
    (folder / "folder.jsonl").mkdir(parents=True)
    os.mkfifo(folder / "pipe.jsonl")
    lines(said("linter"))(folder / "good.jsonl")
    lines("nonsense", said("tests"))(folder / "odd.jsonl")
    told = omegad.json("import", str(folder), "--dry-run", status=1)
    assert (told["to_store"], len(told["problems"])) == (2, 3)
