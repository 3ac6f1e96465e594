"""JSON with comments, read with the position of everything in it, so that a text can be changed in one
place and stays as it is elsewhere.
"""

import json
import re
from typing import NamedTuple

from omegad.runtime.errors import Invalid
from omegad.runtime.json_types import Json

DEPTH_MAX = 100
SPACE = re.compile(r"[ \t\r\n]+|(?P<comment>//[^\r\n]*|/\*.*?\*/)", re.DOTALL)
SCALAR = re.compile(
    r"true\b|false\b|null\b|-?(?:0|[1-9]\d{0,4000})(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII
)
STRICT = json.JSONDecoder()
CLOSING = {"{": "}", "[": "]"}
BYTE_ORDER_MARK = "\ufeff"


class Node(NamedTuple):
    """A value and where it stands: `text[start:end]`."""

    start: int
    end: int
    value: Json
    items: "tuple[Item, ...]" = ()
    last: int = 0
    """Of an object or array: where its last token or comment before the closing bracket ends."""


class Item(NamedTuple):
    """A member of an object, or an element of an array, whose key is empty."""

    key: str
    start: int
    node: Node
    after: int
    """Where the token or comment before it ends."""
    comma: int
    """Where the comma after it stands, or -1."""


def parse(text: str) -> Node:
    """Return the value that is the whole of *text*; raises `Invalid` with line and column."""
    scanner = _Scanner(text)
    scanner.skip()
    node = scanner.value(0)
    scanner.skip()
    if scanner.at < len(text):
        raise scanner.wrong("something follows the end of the value")
    return node


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = self.last = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0

    def wrong(self, message: str) -> Invalid:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        return Invalid(
            f"line {line}, column {column}: {message}",
            hint="mend the file by hand, then run it again; nothing was changed in it",
        )

    def skip(self) -> None:
        """Go past space and comments."""
        while found := SPACE.match(self.text, self.at):
            self.at = found.end()
            if found["comment"]:
                self.last = self.at

    def take(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at = self.last = self.at + len(token)
        return True

    def value(self, depth: int) -> Node:
        start = self.at
        opening = self.text[start : start + 1]
        if opening in CLOSING:
            if depth == DEPTH_MAX:
                raise self.wrong("nested too deeply")
            return self.container(opening, depth)
        if opening != '"' and not SCALAR.match(self.text, start):
            raise self.wrong("not JSON: a value is missing")
        value = self.scalar()
        return Node(start, self.at, value)

    def scalar(self) -> Json:
        try:
            value, self.at = STRICT.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            raise self.wrong(f"not JSON: {error.msg}") from error
        self.last = self.at
        return value

    def container(self, opening: str, depth: int) -> Node:
        start = self.at
        self.take(opening)
        items: list[Item] = []
        while True:
            self.skip()
            end = self.last
            if self.take(CLOSING[opening]):
                break
            if items and items[-1].comma < 0:
                raise self.wrong(f"not JSON: a comma or {CLOSING[opening]} is missing")
            items.append(self.item(opening, end, depth))
        pairs = [(item.key, item.node.value) for item in items]
        value = dict(pairs) if opening == "{" else [one for _, one in pairs]
        return Node(start, self.at, value, tuple(items), end)

    def item(self, opening: str, after: int, depth: int) -> Item:
        start, key = self.at, ""
        if opening == "{":
            if not self.text.startswith('"', start):
                raise self.wrong("not JSON: a key is missing")
            key = str(self.scalar())
            self.skip()
            if not self.take(":"):
                raise self.wrong("not JSON: a colon is missing")
            self.skip()
        node = self.value(depth + 1)
        before = self.at, self.last
        self.skip()
        comma = self.at - 1 if self.take(",") else -1
        if comma < 0:  # what was gone past belongs to the end of the container
            self.at, self.last = before
        return Item(key, start, node, after, comma)


def insert(text: str, node: Node, key: str, value: object) -> str:
    """Return *text* with *value* added at the end of an object (as *key*) or an array."""
    inner = text[node.start + 1 : node.end - 1]
    eol = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    is_inside = bool(text[: node.start].strip(BYTE_ORDER_MARK + " \t\r\n"))
    is_one_line = "\n" not in inner and (bool(node.items) or ("\n" not in text.strip() and is_inside))
    start = text.rfind("\n", 0, node.start) + 1
    own = text[start : len(text) - len(text[start:].lstrip(" \t"))]
    indent = (_indent_of_item(text, node.items[0]) if node.items else None) or own + unit
    rendered = json.dumps(value, ensure_ascii=False, indent=None if is_one_line else unit)
    member = (f"{json.dumps(key, ensure_ascii=False)}: " if key else "") + rendered.replace(
        "\n", eol + indent
    )
    before = (" " if node.items else "") if is_one_line else eol + indent
    after = "" if is_one_line or node.items or "\n" in text[node.last : node.end] else eol + own
    if node.items and node.items[-1].comma < 0:
        at = node.items[-1].node.end
        return f"{text[:at]},{text[at : node.last]}{before}{member}{text[node.last :]}"
    trailing = "," if node.items else ""
    return f"{text[: node.last]}{before}{member}{trailing}{after}{text[node.last :]}"


def replace(text: str, item: Item, value: object) -> str:
    """Return *text* with another value in an item's place, laid out as `insert` does."""
    node = item.node
    indent = _indent_of_item(text, item)
    rendered = json.dumps(value, ensure_ascii=False, indent=None if indent is None else _unit(text))
    eol = "\r\n" if "\r\n" in text else "\n"
    return text[: node.start] + rendered.replace("\n", eol + (indent or "")) + text[node.end :]


def remove(text: str, node: Node, index: int) -> str:
    """Return *text* without an item, its comma and the space before it; comments stay."""
    item = node.items[index]
    cuts = [(item.after, item.node.end)]
    if item.comma >= 0:
        cuts.append((item.comma, item.comma + 1))
    elif index:
        comma = node.items[index - 1].comma
        cuts.insert(0, (comma, comma + 1))
        if item.after == comma + 1:
            cuts[:2] = [(comma, item.node.end)]
    if (
        len(node.items) == 1
        and item.after == node.start + 1
        and node.last == (item.comma + 1 or item.node.end)
    ):
        cuts = [(node.start + 1, node.end - 1)]
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def _unit(text: str) -> str:
    """Return what one level is indented by."""
    found = re.search(r"^[ \t]+(?=[\"{\[])", text, re.MULTILINE)
    return found[0] if found else "  "


def _indent_of_item(text: str, item: Item) -> str | None:
    """Return what is before an item on its line; None where that is more than space, or the line is the
    text's first.
    """
    start = text.rfind("\n", 0, item.start) + 1
    before = text[start : item.start]
    return before if start and not before.strip() else None
