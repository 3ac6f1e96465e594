"""Takes what is erased out of events: copies of it, and of what omegad itself made of it every run.

A text that omegad cut or put together remembers what it is made of: memories, positions, or the event that
led to it. Texts of before remember nothing: of those long runs go in any case.

The summary of a compaction has what its members say, and no mark of where one ends: a run of one that goes
may be another's, too, and what is shorter than a run would be left. So it is made again, wherever an event
has it, of the members that remain, as often as one of them goes or changes; one of which none is left goes
itself. What somebody had a summary say is theirs and stays, but it came out of the members' words, and nobody
can tell which: no word is left in it that a member says which goes, and none that remains.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from omegad.index.terms import STOP_WORDS
from omegad.knowledge.events import ThesisRevised, ThesisStated
from omegad.log.codec import Codec
from omegad.log.copies import CopyFinder, blank
from omegad.log.erasure import Remnant, SearchTerms, remnant
from omegad.log.event import Erased, Event, Position, RecordedEvent, Unknown
from omegad.memory.events import (
    MadeOf,
    MemoryEdited,
    MemoryEmbedded,
    MemoryEvolved,
    MemoryRepeated,
    MemoryStored,
)
from omegad.person.events import SkillImproved, SkillImproveFailed
from omegad.session.events import MemorySurfaced, ToolCalled

TOLD_WITHIN = 8
"""How many events after a prompt, or a failed call, what was shown for it stands at most: they are
appended together.
"""
NAMES_MAX = 100
"""So many ids of memories are looked for in the log's payloads."""

SAID = (MemoryStored, MemoryEvolved, MemoryEdited, MemoryRepeated)
"""The events that hold what a memory says."""

Said = MemoryStored | MemoryEvolved | MemoryEdited | MemoryRepeated

COMPACTED, REPORTED = "compaction", "auto_lint"
COMPOSED = (
    *(COMPACTED, REPORTED, "auto_checkpoint", "auto_procedural", "auto_habit", "auto_reflect_stale"),
    "auto_summary",
)
"""The sources of memories that omegad puts together of what it has."""


TAKEN_OUT = "a copy of what was erased was taken out"
"""The reason of the edits that an erasure makes, by which they are told from anybody else's."""


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """An event that holds a copy, and what becomes of it: only the copy is taken out, or all its text."""

    position: Position
    tag: str
    session_id: str | None
    occurred_at: str
    loses: Literal["copy", "text"]


class Affected(msgspec.Struct, frozen=True, kw_only=True):
    """Another memory that holds a copy: one that says the same is `erased`, another `edited`, with the
    copy taken out of what it says.
    """

    memory_id: str
    outcome: Literal["erased", "edited", "history"]


class SummaryParts(NamedTuple):
    """What a summary is made again of: the text, what the members say that remain, and the tags that they
    have.
    """

    content: str = ""
    kept: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()


class RunLengths(NamedTuple):
    """How long a run of what is erased is, to be taken out of a text that is made of it, and of one of
    before that may be.
    """

    known: int
    likely: int


OF_MEMORY, OF_PHRASE = RunLengths(12, 40), RunLengths(8, 16)


class ErasureTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for: the wordings of memories, or a phrase, which goes out of names, too."""

    wordings: CopyFinder
    memory_ids: frozenset[str] = frozenset()
    is_phrase: bool = False
    is_composed: bool = False
    """Whether the memory is one that omegad put together, whose set phrases stand in others like it."""

    @property
    def runs(self) -> RunLengths:
        """How long a run has to be."""
        return OF_PHRASE if self.is_phrase else OF_MEMORY

    @property
    def terms(self) -> SearchTerms:
        """Groups of words, all those of one of which are in whatever holds it, or shows it beside its
        name; none where there may be others.
        """
        names = sorted(self.memory_ids)
        return (
            (*self.wordings.terms, *((name,) for name in names))
            if self.wordings.terms and len(names) <= NAMES_MAX
            else ()
        )

    def clean(self, value: object) -> object:
        """Return what was told without what is looked for."""
        return self.wordings.data(value, self.runs.known)


class Scrubbed:
    """Events from which is taken out what is erased, by the order in which they came; texts come after
    those that they are made of.
    """

    def __init__(
        self,
        codec: Codec,
        sought: ErasureTarget,
        holding: set[Position],
        again: dict[str, SummaryParts] | None,
    ) -> None:
        """*holding* are the positions of events that held it and are erased; *again* are the summaries,
        None where that is to be found out.
        """
        self._codec = codec
        self.sought = sought
        self._holding = holding
        self._again = again
        self._tags: set[str] = set()  # of the memories that are erased
        self._present: set[str] = (
            set()
        )  # memories whose present wording, as the log goes on, holds a copy: so do their vectors
        self.positions: list[Position] = []
        """Where something is taken out."""
        self.remnants: list[Remnant] = []
        """What remains there; none where the summaries are to be found out, of which that is made."""
        self.memory_ids: set[str] = set()
        """Memories, other than those that are erased, that hold it, or did."""
        self.least: dict[str, int] = {}
        """How long a run of it has to be, to be taken out of those memories that omegad made."""
        self.compacted: dict[str, MemoryStored] = {}
        """The summaries that have to be made again, as they were; each after those that it is made of."""
        self.without_digest: set[str] = set()
        """The reports whose digest went with a part of what they said."""
        self.edited: set[str] = set()
        """Those of them that say, as the log goes on, what somebody had them say."""

    def take(self, recorded: RecordedEvent) -> None:
        """Take it out of an event; those must be given in their order."""
        match recorded.event:
            case Erased():
                return
            case Unknown(body=body):
                is_held, clean = (
                    self.sought.wordings.clean(text := body.decode(errors="replace")) != text,
                    None,
                )
            case event:
                clean = self._clean(event, recorded)
                is_held = clean != event
        if is_held:
            self.positions.append(recorded.position)
            self._holding.add(recorded.position)
            if self._again is not None:
                self.remnants.append(remnant(recorded, clean, self._codec))

    def _clean(self, event: Event, recorded: RecordedEvent) -> Event | None:
        sought = self.sought
        if isinstance(event, MemoryEmbedded):
            return (
                msgspec.structs.replace(event, text_hashes=())
                if event.memory_id in sought.memory_ids | self._present
                else event
            )
        if isinstance(event, SAID) and event.memory_id in sought.memory_ids:
            self._tags.update(event.tags or (), getattr(event, "auto_tags", ()))
            return blank(event)
        least = self._least(event, recorded)
        clean: Event | None = sought.wordings.without(event, least)
        if isinstance(event, SAID) and isinstance(clean, SAID):
            clean = self._said(event, clean, least)
        return _without_names(clean, sought.wordings) if sought.is_phrase and clean is not None else clean

    def _said(self, event: Said, clean: Said, least: int) -> Event:
        memory_id = event.memory_id
        if (
            isinstance(event, MemoryStored)
            and event.source == COMPACTED
            and not self._tainted.isdisjoint(members_of(event))
        ):
            self.compacted[memory_id] = event
        if memory_id in self.compacted:
            clean = self._summary(event, clean)
        if clean != event:
            self.memory_ids.add(memory_id)
            if least:
                self.least[memory_id] = min(least, self.least.get(memory_id, least))
            if isinstance(clean, MemoryStored) and clean.source == REPORTED:
                self.without_digest.add(memory_id)
                clean = msgspec.structs.replace(
                    clean, metadata={key: item for key, item in clean.metadata.items() if key != "digest"}
                )
        if isinstance(clean, MemoryRepeated):
            return clean
        is_holding = clean.content != event.content
        (self._present.add if is_holding else self._present.discard)(memory_id)
        return msgspec.structs.replace(clean, content_key="") if is_holding else clean

    def _summary(self, event: Said, clean: Said) -> Said:
        """Return what an event has a summary say that has to be made again."""
        memory_id, again = event.memory_id, self.again(event.memory_id)
        if isinstance(event, MemoryEvolved) or (
            isinstance(event, MemoryEdited) and event.reason != TAKEN_OUT
        ):
            self.edited.add(memory_id)
        is_made = memory_id not in self.edited and not isinstance(event, MemoryRepeated)
        texts = {name: text for name in ("content", "wording") if (text := getattr(event, name, None))}
        changes: dict[str, object] = {
            name: again.content if is_made else self._edited(text, again) for name, text in texts.items()
        }
        changes |= {
            name: self.tags(tags, again)
            for name in ("tags", "auto_tags")
            if (tags := getattr(clean, name, None))
        }
        return msgspec.structs.replace(clean, **changes)

    def again(self, memory_id: str) -> SummaryParts:
        """Return what a summary is made again of."""
        return (self._again or {}).get(memory_id, SummaryParts())

    def summary(self, memory_id: str, text: str, again: SummaryParts) -> str:
        """Return what a summary says at last, which has said *text*."""
        return self._edited(text, again) if memory_id in self.edited else again.content

    def tags(self, tags: Iterable[str], again: SummaryParts) -> tuple[str, ...]:
        """Return those *tags* of a summary that it does not have of erased members alone."""
        gone = self._tags - again.tags
        return tuple(tag for tag in tags if tag not in gone)

    def _edited(self, text: str, again: SummaryParts) -> str:
        return self.sought.wordings.clean_words(text, self.sought.runs.known, again.kept, STOP_WORDS)

    def _least(self, event: Event, recorded: RecordedEvent) -> int:
        """Return how long a run has to be, to be taken out of an event; 0 where only copies are."""
        sought, runs = self.sought, self.sought.runs
        is_known, is_likely = False, False
        match event:
            case MemorySurfaced():
                is_known = event.how in {"prompt", "error"} and any(
                    recorded.position - near in self._holding for near in range(1, TOLD_WITHIN + 1)
                )
            case SkillImproved() | SkillImproveFailed():
                is_known = recorded.cause in self._holding
            case ThesisStated() | ThesisRevised():
                is_known = event.memory_id in self._tainted
            case ToolCalled():
                text = "".join(_texts_of(event)) if sought.memory_ids else ""
                is_known = any(memory_id in text for memory_id in sought.memory_ids)
            case MemoryStored() | MemoryRepeated() | MemoryEvolved():
                made_of = event.made_of or MadeOf(memories=members_of(event))
                is_ours = event.made_of is not None or getattr(event, "source", None) in COMPOSED
                is_known = recorded.cause in self._holding or getattr(event, "source", None) == REPORTED
                is_known |= not self._tainted.isdisjoint(made_of.memories) or not self._holding.isdisjoint(
                    made_of.positions
                )
                is_likely = (
                    is_ours and event.made_of is None and not made_of.memories and not sought.is_composed
                )
            case MemoryEdited():
                return self.least.get(event.memory_id, 0)
        return runs.known if is_known else runs.likely if is_likely else 0

    @property
    def _tainted(self) -> set[str]:
        return self.memory_ids | self.sought.memory_ids | self.compacted.keys()


def members_of(event: object) -> tuple[str, ...]:
    """Return the memories that a summary stands for; those of before say it in their metadata alone."""
    if not isinstance(event, MemoryStored) or event.source != COMPACTED:
        return ()
    if event.made_of is not None:
        return event.made_of.memories
    named = event.metadata.get("compacted")
    return tuple(one for one in named if isinstance(one, str)) if isinstance(named, list) else ()


def _texts_of(value: object) -> list[str]:
    """Return every text in an event."""
    match value:
        case str():
            return [value]
        case msgspec.Struct():
            return [text for name in value.__struct_fields__ for text in _texts_of(getattr(value, name))]
        case dict():
            return [text for pair in value.items() for one in pair for text in _texts_of(one)]
        case tuple() | list():
            return [text for one in value for text in _texts_of(one)]
        case _:
            return []


def _without_names(event: Event, wordings: CopyFinder) -> Event | None:
    """Return an event without a phrase in any of its texts, names among them; None where it is then no
    event any more.
    """
    data = msgspec.to_builtins(event)
    clean = wordings.data(data)
    assert isinstance(clean, dict)
    if clean == data:
        return event
    try:
        return msgspec.convert({**clean, "type": data["type"]}, type(event))
    except msgspec.ValidationError:
        return None
