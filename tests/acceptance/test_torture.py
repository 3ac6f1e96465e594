"""A short torture, see `python -m tests.torture`: everything at once, killed at random moments."""

import os
from pathlib import Path

import pytest

from tests.seeds import SEED
from tests.torture.run import Limits, Torture

KILLS = int(os.environ.get("TORTURE_KILLS", "6"))


@pytest.mark.long
def test_nothing_acknowledged_is_lost_doubled_or_back_after_its_erasure(tmp_path: Path) -> None:
    torture = Torture(tmp_path, SEED, print)
    assert torture.run(Limits(kills=KILLS, acknowledged=60 * KILLS)) == []
    assert torture.counts["kills"] >= KILLS
    assert torture.book.gone, "nothing was erased"
