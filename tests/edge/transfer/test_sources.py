import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import pytest

from omegad.edge.transfer import sources
from omegad.edge.transfer.found import Edge, Found, LeftOut, expires_at, link, request
from omegad.edge.transfer.sources import read, source_of
from omegad.runtime.errors import Invalid
from omegad.runtime.times import parse_time

AT = "2026-01-02T03:04:05Z"
AT_S = parse_time(AT, "AT") / 1e6


def _table(path: Path, name: str, *rows: dict[str, Any]) -> None:
    columns = list(rows[0])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {', '.join(columns)})")
        for row in rows:
            connection.execute(
                f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                list(row.values()),
            )


def _omega_memory(path: Path) -> None:
    row = {
        "node_id": "mem-1",
        "content": "We deploy on Fridays",
        "event_type": "decision",
        "created_at": "2026-01-02 03:04:05",
        "project": "/srv/shop",
        "session_id": "s-1",
        "priority": 4,
        "metadata": json.dumps(
            {"tags": ["ops"], "event_type": "decision", "why": "habit", "_embedding_model": "m"}
        ),
        "ttl_seconds": None,
        "status": "active",
    }
    superseded = {"node_id": "mem-2", "status": "superseded", "metadata": '{"superseded": true}'}
    _table(path, "memories", row, row | superseded)
    _table(
        path, "edges", {"source_id": "mem-1", "target_id": "mem-3", "edge_type": "evolution", "weight": 0.75}
    )


def _mcp_memory_service(path: Path) -> None:
    row = {
        "content_hash": "abc",
        "content": "We deploy on Fridays",
        "tags": "ops,proj:shop, untagged",
        "memory_type": "decision",
        "metadata": '{"why": "habit"}',
        "created_at": AT_S,
        "deleted_at": None,
    }
    _table(path, "memories", row, row | {"content_hash": "def", "deleted_at": AT_S})


def _claude_mem(path: Path) -> None:
    row = {
        "memory_session_id": "s-1",
        "project": "shop",
        "type": "decision",
        "title": "Deploys",
        "narrative": "We deploy on Fridays",
        "facts": '["Since May"]',
        "concepts": '["ops"]',
        "files_modified": '["deploy.sh"]',
        "created_at": AT,
        "created_at_epoch": int(AT_S * 1000),
    }
    _table(path, "observations", row, row | {"title": None, "narrative": "", "facts": None})
    summary = {
        "memory_session_id": "s-1",
        "project": "shop",
        "request": "Deploy it",
        "learned": "It takes an hour",
        "created_at": AT,
    }
    _table(path, "session_summaries", summary)


def _knowledge_graph(path: Path) -> None:
    lines = (
        {
            "type": "entity",
            "name": "shop",
            "entityType": "project",
            "observations": ["We deploy on Fridays", "It is written in Go"],
        },
        {"type": "entity", "name": "Ana", "entityType": "person", "observations": []},
        {"type": "relation", "from": "Ana", "to": "shop", "relationType": "works_on"},
        {"type": "other"},
    )
    path.write_text("\n".join(map(json.dumps, lines)))


def _mem0(path: Path) -> None:
    one = {
        "id": "m-1",
        "memory": "We deploy on Fridays",
        "created_at": "2026-01-01T19:04:05-08:00",
        "user_id": "ana",
        "categories": ["ops"],
    }
    path.write_text(json.dumps({"results": [one, {"id": "m-2"}]}, indent=2))


def _instructions(path: Path) -> None:
    path.write_text(
        "# Rules\n\nWelcome.\n\n- Never deploy\n  on Fridays.\n- Prefer short answers\n- Go\n\n```\n- no"
        " point at all\n```\n<!-- omegad:begin -->\n- You must ask omegad first\n<!-- omegad:end -->\n"
    )


def _transcript(path: Path) -> None:
    base = {"sessionId": "s-1", "cwd": "/srv/shop", "timestamp": AT, "uuid": "u-1"}
    told = "From now on, always run the linter before you commit anything in this repository."
    lines = (
        base | {"type": "user", "message": {"role": "user", "content": told}},
        base
        | {
            "type": "user",
            "isMeta": True,
            "message": {"role": "user", "content": told.replace("linter", "tests")},
        },
        base
        | {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "content": told}]},
        },
        base
        | {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        },
    )
    path.write_text("\n".join(map(json.dumps, lines)) + '\n{"type": "us')  # whose writer is still at it


class Case(NamedTuple):
    """A file of a format, and what is found in it: type, content, project, tags.

    And why the rest is left out.
    """

    name: str
    file: str
    write: Callable[[Path], None]
    found: Sequence[tuple[str, str, str | None, list[str]]]
    left_out: Sequence[str] = ()


