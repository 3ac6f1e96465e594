"""An erased memory is in no file of the home, whatever held it and whenever the daemon is killed
meanwhile.
"""

import json
import random
import threading
import time
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from omegad.runtime.errors import NoDaemon, NotFound, OmegadError
from omegad.storage.database import open_reader
from omegad.storage.driver import sqlite
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.seeds import SEED

CODE = "4711 0815"
SAID = f'Anna\'s door opens with {CODE},\nnot with "ünder" the mat'
FORMS = (CODE.encode(), SAID.encode(), json.dumps(SAID).encode()[1:-1], msgspec.json.encode(SAID)[1:-1])
CHANCE = random.Random(SEED)  # noqa: S311  any moment will do
ROUNDS = 4
KILLED_WITHIN_S = 0.15


def holding(home: Home, *, apart_from: str = "\0") -> set[str]:
    """Return the files of a home that hold what was said, in any form."""
    files = [path for path in home.path.rglob("*") if path.is_file() and not path.name.startswith(apart_from)]
    return {
        path.relative_to(home.path).parts[0]
        for path in files
        if any(form in path.read_bytes() for form in FORMS)
    }


def omegad(home: Home, *words: str, said: str = "", status: int = 0) -> str:
    done = home.verb(*words, said=said, within_s=2 * PATIENCE_S)
    assert done.returncode == status, done
    return done.stdout + done.stderr


def say(home: Home, session: str) -> str:
    """Have it said to an agent, stored by its tool, told to another, and asked for; return the memory."""
    hook = {
        "session_id": session,
        "cwd": str(home.path),
        "hook_event_name": "UserPromptSubmit",
        "prompt": f"Please remember: {SAID}",
    }
    home.call("hook.dispatch", event="UserPromptSubmit", payload=hook, delivery_id=f"d-{session}")
    memory_id = str(
        home.call("memory.store", content=SAID, project="house", session_id=session, request_id=session)[
            "memory_id"
        ]
    )
    tool = {"content": SAID, "command": json.dumps({"again": SAID})}
    home.call(
        "tool.record", session_id=session, tool_name="omega_store", tool_input=tool, result=f"stored {SAID}"
    )
    home.call("message.send", text=f"tell the others: {SAID}", to_project="house", session_id=session)
    home.call("task.create", title="try the door", description=SAID, project="house", session_id=session)
    home.call("memory.query", text=SAID, project="house", session_id=session)
    return memory_id


def test_it_is_gone_from_every_place_that_held_it(home: Home, tmp_path: Path) -> None:
    home.start()
    position = home.call("memory.store", content="The cellar is dry and has shelves", project="house")[
        "position"
    ]
    memory_id = say(home, "s-1")
    until(home.caught_up)
    assert len(home.call("memory.list", as_of=home.call("system.status")["log"]["head"])["memories"]) >= 2
    omegad(home, "backup", str(tmp_path / "kept.db"))
    (tmp_path / "kept.db").rename(home.path / "kept.db")
    spool = home.path / "spool"
    spool.mkdir(mode=0o700, exist_ok=True)
    hook = {"session_id": "s-2", "hook_event_name": "UserPromptSubmit", "prompt": f"spooled: {SAID}"}
    waiting = {"method": "hook.dispatch", "event": "UserPromptSubmit", "payload": hook, "delivery_id": "d-2"}
    before = holding(home)
    assert {name.removesuffix("-wal") for name in before} >= {"log.db", "views-1.db", "asof", "kept.db"}
    home.process.send_signal(19)  # so that it waits in the spool until it is drained by the erasure
    (spool / "1.json").write_bytes(msgspec.json.encode(waiting))
    assert "spool" in holding(home)
    home.process.send_signal(18)
    omegad(home, "rebuild")
    assert {"views-1.db", "views-2.db"} <= holding(home)
    would = home.call("memory.erase", memory_id=memory_id, dry_run=True)
    assert [Path(one["file"]).name for one in would["left"]] == ["kept.db"]
    shown = omegad(home, "memory", "erase", memory_id, "--dry-run")
    assert all(
        one in shown
        for one in (
            memory_id,
            "tool.called@1",
            "prompt.submitted@1",
            "message.posted@1",
            "task.created@1",
            "kept.db",
        )
    )
    assert "nothing was erased" in omegad(home, "memory", "erase", memory_id, status=1)
    assert home.call("memory.get", memory_id=memory_id)["content"] == SAID
    done = json.loads(omegad(home, "memory", "erase", memory_id, "--yes", "--json"))
    assert done["copy_count"] >= 6
    assert {one["tag"] for one in done["copies"]} >= {
        "memory.stored@2",
        "tool.called@1",
        "prompt.submitted@1",
        "message.posted@1",
        "memory.queried@1",
    }
    assert [Path(one["file"]).name for one in done["left"]] == ["kept.db"]
    assert holding(home) == {"kept.db"}
    home.check()
    log = (home.path / "log.db-wal").stat().st_ino
    with closing(open_reader(home.path / "log.db")) as reader:
        reader.execute("SELECT 1 FROM events").fetchone()
    assert (home.path / "log.db-wal").stat().st_ino == log, (
        "who closes the log last removes what the daemon goes on writing to"
    )
    home.check()
    assert home.call("memory.list", as_of=done["position"] - 1)["as_of"]["erased"] == done["copy_count"]
    assert memory_id not in {
        one["memory_id"] for one in home.call("memory.list", as_of=done["position"] - 1)["memories"]
    }
    assert home.call("memory.list", as_of=position)["memories"]
    omegad(home, "rebuild")
    home.check()
    home.restart().check()
    assert holding(home) == {"kept.db"}
    omegad(home, "backup", str(tmp_path / "clean.db"))
    (tmp_path / "clean.db").rename(home.path / "clean.db")
    assert holding(home) == {"kept.db"}


