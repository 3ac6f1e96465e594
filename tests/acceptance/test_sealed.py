"""What a sealed home says to who has its files and not its key: nothing; and what happens to it otherwise."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from omegad.operations.home_key import written
from omegad.operations.seal import check
from omegad.runtime import secret_places
from omegad.runtime.errors import Sealed
from omegad.runtime.sealed_notes import MAGIC
from omegad.storage.sealing import new_key
from tests.acceptance.conftest import Home, until
from tests.forking import ROOT, Forked

pytest.importorskip("sqlcipher3", reason="sqlcipher3 seals, and is not installed")

HOOK = ROOT / "omegad" / "hook_client.py"
RING = """
import json, keyring.backend, pathlib
PATH = pathlib.Path({path!r})
class Ring(keyring.backend.KeyringBackend):
    priority = 1
    def get_password(self, service, username):
        return json.loads(PATH.read_text()).get(service + username) if PATH.exists() else None
    def set_password(self, service, username, password):
        PATH.write_text(json.dumps({{service + username: password}}))
    def delete_password(self, service, username):
        PATH.unlink()
"""
BREAK_OFF = """
import os, sys
from omegad.operations import seal
number = int(sys.argv.pop())
seal._check_same = lambda *_: os.kill(os.getpid(), number)
from omegad.__main__ import main
sys.exit(main())
"""
WORDS = [b"halibut", b"turbot", b"sturgeon", b"lamprey", b"gudgeon", b"burbot", b"grayling"]


def run(home: Home, *words: str, said: str = "") -> tuple[int, str]:
    """Run a verb, in a fork unless it is told something; return its status and what it prints."""
    if said or "PYTHONPATH" in home.environ:
        ended = home.verb(*words, said=said)
        return ended.returncode, ended.stderr + ended.stdout
    output = home.path.with_name(f"{home.path.name}.said")
    output.unlink(missing_ok=True)
    status = Forked(words, home.environ, output).wait()
    return status, output.read_text()


def done(home: Home, *words: str, said: str = "") -> str:
    """Run a verb that must not fail, and return what it prints."""
    status, printed = run(home, *words, said=said)
    assert status == 0, printed
    return printed


def seal(home: Home, *words: str) -> str:
    """Seal a home, and return its recovery key."""
    printed = done(home, "seal", "--yes", *(words or ("--key-file", f"{home.path}.key")))
    (found,) = re.findall(r"(?:[A-Z2-7]{4}-){13}[A-Z2-7]{4}", printed)
    return str(found)


def hook(home: Home, event: str, **payload: object) -> None:
    told = msgspec.json.encode({"session_id": "s-1", "cwd": "/tmp/work", **payload})  # noqa: S108
    subprocess.run(
        [sys.executable, "-I", "-S", HOOK, event], env=home.environ, input=told, check=True, cwd=ROOT
    )


def use(home: Home) -> str:
    """Have everything in use that keeps text; return a memory's id."""
    with home.client() as client:
        memory = client.call(
            "memory.store", content="The halibut is deployed on Fridays.", project="lamprey", session_id="s-1"
        )
        client.call("memory.query", text="when do we deploy the sturgeon?")
        client.call("task.create", title="gut the gudgeon", project="lamprey")
        client.call(
            "memory.store", content="The halibut moved: it is deployed on Mondays.", project="lamprey"
        )
    hook(home, "UserPromptSubmit", prompt="what about the turbot?")
    hook(
        home,
        "PostToolUse",
        tool_name="Bash",
        tool_input={"command": "ls burbot"},
        tool_response={"out": "burbot"},
    )
    until(lambda: "turbot" in str(home.events()) and "burbot" in str(home.events()))
    until(home.caught_up)
    return str(memory["memory_id"])


