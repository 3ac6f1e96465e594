"""Texts with long gaps in them are read in time, by whatever reads sentences and times."""

from collections.abc import Callable

import pytest

from omegad.search.clauses import READ_CHARACTERS, clause
from omegad.search.question import understood
from omegad.text.calendars import in_english
from omegad.text.evidence import sense, statements
from omegad.text.languages import language_of
from tests.builders import at_most

GAP = " " * 40_000


@pytest.mark.parametrize(
    "read",
    [
        statements.openings,
        sense.read,
        lambda text: clause(text[:READ_CHARACTERS], ("window",), language_of("the window")),
        lambda text: in_english(f"was war im März {text}", "de"),
        lambda text: understood(f"was war im März 2024 {text}?", 0),
    ],
)
@pytest.mark.parametrize("text", [f"the backup window{GAP}end", f"3{GAP}\n" * 3])
def test_a_text_with_long_gaps_is_read_in_time(read: Callable[[str], object], text: str) -> None:
    with at_most(2.0):
        read(text)
