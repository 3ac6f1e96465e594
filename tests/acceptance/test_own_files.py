"""What a person keeps in the home, or links into it, is left as it is: omegad removes only what it made,
by its exact names.
"""

import json
from pathlib import Path

from tests.acceptance.conftest import Home, until
from tests.acceptance.test_erasing import SAID, omegad

BESIDE = (
    *(
        "views-3-before.db",
        "views-.db",
        "views-03.db",
        "views-0.db",
        "views-1.db.bak",
        "views-²3.db",
        "views-old.db",
        "my views-7.db",
        "views-7.DB",
    ),
    *(
        "views-9.db.unfinished.mine",
        "views-9.dbx.unfinished",
        "views-verify.tmp.old",
        "views-verify.tmp2",
        "log.db.before",
        "embeddings.db.old",
    ),
)
WITHIN = (
    "1.db",
    "7.db-wal",
    "copy-new",
    "copy-5-0123456789abcdef.db",
    "copy-mine.db",
    "photos.db",
    "notes.db.txt",
    "accounts.db",
)
BOOK = b"SQLite format 3\0 of somebody else"


def put(folder: Path, *names: str) -> dict[Path, bytes]:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(BOOK + name.encode())
    return {folder / name: BOOK + name.encode() for name in names}


def test_only_its_own_files_go_whatever_else_has_a_name_like_theirs(home: Home, tmp_path: Path) -> None:
    theirs = (
        put(home.path, *BESIDE)
        | put(tmp_path / "elsewhere", *WITHIN)
        | put(tmp_path / "papers", *(f"{number:03}.json" for number in range(120)))
    )
    (home.path / "asof").symlink_to(tmp_path / "elsewhere")
    (home.path / "spool").mkdir(mode=0o700)
    (home.path / "spool" / "unreadable").symlink_to(tmp_path / "papers")
    (home.path / "spool" / "1.json").write_text("no hook")
    gone = put(
        home.path,
        "views-77.db",
        "views-77.db-wal",
        "views-78.db.unfinished",
        "views-78.db.unfinished-journal",
        "views-verify.tmp",
    )
    home.start()
    assert not any(path.exists() for path in gone)
    memory_id = home.call("memory.store", content=SAID)["memory_id"]
    for _ in range(2):
        omegad(home, "rebuild")
    until(home.caught_up)
    answer = omegad(home, "timeline", "--as-of", "1", status=1)
    assert "asof is a link" in answer
    assert "unreadable is a link" in str(home.call("system.status")["degraded"])
    done = json.loads(omegad(home, "memory", "erase", memory_id, "--yes", "--json"))
    assert not done["left"]
    home.restart().check()
    assert {path: path.read_bytes() for path in theirs} == theirs


def test_what_is_left_in_the_folder_of_the_past_goes_by_its_name_alone(home: Home) -> None:
    theirs = put(
        home.path / "asof", "photos.db", "notes.db.txt", "copy-mine.db", "01.db", "1.db.bak", "copy-new.zip"
    )
    gone = put(home.path / "asof", "1.db", "7.db-wal", "copy-5-0123456789abcdef.db")
    home.start()
    position = home.call("memory.store", content="the cellar is dry")["position"]
    assert home.call("memory.list", as_of=position)["memories"]
    assert home.stop() == 0
    assert not any(path.exists() and path.read_bytes() == gone[path] for path in gone)
    assert {path: path.read_bytes() for path in theirs} == theirs
