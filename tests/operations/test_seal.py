"""The key of a sealed home as people write it down, what says that a home is sealed, and notes for the spool."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from omegad.edge.hook import delivery
from omegad.operations import home_key, seal
from omegad.runtime import sealed_notes
from omegad.runtime.errors import Invalid, Refused, Sealed, StorageCorrupt, Unavailable
from omegad.storage.database import open_writer
from omegad.storage.sealing import new_key
from tests.builders import paths_in
from tests.forking import ROOT

cryptography = pytest.importorskip("cryptography", reason="cryptography seals, and is not installed")


def test_a_key_is_read_as_it_was_written_down() -> None:
    key = new_key()
    text = home_key.written(key)
    assert len(text.split("-")) == 14
    assert home_key.read_key(text) == key
    assert home_key.read_key(f" {text.lower().replace('-', ' ')}\n") == key
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    swapped = "-".join([*text.split("-")[1::-1], *text.split("-")[2:]])
    for other in (wrong, swapped, text[:-5], "", "halibut", text + "-AAAA"):
        with pytest.raises(Invalid, match="no key of omegad's") as refused:
            home_key.read_key(other)
        assert text[:9] not in str(refused.value)


def test_a_note_is_opened_by_the_home_s_key_under_its_name_alone() -> None:
    key, other = new_key(), new_key()
    note = sealed_notes.seal(sealed_notes.public_of(key), b"1.json", b"the halibut")
    assert b"halibut" not in note
    assert sealed_notes.seal(sealed_notes.public_of(key), b"1.json", b"the halibut") != note
    assert sealed_notes.opened(key, b"1.json", note) == b"the halibut"
    for tried, name, data in (
        (other, b"1.json", note),
        (key, b"2.json", note),
        (key, b"1.json", note[:-1] + bytes([note[-1] ^ 1])),
        (key, b"1.json", note[:40]),
    ):
        with pytest.raises(ValueError, match=r"not sealed for this home|32 bytes"):
            sealed_notes.opened(tried, name, data)


def test_a_key_is_kept_outside_the_home_and_never_over_another(tmp_path: Path) -> None:
    paths, file = paths_in(tmp_path), tmp_path / "kept" / "home.key"
    told = home_key.kept(new_key(), paths, key_file=str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert told.place == str(file)
    with pytest.raises(Refused, match="holds a key of omegad's") as there:
        home_key.kept(new_key(), paths, key_file=str(file))
    assert "of a sealing that was broken off" in there.value.hint
    other = tmp_path / "other.txt"
    other.write_text("no key\n")
    with pytest.raises(Refused, match="is no key"):
        home_key.kept(new_key(), paths, key_file=str(other))
    assert other.read_text() == "no key\n"
    with pytest.raises(Unavailable, match="is in omegad's home"):
        home_key.kept(new_key(), paths, key_file=str(paths.home / "home.key"))
    file.chmod(0o640)
    paths.seal.write_text(
        f'key_file = "{file}"\ncheck = "{told.check}"\nhooks = "{told.hooks}"\npackages = "{told.packages}"\n'
    )
    with pytest.raises(Sealed, match="not a file of yours alone") as refused:
        seal.check(paths)
    assert refused.value.hint.startswith(f"chmod 600 {file};")
    paths.seal.write_text("key_file = 7\n")
    with pytest.raises(Sealed, match="does not say what `omegad seal` writes"):
        seal.check(paths)


def test_what_was_set_aside_is_left_to_the_person(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    (paths.home / "log.db.replaced-20260101T000000000000").touch()
    with pytest.raises(Refused, match=r"log\.db\.replaced-20260101T000000000000: set aside, and plain"):
        seal.check_apart(paths)


def test_a_log_that_lies_elsewhere_is_not_half_sealed(tmp_path: Path) -> None:
    paths = paths_in(tmp_path)
    elsewhere = tmp_path / "log.db"
    with closing(open_writer(elsewhere, durable=False)) as connection:
        connection.execute("CREATE TABLE kept (text)")
    paths.log.symlink_to(elsewhere)
    with pytest.raises(Refused, match=r"log\.db: a link, and what it leads to would stay plain"):
        seal.check_apart(paths)


def test_a_log_that_cannot_be_read_is_left_as_it_is_where_nothing_says_that_it_is_sealed(
    tmp_path: Path,
) -> None:
    paths = paths_in(tmp_path)
    paths.log.write_bytes(bytes(range(256)) * 16)
    with pytest.raises(StorageCorrupt, match=r"is damaged, or it is sealed and seal\.toml is gone"):
        seal.enter(paths)
    with pytest.raises(StorageCorrupt, match=r"is damaged, or it is sealed and seal\.toml is gone"):
        seal.check(paths)
    assert [path.name for path in paths.home.iterdir()] == ["log.db"]


def test_a_hook_that_cannot_seal_leaves_nothing_plain(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "seal.toml").write_text(f'hooks = "{bytes(32).hex()}"\npackages = "{tmp_path / "none"}"\n')
    subprocess.run(
        [sys.executable, "-I", "-S", ROOT / "omegad" / "hook_client.py", "UserPromptSubmit"],
        env={**os.environ, "OMEGAD_HOME": str(home)},
        input=b'{"session_id":"s-1","prompt":"the halibut"}',
        check=True,
    )
    assert (home / "spool" / "lost").stat().st_size == 1
    assert [path.name for path in (home / "spool").iterdir()] == ["lost"]


@pytest.mark.parametrize("is_sealed", [True, False])
def test_what_a_hook_leaves_is_as_the_home_has_become_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_sealed: bool
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "seal.toml"
    key, name = new_key(), b"%020d-%032x.json" % (1, 1)
    home.mkdir()
    hooks, packages = sealed_notes.public_of(key).hex(), Path(cryptography.__file__).parents[1]
    elsewhere.write_text(f'hooks = "{hooks}"\npackages = "{packages}"\n')
    before, after = (elsewhere, home / "seal.toml") if is_sealed else (home / "seal.toml", elsewhere)
    if not is_sealed:
        elsewhere.rename(before)
    put = delivery.put

    def put_late(path: bytes, data: bytes) -> None:
        put(path, data)
        if before.exists():  # what seals the home, or opens it, comes between
            before.rename(after)

    monkeypatch.setattr(delivery, "put", put_late)
    delivery.spool(os.fsencode(home / "spool"), name, b"the halibut")
    (note,) = (home / "spool").iterdir()
    left = note.read_bytes()
    assert (sealed_notes.opened(key, name, left) if is_sealed else left) == b"the halibut"
