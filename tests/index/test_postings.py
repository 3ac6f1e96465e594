"""Who holds a phrase, asked of arrays: the same in each way of asking, whatever has changed since they were
read.
"""

import numpy as np
import pytest

from omegad.index.postings import (
    COLUMN_SHIFT,
    FEW_OF,
    ROW_SHIFT,
    WEIGHTS,
    Postings,
    counted,
    sorted_segment,
)

COMMON, RARE = 7, 8
Rows = dict[int, list[tuple[int, int]]]


def segment_of(rows: Rows) -> Postings:
    """Return postings of rows, each with (token, column) in the order in which they stand."""
    tokens = [token for said in rows.values() for token, _ in said]
    places = [
        row << ROW_SHIFT | column << COLUMN_SHIFT | place
        for row, said in rows.items()
        for place, (_, column) in enumerate(said)
    ]
    return Postings([sorted_segment(np.array(tokens, np.int64), np.array(places, np.int64))])


def counts(rows: Rows, token: int) -> dict[int, float]:
    found = {row: sum(WEIGHTS[column] for one, column in said if one == token) for row, said in rows.items()}
    return {row: count for row, count in found.items() if count}


@pytest.fixture
def rows() -> Rows:
    choose = np.random.default_rng(3)
    return {
        row: [
            (COMMON if choose.random() < 0.6 else RARE + int(choose.integers(90)), int(choose.integers(4)))
            for _ in range(6)
        ]
        for row in range(1, 301)
    }


@pytest.mark.parametrize("asked", [1, 5, 300])
def test_a_common_word_is_counted_alike_in_few_memories_and_in_all(rows: Rows, asked: int) -> None:
    held, known = segment_of(rows).holding([COMMON]), counts(rows, COMMON)
    assert sum(token == COMMON for said in rows.values() for token, _ in said) > 5 * FEW_OF
    wanted = sorted(np.random.default_rng(asked).choice(400, asked, replace=False).tolist())
    assert counted([held], np.array(wanted)).tolist() == [[known.get(row, 0.0) for row in wanted]]
    assert held.count == len(known)
    for most in (1, 4, 299, 1_000):
        assert held.latest(most).tolist() == sorted(known, reverse=True)[:most]


def test_what_changed_is_counted_as_it_is_now(rows: Rows) -> None:
    changed: Rows = {5: [(COMMON, 0)], 9: [(RARE, 1), (COMMON, 2)], 11: [(RARE, 0)], 500: [(COMMON, 3)]}
    before = segment_of(rows)
    after = before.changed(np.array(sorted(changed)), segment_of(changed).segments[0])
    known = rows | changed
    for token in (COMMON, RARE, RARE + 4, 1_000):
        held, expected = after.holding([token]), counts(known, token)
        assert held.count == len(expected)
        assert held.latest(3).tolist() == sorted(expected, reverse=True)[:3]
        for wanted in ([5], [9, 500], sorted(known)):
            assert counted([held], np.array(wanted)).tolist() == [[expected.get(row, 0.0) for row in wanted]]
    assert before.holding([COMMON]).count == len(counts(rows, COMMON)), "what was asked before stays as it is"
