from typing import Any

import pytest

from omegad.edge.transfer.references import references, renamed, steps


def test_ids_are_told_from_words_and_numbers_wherever_they_stand() -> None:
    ids = {"mem-1a": "ours-1", "b7c9e": "ours-2", "friday": "ours-3", "12345": "ours-4", "a/b c1": "ours-5"}
    said: dict[str, Any] = {
        "see": "mem-1a",
        "all": ["b7c9e", {"deep": "(after mem-1a, mem-1ab)"}],
        "day": "friday",
        "port": "12345",
        "path": "a/b c1",
        "mem-1a": 12345,
        "none": None,
    }
    assert references(said, ids.__contains__) == {"mem-1a", "b7c9e", "a/b c1"}
    assert renamed(said, ids) == said | {
        "see": "ours-1",
        "all": ["ours-2", {"deep": "(after ours-1, mem-1ab)"}],
        "path": "ours-5",
    }


@pytest.mark.parametrize(
    ("refers", "first", "found"),
    [
        ({}, [], {}),
        ({"a": ["b"], "b": ["c"], "c": []}, [], {"a": 2, "b": 1, "c": 0}),
        ({"a": ["b", "gone"], "b": ["a"]}, ["a"], {"a": 1, "b": 0}),
        ({"a": ["b"], "b": ["a"]}, ["b"], {"a": 0, "b": 1}),
        ({"a": ["a"]}, [], {"a": 0}),
    ],
)
def test_what_is_named_is_stored_before(
    refers: dict[str, list[str]], first: list[str], found: dict[str, int]
) -> None:
    assert steps(refers, first) == found


def test_a_long_chain_is_put_in_order() -> None:
    refers = {str(number): [str(number + 1)] for number in range(20_000)}
    assert max(steps(refers, []).values()) == 19_999
