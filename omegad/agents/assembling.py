"""Puts a text for an agent together within a budget: sections, each a title and as many of its lines as there
is room for.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

from omegad.memory.edges import are_offers_shown, unsettled_against
from omegad.memory.newer import newer_beside
from omegad.memory.owner import elsewhere
from omegad.session.events import How
from omegad.session.shown_tokens import BRIEFING_CHARACTERS
from omegad.storage.driver import Connection
from omegad.text.quoting import BY_CHARACTERS, in_parentheses, one_line

LATER_CHARACTERS = 120
"""How much is told of a later memory beside the one that it may contradict."""
UNCHECKED = "(whether later memories deny these could not be checked: `omegad status` says why)"


class Line(NamedTuple):
    """Something to be told, and its source: a memory's id, a file, or nothing; who said it, where that was in
    another home; and the id and text of a later memory that may contradict it, until somebody settles that;
    the id alone where the text is told by itself; or the id of a later one among the lines that may take its
    place.
    """

    source: str
    text: str
    by: str = ""
    later: tuple[str, str] | None = None
    newer: str = ""

    @property
    def after(self) -> str:
        """What stands after its text."""
        by = f" {in_parentheses(self.by, BY_CHARACTERS)}" if self.by else ""
        if self.later is None:
            newer = in_parentheses(f"{self.newer}, later, may take its place", LATER_CHARACTERS)
            return f"{by} {newer}" if self.newer else by
        later = f"{self.later[0]}, later, may deny it{self.later[1] and f': {self.later[1]}'}"
        return f"{by} {in_parentheses(later, LATER_CHARACTERS)}"

    @property
    def is_later_cut(self) -> bool:
        """Whether there is more of the later memory than is told of it."""
        return self.later is not None and self.after.endswith("…)")


def annotated(
    connection: Connection, lines: Sequence[Line], now_us: int, told: Container[str] = ()
) -> list[Line]:
    """Return lines of memories, each with who said it, where another home stored it, and with the later
    memory that may contradict it, where there is one: by its id alone where it is another of the lines, or
    *told* otherwise; else with the one of the lines that may take its place.
    """
    if not lines:
        return []
    sources = [line.source for line in lines]
    by = elsewhere(connection, sources)
    later = {
        source: (memory_id, "" if memory_id in sources or memory_id in told else content)
        for source, (memory_id, content) in unsettled_against(
            connection, sources, now_us, LATER_CHARACTERS
        ).items()
    }
    newer = newer_beside(connection, sources, now_us) if len(lines) > 1 else {}
    return [
        line._replace(
            by=by.get(line.source, line.by), later=later.get(line.source), newer=newer.get(line.source, "")
        )
        for line in lines
    ]


def unchecked(connection: Connection) -> str:
    """Return the word that nobody could look which memories later ones may contradict; "" where that is
    known.
    """
    return "" if are_offers_shown(connection) else UNCHECKED


def shown_by(lines: Iterable[Line], how: How) -> dict[How, tuple[str, ...]]:
    """Return which memories are shown how by lines that are told: those that they are of, and those told
    whole beside them. What is told beside another by its beginning alone is named for review.
    """
    told = {line.source: None for line in lines}
    beside = [line for line in lines if line.later is not None and line.later[1]]
    told |= {line.later[0]: None for line in beside if line.later and not line.is_later_cut}
    begun = {line.later[0]: None for line in beside if line.later and line.later[0] not in told}
    ids: dict[How, list[str]] = {how: [one for one in told if one]}
    ids.setdefault("review", []).extend(begun)
    return {how: tuple(found) for how, found in ids.items() if found}


Tell = Callable[[Line, int], str]
"""How a line is told where so many bytes are left; empty where that is too little."""


def bullet(characters: int = BRIEFING_CHARACTERS) -> Tell:
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

    lines: list[Line]
    text: str
    size: int


def fit(section: Section, room: int, *, gap: str, is_in_order: bool) -> Part | None:
    """Return the lines of a section that fit into so many bytes, with *gap* between it and the next section;
    None where none does. Where they are in order, what does not fit is the end of it.
    """
    size = len(f"{section.title}:\n{section.after}{gap}".encode())
    told, lines = list[str](), list[Line]()
    for line in section.lines:
        text = section.tell(line, room - size)
        more = len(text.encode()) + 1
        if text and size + more <= room:
            size += more
            told.append(text)
            lines.append(line)
        elif is_in_order:
            break
    if not told:
        return None
    return Part(lines, "\n".join([*told, section.after] if section.after else told), size)
