"""When two texts say the same: a table of those that do and those that only look as if they did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.commands.likeness import differ_in_detail, jaccard, words

SAME = [
    ("Deploys go through blue-green", "deploys go through Blue-green!"),
    ("The build needs Python 3.12.", "the build needs python 3.12"),
    ("Use `ruff check` before a commit", "Use 'ruff check' before a commit."),
    ("Don't mock the database", "Don\N{RIGHT SINGLE QUOTATION MARK}t mock the database"),
    ("We prefer tabs to spaces", "We prefer tabs to spaces here"),
    ("The answer is in src/app.py", "In src/app.py is the answer"),
    ("never again", "Never again"),
    ("设置超时为三十秒", "设置超时为三十秒"),
]

DIFFERENT = [
    ("the timeout is 30 seconds", "the timeout is 60 seconds"),
    ("the build needs Python 3.12", "the build needs Python 3.13"),
    ("needs 1.2.3", "needs 1.2.30"),
    ("the log is in /var/log/app", "the log is in /var/log/web"),
    ("edit src/app.py", "edit src/web.py"),
    ("see https://example.org/a", "see https://example.org/b"),
    ("call load_users first thing", "call load_items first thing"),
    ("UserStore is slow", "ItemStore is slow"),
    ("set DB_URL", "set DB_HOST"),
    ("run it with --fast", "run it with --slow"),
    ("run it with -v", "run it with -q"),
    ("app.config is read", "app.settings is read"),
    ("do deploy on Friday", "do not deploy on Friday"),
    ("do deploy on Friday", "never deploy on Friday"),
    ("it is cached", "it isn't cached"),
    ("caching is enabled", "caching is disabled"),
    ("the test passes", "the test fails"),
    ("indexes increase the speed", "indexes decrease the speed"),
    ("start before the database", "start after the database"),
    ("use the old endpoint", "use the new endpoint"),
    ("added the retry", "removed the retry"),
    ("the feature flag is on", "the feature flag is off"),
    ("always squash", "never squash"),
    ("设置超时为三十秒", "设置超时为六十秒"),
    ("Größe in Metern", "Grösse in Metern"),
    ("page someone when load > 80", "page someone when load < 80"),
    ("costs 5$", "costs 5%"),
    ("bug #12", "bug #13"),
    ("ask @anna", "ask @otto"),
    ("2026-01-31", "2026-02-01"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_in_other_words_or_signs_differs_in_no_detail(one: str, other: str) -> None:
    assert not differ_in_detail(one, other)
    assert jaccard(one, other) > 0.5


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_a_number_name_or_no_makes_all_the_difference(one: str, other: str) -> None:
    assert differ_in_detail(one, other)
    assert differ_in_detail(other, one)


def test_jaccard_is_the_share_of_distinct_words() -> None:
    assert jaccard("a b c", "b c d") == 0.5
    assert jaccard("a a b", "B A") == 1.0
    assert jaccard("", "") == jaccard("a", "") == 0.0
    assert words("Don\N{RIGHT SINGLE QUOTATION MARK}t stop_it, ever!") == {"don't", "stop", "it", "ever"}


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_complete(one: str, other: str) -> None:
    assert differ_in_detail(one, other) == differ_in_detail(other, one)
    assert jaccard(one, other) == jaccard(other, one)
    assert 0.0 <= jaccard(one, other) <= 1.0
    assert not differ_in_detail(one, one)


@given(st.text(), st.integers())
def test_texts_with_different_numbers_always_differ(text: str, number: int) -> None:
    assert differ_in_detail(f"{text} {number} items", f"{text} {number + 1} items")
