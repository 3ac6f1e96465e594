"""Sentences that are spared the patterns of change have nothing that these would find."""

import pytest

from omegad.evidence import changes, replacement
from tests.evidence import hedges, notes


def _texts(value: object) -> list[str]:
    """Return every string in a table, however it is nested."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _texts(part)]
    return [text for part in value for text in _texts(part)] if isinstance(value, list | tuple | set | frozenset) else []


OTHERS = [
    "back to ruff",
    "we use npm again",
    "reverted to yarn",
    "returned to tabs",
    "rolled back to 3.11",
    "tabs -> spaces",
    "it uses ruff, not flake8",
]
TABLES = [value for module in (hedges, notes) for name, value in vars(module).items() if name.isupper()]
ALL = sorted({*OTHERS, *(text for table in TABLES for text in _texts(table))})


def test_there_are_texts_to_try() -> None:
    assert len(ALL) > 300
    assert any(replacement._TELLING.search(text.casefold()) is None for text in ALL)


@pytest.mark.parametrize("patterns", [replacement.OUTRIGHT, replacement.COMPARING, replacement.RETURNING], ids=["outright", "comparing", "returning"])
def test_whatever_tells_of_a_replacement_is_looked_at(patterns: tuple[object, ...]) -> None:
    found = [text for text in map(str.casefold, ALL) if any(pattern.search(text) for pattern in patterns)]  # type: ignore[attr-defined]
    assert found
    assert [text for text in found if replacement._TELLING.search(text) is None] == []


def test_whatever_tells_that_a_thing_is_gone_is_looked_at() -> None:
    patterns = (*changes._OUTRIGHT, changes._COMPARING, changes._REMOVED)
    found = [text for text in ALL if any(pattern.search(text) for pattern in patterns)]
    assert found
    assert [text for text in found if changes._GOING.search(text) is None] == []
