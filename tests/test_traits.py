"""What a text shows of itself by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.traits import BEGINNING_CHARACTERS, READ_CHARACTERS, traits
from tests.builders import at_most


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
    assert traits(text).author == author


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
    assert traits(text).is_question is asks


@pytest.mark.parametrize(
    ("text", "gives"),
    [
        ("We use Postgres because of row-level security", True),
        ("Retries are off, otherwise customers are charged twice", True),
        ("Pinned to 1.26 in order to avoid the ABI break", True),
        ("It turned out that the cache was cold", True),
        ("BECAUSE it is so", True),
        ("We use Postgres", False),
        ("the becauseness of it", False),
        ("", False),
    ],
)
def test_a_text_gives_a_reason_or_not(text: str, *, gives: bool) -> None:
    assert traits(text).gives_reason is gives


@pytest.mark.parametrize(
    ("text", "announces"),
    [
        ("We no longer use Redis", True),
        ("Switched to uv instead of pip", True),
        ("The timeout was raised to 30 s", True),
        ("From Monday on, deploys are frozen", True),
        ("The API has been moved to port 9090", True),
        ("We use Redis", False),
        ("a knowing look", False),
        ("", False),
    ],
)
def test_a_text_announces_a_change_or_not(text: str, *, announces: bool) -> None:
    assert traits(text).announces_change is announces


def test_a_change_is_announced_at_the_beginning_and_a_reason_given_in_what_is_read() -> None:
    far = "x " * BEGINNING_CHARACTERS
    assert not traits(far + "we no longer use it").announces_change
    assert traits(far + "because it broke").gives_reason
    assert not traits("x " * READ_CHARACTERS + "because it broke").gives_reason


@given(st.text(max_size=300))
def test_any_text_has_traits_and_always_the_same(text: str) -> None:
    found = traits(text)
    assert found == traits(text)
    assert found.author is None or found.author == found.author.lower()


@pytest.mark.parametrize("unit", ["a", "A", " ", "A.", "from ", "reason", "?", "to ", "\n", "now", "motivat"])
def test_no_text_takes_long(unit: str) -> None:
    with at_most(2):
        traits(unit * (512 * 1024 // len(unit)))
