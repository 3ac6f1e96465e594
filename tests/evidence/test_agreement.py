"""Two texts hold together where neither denies the other and both are about the same things."""

import pytest

from omegad.text.evidence.agreement import agrees


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Use Redis for sessions", "Redis is what we use for sessions", True),
        ("Use Redis for sessions", "Never use Redis for sessions", False),
        ("The build needs Python 3.12", "The build needs Python 3.13", False),
        ("The build needs Python 3.12", "The build needs Python", True),
        ("Retries are enabled", "Retries are disabled", False),
        ("`fetch_size` avoids the timeout", "`batch_size` avoids the timeout", False),
        ("The cache is in Redis", "The cache is no longer in Redis", False),
        ("Tests run in two minutes", "Tests run in two minutes, see tests/run.sh", True),
        ("x" * 100_000, "x" * 100_000, True),
    ],
)
def test_agreement(one: str, other: str, *, expected: bool) -> None:
    assert agrees(one, other) is expected
    assert agrees(other, one) is expected
