"""Where somebody moves, removes or replaces the log while it is in use, nothing more is acknowledged,
until it is back.
"""

import os
import shutil
from itertools import product
from pathlib import Path

from omegad.runtime.errors import Unavailable
from tests.acceptance.conftest import Home, refusal, until

GONE = "moved, replaced or removed"


def test_nothing_is_acknowledged_on_a_log_that_is_not_in_its_place(daemon: Home, tmp_path: Path) -> None:
    daemon.call("memory.store", content="The cellar is dry")
    until(daemon.caught_up)
    for number, (name, how) in enumerate(product(("log.db", "log.db-wal"), ("moved", "removed", "replaced"))):
        file, aside = daemon.path / name, tmp_path / f"{number}.aside"
        os.link(file, aside)
        if how == "moved":
            file.rename(tmp_path / f"{number}.moved")
        else:
            file.unlink()
        if how == "replaced":
            shutil.copy(aside, file)
        assert any(GONE in one for one in daemon.call("system.status")["degraded"])
        late = {"content": f"Said too late, {number}", "request_id": f"late-{number}"}
        for _ in range(2):
            error = refusal(lambda late=late: daemon.call("memory.store", **late))  # type: ignore[misc]
            assert isinstance(error, Unavailable)
            assert GONE in str(error)
        assert daemon.call("memory.query", text="is the cellar dry?")["results"], (
            "what was stored is still found"
        )
        file.unlink(missing_ok=True)
        os.link(aside, file)
        assert daemon.call("memory.store", **late)["outcome"] == "stored"
        until(
            lambda: daemon.call("system.status")["degraded"] == []
        )  # what reacts to events tries again after a while
    daemon.restart().check()
    assert len(daemon.call("memory.list")["memories"]) == 1 + 6
