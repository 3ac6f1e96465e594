"""What people are told of a skill's improvement, in their language."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from omegad.person.events import FailureReason

LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


def language_of(setting: str, environ: Mapping[str, str]) -> str:
    """Return the language to use: the one that is set, that of the locale where it is "auto", English
    where there are no words for that.
    """
    locale = next((environ[name] for name in LOCALE if environ.get(name)), "")
    wanted = locale[:2].lower() if setting == "auto" else setting
    return wanted if wanted in _sentences() else "en"


def confirmation(language: str, skill: str, lesson: str, reason: FailureReason | None) -> str:
    """Return one line: what was learned, or why it was not."""
    words = _sentences()[language]
    if reason is None:
        return words["improved"].format(skill=skill, lesson=lesson)
    return words["failed"].format(skill=skill, reason=words[reason])


@cache
def _sentences() -> dict[str, dict[str, str]]:
    return tomllib.loads(
        resources.files("omegad.person").joinpath("skill_sentences.toml").read_text(encoding="utf-8")
    )
