import io
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from omegad.client import Client
from omegad.edge.cli import importing, starting
from omegad.edge.cli.transfer import salvage
from omegad.edge.transfer import lines, log_file, sources
from omegad.edge.transfer.found import Found, request
from omegad.runtime.errors import LogBroken, StorageFailed
from tests.acceptance.conftest import until
from tests.edge.cli.conftest import PATIENCE_S, Command

REFUSED = (
    "lies in the home",
    "is a file of the home",
    "is no backup that omegad made",
    "is no file, or a link",
)


def _quiet(_done: int, _total: int, _what: str) -> None:
    pass


def _filled(omegad: Command) -> None:
    omegad("start")
    with Client(omegad.paths.socket, timeout_s=PATIENCE_S) as client:
        for number in range(20):
            client.call(
                "memory.store",
                content=f"Fact {number}: “the café's port” is {5000 + number}\n",
                request_id=f"r-{number}",
                tags=["ops"],
            )


def _views(omegad: Command) -> dict[str, str]:
    report = omegad.json("verify")
    assert report["ok"]
    return {name: view["live_digest"] for name, view in report["views"]["views"].items()} | {
        "log": report["log"]["head_hash"]
    }


def test_a_backup_that_is_made_while_memories_are_stored_is_whole_and_rotates(
    omegad: Command, tmp_path: Path
) -> None:
    _filled(omegad)
    target, is_over = tmp_path / "b.db", threading.Event()
    written: list[str] = []
    made: list[dict[str, Any]] = []

    def write() -> None:
        while not is_over.is_set():
            written.append(omegad.store("Something to write meanwhile", ack="durable"))

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(3):
        made.append(omegad.json("backup", str(target), "--keep", "2"))
        enough = len(written) + 2  # of which one was not under way before
        until(lambda enough=enough: len(written) >= enough)  # type: ignore[misc]
    is_over.set()
    writer.join()
    assert sorted(path.name for path in tmp_path.iterdir() if path != omegad.home) == ["b.db", "b.db.1"]
    kept = [log_file.verify(tmp_path / name, _quiet).events for name in ("b.db.1", "b.db")]
    assert kept == [one["events"] for one in made[1:]]
    assert kept[0] < kept[-1]
    assert "is there already" in omegad("backup", str(target), status=1).stderr


def _contents(folder: Path) -> dict[str, int]:
    return {path.name: path.lstat().st_ino for path in folder.iterdir()}


def test_no_copy_goes_into_a_home_or_in_the_place_of_what_is_no_backup(
    omegad: Command, tmp_path: Path
) -> None:
    omegad("start")
    omegad.store("The cellar is dry")
    outside, home = tmp_path / "outside", omegad.home
    outside.mkdir()
    (tmp_path / "door").symlink_to(home)
    (outside / "linked.db").symlink_to(home / "log.db")
    os.link(home / "log.db", outside / "hard.db")
    os.mkfifo(outside / "pipe.db")
    (outside / "thesis.db").write_text("two years of work")
    (outside / "rotated.db.2").write_text("this too")
    (outside / "empty.db").touch()
    shutil.copy(home / "views-1.db", outside / "views.db")
    other = tmp_path / "another home"
    other.mkdir()
    (other / "omegad.lock").touch()
    (home / "kept").mkdir()
    before = _contents(home), _contents(outside)
    within = ("log.db", "new.db", "kept/new.db", "views-1.db", "config.toml", "kept/../log.db", "./log.db")
    targets = [home / name for name in within] + [
        tmp_path / "door" / "log.db",
        tmp_path / "door" / "new.db",
        other / "log.db",
    ]
    targets += [outside / f"../{home.name}/log.db"] + [
        outside / f"{name}.db" for name in ("linked", "hard", "pipe", "thesis", "rotated", "empty", "views")
    ]
    for target in targets:
        told = omegad("backup", str(target), "--keep", "3", status=1).stderr
        assert any(reason in told for reason in REFUSED), (target, told)
    for target in targets[:11:3]:
        assert "the home" in omegad("export", str(target), status=1).stderr
    after = _contents(home), _contents(outside)
    assert after == before
    for number in range(4):
        omegad.store(f"Stored afterwards, number {number}")
        omegad("backup", str(outside / "b.db"), "--keep", "3")
    assert sorted(path.name for path in outside.glob("b.db*")) == ["b.db", "b.db.1", "b.db.2"]
    omegad("stop")
    assert omegad.json("verify")["ok"]
    assert omegad.json("status")["log"]["head"] == 5


