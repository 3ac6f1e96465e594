"""When texts say the same, when one restates another and adds to it, and how much of them is read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omegad.text.evidence import duplicates
from omegad.text.evidence import statements as text
from omegad.text.evidence.duplicates import ComparedText, are_same, restates

SAME = (
    ("Deploys go via blue-green", "deploys go through Blue-green!"),
    ("Retries are capped at 5", "The retry is capped at 5."),
    ("We can't use it", "we can not use it"),
    ("- Use `ruff` \u2014 not `flake8`", "Please use ruff, not flake8"),
    ("Ask first. Then deploy.", "Ask first.\nThen deploy"),
    (
        "Run it after each release, only from the pipeline",
        "Run it after every release, but only from the pipeline",
    ),
    ("```\nmake all\n```", "```sh\nmake all  \n```"),
    ("caf\u00e9 naïve", "caf\u00e9  naïve!"),
)
"""Pairs that one memory may stand for."""

DIFFERENT = (
    ("the timeout is 30 s", "the timeout is 60 s"),
    ("requires v2.1", "requires v2.2"),
    ("read src/app.py", "read src/web.py"),
    ("call fetch_all", "call fetch_one"),
    ("the `Foo` type", "the `foo` type"),
    ("the cache is enabled", "the cache is disabled"),
    ("deploy on Friday", "do not deploy on Friday"),
    ("always run the linter", "never run the linter"),
    ("use ruff, not flake8", "use flake8, not ruff"),
    ("the client calls the server", "the server calls the client"),
    ("stop the service and run the migration", "run the migration and stop the service"),
    ("we use Redis", "we used Redis"),
    ("the author signs", "the authorization signs"),
    ("our API is slow", "their API is slow"),
    ("deploys go through blue-green", "deploys go through blue-green in the cloud"),
    ("follow plan A", "follow plan"),
    ("returns []", "returns {}"),
    ("x != y", "x == y"),
    ("run *.py", "run .py"),
    ("call it with --force", "call it with force"),
    ("is it slow?", "it is slow"),
    ("- [x] tests", "- [ ] tests"),
    ("copy A and B", "copy A or B"),
    ("```\nif a:\n    b\n```", "```\nif a:\nb\n```"),
    ("Add the cache", 'Revert "Add the cache"'),
    ("", "..."),
)
"""Pairs of which a duplicate would lose one."""


@pytest.mark.parametrize(
    ("one", "other", "is_same"), [*((*pair, True) for pair in SAME), *((*pair, False) for pair in DIFFERENT)]
)
def test_texts_are_the_same_only_to_the_word_number_name_and_sign(
    one: str, other: str, *, is_same: bool
) -> None:
    assert are_same(ComparedText(one), ComparedText(other)) is is_same
    assert are_same(ComparedText(other), ComparedText(one)) is is_same
    if not is_same:
        assert not restates(ComparedText(one), ComparedText(other))
        assert not restates(ComparedText(other), ComparedText(one))


BASE = "Deploys go through blue-green"


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (f"{BASE}. Rollbacks take an hour.", BASE),
        (f"{BASE}; rollbacks too", "deploys go through the blue-green"),
        (f"Ask in the channel. {BASE}.\n- Keys lie in the vault", f"Ask in the channel.\n{BASE}"),
        (f"{BASE}\n```\nmake deploy\n```", BASE),
    ],
)
def test_a_text_restates_another_where_it_has_all_its_sentences_and_more(whole: str, part: str) -> None:
    assert restates(ComparedText(whole), ComparedText(part))
    assert not restates(ComparedText(part), ComparedText(whole))


@pytest.mark.parametrize(
    "whole",
    [
        f"{BASE}, and rollbacks take an hour",
        f"{BASE}, rollbacks take an hour",
        f"{BASE} and take an hour",
        f"{BASE}; rollbacks take an hour",
        f"{BASE}. Rollbacks take an hour.",
        f"{BASE}; rollbacks start on a click, and may use any of the hosts",
        f"{BASE} because rollbacks take an hour",
        f"{BASE} so that rollbacks are quick",
        f"{BASE}, which takes an hour",
        f"{BASE} (an hour each)",
        f"{BASE} - an hour each",
        f"{BASE} \u2014 an hour each",
        f"{BASE}: an hour each",
        f"Ask in the channel. {BASE}, and rollbacks take an hour. Keys lie in the vault.",
    ],
)
def test_a_text_that_goes_on_behind_a_comma_or_an_and_restates_what_it_begins_with(whole: str) -> None:
    for base in (BASE, f"{BASE}."):
        assert restates(ComparedText(whole), ComparedText(base))
        assert not restates(ComparedText(base), ComparedText(whole))


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (f"{BASE}, but not on Fridays", BASE),
        (f"{BASE}, unless it is Friday", BASE),
        (f"{BASE}, only in the cloud", BASE),
        (f"{BASE} in the cloud, and take an hour", BASE),
        (f"{BASE} or through canaries", BASE),
        (f"{BASE} (but not on Fridays)", BASE),
        (f"{BASE}: never by hand", BASE),
        ("Metrics are on, and traces are off", "Metrics are on"),
    ],
)
def test_what_goes_on_otherwise_may_narrow_or_turn_what_is_said(whole: str, part: str) -> None:
    assert not restates(ComparedText(whole), ComparedText(part))


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (BASE, BASE),
        (f"{BASE} on 3 hosts. Rollbacks too.", f"{BASE} on 2 hosts"),
        (f"{BASE}? No. Never mind.", BASE),
        (f"{BASE}. Not on Fridays.", BASE),
        (f"{BASE}. Only in the cloud.", BASE),
        (f"{BASE}. That was wrong.", BASE),
        (f"{BASE}. This is no longer so.", BASE),
        (f"{BASE}. We backed out of that.", BASE),
        (f"{BASE}. Hosts were switched.", BASE),
        (f'Revert "{BASE}"\n{BASE}.', BASE),
        (f"Reverted: canaries. {BASE}.", "Reverted: canaries."),
        (f"What we rejected:\n- {BASE}\n- canaries", BASE),
        (f"Rollbacks take an hour. {BASE}.", f"{BASE}. Rollbacks take an hour."),
    ],
)
def test_a_text_restates_nothing_that_it_leaves_out_turns_limits_or_takes_back(whole: str, part: str) -> None:
    assert not restates(ComparedText(whole), ComparedText(part))


PIECES = st.sampled_from(
    [
        "alpha beta",
        "Retry 5 times",
        "never mind",
        "beta alpha",
        "revert it",
        "x: 1",
        "- one",
        "so?",
        "`Foo`",
        "the",
        "don't",
    ]
)
TEXTS = st.lists(PIECES, max_size=5).map("\n".join) | st.text(max_size=60)


@given(one=TEXTS, other=TEXTS)
def test_sameness_is_symmetric_and_excludes_restatement_and_that_goes_one_way(one: str, other: str) -> None:
    first, second = ComparedText(one), ComparedText(other)
    assert are_same(first, second) == are_same(second, first)
    assert sum((are_same(first, second), restates(first, second), restates(second, first))) <= 1
    assert are_same(first, first) == bool(first.statements)


def test_of_a_huge_text_little_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = ComparedText("deploys go through 'blue-green'. " * 8_000)
    assert len(huge.content) > 256 * 1024 > text.COMPARED_CHARACTERS
    assert not huge.is_comparable
    read: list[int] = []

    def words_of(content: str) -> list[str]:
        read.append(len(content))
        return text.words(content)

    def overrides(content: str, said: frozenset[str]) -> bool:
        read.append(len(content))
        return text.overrides(content, said)

    monkeypatch.setattr(duplicates, "words", words_of)
    monkeypatch.setattr(duplicates, "overrides", overrides)
    assert not huge.is_overriding
    assert read == [text.COMPARED_CHARACTERS] * 2


@pytest.mark.parametrize(
    ("one", "other"), [("it's on", "it is off"), ("it is on", "it isn't on"), ("always so", "never so")]
)
def test_opposites_are_opposite_either_way_round(one: str, other: str) -> None:
    ours, theirs = frozenset(text.words(one)), frozenset(text.words(other))
    assert text.is_opposite(ours, theirs)
    assert text.is_opposite(theirs, ours)
    assert not text.is_opposite(ours, ours)
