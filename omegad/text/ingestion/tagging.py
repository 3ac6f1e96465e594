"""Finds tags in a text by rule: languages, tools, the files it speaks of, and its project."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.text.ingestion.rule_files import read_all

TAGS_MAX = 8
PATHS_MAX = 3
TAG_CHARACTERS_MAX = 64
LOOKED_AT_CHARACTERS = 16 * 1024
KINDS = ("language", "tool")  # the order of the tags

Word = Annotated[str, Meta(min_length=1, max_length=TAG_CHARACTERS_MAX)]
Extension = Annotated[str, Meta(pattern=r"^[0-9a-z+-]{1,12}$")]

# A run of what paths are made of, with a dot or slash in it, that is no part of an address.
_PATH = re.compile(r"(?<![\w~./@+:%?&=#$\\-])[\w~@+-]{0,100}+[./][\w~./@+-]*+(?!://)")
_PLACED = re.compile(r"(?:~|\.{1,2})?/[\w.@+-]+/[\w./@+-]+")


class TagRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What gives a text one tag: any of these words, file names or file extensions in it."""

    name: Annotated[str, Meta(pattern=r"^\S+$", max_length=TAG_CHARACTERS_MAX)]
    kind: Literal["language", "tool"]
    words: tuple[Word, ...] = ()
    """Whole words or phrases, in capitals or not."""
    exact: tuple[Word, ...] = ()
    """The same, in this spelling alone."""
    files: tuple[Word, ...] = ()
    """Names of files, in capitals or not; those with a dot in them are themselves tags as paths."""
    extensions: tuple[Extension, ...] = ()
    """What such files' names end in, in small letters, without the dot."""


class TagFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file of tag rules holds. `path_extensions` make a name the name of a file, and give no tag
    besides.
    """

    tag: tuple[TagRule, ...] = ()
    path_extensions: tuple[Extension, ...] = ()


class TagRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of all files, ready for use: each word, file name and extension leads to a kind's place
    and a tag.
    """

    words: dict[str, tuple[int, str]]
    exact: dict[str, tuple[int, str]]
    files: frozenset[str]
    extensions: dict[str, tuple[int, str] | None]
    any_word: re.Pattern[str]
    any_exact: re.Pattern[str]


def load(paths: Sequence[Path] = ()) -> TagRules:
    """Read the built-in rules and those in the files at *paths*, which win. Raises `BadConfiguration`,
    naming the file.
    """
    words: dict[str, tuple[int, str]] = {}
    exact: dict[str, tuple[int, str]] = {}
    files: set[str] = set()
    extensions: dict[str, tuple[int, str] | None] = {}
    for content in read_all("tags.toml", paths, TagFile).values():
        extensions = dict.fromkeys(content.path_extensions) | extensions
        for rule in content.tag:
            tag = (KINDS.index(rule.kind), rule.name)
            names = {file.lower() for file in rule.files}
            files |= names
            words |= dict.fromkeys((*(word.lower() for word in rule.words), *names), tag)
            exact |= dict.fromkeys(rule.exact, tag)
            extensions |= dict.fromkeys(rule.extensions, tag)
    return TagRules(
        words=words,
        exact=exact,
        files=frozenset(files),
        extensions=extensions,
        any_word=_alternation(words),
        any_exact=_alternation(exact),
    )


def tags_of(content: str, project: str | None, rules: TagRules) -> tuple[str, ...]:
    """Return at most 8 tags for *content*: languages, tools, up to 3 paths as they are written, and the
    project's name.

    Within a kind the first mentioned comes first. Only the first 16 Ki characters are looked at.
    """
    text = content[:LOOKED_AT_CHARACTERS]
    named, paths = _paths(text, rules)
    named += _words(text, rules)
    first = sorted(named)
    tags = [tag for kind in range(len(KINDS)) for _, place, tag in first if place == kind]
    last = [*paths, *_project(project)]
    return tuple(dict.fromkeys((*list(dict.fromkeys(tags))[: TAGS_MAX - len(last)], *last)))


def _words(text: str, rules: TagRules) -> Iterator[tuple[int, int, str]]:
    for match in rules.any_word.finditer(text.lower()):
        yield match.start(), *rules.words[match[0]]
    for match in rules.any_exact.finditer(text):
        yield match.start(), *rules.exact[match[0]]


def _paths(text: str, rules: TagRules) -> tuple[list[tuple[int, int, str]], list[str]]:
    """Return the tags that the endings of file names give, with where they were found, and the paths
    themselves.
    """
    named: list[tuple[int, int, str]] = []
    paths: dict[str, None] = {}
    for match in _PATH.finditer(text):
        path = match[0].rstrip(".-+@~")
        folder, _, name = path.rpartition("/")
        stem, dot, extension = name.rpartition(".")
        is_name = (
            not folder and path.lower() in rules.words and path.lower() not in rules.files
        )  # Node.js is no file
        is_file = bool(dot) and not is_name and extension.lower() in rules.extensions
        if is_file and (tag := rules.extensions[extension.lower()]):
            named.append((match.start(), *tag))
        if (is_file and stem) or name.lower() in rules.files or _PLACED.fullmatch(path):
            paths[path] = None
    return named, [path for path in paths if len(path) <= TAG_CHARACTERS_MAX][:PATHS_MAX]


def _project(project: str | None) -> list[str]:
    name = re.split(r"[/\\:]", (project or "").strip().rstrip("/\\").removesuffix(".git"))[-1].strip()
    return [name] if "[REDACTED" not in (project or "") and 0 < len(name) <= TAG_CHARACTERS_MAX else []


def _alternation(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of *words* as a whole, the longest that fits. Their first letters part
    them, so that few are tried anywhere.
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        groups.setdefault(word[0], []).append(re.escape(word[1:]))
    parts = (f"{re.escape(letter)}(?:{'|'.join(rests)})" for letter, rests in sorted(groups.items()))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(parts)})(?![\w+#@])")