def test_a_backup_takes_the_place_of_a_log_only_when_it_is_asked_to(omegad: Command, tmp_path: Path) -> None:
    _filled(omegad)
    before, target = _views(omegad), str(tmp_path / "b.db")
    omegad("backup", target)
    omegad.store("Learned after the backup")
    assert "there is no folder" in omegad("backup", str(tmp_path / "no" / "b.db"), status=2).stderr
    assert "has events already" in omegad("restore", target, status=1).stderr
    assert "serves this home" in omegad("restore", target, "--replace", status=1).stderr
    omegad("stop")
    moved = omegad.json("restore", target, "--replace")["moved"]
    assert [Path(path).name.split("-")[0] for path in moved] == ["log.db.replaced", "views"]
    omegad("start")
    assert _views(omegad) == before
    assert log_file.verify(Path(moved[0]), _quiet).events > omegad.json("status")["log"]["head"]
    other = Command(tmp_path / "other")
    assert other.json("restore", target)["head_hash"] == before["log"]


def test_an_export_makes_the_same_home_again(omegad: Command, tmp_path: Path) -> None:
    _filled(omegad)
    before, exported = _views(omegad), tmp_path / "e.jsonl"
    omegad("export", str(exported))
    assert "has events already" in omegad("import", str(exported), status=1).stderr
    other = Command(tmp_path / "other")
    try:
        assert other.json("import", str(exported), "--dry-run")["head_hash"] == before["log"]
        assert not other.paths.log.exists()
        other("import", str(exported))
        assert other("export", "-").stdout == exported.read_text()
        other("start")
        assert _views(other) == before
        with Client(other.paths.socket, timeout_s=PATIENCE_S, name="") as client:
            again = client.call(
                "memory.store", content="Fact 3: “the café's port” is 5003\n", request_id="r-3", tags=["ops"]
            )
        assert (again["outcome"], other.json("status")["log"]["head"]) == (
            "stored",
            omegad.json("status")["log"]["head"],
        )
    finally:
        other.end()


def test_a_copy_that_does_not_verify_is_no_backup(omegad: Command, tmp_path: Path) -> None:
    _filled(omegad)
    omegad("backup", str(tmp_path / "good.db"))
    broken = tmp_path / "broken.db"
    broken.write_bytes((tmp_path / "good.db").read_bytes())
    with closing(sqlite3.connect(broken)) as connection, connection:
        connection.execute("DROP TRIGGER events_are_not_updated")
        connection.execute("UPDATE events SET project = 'elsewhere' WHERE position = 7")
    with pytest.raises(LogBroken, match="breaks at position 7"):
        log_file.verify(broken, _quiet)
    other = Command(tmp_path / "other")
    assert "breaks at position 7" in other("restore", str(broken), status=1).stderr
    assert "is no log of omegad" in other("restore", str(omegad.home / "omegad.log"), status=2).stderr
    assert "there is no log" in other("backup", str(tmp_path / "none.db"), status=2).stderr
    assert [path.name for path in other.home.iterdir()] == ["omegad.lock"]
    assert sorted(path.name for path in tmp_path.glob("*.db*")) == ["broken.db", "good.db"]


