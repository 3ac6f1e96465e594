"""What people and programs see: tables for the ones, JSON for the others, colour only where someone looks
at a terminal.
"""

import json
import os
import re
import sys
from argparse import Namespace
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TextIO

import msgspec

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

COLOURS = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
GAP = "  "
CELL_COLUMNS = 240  # of one cell of a table on a terminal
LAST_COLUMNS = 24  # that the last column has at least
SCORES = ((0.7, "likely"), (0.4, "possible"), (float("-inf"), "unsure"))
KIB = 1024

# What is stored is other people's text: control characters and overrides of the writing direction could
# repaint the terminal.
TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""What turns the direction in which text is read."""
_UNSAFE = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0), *TURNING), "\N{REPLACEMENT CHARACTER}") | {
    ord("\t"): "    ",
    ord("\n"): "\n",
    ord("\r"): "",
    0x2028: "\n",
    0x2029: "\n",
}
# The same in JSON, which can say them otherwise, and whatever else shows nothing itself.
_UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


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
    print(in_json(answer, indent=2 if is_terminal(sys.stdout) else 0))


def tell(arguments: Namespace, told: object, *sentences: str) -> None:
    """Print what came of a verb: *told* as JSON for programs, else the sentences."""
    if arguments.json:
        write_json(told)
    else:
        for sentence in sentences:
            print(sentence)


def confirmed(question: str) -> bool:
    """Ask on the terminal, and say whether the answer is yes."""
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def in_json(value: object, indent: int = 0) -> str:
    """Return *value* as JSON, on one line unless it is to be indented, in which a terminal finds nothing
    that it would obey, and nothing that the encoding of standard output cannot say.
    """
    encoded = msgspec.json.encode(value)
    text = (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()
    if sys.stdout is not None and lookup(sys.stdout.encoding or "utf-8").name != "utf-8":
        text = re.sub(r"[^\x00-\x7f]", lambda sign: json.dumps(sign[0])[1:-1], text)
    return _UNSEEN.sub(lambda sign: json.dumps(sign[0])[1:-1].replace("\x7f", "\\u007f"), text)


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


def write_table(header: Sequence[str], rows: Iterable[Sequence[object]], none: str | None = None) -> None:
    """Print rows in columns; on a terminal the last column is wrapped, and what is very long cut. Where there
    are no rows, *none* is printed instead of the heading, and nothing where it is empty.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not cells and none is not None:
        if none:
            print(none)
        return
    widths = [max(map(width, column)) for column in zip(header, *cells, strict=True)]
    if is_terminal(sys.stdout):
        shown = console()
        # Wider than a narrow terminal, which then breaks the lines: an id that is cut is of no use.
        shown.width = max(
            shown.width, sum(widths[:-1]) + len(GAP) * len(widths) + min(widths[-1], LAST_COLUMNS)
        )
        shown.print(table(header, cells))
        return
    for row in (header, *cells):
        print(
            GAP.join(
                cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)
            ).rstrip()
        )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> "Table":
    """Return rows in columns, to be shown on a terminal; without a header, names and values below each
    other.
    """
    from rich.table import Table  # noqa: PLC0415  pipes need none of it
    from rich.text import Text  # noqa: PLC0415

    padding = (0, len(GAP), 0, 0)
    if header:
        shown = Table(*header, box=None, header_style="dim", pad_edge=False, padding=padding)
    else:
        shown = Table.grid("", "", padding=padding)
        shown.columns[0].style = "dim"
    for column in shown.columns[:-1]:
        column.no_wrap = True
    shown.columns[-1].overflow = "fold"
    for row in rows:
        shown.add_row(*(Text(cut(one_line(cell), CELL_COLUMNS) if header else str(cell)) for cell in row))
    return shown


def write_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print names and values below each other, leaving out what there is nothing to say about."""
    told = [(name, one_line(value)) for name, value in fields if value not in (None, "", [], {})]
    if is_terminal(sys.stdout):
        console().print(table((), told))
        return
    wide = max((len(name) for name, _ in told), default=0)
    for name, value in told:
        print(f"{name.ljust(wide)}{GAP}{value}")


def console(stream: TextIO | None = None) -> "Console":
    """Return what draws on the terminal behind *stream* (standard output)."""
    from rich.console import Console  # noqa: PLC0415  pipes need none of it

    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(
        file=stream or sys.stdout, color_system=colours, highlight=False, markup=False, emoji=False
    )


def in_words(score: float) -> str:
    """Return a score; where someone looks, with what it means."""
    if not is_terminal(sys.stdout):
        return f"{score:.3f}"
    return f"{score:.2f} {next(word for least, word in SCORES if score >= least)}"


def width(text: str) -> int:
    """Return how many columns of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415  which has tables of its own to load

    return cell_len(text)


def cut(text: str, room: int) -> str:
    """Return *text*, shortened to *room* columns with an ellipsis if need be."""
    if width(text) <= room:
        return text
    from rich.cells import set_cell_size  # noqa: PLC0415

    return set_cell_size(text, room - 1) + "…"


def quantity(count: int, word: str, of_several: str = "") -> str:
    """Write how many there are of something: with an s where there are several, unless said otherwise."""
    return f"{count:,} {word if count == 1 else of_several or f'{word}s'}"


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


@contextmanager
def bar(title: str) -> Iterator[Callable[[float, str], None]]:
    """Draw a bar over its own line, which is empty again at the end of the block; hand out what moves it: how
    much of the work is over (0 to 1), and what is said of it.
    """
    if not is_terminal(sys.stderr):
        yield lambda _done, _message: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415

    columns = (
        TextColumn(title, markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda done, message: progress.update(
            task, completed=min(max(done, 0.0), 1.0), description=safe(message)
        )


@contextmanager
def counted(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Draw the same of work that is counted: how much is done, of how much, and what is counted."""
    with bar(title) as update:
        yield lambda done, total, what: update(done / max(total, 1), f"{done:,} of {total:,} {what}")
