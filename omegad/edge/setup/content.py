"""What goes into each kind of file, and how it comes out again: one row per format."""

import json
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import NamedTuple

from omegad.edge.setup import entries, jsonc, sections
from omegad.edge.setup.commands import Commands
from omegad.edge.setup.entries import Document
from omegad.edge.setup.hosts import File, Format, Host
from omegad.edge.setup.sections import Markers

NAME = "omegad"
PLACES = ("OMEGAD_HOME", "OMEGAD_SOCKET", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME")
"""The variables that say where omegad is, for a host that keeps its environment to itself."""


class Part(NamedTuple):
    """A file of one host."""

    host: Host
    file: File


class Kind(NamedTuple):
    """How a format takes what omegad has to say, and gives it back; both raise `Invalid` and `Refused`."""

    put: Callable[[str, Iterable[Part], Commands], str]
    """Of a file's text, its parts and the commands: the text with them."""
    take_out: Callable[[str, Iterable[Part], str | None], str | None]
    """Of a file's text, its parts and its text before setup, if it is known: the text without them, or
    None for no file.
    """


def document(parts: Iterable[Part], commands: Commands) -> Document:
    """Return what a JSON file is to hold, for every host that reads it."""
    wanted: Document = {}
    for host, file in parts:
        wanted |= dict(file.fixed)
        if "hooks" in file.what:
            wanted["hooks"] = hooks(host, commands)
        if "mcp" in file.what:
            there = wanted.setdefault(host.server_shape.key, {}).setdefault(NAME, {})
            there |= server(host, commands)
    return wanted


def hooks(host: Host, commands: Commands) -> Document:
    """Return a host's hooks by event."""
    shape = host.hook_shape
    by_event: Document = {}
    for hook in host.hooks:
        timeouts = {name: hook.timeout_s * units for name, units in shape.timeouts}
        one: Document = {
            **dict(shape.fixed),
            "command": commands.hook(hook.event),
            **timeouts,
            **dict(hook.more),
        }
        matcher = {"matcher": hook.matcher} if hook.matcher else {}
        by_event.setdefault(hook.event, []).append(
            {**matcher, "hooks": [one]} if shape.is_grouped else {**one, **matcher}
        )
    return by_event


def server(host: Host, commands: Commands) -> Document:
    """Return the MCP server as a host wants it."""
    shape, words = host.server_shape, commands.server()
    command: Document = {"command": words} if shape.is_one_list else {"command": words[0], "args": words[1:]}
    return {**dict(shape.fixed), **command}


def packaged(name: str) -> str:
    """Return a text that lies in this package."""
    return resources.files("omegad.edge.setup").joinpath(name).read_text(encoding="utf-8")


def _take_entries_out(text: str, parts: Iterable[Part], before: str | None) -> str | None:
    if NAME not in text:
        return text  # and it need not even be JSON
    parts = list(parts)
    places = document(parts, Commands("", ""))
    fixed = {key: value for part in parts for key, value in part.file.fixed}
    was = jsonc.parse(before).value if before and before.strip(jsonc.BYTE_ORDER_MARK + " \t\r\n") else None
    text = entries.take_out(text, places, was)
    left = jsonc.parse(text).value
    return None if was is None and left in ({}, fixed) else text


def _put_table(text: str, _: Iterable[Part], commands: Commands) -> str:
    words = commands.server()
    # A basic string of TOML is written like one of JSON.
    lines = [
        f"[{sections.TABLE}.{NAME}]",
        f"command = {json.dumps(words[0])}",
        f"args = {json.dumps(words[1:])}",
        f"env_vars = {json.dumps(PLACES)}",
    ]
    return sections.put_table(text, "\n".join(lines))


def _section(markers: Markers, body: Callable[[Commands], str]) -> Kind:
    """Return a format whose content is a section between *markers*."""

    def put(text: str, parts: Iterable[Part], commands: Commands) -> str:
        head = next((part.file.head for part in parts), "")
        return sections.put(text or head, body(commands), markers)

    def take_out(text: str, parts: Iterable[Part], _: str | None) -> str | None:
        text = sections.take_out(text, markers)
        return None if text in ("", *(part.file.head for part in parts)) else text

    return Kind(put, take_out)


KINDS: Mapping[Format, Kind] = {
    "json": Kind(
        lambda text, parts, commands: entries.put(text, document(parts, commands)), _take_entries_out
    ),
    "toml": Kind(_put_table, lambda text, _, __: sections.take_table_out(text)),
    "markdown": _section(sections.MARKDOWN, lambda _: packaged("instructions.md")),
    "javascript": _section(
        sections.SLASHES,
        lambda commands: packaged("opencode.js").replace("COMMAND_WORDS", json.dumps(commands.hook_words())),
    ),
}
