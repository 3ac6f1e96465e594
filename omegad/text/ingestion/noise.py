"""Recognises what an agent's host says to itself: content that no person would ever want remembered.

Content is noise only where it consists of nothing but pieces that rules describe: elements `<name>…</name>`,
and texts that a rule's pattern matches. Whoever adds a word of their own has written no noise.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.runtime.errors import BadConfiguration
from omegad.text.ingestion.rule_files import read_all

_SPACE = re.compile(r"\s*")


class NoiseRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of noise: elements by their names, or a pattern. `why` is for whoever reads the file."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    why: Annotated[str, Meta(min_length=1)]
    elements: tuple[Annotated[str, Meta(pattern=r"^[\w.:-]+$")], ...] = ()
    pattern: str = ""


class NoiseFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file of noise rules holds."""

    rule: tuple[NoiseRule, ...] = ()


class NoiseRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of all files, ready for use. An element's name leads to its rule's name."""

    elements: dict[str, str]
    opening: re.Pattern[str] | None
    patterns: tuple[tuple[str, re.Pattern[str]], ...]


def load(paths: Sequence[Path] = ()) -> NoiseRules:
    """Read the built-in rules and those in the files at *paths*. Raises `BadConfiguration`, naming the
    file.
    """
    elements: dict[str, str] = {}
    patterns: list[tuple[str, re.Pattern[str]]] = []
    for file, content in read_all("noise.toml", paths, NoiseFile).items():
        for rule in content.rule:
            if not rule.elements and not rule.pattern:
                raise BadConfiguration(
                    f"{file}: rule {rule.name!r} has neither elements nor a pattern",
                    hint="give it one of them",
                )
            elements |= dict.fromkeys(rule.elements, rule.name)
            if rule.pattern:
                try:
                    patterns.append((rule.name, re.compile(rule.pattern)))
                except re.error as error:
                    raise BadConfiguration(
                        f"{file}: the pattern of rule {rule.name!r} is not valid: {error}",
                        hint="mend the pattern",
                    ) from error
    names = "|".join(re.escape(name) for name in elements)
    return NoiseRules(
        elements=elements,
        opening=re.compile(rf"<({names})(?:\s[^<>]*)?>") if names else None,
        patterns=tuple(patterns),
    )


def noise_of(content: str, rules: NoiseRules) -> str | None:
    """Return the name of the rule that recognises the first piece of *content*, if all of it is noise;
    None if any of it is not.
    """
    first: str | None = None
    at = _next(content, 0)
    while at < len(content):
        name, end = "", at
        if rules.opening and (opening := rules.opening.match(content, at)):
            closing = f"</{opening[1]}>"
            if (found := content.find(closing, opening.end())) >= 0:
                name, end = rules.elements[opening[1]], found + len(closing)
        if not name:
            matches = ((name, pattern.match(content, at)) for name, pattern in rules.patterns)
            name, end = next(((name, match.end()) for name, match in matches if match), ("", at))
        if end <= at:
            return None
        first = first or name
        at = _next(content, end)
    return first


def _next(content: str, at: int) -> int:
    space = _SPACE.match(content, at)
    return space.end() if space else at