def told(folder: Path) -> dict[str, set[bytes]]:
    """Return which files say which of the words, and those whose names do."""
    found = {}
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        if words := {word for word in WORDS if word in data.lower() or word in bytes(path)}:
            found[path.name] = words
    return found


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {"omegad.lock", "omegad.log"}
    }


def test_a_copy_of_a_sealed_home_says_nothing_without_its_key(
    homes: Callable[..., Home], tmp_path: Path
) -> None:
    plain = homes().start()
    use(plain)
    plain.kill()
    hook(plain, "UserPromptSubmit", prompt="and the grayling?")
    assert set().union(*told(plain.path).values()) == set(WORDS), "the words would be found"

    home = homes()
    seal(home)
    memory = use(home.start())
    assert home.call("system.status")["sealed"] == f"{home.path}.key"
    with home.client() as client:
        assert client.call("audit.sql", sql="SELECT content FROM memories ORDER BY content")["rows"]
        assert client.call("memory.query", text="halibut", as_of=home.events()[-1]["position"] - 1)["results"]
    for moment in range(2):
        copy = tmp_path / f"copy{moment}"
        shutil.copytree(home.path, copy, ignore=shutil.ignore_patterns("*.sock"), symlinks=True)
        assert (copy / "log.db-wal").exists()
        assert told(copy) == {}
        home.kill()
        late = {*(home.path / "spool").glob("*.json")}  # hooks of before, on a busy machine
        hook(home, "UserPromptSubmit", prompt=f"and the grayling of {moment}?")
        assert told(home.path) == {}
        assert len({*(home.path / "spool").glob("*.json")} - late) == 1
        home.start()
        until(lambda: f"grayling of {moment}" in str(home.events()))  # noqa: B023  asked at once
    home.check()
    assert home.call("memory.get", memory_id=memory)["content"].startswith("The halibut is")
    assert told(home.path) == {}
    assert home.stop() == 0
    assert told(home.path) == {}
    done(home, "pack")
    assert told(home.path) == {}
    home.start().check()


def test_a_home_in_use_is_sealed_and_opened_again(home: Home) -> None:
    home.start()
    use(home)
    home.call("memory.query", text="halibut", as_of=home.events()[-1]["position"] - 1)
    assert "another omegad serves this home" in run(home, "seal", "--yes")[1]
    home.kill()
    hook(home, "UserPromptSubmit", prompt="and the grayling?")
    for left in (".log.db.4194304.part", "log.db.unfinished", "views-2.db.unfinished-wal", "asof/copy-new"):
        shutil.copy(home.path / "log.db-wal", home.path / left)  # of who was killed
    hook_left = home.path / "spool" / f".{9:020}-{9:032x}.json"
    hook_left.write_text("turbot")
    os.utime(hook_left, (0, 0))
    assert {"log.db-wal", "views-1.db-wal", "1.db", "copy-new"} <= told(home.path).keys()
    seal(home)
    assert told(home.path) == {}
    home.start()
    until(lambda: "grayling" in str(home.events()))
    home.check()
    growth = {
        one["name"]: one["bytes"] for one in home.call("system.growth")["parts"] if one["file"] == "log"
    }
    assert growth["payloads"] >= 4096
    before = home.events()
    assert home.stop() == 0
    seal_toml, garbled = home.path / "seal.toml", home.path / "spool" / f"{7:020}-{7:032x}.json"
    os.mkfifo(garbled.with_name(f"{8:020}-{8:032x}.json"))
    garbled.write_bytes(MAGIC + bytes(40))
    said = seal_toml.read_bytes()
    aside = home.path / "log.db.replaced-20260101T000000000000"
    shutil.copy(home.path / "log.db", aside)
    assert f"set aside before, and sealed still by that key: {aside}\n" in done(home, "unseal", "--yes")
    assert "log.db" in told(home.path)
    assert not seal_toml.exists()

    # As it is where what unseals is killed after the log's rename, and the key is thrown away then
    (home.path / "unseal.unfinished").write_bytes(said)
    Path(f"{home.path}.key").unlink()
    hook(home, "UserPromptSubmit", prompt="and the grayling of the last moment?")
    home.start()
    until(lambda: "grayling of the last moment" in str(home.events()))
    assert not (home.path / "unseal.unfinished").exists()
    until((garbled.parent / "unreadable" / garbled.name).exists)
    home.check()
    assert home.events()[: len(before)] == before


