"""What goes into each kind of file, and how it comes out again: one row per format. Of a file that is no JSON
omegad writes a marked section alone.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from typing import NamedTuple

from omegad.edge.setup import entries, jsonc
from omegad.edge.setup.commands import Commands
from omegad.edge.setup.hosts import File, Format, Host
from omegad.edge.setup.jsonc import BYTE_ORDER_MARK
from omegad.runtime.errors import Invalid, Refused
from omegad.runtime.json_types import Fields

NAME = "omegad"
TABLE = "mcp_servers"
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


def document(parts: Iterable[Part], commands: Commands) -> Fields:
    """Return what a JSON file is to hold, for every host that reads it."""
    wanted: Fields = {}
    for host, file in parts:
        wanted |= dict(file.fixed)
        if "hooks" in file.what:
            wanted["hooks"] = hooks(host, commands)
        if "mcp" in file.what:
            there = wanted.setdefault(host.server_shape.key, {}).setdefault(NAME, {})
            there |= server(host, commands)
    return wanted


def hooks(host: Host, commands: Commands) -> Fields:
    """Return a host's hooks by event."""
    shape = host.hook_shape
    by_event: Fields = {}
    for hook in host.hooks:
        timeouts = {name: hook.timeout_s * units for name, units in shape.timeouts}
        one: Fields = {
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


def server(host: Host, commands: Commands) -> Fields:
    """Return the MCP server as a host wants it."""
    shape, words = host.server_shape, commands.server()
    command: Fields = {"command": words} if shape.is_one_list else {"command": words[0], "args": words[1:]}
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
    was = jsonc.parse(before).value if before and before.strip(BYTE_ORDER_MARK + " \t\r\n") else None
    text = entries.take_out(text, places, was)
    left = jsonc.parse(text).value
    return None if was is None and left in ({}, fixed) else text


class Markers(NamedTuple):
    """The lines that a section begins and ends with."""

    begin: str
    end: str


MARKDOWN = Markers("<!-- omegad:begin -->", "<!-- omegad:end -->")
HASH = Markers("# omegad:begin", "# omegad:end")
SLASHES = Markers("// omegad:begin", "// omegad:end")


def put_section(text: str, body: str, markers: Markers) -> str:
    """Return *text* with the section holding *body*: in its place, or at the end after an empty line."""
    eol = "\r\n" if "\r\n" in text else "\n"
    section = eol.join([markers.begin, *body.strip("\n").split("\n"), markers.end])
    found = _place(text, markers)
    if found:
        return text[: found[0]] + section + text[found[1] :]
    if not text.strip(BYTE_ORDER_MARK + " \t\r\n"):
        return text + section + eol
    gap = eol if text.endswith("\n") else eol * 2
    return text + gap + section + eol


def take_section_out(text: str, markers: Markers) -> str:
    """Return *text* without the section, the empty line before it and the end of its line."""
    found = _place(text, markers)
    if not found:
        return text
    head, tail = text[: found[0]], text[found[1] :]
    eol = "\r\n" if tail.startswith("\r\n") else "\n"
    if head.endswith(eol * 2):
        head = head.removesuffix(eol)
    return head + tail.removeprefix(eol)


def _place(text: str, markers: Markers) -> tuple[int, int] | None:
    """Return where the section is; raises `Invalid` where markers are doubled, or one lacks the other."""
    begins, ends = (
        list(re.finditer(rf"^{re.escape(marker)}(?=\r?$)", text, re.MULTILINE)) for marker in markers
    )
    if not begins and not ends:
        return None
    if len(begins) != 1 or len(ends) != 1 or begins[0].end() > ends[0].start():
        raise Invalid(
            f"the lines {markers.begin!r} and {markers.end!r} do not stand there once each, in this order",
            hint="mend the file by hand, then run it again; nothing was changed in it",
        )
    return begins[0].start(), ends[0].end()


def put_table(text: str, commands: Commands) -> str:
    """Return TOML with the MCP server's table in omegad's section; raises `Refused` where there is one
    outside of it.
    """
    _servers(text)
    if NAME in _servers(take_section_out(text, HASH)):
        raise Refused(
            f"{TABLE}.{NAME} is there already, and omegad did not write it",
            hint="remove it by hand, then run it again",
        )
    words = commands.server()
    # A basic string of TOML is written like one of JSON.
    body = (
        f"[{TABLE}.{NAME}]\ncommand = {json.dumps(words[0])}\nargs = {json.dumps(words[1:])}\n"
        f"env_vars = {json.dumps(PLACES)}"
    )
    changed = put_section(text, body, HASH)
    try:
        there = _servers(changed)
    except Invalid as error:
        raise Refused(
            f"a table cannot be added at the end: {error}", hint=f"write {TABLE} as tables, not as one value"
        ) from error
    if NAME not in there:
        raise Refused(
            f"{TABLE}.{NAME} cannot be added at the end of the file", hint="see `omegad setup --help`"
        )
    return changed


def take_table_out(text: str) -> str:
    """Return TOML without omegad's section; raises `Refused` where more of the table stands elsewhere."""
    _servers(text)
    changed = take_section_out(text, HASH)
    if changed != text and NAME in _servers(changed):
        raise Refused(
            f"more is said about {TABLE}.{NAME} outside of the section that omegad wrote",
            hint=f"remove every table {TABLE}.{NAME}… by hand",
        )
    return changed


def _servers(text: str) -> dict[str, object]:
    """Return the MCP servers of a TOML document; raises `Invalid`."""
    try:
        there = tomllib.loads(text.removeprefix(BYTE_ORDER_MARK)).get(TABLE)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(
            f"not TOML: {error}", hint="mend the file by hand, then run it again; nothing was changed in it"
        ) from error
    return there if isinstance(there, dict) else {}


def _section(markers: Markers, body: Callable[[Commands], str]) -> Kind:
    """Return a format whose content is a section between *markers*."""

    def put(text: str, parts: Iterable[Part], commands: Commands) -> str:
        head = next((part.file.head for part in parts), "")
        return put_section(text or head, body(commands), markers)

    def take_out(text: str, parts: Iterable[Part], _: str | None) -> str | None:
        text = take_section_out(text, markers)
        return None if text in ("", *(part.file.head for part in parts)) else text

    return Kind(put, take_out)


KINDS: Mapping[Format, Kind] = {
    "json": Kind(
        lambda text, parts, commands: entries.put(text, document(parts, commands)), _take_entries_out
    ),
    "toml": Kind(
        lambda text, _, commands: put_table(text, commands), lambda text, _, __: take_table_out(text)
    ),
    "markdown": _section(MARKDOWN, lambda _: packaged("instructions.md")),
    "javascript": _section(
        SLASHES,
        lambda commands: packaged("opencode.js").replace("COMMAND_WORDS", json.dumps(commands.hook_words())),
    ),
}
