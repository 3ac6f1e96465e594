"""A marked section of a text file, which is all of the file that omegad writes."""

import re
import tomllib
from typing import NamedTuple

from omegad.edge.setup.jsonc import BYTE_ORDER_MARK
from omegad.runtime.errors import Invalid, Refused

TABLE = "mcp_servers"
NAME = "omegad"


class Markers(NamedTuple):
    """The lines that a section begins and ends with."""

    begin: str
    end: str


MARKDOWN = Markers("<!-- omegad:begin -->", "<!-- omegad:end -->")
HASH = Markers("# omegad:begin", "# omegad:end")
SLASHES = Markers("// omegad:begin", "// omegad:end")


def put(text: str, body: str, markers: Markers) -> str:
    """Return *text* with the section holding *body*: in its place, or at the end after an empty line."""
    eol = "\r\n" if "\r\n" in text else "\n"
    section = eol.join([markers.begin, *body.strip("\n").split("\n"), markers.end])
    found = find(text, markers)
    if found:
        return text[: found[0]] + section + text[found[1] :]
    if not text.strip(BYTE_ORDER_MARK + " \t\r\n"):
        return text + section + eol
    gap = eol if text.endswith("\n") else eol * 2
    return text + gap + section + eol


def take_out(text: str, markers: Markers) -> str:
    """Return *text* without the section, the empty line before it and the end of its line."""
    found = find(text, markers)
    if not found:
        return text
    head, tail = text[: found[0]], text[found[1] :]
    eol = "\r\n" if tail.startswith("\r\n") else "\n"
    if head.endswith(eol * 2):
        head = head.removesuffix(eol)
    return head + tail.removeprefix(eol)


def find(text: str, markers: Markers) -> tuple[int, int] | None:
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


def put_table(text: str, body: str) -> str:
    """Return TOML with the MCP server's table in omegad's section; raises `Refused` where there is one
    outside of it.
    """
    parse(text)
    if NAME in servers(take_out(text, HASH)):
        raise Refused(
            f"{TABLE}.{NAME} is there already, and omegad did not write it",
            hint="remove it by hand, then run it again",
        )
    changed = put(text, body, HASH)
    try:
        there = servers(changed)
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
    parse(text)
    changed = take_out(text, HASH)
    if changed != text and NAME in servers(changed):
        raise Refused(
            f"more is said about {TABLE}.{NAME} outside of the section that omegad wrote",
            hint=f"remove every table {TABLE}.{NAME}… by hand",
        )
    return changed


def servers(text: str) -> dict[str, object]:
    """Return the MCP servers of a TOML document; raises `Invalid`."""
    there = parse(text).get(TABLE, {})
    return there if isinstance(there, dict) else {}


def parse(text: str) -> dict[str, object]:
    """Return what a TOML document holds; raises `Invalid`."""
    try:
        return tomllib.loads(text.removeprefix(BYTE_ORDER_MARK))
    except tomllib.TOMLDecodeError as error:
        raise Invalid(
            f"not TOML: {error}", hint="mend the file by hand, then run it again; nothing was changed in it"
        ) from error
