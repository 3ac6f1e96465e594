"""Fixtures that any test may ask for, how long hypothesis looks, and where temporary files are."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from omegad.runtime.config import Paths
from tests.builders import FakeClock, FakeModel, paths_in, put_model
from tests.searching import Searched

# Two slow cores share the suite: the same examples in every run unless a seed is named, and no deadline for
# one of them.
SAME = "TEST_SEED" not in os.environ
settings.register_profile(
    "suite", derandomize=SAME, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as of shells, of what they run in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_MEMORY = Path("/dev/shm")  # noqa: S108  a directory of its own is made in it
ROOM_BYTES = 2 * 1024**3


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Keep temporary files in memory where there is room: each of thousands of small databases waits for the
    disk at each commit.

    They are gone when the tests are over. `TMPDIR` or `--basetemp` names another place, and leaves them
    there. Where compiled modules are not to be kept beside the source they are kept there, too: hundreds of
    processes would compile all of it.
    """
    chosen = "TMPDIR" in os.environ or config.option.basetemp
    if (
        chosen
        or not os.access(IN_MEMORY, os.W_OK | os.X_OK)
        or shutil.disk_usage(IN_MEMORY).free < ROOM_BYTES
    ):
        return
    place = tempfile.mkdtemp(prefix="omegad-", dir=IN_MEMORY)
    os.environ["TMPDIR"] = tempfile.tempdir = place
    config.option.basetemp = f"{place}/t"  # briefly, for the sake of the sockets in it
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        os.environ["PYTHONPYCACHEPREFIX"] = f"{place}/compiled"
    config.add_cleanup(lambda: shutil.rmtree(place, ignore_errors=True))


def pytest_xdist_auto_num_workers() -> int:
    """Have more workers than processors, since each waits a third of its time: for a process of its own, for
    what is to happen in a moment.
    """
    return (os.cpu_count() or 1) * 3 // 2 or 1


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """An empty home, without a model."""
    return paths_in(tmp_path)


@pytest.fixture
def model(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    """A model in the home's model folder, made of paper."""
    fake = FakeModel()
    monkeypatch.setattr("omegad.embedding.embedder._load_session", lambda _folder, _manifest: fake)
    put_model(paths.models)
    return fake


@pytest.fixture
def views() -> Iterator[Searched]:
    """Views that a test of what is read from them may fill."""
    made = Searched()
    yield made
    made.connection.close()
