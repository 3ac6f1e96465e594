"""Keys, budget and choice, each by itself."""

import errno
import os
from pathlib import Path

import keyring
import pytest
from keyring.errors import KeyringLocked

from omegad.edge.consult.budget import Budget
from omegad.edge.consult.keys import key_of
from omegad.edge.consult.routing import route
from omegad.runtime.config import Consult, ConsultedModel
from omegad.runtime.errors import Refused, Unavailable

SECRET = "a-key-of-some-length"  # noqa: S105  of nothing


class Ring:
    """A keyring that has one key, and may be locked."""

    is_locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.is_locked:
            raise KeyringLocked(SECRET)
        return SECRET if (service, username) == ("omegad", "gpt") else None


def in_file(path: Path | str) -> ConsultedModel:
    return ConsultedModel(api="openai", model="m", key_file=str(path))


def refused(model: ConsultedModel, home: Path) -> str:
    with pytest.raises(Unavailable) as caught:
        key_of(model, home)
    told = f"{caught.value} {caught.value.hint}"
    assert SECRET not in told
    return told


def test_a_key_is_one_line_of_a_file_that_is_its_owners_alone(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "key"
    home.mkdir()
    assert "cannot be read: No such file" in refused(in_file(path), home)
    path.write_text(f"{SECRET}\n")
    for mode in (0o644, 0o640, 0o604, 0o700, 0o620):
        path.chmod(mode)
        assert f"chmod 600 {path}" in refused(in_file(path), home)
    path.chmod(0o600)
    assert key_of(in_file(path), home) == SECRET
    path.chmod(0o400)
    assert key_of(in_file(path), home) == SECRET
    path.chmod(0o600)
    for content in (
        b"",
        b"short",
        f"{SECRET}\n{SECRET}".encode(),
        f"{SECRET} {SECRET}".encode(),
        b"\xff" * 20,
    ):
        path.write_bytes(content)
        assert "does not hold a key" in refused(in_file(path), home)


def test_a_key_is_in_no_file_of_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "key").write_text(SECRET)
    (home / "key").chmod(0o600)
    (tmp_path / "link").symlink_to(home / "key")
    assert "is in omegad's home" in refused(in_file(home / "key"), home)
    assert "is in omegad's home" in refused(in_file(tmp_path / "link"), home)


def test_what_is_no_file_holds_no_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "is not a file of yours alone" in refused(in_file(tmp_path / "pipe"), tmp_path / "home")
    assert "is not a file of yours alone" in refused(in_file(tmp_path), tmp_path / "home")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read: Too many levels" in refused(in_file(tmp_path / "loop"), tmp_path / "home")
    for name in ("key", "~nobody-there/key", "./key"):
        assert "no absolute path" in refused(in_file(name), tmp_path / "home")


def test_a_key_in_the_place_of_a_name_is_not_shown(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    assert key not in refused(in_file(f"/{key}"), tmp_path)


def test_a_key_is_in_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    monkeypatch.setattr(keyring, "get_password", ring.get_password)
    model = ConsultedModel(api="openai", model="m", keyring="omegad/gpt")
    assert key_of(model, tmp_path) == SECRET
    other = ConsultedModel(api="openai", model="m", keyring="omegad/other")
    assert "run `keyring set omegad other`" in refused(other, tmp_path)
    ring.is_locked = True
    assert "cannot be read: KeyringLocked" in refused(model, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    assert "pip install 'omegad[keyring]'" in refused(model, tmp_path)


def test_a_model_may_need_no_key(tmp_path: Path) -> None:
    assert key_of(ConsultedModel(api="openai", model="m"), tmp_path) is None


def test_a_day_has_a_budget_that_a_clock_set_back_does_not_begin_anew(tmp_path: Path) -> None:
    days = ["2026-11-25"]
    budget = Budget(
        tmp_path / "consulted.json", Consult(calls_per_day=2, tokens_per_day=100), lambda: days[-1]
    )
    assert budget.spent().calls == 0
    assert not (tmp_path / "consulted.json").exists()
    budget.reserve(60)
    with pytest.raises(Refused, match="it may take 60 tokens, and 40 of 100 are left"):
        budget.reserve(60)
    assert budget.settle(-50).tokens == 10
    budget.reserve(60)
    with pytest.raises(Refused, match="the budget of 2026-11-25 is used up: 2 of 2 calls"):
        budget.reserve(1)
    days.append("2026-11-24")
    with pytest.raises(Refused, match="2026-11-25"):
        budget.reserve(1)
    days.append("2026-11-26")
    assert (budget.spent().calls, budget.spent().tokens) == (0, 0)
    assert (tmp_path / "consulted.json").stat().st_mode & 0o777 == 0o600


def test_what_a_call_of_yesterday_did_not_take_is_not_todays(tmp_path: Path) -> None:
    path, limits, days = tmp_path / "consulted.json", Consult(tokens_per_day=100), ["2026-11-25"]
    late = Budget(path, limits, lambda: days[-1])
    late.reserve(80)
    days.append("2026-11-26")
    Budget(path, limits, lambda: days[-1]).reserve(60)
    spent = late.settle(-70, calls=-1)
    assert (spent.day, spent.calls, spent.tokens) == ("2026-11-26", 1, 60)


def test_a_full_disk_lets_nothing_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(Unavailable, match=r"cannot be counted: .* No space left"):
        Budget(tmp_path / "consulted.json", Consult()).reserve(1)


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"day": 3}', b"\xff", b'{"day":"2026-11-25","calls":"no"}']
)
def test_what_cannot_be_counted_is_not_asked(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "consulted.json"
    path.write_bytes(content)
    with pytest.raises(Unavailable, match="does not say what was asked") as caught:
        Budget(path, Consult()).reserve(1)
    assert "removed" in caught.value.hint
    assert path.read_bytes() == content
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="cannot be counted"):
        Budget(path, Consult()).reserve(1)


MODELS = {
    "large": ConsultedModel(api="openai", model="m", strengths=("debugging Python", "SQL queries"), cost=9),
    "small": ConsultedModel(
        api="openai", model="m", strengths=("SQL queries",), cost=1, context_tokens=4_000
    ),
    "mute": ConsultedModel(api="openai", model="m", cost=0),
}


@pytest.mark.parametrize(
    ("task", "name", "why"),
    [
        (
            "Why does this SQL query scan?",
            "small",
            "it is said to be good at SQL queries, as large, and costs less",
        ),
        (
            "debug the SQL queries of this Python",
            "large",
            "it is said to be good at debugging Python, SQL queries",
        ),
        ("Why does this SQL query scan? " + "x" * 9_000, "large", "it is said to be good at SQL queries"),
        (
            "write a poem about the sea",
            None,
            "no word of the task says one of their strengths: large: debugging",
        ),
        ("", None, "no word of the task"),
        ("x" * 400_000, None, "the task is too long for large: debugging Python, SQL queries; small: SQL"),
    ],
    ids=range(6),
)
def test_a_model_is_chosen_by_what_is_said_of_it(task: str, name: str | None, why: str) -> None:
    chosen = route(task, MODELS)
    assert chosen.name == name
    assert chosen.why.startswith(why)
