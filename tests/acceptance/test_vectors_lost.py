"""The cache of vectors is damaged, moved away or cannot be written while the daemon runs: what is stored
is found by meaning all the same.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.conftest import Home, require_model, until


def _found(home: Home, text: str) -> list[str]:
    answer: dict[str, Any] = home.call("memory.query", text=text, mode="semantic")
    return [result["content"] for result in answer["results"]]


def _damage(home: Home) -> None:
    path = home.path / "embeddings.db"
    path.write_bytes(b"\xff" * path.stat().st_size)
    (home.path / "embeddings.db-wal").write_bytes(b"\xff" * 100_000)


def _move_away(home: Home) -> None:
    for path in home.path.glob("embeddings.db*"):
        path.rename(path.with_name(f"moved-{path.name}"))


@pytest.mark.model
@pytest.mark.parametrize("harm", [_damage, _move_away], ids=["damaged", "moved away"])
def test_a_cache_that_is_replaced_while_running_is_followed(
    model_daemon: Home, harm: Callable[[Home], None]
) -> None:
    for number in range(3):
        model_daemon.call("memory.store", content=f"The lighthouse keeper counts ship number {number}")
    harm(model_daemon)
    model_daemon.call("memory.store", content="Bread is baked before sunrise")
    until(
        lambda: "Bread is baked before sunrise" in _found(model_daemon, "when does the bakery start working?")
    )
    assert len(_found(model_daemon, "who watches the boats?")) >= 1
    until(lambda: model_daemon.call("system.status")["degraded"] == [])
    model_daemon.check()


@pytest.mark.model
def test_vectors_that_the_cache_cannot_write_are_found_and_written_later(homes: Callable[..., Home]) -> None:
    require_model()
    home = homes(OMEGAD_MODEL="auto").start()
    home.call("memory.store", content="The lighthouse keeper counts ships")
    locked = sqlite3.connect(home.path / "embeddings.db", isolation_level=None)
    locked.execute("BEGIN IMMEDIATE")
    home.call("memory.store", content="Bread is baked before sunrise")
    until(lambda: "Bread is baked before sunrise" in _found(home, "when does the bakery start working?"))
    home.check()
    locked.execute("ROLLBACK")
    home.call("memory.store", content="The violin is tuned twice a week")
    until(lambda: locked.execute("SELECT count(*) FROM vectors").fetchone()[0] >= 3)
    locked.close()
