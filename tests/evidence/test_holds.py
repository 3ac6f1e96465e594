"""When an older text says all of a newer one."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.evidence.likeness import addition, holds
from tests.evidence.test_likeness import DIFFERENT, EQUAL, EVOLVED, NOT_EVOLVED, UNEQUAL

HELD = [  # the older first
    ("Use Redis for caching. If load grows, use Memcached.", "Use Redis for caching"),
    ("Use Redis for caching. If load grows, use Memcached.", "If load grows, use Memcached"),
    ("Alice reviews. Carl deploys. Bob merges.", "Alice reviews, and Bob merges"),
    ("- Alice reviews\n- Bob merges\n- Eve pays", "Eve pays. Alice reviews."),
    ("Use tabs.\nUse tabs in Go, never in YAML.", "Please use tabs here"),
    ("1. build\n2. test\n3. ship", "1. build\n2. test"),
    ("Run it so:\n```\na && b\n```\nThen rest.", "Run it so:\n```\na && b\n```"),
    ("We run ruff, and we run mypy", "We run mypy"),
    ("The cart service retries failed requests. It waits 2 s.", "The cart service retried the failed request"),
]

NOT_HELD = [
    ("If load grows, use Memcached", "Use Memcached"),
    ("If it is day, sleep well. If it is night, work hard", "If it is day, work hard"),
    ("Deploy on Fridays unless on call", "Deploy on Fridays"),
    ("Deploy on weekdays, only after review", "Deploy on weekdays"),
    ("Deploy on weekdays, except in May", "Deploy on weekdays"),
    ("Use the shared cache, it was a mistake", "Use the shared cache"),
    ("Check it so: user.admin, then refund", "Check it so: !user.admin, then refund"),
    ("The port is 8080.\nCorrection: the port is 9090", "The port is 8080"),
    ("We use Redis for caching. We no longer use Redis for caching", "We use Redis for caching"),
    ("The cache is warm. This is not true.", "The cache is warm"),
    ("The cache is warm, said nobody", "The cache is warm"),
    ("Is the build green? Ask Bob.", "The build is green"),
    ("Rejected: use Mongo, keep it small", "Use Mongo"),
    ("The team considered Mongo, use Postgres", "Use Postgres"),
    ("1. build\n2. test", "1. test\n2. build"),
    ("Stop the worker. Then migrate.", "Then migrate. Stop the worker."),
    ("Run it so:\n```\na && b\n```\nThen rest.", "Run it so:\n```\na || b\n```"),
    ("def f(x):\n    go()\n    stop()", "def f(x):\n    go()\nstop()"),
    ("Use tabs", "Use tabs in Go"),
    ("Use Redis for caching", ""),
]


@pytest.mark.parametrize(("older", "newer"), HELD)
def test_a_text_holds_its_statements_and_clauses(older: str, newer: str) -> None:
    assert holds(older, newer)


@pytest.mark.parametrize(("older", "newer"), NOT_HELD)
def test_a_text_holds_nothing_that_it_limits_denies_or_puts_otherwise(older: str, newer: str) -> None:
    assert not holds(older, newer)


@pytest.mark.parametrize(("new", "old", "added"), EVOLVED)
def test_a_text_that_has_grown_holds_both_that_it_grew_from(new: str, old: str, added: str) -> None:
    grown = f"{old}\n{addition(new, old)}"
    assert holds(grown, old)
    assert holds(grown, new)
    assert holds(grown, added)
    assert not holds(old, new)


@pytest.mark.parametrize(("one", "other"), [pair for pair in EQUAL if "data base" not in pair[1]])
def test_equal_texts_hold_each_other(one: str, other: str) -> None:
    assert holds(one, other)
    assert holds(other, one)


@pytest.mark.parametrize(("one", "other"), [*UNEQUAL, *DIFFERENT])
def test_a_text_does_not_hold_another_that_differs_in_a_word(one: str, other: str) -> None:
    assert not holds(one, other)


@pytest.mark.parametrize(
    ("new", "old"), [(new, old) for new, old in NOT_EVOLVED if new not in {old, "We just run the linter here", "Deploys go through"}]
)
def test_a_text_does_not_hold_one_that_says_otherwise(new: str, old: str) -> None:
    assert not holds(old, new)


@pytest.mark.parametrize("piece", ["Use x. ", "use x, ", "if x, ", "a\n", "- b\n", "was x and ", "```\n"])
def test_it_takes_time_in_proportion_to_the_text(piece: str) -> None:
    text = piece * (16_000 // len(piece))
    started = time.perf_counter()
    holds(text, f"{piece}Go on")
    holds(text, f"{text}b")
    assert time.perf_counter() - started < 2.0


@given(st.lists(st.sampled_from(["Alice reviews", "bob merges", "never deploy", "in CI tests run", "port 80"]), min_size=1).map(". ".join))
def test_a_text_holds_itself(text: str) -> None:
    assert holds(text, text)
    assert holds(f"{text}. Zed pays.", "Zed pays")


@given(st.text(), st.text())
def test_any_texts_can_be_asked(older: str, newer: str) -> None:
    assert holds(older, newer) in {True, False}
    assert holds(older, older)
