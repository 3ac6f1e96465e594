"""Puts a text for an agent together within a budget: sections, each a title and as many of its lines as there
is room for.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from omegad.memory.edges import unsettled_against
from omegad.memory.owner import elsewhere
from omegad.session.events import How
from omegad.storage.driver import Connection
from omegad.text.quoting import BY_CHARACTERS, in_parentheses, one_line

BYTES_OF_A_TOKEN = 4
"""Of English text a token has four bytes or more: what is counted so is seldom too little."""
LINE_CHARACTERS = 180
LATER_CHARACTERS = 120
"""How much is told of a later memory beside the one that it may contradict."""


class Line(NamedTuple):
    """Something to be told, and its source: a memory's id, a file, or nothing; who said it, where that was in
    another home; and the id and text of a later memory that may contradict it, until somebody settles that.
    """

    source: str
    text: str
    by: str = ""
    later: tuple[str, str] | None = None

    @property
    def after(self) -> str:
        """What stands after its text."""
        by = f" {in_parentheses(self.by, BY_CHARACTERS)}" if self.by else ""
        if self.later is None:
            return by
        later = f"{self.later[0]}, later, may deny it: {self.later[1]}"
        return f"{by} {in_parentheses(later, LATER_CHARACTERS)}"

    @property
    def is_later_cut(self) -> bool:
        """Whether there is more of the later memory than is told of it."""
        return self.later is not None and self.after.endswith("…)")


def annotated(connection: Connection, lines: Sequence[Line], now_us: int) -> list[Line]:
    """Return lines of memories, each with who said it, where another home stored it, and with the later
    memory that may contradict it, where there is one.
    """
    sources = [line.source for line in lines]
    by = elsewhere(connection, sources)
    later = unsettled_against(connection, sources, now_us, LATER_CHARACTERS)
    return [line._replace(by=by.get(line.source, line.by), later=later.get(line.source)) for line in lines]


Tell = Callable[[Line, int], str]
"""How a line is told where so many bytes are left; empty where that is too little."""


def bullet(characters: int = LINE_CHARACTERS) -> Tell:
    """Have each line told as one of a list, with what it is of, its text cut to so many characters."""

    def tell(line: Line, _room: int = 0) -> str:
        which = f"{line.source}: " if line.source else ""
        return f"- {which}{one_line(line.text, characters)}{line.after}"

    return tell


class Section(NamedTuple):
    """A part of a text: in which turn it takes its room, how what is in it is shown to be, and what stands
    after its lines.
    """

    title: str
    lines: list[Line]
    turn: int = 0
    how: How = "briefing"
    tell: Tell = bullet()
    after: str = ""


class Part(NamedTuple):
    """What there was room for of a section, its title aside, and the bytes that were taken for both."""

    sources: list[str]
    text: str
    size: int


def fit(section: Section, room: int, *, gap: str, is_in_order: bool) -> Part | None:
    """Return the lines of a section that fit into so many bytes, with *gap* between it and the next section;
    None where none does. Where they are in order, what does not fit is the end of it.
    """
    size = len(f"{section.title}:\n{section.after}{gap}".encode())
    told, sources = list[str](), list[str]()
    for line in section.lines:
        text = section.tell(line, room - size)
        more = len(text.encode()) + 1
        if text and size + more <= room:
            size += more
            told.append(text)
            sources.append(line.source)
        elif is_in_order:
            break
    lines = [*told, section.after] if section.after else told
    return Part(sources, "\n".join(lines), size) if told else None
