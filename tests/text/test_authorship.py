"""What a text shows of itself by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.text.authorship import authorship


@pytest.mark.parametrize(
    ("text", "author"),
    [
        ("Caroline: I went to the shop", "caroline"),
        ("  J.R.: hello", "j.r."),
        ("Anna-Maria: yes", "anna-maria"),
        ("caroline: in lower case, nobody speaks", None),
        ("Note:no space", None),
        ("we met Caroline: it was fun", None),
        ("X: too short for a name", None),
        (f"{'A' * 40}: too long for a name", None),
        ("http://example.org", None),
        ("", None),
    ],
)
def test_who_speaks_stands_before_a_colon_at_the_beginning(text: str, author: str | None) -> None:
    assert authorship(text).author == author


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("do we use Postgres?", True),
        ("do we use Postgres? Thanks!", True),
        ("Is it? We decided on Postgres for its row-level security in the end", False),
        ("we use Postgres", False),
        ("", False),
    ],
)
def test_a_text_asks_where_it_ends_with_a_question(text: str, *, asks: bool) -> None:
    assert authorship(text).is_question is asks


@given(st.text(max_size=300))
def test_any_text_has_traits_and_always_the_same(text: str) -> None:
    found = authorship(text)
    assert found == authorship(text)
    assert found.author is None or found.author == found.author.lower()