def is_whole(home: Home, memory_id: str) -> bool:
    """Say whether a memory is there as it was said; else it is erased."""
    try:
        return bool(home.call("memory.get", memory_id=memory_id)["content"] == SAID)
    except NotFound:
        return False


@pytest.mark.long
def test_killed_at_any_moment_it_is_there_whole_or_gone_at_the_next_start(home: Home) -> None:
    outcomes: list[str] = []
    home.start()
    for number in range(ROUNDS):
        memory_id = say(home, f"s-{number}")
        what = {"memory_id": memory_id} if number % 2 else {"text": SAID}
        until(home.caught_up)
        copies = home.call("memory.erase", **what, dry_run=True)["copies"]
        answers: list[dict[str, object]] = []

        def erase(what: dict[str, str] = what, answers: list[dict[str, object]] = answers) -> None:
            with suppress(NoDaemon, OmegadError):
                answers.append(home.call("memory.erase", **what))

        thread = threading.Thread(target=erase)
        thread.start()
        time.sleep(CHANCE.random() * KILLED_WITHIN_S)
        home.kill()
        thread.join()
        home.start()
        until(home.caught_up)
        if is_whole(home, memory_id):
            assert not answers
            assert home.call("memory.erase", **what, dry_run=True)["copies"][: len(copies)] == copies
            outcomes.append("whole")
            home.call("memory.erase", **what)
        else:
            outcomes.append("acknowledged" if answers else "finished")
        until(lambda: holding(home) == set(), lambda: f"{outcomes}: left in {holding(home)}")
        home.check()


def test_a_phrase_that_is_given_where_nobody_sees_it_is_erased_and_told_nowhere(home: Home) -> None:
    home.start()
    say(home, "s-1")
    home.call("memory.store", content=f"The code of the door is {CODE} since May", project="house")
    until(home.caught_up)
    erase = partial(omegad, home, "memory", "erase", "--text")
    phrase = f" opens with {CODE},"
    assert "wherever it stands" in (shown := erase(said=phrase, status=1))
    assert all(
        one in shown
        for one in (
            "tool.called@1",
            "prompt.submitted@1",
            "message.posted@1",
            "task.created@1",
            "nothing was erased",
        )
    )
    assert CODE not in shown
    assert CODE not in (told := erase("--yes", said=phrase))
    assert "erased the text" in told
    assert {"log.db", "views-1.db"} <= holding(home), "the other memory says the code, too"
    erase("--yes", said=f"code of the door is {CODE} since")
    assert holding(home) == set()
    assert CODE not in home.printed()
    home.check()
    assert "by its id, or --text" in omegad(home, "memory", "erase", status=2)


def _has_settled(home: Home) -> bool:
    """Say whether the question was recorded, and all that follows from what was said is done and shown."""
    if not any(event["tag"].startswith("memory.queried") for event in home.events()):
        return False
    return (
        all(not one["lag"] for one in home.call("system.status")["reactions"].values()) and home.caught_up()
    )


@pytest.mark.long
def test_views_that_cannot_be_written_hold_up_neither_the_end_nor_the_next_start(home: Home) -> None:
    """As on a full disk: another process holds them."""
    home.start()
    memory_id = say(home, "s-1")
    until(lambda: _has_settled(home))
    answers: list[dict[str, object]] = []
    with closing(sqlite.connect(str(home.path / "views-1.db"), isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        thread = threading.Thread(
            target=lambda: answers.append(home.call("memory.erase", memory_id=memory_id))
        )
        thread.start()
        until(lambda: any(event["tag"] == "memory.erased@1" for event in home.events()))
        assert home.stop() == 0
        thread.join()
        assert (answers[0]["memory_id"], bool(answers[0]["unfinished"])) == (memory_id, True)
        assert not any(name.startswith("log.db") for name in holding(home)) or "views-1.db" in holding(home)
    home.start()
    until(lambda: holding(home) == set(), lambda: f"left in {holding(home)}")
    until(home.caught_up)
    home.check()