def test_memories_of_others_are_imported_once_however_often_it_is_asked(
    omegad: Command, tmp_path: Path
) -> None:
    memories = [
        {
            "id": f"m-{number}",
            "memory": f"The port of service {number} is {5000 + number}",
            "created_at": "2026-01-02",
        }
        for number in range(50)
    ]
    memories += [memories[0] | {"id": "again"}, {"id": "large", "memory": "x" * 300_000}, {"id": "nothing"}]
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(memories))
    planned = omegad.json("import", str(path), "--dry-run")
    assert (planned["found"], planned["to_store"], planned["left_out"]) == (53, 52, {"empty": 1})
    assert not omegad.home.exists()
    first = omegad.json("import", str(path), status=1)
    told = ("stored", "duplicate", "already_imported", "refused", "memories_before", "memories_after")
    assert [first[name] for name in told] == [50, 1, 0, 1, 0, 50]
    assert "large" in first["problems"][0]
    head = omegad.json("status")["log"]["head"]
    again = omegad.json("import", str(path), status=1)
    assert [again[name] for name in told] == [0, 0, 51, 1, 50, 50]
    assert omegad.json("status")["log"]["head"] == head
    found = omegad.json("query", "port of service 17")["results"][0]
    assert (found["content"], found["created_at"][:10]) == ("The port of service 17 is 5017", "2026-01-02")
    assert "of no known format" in omegad("import", str(omegad.home / "omegad.log"), status=2).stderr


