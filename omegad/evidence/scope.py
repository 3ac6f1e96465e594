"""What a newer statement is about beside what an older one is about, which makes it narrower: an environment, a part, some of the users. Pure."""

from collections.abc import Set as AbstractSet

from omegad.evidence.wording import stems

KEY_LETTERS = 6
"""How many letters of a stem tell it: `experiment` and `experimental` share their first six."""


def _keys(words: str) -> frozenset[str]:
    return frozenset(stem[:KEY_LETTERS] for stem in stems(words))


_HARMLESS = _keys(
    """weekend overnight successfully gradually globally officially fully entirely recently decision due announced everybody effectively
    definitely consistently henceforth rewrite rewritten write written manage managed store stored built build live call called set name
    named now here decided agreed team settings file used using work working way done want wanted need needed get got no not never longer
    allow allowed permit permitted fine okay possible finish finished complete completed"""
)
_CASES = _keys(
    """test staging stage dev development local locally laptop debug demo sandbox production prod preview canary branch fork example legacy
    nightly guest admin customer tenant audit experiment docker windows linux macos mac mobile ios android web site extension module script
    scripts sample fixture storybook benchmark ci night imported import service internal external public private account
    thumbnail plugin when unless if while except outside office region"""
)


def narrowing(ours: AbstractSet[str], theirs: AbstractSet[str]) -> frozenset[str]:
    """Return the terms by which a newer statement is about less than an older one: its own that the other has not, and that tell a case."""
    return frozenset(term for term in ours - theirs if term[:KEY_LETTERS] not in _HARMLESS and not term[:1].isdigit())


def is_case(narrower: AbstractSet[str]) -> bool:
    """Say whether terms tell of a case of its own, as an environment or a part does, beside which the older statement can stay true."""
    return any(term[:KEY_LETTERS] in _CASES for term in narrower)