CASES = (
    Case(
        "omega-memory",
        "omega.db",
        _omega_memory,
        [("decision", "We deploy on Fridays", "shop", ["ops"])],
        ["superseded"],
    ),
    Case(
        "mcp-memory-service",
        "v.db",
        _mcp_memory_service,
        [("decision", "We deploy on Fridays", "shop", ["ops", "proj:shop"])],
        ["deleted"],
    ),
    Case(
        "claude-mem",
        "c.db",
        _claude_mem,
        [
            ("decision", "Deploys\nWe deploy on Fridays\n- Since May", "shop", ["ops"]),
            ("session_summary", "Request: Deploy it\nLearned: It takes an hour", "shop", []),
        ],
        ["empty"],
    ),
    Case(
        "knowledge-graph",
        "memory.json",
        _knowledge_graph,
        [
            ("memory", "shop (project): We deploy on Fridays", None, ["project"]),
            ("memory", "shop (project): It is written in Go", None, ["project"]),
            ("memory", "Ana is a person", None, ["person"]),
            ("memory", "Ana works on shop", None, ["relation"]),
        ],
        ["neither an entity nor a relation"],
    ),
    Case("mem0", "all.json", _mem0, [("memory", "We deploy on Fridays", None, ["ops"])], ["empty"]),
    Case(
        "instructions",
        "AGENTS.md",
        _instructions,
        [
            ("constraint", "Never deploy on Fridays.", "shop", ["Rules"]),
            ("user_preference", "Prefer short answers", "shop", ["Rules"]),
        ],
        ["too short to say something by itself"],
    ),
    Case(
        "claude-code",
        "s.jsonl",
        _transcript,
        [
            (
                "user_preference",
                "From now on, always run the linter before you commit anything in this repository.",
                "shop",
                [],
            )
        ],
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_format_is_recognised_by_its_content_and_read_into_requests(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "shop" / case.file
    path.parent.mkdir()
    case.write(path)
    before = path.read_bytes()
    source = source_of(path)
    assert source.name == case.name
    findings = list(read(path, source))
    assert [one.why for one in findings if isinstance(one, LeftOut)] == list(case.left_out)
    found = [one for one in findings if isinstance(one, Found)]
    asked = [request(one, source) for one in found]
    assert [(one["event_type"], one["content"], one.get("project"), one["tags"]) for one in asked] == list(
        case.found
    )
    if case.name not in {"knowledge-graph", "instructions"}:  # which tell no times
        assert {str(one["timestamp"])[:19] for one in asked} == {AT[:19]}
    assert len({one["request_id"] for one in asked}) == len(asked)
    assert [request(one, source) for one in read(path, source) if isinstance(one, Found)] == asked
    assert [(path.name, path.read_bytes()) for path in path.parent.iterdir()] == [(case.file, before)]


def test_what_an_upgrade_of_omega_memory_calls_superseded_is_found_there_and_imported(tmp_path: Path) -> None:
    row: dict[str, Any] = {"content": "Ledgers are immutable", "event_type": "constraint", "created_at": AT}
    row |= {"status": "superseded", "access_count": 7, "retrieval_count": 9}
    said = ("{}", '{"superseded": true}', '{"superseded_by": "mem-9"}')
    rows = [row | {"node_id": f"mem-{at}", "metadata": one} for at, one in enumerate(said)]
    _table(tmp_path / "omega.db", "memories", *rows)
    found = list(read(tmp_path / "omega.db", source_of(tmp_path / "omega.db")))
    assert [one.source_id for one in found if isinstance(one, LeftOut)] == ["mem-1", "mem-2"]
    (active,) = (one for one in found if isinstance(one, Found))
    assert (active.source_id, active.counts.retrievals) == ("mem-0", 9)


def test_what_claude_mem_keeps_of_an_observation_and_always_to_be_kept_to_comes_along(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    row = {"project": "shop", "type": "bugfix", "title": "Exports time out", "created_at": AT}
    row |= {"metadata": '{"ticket": "OPS-1"}', "merged_into_project": "mall", "files_read": '["a.py"]'}
    _table(path, "observations", row)
    rule = {"project": None, "content": "Never push on Fridays", "status": "active", "created_at": AT}
    _table(path, "directives", rule, rule | {"content": "Never push", "status": "archived"})
    source = source_of(path)
    found = list(read(path, source))
    seen, kept = (one for one in found if isinstance(one, Found))
    expected = {"ticket": "OPS-1", "merged_into_project": "mall", "files_read": ("a.py",)}
    assert seen.metadata == expected
    asked = request(kept, source)
    assert (asked["event_type"], asked["content"], asked["tags"]) == (
        "constraint",
        "Never push on Fridays",
        ["directive"],
    )
    assert [one.source_id for one in found if isinstance(one, LeftOut)] == ["directive-2"]


def test_edges_between_what_was_imported_are_drawn_in_our_words(tmp_path: Path) -> None:
    _omega_memory(tmp_path / "omega.db")
    source = source_of(tmp_path / "omega.db")
    (edge,) = (one for one in read(tmp_path / "omega.db", source) if isinstance(one, Edge))
    asked = link(edge, source, {"mem-1": "ours-1", "mem-3": "ours-3"})
    assert asked is not None
    assert asked | {"request_id": ""} == {
        "memory_id": "ours-1",
        "target_id": "ours-3",
        "edge_type": "evolves",
        "weight": 0.75,
        "request_id": "",
    }
    assert link(edge, source, {"mem-1": "ours-1"}) is None
    assert link(edge, source, {"mem-1": "ours-1", "mem-3": "ours-1"}) is None
    unheard = link(
        msgspec.structs.replace(edge, edge_type="smells_like", weight=7.0),
        source,
        {"mem-1": "ours-1", "mem-3": "ours-3"},
    )
    assert unheard is not None
    assert (unheard["edge_type"], unheard["weight"]) == ("related", 1.0)
    assert unheard["request_id"] != asked["request_id"]


def test_a_transcript_with_text_that_was_cut_or_is_nested_deeply_is_read(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    _transcript(path)
    whole = path.read_bytes().rpartition(b"\n")[0] + b"\n"
    expected = len(list(read(path, source_of(path))))
    assert expected
    cut = whole.replace(b'"sessionId"', b'"cut": "\\ud83d", "bytes": "\xed\xa0\xbd", "sessionId"')
    deep = whole.replace(b'"sessionId"', b'"deep": %s, "sessionId"' % (b"[" * 5_000 + b"]" * 5_000))
    path.write_bytes(cut + deep)
    assert len(list(read(path, source_of(path)))) == 2 * expected


def test_every_format_has_a_case() -> None:
    assert {case.name for case in CASES} == set(sources.ALL)


def test_a_folder_of_transcripts_is_read_as_one(tmp_path: Path) -> None:
    for project in ("a", "b"):
        (tmp_path / project).mkdir()
        _transcript(tmp_path / project / "s.jsonl")
    source = source_of(tmp_path)
    assert source.name == "claude-code"
    assert len(list(read(tmp_path, source))) == 2


@pytest.mark.parametrize(
    ("name", "content", "format_", "told"),
    [
        ("notes.txt", b"anything", None, "of no known format"),
        ("notes.txt", b"anything", "word", "unknown format 'word'"),
        ("all.json", b'{"memory": 1', "mem0", "all.json: "),
        ("all.json", b'{"memory": 1}', "mem0", "no list of memories"),
        ("memory.json", b'{"type":"entity"}\nnonsense\n', None, "line 2"),
        ("omega.db", b"anything", "omega-memory", "cannot be read"),
        ("CLAUDE.md", b"- \xff\xfe and more", None, "not UTF-8"),
    ],
)
def test_what_cannot_be_read_is_named(
    name: str, content: bytes, format_: str | None, told: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(Invalid, match=told):
        list(read(path, source_of(path, format_)))


def test_a_database_of_another_shape_is_refused_by_the_format_that_it_is_said_to_be(tmp_path: Path) -> None:
    _table(tmp_path / "o.db", "memories", {"name": "x"})
    with pytest.raises(Invalid, match="not as omega-memory writes it"):
        list(read(tmp_path / "o.db", sources.ALL["omega-memory"]))


def test_a_request_stays_within_what_a_store_takes() -> None:
    source = sources.ALL["omega-memory"]
    large = Found(
        source_id="1",
        content="x",
        created_at=0,
        event_type="git_commit",
        tags=("t" * 100, *map(str, range(50))),
        project="p" * 300,
        priority=9,
        metadata={"note": "n" * 20_000},
    )
    asked = request(large, source)
    assert asked["event_type"] == "memory"
    tags = cast("list[str]", asked["tags"])
    assert (len(tags), len(tags[0]), len(str(asked["project"])), asked["priority"]) == (32, 64, 256, 5)
    assert set(asked["metadata"]) == {"imported"}  # type: ignore[call-overload]


def test_what_the_other_system_keeps_for_ever_is_not_forgotten_here() -> None:
    source = sources.ALL["omega-memory"]
    lasting = Found(source_id="1", content="x", created_at=0, event_type="session_summary")
    assert int(str(request(lasting, source)["ttl_seconds"])) > 99 * 365 * 86_400
    brief = Found(source_id="1", content="x", created_at=0, event_type="session_summary", ttl_seconds=60)
    assert (request(brief, source)["ttl_seconds"], expires_at(brief)) == (60, 60_000_000)
