"""What is at hand of texts is bounded by its bytes."""

import random
import tracemalloc
from typing import Any

import pytest

from omegad.index import terms
from omegad.memory import relating
from omegad.runtime.kept import Kept
from omegad.search import features
from omegad.text.evidence import stance
from omegad.text.redaction import secrets

TEXTS, TEXT_WORDS = 800, 60
BOUND = 200_000
WORDS = ("the", "export", "ledger", "writes", "each", "invoice", "to", "its", "queue", "before", "worker")
KEPT: dict[str, Kept[Any]] = {
    "words": features._WORDS,
    "in_a_row": features._IN_A_ROW,
    "read": relating._READ,
    "redacted": secrets._REDACTED,
    "senses": stance._SENSES,
    "titles": stance._TITLES,
}


def test_what_was_asked_for_lately_is_made_once_and_the_rest_goes() -> None:
    made = list[str]()

    def upper(text: str) -> str:
        made.append(text)
        return text.upper()

    kept = Kept(upper, 20, lambda text, _: len(text))
    assert [kept["one"], kept["two"], kept["one"], kept["two"]] == ["ONE", "TWO", "ONE", "TWO"]
    assert kept["three"] == "THREE"  # no room: one and two are the half from which they are taken
    assert kept["one"] == "ONE"
    assert made == ["one", "two", "three"]
    assert [kept["four"], kept["two"]] == ["FOUR", "TWO"]
    assert made == ["one", "two", "three", "four", "two"]
    assert kept["x" * 11] == "X" * 11
    assert kept["x" * 11] == "X" * 11
    assert made.count("x" * 11) == 2


def test_what_fails_is_not_kept() -> None:
    kept = Kept(int, 100, lambda text, _: len(text))
    for _ in range(2):
        with pytest.raises(ValueError, match="invalid literal"):
            kept["a"]
    assert kept["5"] == 5


@pytest.mark.parametrize("name", KEPT)
def test_what_is_at_hand_of_texts_comes_to_no_more_than_its_bound(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Kept(KEPT[name]._make, BOUND, KEPT[name]._bytes_of)
    if name == "titles":  # whose sentences have a bound of their own
        monkeypatch.setattr(stance, "_SENSES", Kept(stance._SENSES._make, 1, stance._SENSES._bytes_of))
    terms.stemmed(" ".join(WORDS))
    tracemalloc.start()
    try:
        for number in range(TEXTS):
            chance = random.Random(number)  # noqa: S311  another text each time
            made = kept[" ".join(chance.choices(WORDS, k=TEXT_WORDS))]
            if name == "read":
                assert made.words
                assert made.statements
        occupied = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert BOUND / 8 < occupied < 1.3 * BOUND


def test_no_stems_are_kept_of_runs_that_are_no_words() -> None:
    run = "z" * (terms.RUN_KEPT_MAX + 1)
    assert terms.stemmed(run) == terms.stemmed(run)
    assert run not in terms._STEMS
