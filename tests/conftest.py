"""Fixtures that any test may ask for, and how long hypothesis looks."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from omegad.config import Paths
from tests.builders import FakeClock, FakeModel, paths_in, put_model

# Two slow cores share the suite: the same examples in every run, and no deadline for one of them.
settings.register_profile("suite", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


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