def test_an_import_whose_daemon_is_stopped_says_to_run_it_again(
    omegad: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_text("# Rules\n\n- Deploys are blue-green.\n- Tests come first.\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(importing, "_count", lambda _: starting.stop(omegad.paths))
        told = omegad("import", str(file), status=3).stderr
    assert "run it again: it goes on where it stopped" in told
    omegad("import", str(file))


def test_an_import_whose_daemon_hangs_ends_and_goes_on_when_it_is_run_again(
    omegad: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "CLAUDE.md"
    file.write_text("# Rules\n\n- Deploys are blue-green.\n- Tests come first.\n", encoding="utf-8")
    pid, store = omegad.json("start")["pid"], importing.Import._store

    async def hang(taken: importing.Import, wanted: importing.Wanted) -> None:
        os.kill(pid, signal.SIGSTOP)
        await store(taken, wanted)

    with monkeypatch.context() as patched:
        patched.setattr(importing, "ANSWER_S", 0.2)
        patched.setattr(importing.Import, "_store", hang)
        told = omegad("import", str(file), status=3).stderr
    os.kill(pid, signal.SIGCONT)
    assert "nothing was answered for 0.2 s" in told
    assert "run it again" in told
    assert omegad.json("import", str(file))["memories_after"] == 2


def test_an_import_leaves_no_digest_that_a_guess_of_its_text_can_be_held_against(
    omegad: Command, tmp_path: Path
) -> None:
    said = "The database password: hunter2"
    digest = sha256(said.encode()).hexdigest()
    path = tmp_path / "vec.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash, content, tags, memory_type,"
            " metadata, created_at)"
        )
        connection.execute(
            "INSERT INTO memories VALUES (1, ?, ?, '', 'note', '{}', '2026-01-02')", (digest, said)
        )
    source = sources.source_of(path)
    (guessed,) = (
        request(one, source)["request_id"] for one in sources.read(path, source) if isinstance(one, Found)
    )
    assert omegad.json("import", str(path))["stored"] == 1
    assert omegad.json("import", str(path))["already_imported"] == 1
    omegad("stop")
    written = [path.read_bytes() for path in omegad.home.rglob("*") if path.is_file()]
    assert [
        data
        for data in written
        if digest.encode() in data or str(guessed).encode() in data or b"hunter2" in data
    ] == []


def test_an_import_leaves_no_digest_of_a_memory_that_another_names(omegad: Command, tmp_path: Path) -> None:
    digests = [sha256(f"The database password: hunter{number}".encode()).hexdigest() for number in range(2)]
    row = {"tags": "", "memory_type": "note", "metadata": "{}", "created_at": "2026-01-02"}
    parents = zip(("a1" * 32, "b2" * 32), digests, strict=True)
    _table(
        tmp_path / "vec.db",
        "memories",
        row | {"content_hash": digests[0], "content": "gone", "parent_id": None, "deleted_at": 1.0},
        *(
            row
            | {"content_hash": name, "content": f"Rotate what {name} said", "parent_id": parent}
            | {"deleted_at": None}
            for name, parent in parents
        ),
    )
    first = omegad.json("import", str(tmp_path / "vec.db"))
    assert (first["stored"], first["left_out"], len(first["not_kept"])) == (2, {"deleted": 1}, 1)
    assert omegad.json("import", str(tmp_path / "vec.db"))["already_imported"] == 2
    omegad("stop")
    written = [path.read_bytes() for path in omegad.home.rglob("*") if path.is_file()]
    assert [data for data in written if any(digest.encode() in data for digest in digests)] == []


def test_an_import_that_was_named_without_a_key_is_still_the_same(omegad: Command, tmp_path: Path) -> None:
    """A home in which an earlier version has imported: what was erased since is not stored again."""
    path = tmp_path / "mem0.json"
    path.write_text(
        json.dumps(
            [
                {"id": str(number), "memory": f"The port of service {number} is 80{number}"}
                for number in range(3)
            ]
        )
    )
    source = sources.source_of(path)
    asked = [request(one, source) for one in sources.read(path, source) if isinstance(one, Found)]
    omegad("start")
    with Client(omegad.paths.socket, timeout_s=PATIENCE_S, name="omegad-cli") as client:
        first, *_ = [client.call("memory.upsert", **one)["memory_id"] for one in asked]
        client.call("memory.erase", memory_id=first, reason="gone")
    omegad("stop")
    omegad("start")
    assert omegad.json("import", str(path))["already_imported"] == 3
    omegad("stop")
    data = omegad.paths.log.read_bytes()
    assert [one["request_id"] for one in asked if str(one["request_id"]).encode() in data] == []


def test_the_edges_of_another_graph_are_drawn_once(omegad: Command, tmp_path: Path) -> None:
    path = tmp_path / "vec.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, content_hash, content, tags, memory_type,"
            " metadata, created_at)"
        )
        connection.execute(
            "CREATE TABLE memory_graph (source_hash, target_hash, similarity, relationship_type)"
        )
        for name, content in (
            ("a", "The cache is kept in Redis"),
            ("b", "Deploys wait for the linter"),
            ("c", "The pages are in Go"),
        ):
            row = (name, content, "", "note", "{}", "2026-01-02")
            connection.execute(
                "INSERT INTO memories (content_hash, content, tags, memory_type, metadata, created_at) VALUES"
                " (?, ?, ?, ?, ?, ?)",
                row,
            )
        connection.executemany(
            "INSERT INTO memory_graph VALUES (?, ?, ?, ?)",
            [("a", "b", 0.5, "contradicts"), ("b", "gone", 0.5, "related")],
        )
    assert omegad.json("import", str(path), "--dry-run")["edges"] == 2
    first = omegad.json("import", str(path))
    assert (first["stored"], first["edges"], first["edges_drawn"]) == (3, 2, 1)
    head = omegad.json("status")["log"]["head"]
    assert omegad.json("import", str(path))["edges_drawn"] == 1
    after = omegad.json("log", "--after", str(head))["events"]
    assert {event["client"] for event in after} <= {"reaction:ripple"}  # to the first import, behind it
    drawn = omegad.json(
        "sql",
        "SELECT s.content, t.content, edge_type, weight FROM edges JOIN memories s ON s.node_id = source_id"
        " JOIN memories t ON t.node_id = target_id",
    )
    assert ["The cache is kept in Redis", "Deploys wait for the linter", "contradicts", 0.5] in drawn["rows"]


def _omega_memory(path: Path) -> None:
    """Make a database as omega-memory does: its tables, with the columns that are read and some others."""
    said = {
        "mem-80651cbe6a7e": (
            "lesson_learned",
            "Full text search answered in 40 ms at two million rows",
            7,
            {"feedback_score": 2, "feedback_counts": {"helpful": 2}},
        ),
        "mem-4da0500988a6": ("lesson_learned", "Nobody asked for fuzzy matching in a year of tickets", 0, {}),
        "mem-9fa8b98ce2b1": (
            "lesson_learned",
            "The German stemmer misses compound words",
            1,
            {"feedback_score": -2, "feedback_signals": [{"rating": "outdated"}]},
        ),
        "mem-a5772aa51ae4": (
            "decision",
            "Postgres full text is enough for our search",
            0,
            {
                "thesis": True,
                "thesis_id": "th-search",
                "evidence_for": ["mem-80651cbe6a7e", "mem-4da0500988a6", "mem-000000000000"],
                "evidence_against": ["mem-9fa8b98ce2b1"],
            },
        ),
        "mem-1550c5114eef": (
            "behavioral_pattern",
            "Usually commits on Friday afternoons",
            0,
            {"confidence": 0.7, "user_confirmed": None},
        ),
        "mem-7749d64abdbf": (
            "decision",
            "Buttons of the checkout are blue",
            0,
            {"note": "as in mem-89a3ec306896 of May", "seen": [{"by": "mem-a5772aa51ae4"}]},
        ),
        "mem-89a3ec306896": ("decision", "The cellar door is painted green", 0, {"see": "mem-7749d64abdbf"}),
    }
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, node_id TEXT, content TEXT, metadata"
            " TEXT, created_at TEXT, last_accessed TEXT, access_count INTEGER, event_type TEXT, project TEXT,"
            " status TEXT, extracted_keywords TEXT); CREATE TABLE edges (id INTEGER PRIMARY KEY, source_id TEXT,"
            " target_id TEXT, edge_type TEXT, weight REAL, metadata TEXT); CREATE TABLE thompson_arms (arm_id TEXT)"
        )
        for number, (name, (kind, content, count, metadata)) in enumerate(said.items()):
            at = f"2026-05-0{number + 1}T10:00:00+00:00"
            row = (name, content, json.dumps(metadata), at, at if count else None, count, kind, "/srv/shop")
            connection.execute(
                "INSERT INTO memories (node_id, content, metadata, created_at, last_accessed, access_count,"
                " event_type, project, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'active')",
                row,
            )
        connection.execute(
            "INSERT INTO edges VALUES (1, 'mem-7749d64abdbf', 'mem-80651cbe6a7e', 'causal', 0.5, '{\"by\": 1}')"
        )
        connection.execute("UPDATE memories SET extracted_keywords = 'search' WHERE access_count > 0")
        connection.execute("INSERT INTO thompson_arms VALUES ('event_type:decision')")


