"""A short fuzz, see `python -m tests.fuzz`: hostile operations and frames at every door."""

import os
from pathlib import Path

import pytest

from tests.fuzz.run import Fuzz, Limits
from tests.seeds import SEED

OPERATIONS = int(os.environ.get("FUZZ_OPERATIONS", "150"))
FRAMES = int(os.environ.get("FUZZ_FRAMES", "2000"))
BUSY = {"ping_p99_ms": 5_000.0, "rss_growth_mb": 60.0, "settling_s": 0.2}
"""Of a machine that does other things as well, and before a daemon has all that it keeps."""


@pytest.mark.long
def test_whatever_comes_through_any_door_is_answered_or_refused_and_hurts_nobody(tmp_path: Path) -> None:
    fuzz = Fuzz(tmp_path, SEED, print)
    assert fuzz.run(Limits(OPERATIONS, FRAMES, **BUSY)) == []
    assert {one.name for one in fuzz.figures} == {"operations", "socket", "mcp", "http"}
    assert all(one.sent and one.answers for one in fuzz.figures)
