"""What people and programs see: tables for the ones, JSON for the others, colour only where someone looks at a terminal."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

import msgspec

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
GAP = "  "
KIB = 1024

# What is stored is other people's text: control characters and overrides of the writing direction could repaint the terminal.
_UNSAFE = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\N{REPLACEMENT CHARACTER}")
_UNSAFE |= {ord("\t"): "    ", ord("\n"): "\n", ord("\r"): ""}


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether someone looks at *stream*."""
    return stream is not None and stream.isatty()


def painted(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Colour *text* where the stream (standard output) shows it to someone who has not set NO_COLOR."""
    if not is_terminal(stream or sys.stdout) or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{COLOURS[colour]}m{text}\033[0m"


def safe(text: object) -> str:
    """Return *text* without what a terminal would obey."""
    return str(text).translate(_UNSAFE)


def one_line(text: object) -> str:
    """Return *text* as a table's cell."""
    return " ".join(safe(text).split())


def write_json(answer: object) -> None:
    """Print *answer* as JSON: on one line for programs, laid out for people."""
    encoded = msgspec.json.encode(answer)
    if is_terminal(sys.stdout):
        encoded = msgspec.json.format(encoded, indent=2)
    print(encoded.decode())


def warn(message: str) -> None:
    """Print what must not be missed to standard error."""
    print(painted(f"! {safe(message)}", "yellow", sys.stderr), file=sys.stderr)


def warn_if_stale(answer: Mapping[str, int]) -> None:
    """Print that an answer lacks what was stored a moment before, where it does."""
    if answer["stale_by"]:
        warn(f"{answer['stale_by']} events that are stored already do not show yet")


def write_more(answer: Mapping[str, str | None]) -> None:
    """Print how to see the page after this one, where there is one."""
    if answer["next_cursor"]:
        print(painted(f"there are more: --cursor {answer['next_cursor']}", "dim"))


def write_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns; on a terminal the last column is cut at its edge."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(header, *cells, strict=True)]
    room = shutil.get_terminal_size().columns - sum(widths[:-1]) - len(GAP) * (len(header) - 1) if is_terminal(sys.stdout) else None
    print(painted(_row(header, widths, room), "dim"))
    for row in cells:
        print(_row(row, widths, room))


def _row(cells: Sequence[str], widths: Sequence[int], room: int | None) -> str:
    *leading, last = cells
    padded = [cell + " " * (wide - width(cell)) for cell, wide in zip(leading, widths, strict=False)]
    return GAP.join([*padded, last if room is None else cut(last, room)]).rstrip()


def write_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names and values below each other, leaving out what there is nothing to say about."""
    told = [(name, value) for name, value in fields if value not in (None, "", [], {})]
    wide = max((len(name) for name, _ in told), default=0)
    for name, value in told:
        print(f"{painted(name.ljust(wide), 'dim')}{GAP}{one_line(value)}")


def width(text: str) -> int:
    """Return how many columns of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def cut(text: str, room: int) -> str:
    """Return *text*, shortened to *room* columns with an ellipsis if need be."""
    if width(text) <= room:
        return text
    taken, used = [], 1
    for char in text:
        used += width(char)
        if used > room:
            break
        taken.append(char)
    return "".join(taken) + "…"


def moment(time: str) -> str:
    """Shorten an RFC 3339 time to the minute."""
    return time[:16].replace("T", " ")


def size(count: int) -> str:
    """Write a number of bytes."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < KIB:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= KIB
    return f"{amount:.1f} GiB"


def duration(seconds: float) -> str:
    """Write a length of time in its two largest units."""
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, length)
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])