def test_what_the_loops_of_omega_memory_learned_comes_along_or_is_listed(
    omegad: Command, tmp_path: Path
) -> None:
    path = tmp_path / "omega.db"
    _omega_memory(path)
    first = omegad.json("import", str(path))
    assert (first["stored"], first["edges_drawn"], first["counts_carried_over"]) == (7, 1, 2)
    assert first["changed"] == {"type behavioral_pattern → user_preference": 1, "edge causal → related": 1}
    assert first["not_kept"] == [
        "column edges.metadata: 1 rows",
        "column memories.extracted_keywords: 2 rows",
        "table thompson_arms: 1 rows",
        "mem-a5772aa51ae4: names mem-000000000000, which is not imported",
    ]
    views = _views(omegad)
    again = omegad.json("import", str(path))
    assert (again["already_imported"], _views(omegad)) == (7, views)

    listed = omegad.json("sql", "SELECT node_id, metadata ->> '$.imported.id' FROM memories")["rows"]
    ours = {theirs: name for name, theirs in listed}
    with Client(omegad.paths.socket, timeout_s=PATIENCE_S) as client:
        known = {theirs: client.call("memory.get", memory_id=name) for theirs, name in ours.items()}
        thesis = client.call("thesis.get", thesis_id="th-search")
    told = ("retrieval_count", "rating", "last_retrieved_at")
    assert [known["mem-80651cbe6a7e"][name] for name in told] == [7, 2, "2026-05-01T10:00:00.000000Z"]
    assert [known["mem-9fa8b98ce2b1"][name] for name in told] == [1, -2, "2026-05-03T10:00:00.000000Z"]
    assert [known["mem-4da0500988a6"][name] for name in told] == [0, 0, None]
    habit = known["mem-1550c5114eef"]
    assert (habit["event_type"], habit["tags"], habit["confidence"]) == (
        "user_preference",
        ["behavioral_pattern"],
        0.7,
    )
    metadata = {theirs: one["metadata"] for theirs, one in known.items()}
    assert metadata["mem-a5772aa51ae4"]["evidence_for"] == [
        ours["mem-80651cbe6a7e"],
        ours["mem-4da0500988a6"],
    ]
    assert metadata["mem-7749d64abdbf"]["note"] == f"as in {ours['mem-89a3ec306896']} of May"
    assert metadata["mem-7749d64abdbf"]["seen"] == [{"by": ours["mem-a5772aa51ae4"]}]
    assert metadata["mem-89a3ec306896"]["see"] == ours["mem-7749d64abdbf"]
    assert (thesis["memory_id"], thesis["for_count"], thesis["against_count"]) == (
        ours["mem-a5772aa51ae4"],
        2,
        1,
    )