def failed_on_a_full_disk(home: Home, *words: str) -> str:
    """Run a verb that must fail where no file can be larger than 64 kB, and return what it prints."""
    command = ["sh", "-c", 'ulimit -f 128; exec "$@"', "sh", sys.executable, "-m", "omegad", *words]
    ended = subprocess.run(command, env=home.environ, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    return ended.stderr


def test_what_comes_to_nothing_leaves_the_home_as_it_was_and_no_key(home: Home) -> None:
    home.start().call("memory.store", content="The halibut is deployed on Fridays.")
    assert home.stop() == 0
    key = Path(f"{home.path}.key")
    before = sorted(path.name for path in home.path.iterdir())
    assert "nothing was sealed: it shows a key" in run(home, "seal", "--key-file", str(key))[1]
    assert not key.exists()
    said = failed_on_a_full_disk(home, "seal", "--yes", "--key-file", str(key))
    assert "(views-1.db: disk I/O error)" in said
    assert not key.exists()
    assert sorted(path.name for path in home.path.iterdir()) == before
    home.start().check()
    assert home.stop() == 0

    seal(home)
    hook(home, "UserPromptSubmit", prompt="what about the turbot?")
    assert "(views-1.db: disk I/O error)" in failed_on_a_full_disk(home, "unseal", "--yes")
    assert sorted(path.name for path in home.path.iterdir()) == sorted([*before, "seal.toml"])
    assert told(home.path) == {}
    home.start().check()
    until(lambda: "turbot" in str(home.events()))


def broken_off(home: Home, number: signal.Signals) -> "subprocess.CompletedProcess[str]":
    """Seal a home, and have a signal break that off when the log is sealed beside the plain one."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            BREAK_OFF,
            "seal",
            "--yes",
            "--key-file",
            f"{home.path}.key",
            str(int(number)),
        ],
        env=home.environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_who_breaks_a_sealing_off_or_seals_again_is_told_what_there_is(home: Home) -> None:
    home.start().call("memory.store", content="The halibut is deployed on Fridays.")
    assert home.stop() == 0
    key = Path(f"{home.path}.key")
    ended = broken_off(home, signal.SIGINT)
    assert ended.returncode == 130
    assert "broken off: the home is plain;" in ended.stderr
    assert not key.exists()

    assert broken_off(home, signal.SIGKILL).returncode == -signal.SIGKILL
    status, said = run(home, "seal", "--yes", "--key-file", str(key))
    assert status == 1
    assert f"nothing is sealed by its key, which is in {key}" in said
    assert "holds a key of omegad's" in said
    assert key.exists(), "which only a person knows to be of no use"
    assert "`omegad seal` encrypts it" in run(home, "unseal", "--yes")[1]
    seal(home, "--key-file", f"{key}.2")
    assert "`omegad unseal` makes it plain" in run(home, "seal", "--yes")[1]
    home.start().check()


def test_without_its_key_a_sealed_home_is_refused_and_left_as_it_is(home: Home) -> None:
    recovery = seal(home)
    home.start().call("memory.store", content="The halibut is deployed on Fridays.")
    assert home.stop() == 0
    key = Path(f"{home.path}.key")
    before = digests(home.path)
    for there, complaint in (
        (None, "cannot be read: No such file"),
        (written(new_key()), "is not the one that this home is sealed by"),
        ("a halibut", "does not hold the home's key"),
    ):
        key.unlink(missing_ok=True)
        if there:
            secret_places.keep_in_file(there, key)
        home.launch()
        assert home.process.wait(60) == 1
        assert complaint in home.printed()
        assert "hint: put the key back where seal.toml names it, or give the recovery key" in home.printed()
        assert digests(home.path) == before
        with pytest.raises(Sealed, match=complaint):
            check(home.paths)
    assert complaint in run(home, "backup", str(key.with_name("b.db")))[1]
    key.chmod(0o644)
    assert f"hint: chmod 600 {key}" in run(home, "backup", str(key.with_name("b.db")))[1]
    miscopied = recovery[:-4] + "AAAA"
    assert "not as it was written down" in run(home, "seal", "--recover", said=miscopied)[1]
    assert digests(home.path) == before
    done(home, "seal", "--recover", "--key-file", f"{key}.new", said=recovery.lower())
    assert home.start().call("memory.query", text="halibut")["results"]
    for begun in ("seal.toml.unfinished", "unseal.unfinished"):  # what changes the home was killed before
        assert home.stop() == 0
        (home.path / "seal.toml").rename(home.path / begun)
        done(home, "seal", "--recover", "--key-file", f"{key}.{begun}", said=recovery)
        home.start()
        assert f"{key}.{begun}" in (home.path / "seal.toml").read_text()
        assert not (home.path / begun).exists()


def test_backups_are_sealed_and_restored_by_the_recovery_key(
    homes: Callable[..., Home], tmp_path: Path
) -> None:
    ring = tmp_path / "rings"
    ring.mkdir()
    (ring / "ring.py").write_text(RING.format(path=str(ring / "kept.json")))
    environ = {"PYTHON_KEYRING_BACKEND": "ring.Ring", "PYTHONPATH": str(ring)}
    # With a model that is not there its daemon is no fork, and finds the keyring.
    home = homes(OMEGAD_MODEL="auto", XDG_CACHE_HOME=str(tmp_path / "cache"), **environ)
    recovery = seal(home, "--keyring")
    memory = use(home.start())
    home.call("views.rebuild")
    backup, kept, exported, plain_backup = (
        tmp_path / name for name in ("backup.db", "home0/kept.db", "log.jsonl", "plain.db")
    )
    for _ in range(2):
        done(home, "backup", str(backup), "--keep", "2")
    backup.with_name("backup.db.1").rename(kept)
    erased = home.call("memory.erase", memory_id=memory, dry_run=False)
    assert [Path(one["file"]).name for one in erased["left"]] == ["kept.db"]
    assert home.stop() == 0
    assert told(tmp_path) == {}

    new, plain = homes(), homes()
    assert "`omegad seal --recover`" in run(new, "restore", str(backup))[1]
    done(new, "seal", "--recover", "--key-file", str(tmp_path / "again.key"), said=recovery)
    done(new, "restore", str(backup))
    new.start().check()
    assert new.call("memory.get", memory_id=memory)["content"].startswith("The halibut is")
    assert "the export is plain" in done(new, "export", str(exported))
    assert new.stop() == 0
    assert told(new.path) == {}
    done(plain, "import", str(exported))
    done(plain, "backup", str(plain_backup))
    done(new, "restore", "--replace", str(plain_backup))
    assert told(new.path) == {}, "a plain backup is sealed on its way in"
    new.start().check()


@pytest.mark.long
def test_wherever_sealing_and_opening_are_broken_off_nothing_is_lost(home: Home) -> None:
    home.start()
    use(home)
    home.kill()
    hook(home, "UserPromptSubmit", prompt="and the grayling?")
    ended = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.breaking_off", home.path],
        env={**home.environ, "OMEGAD_WORDS": b",".join(WORDS).decode()},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = msgspec.json.decode(ended.stdout.splitlines()[-1])
    assert found["seal"]["plain"] > 5, found
    assert found["seal"]["sealed"] > 5, found
    assert found["unseal"]["plain"] > 3, found
    assert found["unseal"]["sealed"] > 5, found