def test_counts_that_grew_since_they_were_imported_are_not_counted_twice(
    omegad: Command, tmp_path: Path
) -> None:
    path = tmp_path / "omega.db"
    _omega_memory(path)
    omegad("import", str(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE memories SET access_count = 9 WHERE access_count = 7")
    again = omegad.json("import", str(path))
    assert (again["already_imported"], again["counts_carried_over"]) == (7, 1)
    assert "mem-80651cbe6a7e: what was counted of it: others came before" in again["not_kept"]
    assert omegad.json("sql", "SELECT sum(access_count) FROM memories")["rows"] == [[8]]


def _table(path: Path, name: str, *rows: Mapping[str, object]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, {', '.join(rows[0])})")
        for row in rows:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def _imported(omegad: Command, path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Import a file twice; return what the first said, and what came of each memory by their ids."""
    first = omegad.json("import", str(path))
    views = _views(omegad)
    assert omegad.json("import", str(path))["stored"] == 0
    assert _views(omegad) == views
    listed = omegad.json("sql", "SELECT node_id, metadata ->> '$.imported.id' FROM memories")["rows"]
    with Client(omegad.paths.socket, timeout_s=PATIENCE_S) as client:
        return first, {theirs: client.call("memory.get", memory_id=name) for name, theirs in listed}


def test_what_mcp_memory_service_counted_and_rated_comes_along(omegad: Command, tmp_path: Path) -> None:
    rated = {"quality_score": 0.9, "access_count": 7, "last_accessed_at": 1_777_000_000.0, "user_rating": 1}
    history = {"rating_history": [{"rating": 1}, {"rating": -1}, {"rating": -1}], "user_rating": -1}
    row = {"tags": "ops,proj:shop", "created_at": 1_776_000_000.0, "confidence": 0.5, "parent_id": None}
    _table(
        tmp_path / "vec.db",
        "memories",
        row
        | {"content_hash": "a1" * 32, "content": "The cache is kept in Redis", "memory_type": "best_practice"}
        | {"metadata": json.dumps(rated)},
        row
        | {"content_hash": "b2" * 32, "content": "Deploys wait for the linter", "memory_type": "ritual"}
        | {"metadata": json.dumps(history), "parent_id": "a1" * 32, "tags": ",".join(map(str, range(40)))},
    )
    _table(tmp_path / "vec.db", "beliefs", {"statement": "Redis is enough"})
    first, known = _imported(omegad, tmp_path / "vec.db")
    assert first["changed"] == {"type best_practice → lesson_learned": 1, "type ritual → memory": 1}
    assert first["not_kept"][0].endswith(", 38, 39: too many, or too long")
    quality = "quality_score, which stays in the metadata and ranks nothing: 1 rows"
    assert first["not_kept"][1:] == [quality, "table beliefs: 1 rows"]
    cache, deploys = known["a1" * 32], known["b2" * 32]
    assert (cache["retrieval_count"], cache["rating"], cache["confidence"]) == (7, 1, 0.5)
    assert (cache["last_retrieved_at"][:10], cache["tags"]) == ("2026-04-24", ["ops", "proj:shop"])
    assert cache["metadata"]["quality_score"] == 0.9
    assert (deploys["retrieval_count"], deploys["rating"]) == (0, -1)
    assert deploys["metadata"]["parent_id"] == cache["memory_id"]


def test_types_and_files_of_what_claude_mem_observed_come_along(omegad: Command, tmp_path: Path) -> None:
    row = {"project": "shop", "created_at": "2026-05-01T10:00:00Z", "concepts": '["gotcha"]'}
    files = {"files_read": '["src/payments.py"]', "files_modified": '["src/cart.py"]', "relevance_count": 3}
    _table(
        tmp_path / "claude-mem.db",
        "observations",
        row | files | {"type": "bugfix", "title": "Rounding lost a cent", "subtitle": "in the cart"},
        row | {"type": "security_alert", "title": "A key was in the logs", "subtitle": None} | files,
    )
    _table(tmp_path / "claude-mem.db", "user_prompts", {"prompt_text": "fix it"})
    first, known = _imported(omegad, tmp_path / "claude-mem.db")
    assert first["changed"] == {"type bugfix → error_pattern": 1, "type security_alert → memory": 1}
    assert first["not_kept"] == ["table user_prompts: 1 rows"]
    bug, alert = known["observation-1"], known["observation-2"]
    assert (bug["event_type"], bug["tags"]) == ("error_pattern", ["gotcha", "bugfix"])
    assert (alert["event_type"], alert["tags"]) == ("memory", ["gotcha", "security_alert"])
    told = {name: value for name, value in bug["metadata"].items() if name != "imported"}
    assert told == {
        "files_read": ["src/payments.py"],
        "files_modified": ["src/cart.py"],
        "relevance_count": 3,
        "subtitle": "in the cart",
    }


def test_a_type_that_the_configuration_declares_stays_as_it_is(omegad: Command, tmp_path: Path) -> None:
    omegad.home.mkdir(mode=0o700)
    (omegad.home / "config.toml").write_text("[event_types.behavioral_pattern]\n")
    _omega_memory(tmp_path / "omega.db")
    first, known = _imported(omegad, tmp_path / "omega.db")
    assert "type behavioral_pattern → user_preference" not in first["changed"]
    assert known["mem-1550c5114eef"]["event_type"] == "behavioral_pattern"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has folders that root cannot write in")
def test_a_copy_that_cannot_be_written_is_to_go_elsewhere(omegad: Command) -> None:
    omegad("store", "what was decided")
    for verb in ("backup", "export"):
        refused = omegad(verb, "/sys/copy", status=1).stderr
        assert refused.startswith("omegad: /sys/copy cannot be written: ")
        assert "hint: name a file elsewhere" in refused


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_copy_for_which_there_is_no_room_says_so(
    omegad: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_on_a_full_disk(*_: object) -> None:
        Path("/dev/full").write_bytes(b"the first line")

    omegad("store", "what was decided")
    monkeypatch.setattr(lines, "export", write_on_a_full_disk)
    refused = omegad("export", str(tmp_path / "copy.jsonl"), status=1).stderr
    assert f"{tmp_path / 'copy.jsonl'} was not written: the disk that it is on is full" in refused
    assert "hint: free some space there, or name another place" in refused
    monkeypatch.setattr(log_file, "copy", write_on_a_full_disk)
    assert "name another place" in omegad("backup", str(tmp_path / "copy.db"), status=1).stderr


def test_views_in_a_folder_that_cannot_be_written_are_to_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = tmp_path / "views-1.db"
    views.mkdir()  # which SQLite cannot open either
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(StorageFailed) as refused:
        salvage(views, io.StringIO())
    assert refused.value.hint.startswith("copy views-1.db")
