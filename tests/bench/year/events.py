"""The events of a year: those that a home has lived through, again and again, each time as others.

What was lived is a script of some days, in which sessions call few tools; at work they call many, so each
call is told `TOOL_CALLS` times, as calls of their own. Every time through, ids, digests and names of sessions
are others, memories say other things, and what tools took and gave is cut out of this project's own files,
in lengths spread like those of real tools: half below 700 bytes, one in twenty above 5 KB, cut where the
daemon cuts them.
"""

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from omegad.catalog.events import CODEC
from omegad.log import reading
from omegad.log.event import Event, Excerpt, NewEvent, Position, RecordedEvent
from omegad.log.sanitise import excerpt
from omegad.memory.events import MemoryEmbedded, MemoryStored
from omegad.session.events import DeliveriesExpired, ToolCalled
from omegad.storage.database import open_reader
from tests.bench import texts
from tests.forking import ROOT

TOOL_CALLS = 40
POOL = 5_000
LENGTHS = {"input": (150, 0.8), "result": (700, 1.2)}  # median in bytes, and how far they spread
READ_AT_ONCE = 5_000
DIGITS = 12
IDS = re.compile(rf'(?<![:.0-9a-f])(?<!embedder_id":")[0-9a-f]{{{DIGITS},64}}')  # neither numbers nor models
AT = re.compile(r'"at":\d+')


def lived(log: Path) -> list[RecordedEvent]:
    """Read all that a home lived through, but for what it forgot of deliveries, which goes by its own time."""
    found: list[RecordedEvent] = []
    with closing(open_reader(log)) as connection:
        while batch := reading.read(connection, CODEC, found[-1].position if found else 0, READ_AT_ONCE):
            found += batch
    return [
        one for one in found if isinstance(one.event, Event) and not isinstance(one.event, DeliveriesExpired)
    ]


class Year:
    """Makes the events."""

    def __init__(self, script: Sequence[RecordedEvent], seed: str) -> None:
        """Take what was lived; raises ValueError where that is nothing."""
        if not script:
            raise ValueError("the log to take the shape from has no events")
        self._script = [(one, _template(one)) for one in script]
        self._choose = random.Random(seed)  # noqa: S311  nothing is secret
        sessions = sorted({one.session_id for one in script if one.session_id}, key=len, reverse=True)
        self._sessions = re.compile("|".join(map(re.escape, sessions)) or "(?!)")
        source = "\n".join(
            path.read_text(encoding="utf-8") for path in sorted((ROOT / "omegad").rglob("*.py"))
        )
        self._inputs, self._results = (
            [self._cut(source, *LENGTHS[kind]) for _ in range(POOL)] for kind in ("input", "result")
        )

    def _cut(self, source: str, median: float, spread: float) -> Excerpt:
        length = min(len(source) // 2, int(median * self._choose.lognormvariate(0, spread)))
        start = self._choose.randrange(len(source) - length)
        return excerpt(source[start : start + length])

    def again(self, time: int, first: Position, now_us: int) -> Iterator[NewEvent]:
        """Return the events of the script for the *time*th time, the first of which is at position *first*."""
        places: dict[Position, Position] = {}
        memories = sum(isinstance(one.event, MemoryStored) for one, _ in self._script)
        notes = iter(texts.notes(memories, f"{time}"))
        calls: dict[str, int] = {}
        position = first
        for one, template in self._script:
            session = one.session_id and self._renamed(one.session_id, time)
            for said in self._events(one, template, time, now_us):
                match said:
                    case ToolCalled():
                        calls[session or ""] = index = calls.get(session or "", 0) + 1
                        event: Event = self._call(said, f"{time}-{position}", index)
                    case MemoryStored():
                        event = msgspec.structs.replace(said, content=next(notes).content)
                    case _:
                        event = said
                places[one.position] = position
                yield NewEvent(
                    event=event,
                    session_id=session,
                    project=one.project,
                    cause=places.get(one.cause) if one.cause else None,
                )
                position += 1

    def _events(self, one: RecordedEvent, template: str, time: int, now_us: int) -> Iterator[Event]:
        if isinstance(one.event, ToolCalled):
            for _ in range(TOOL_CALLS):
                yield one.event
            return
        said = AT.sub(f'"at":{now_us}', self._renamed(template, time))
        said = IDS.sub(lambda found: _other(found.group(), time), said)
        event = CODEC.decode(one.tag, said.encode())
        assert isinstance(event, Event), event
        yield event

    def _renamed(self, text: str, time: int) -> str:
        return self._sessions.sub(lambda found: f"{found.group()}-{time}", text)

    def _call(self, event: ToolCalled, tool_use_id: str, index: int) -> ToolCalled:
        return msgspec.structs.replace(
            event,
            tool_use_id=tool_use_id,
            call_index=index,
            tool_input=self._choose.choice(self._inputs),
            result=self._choose.choice(self._results),
            delivery=None,
        )


def hashes(events: Sequence[NewEvent]) -> dict[str, list[str]]:
    """Return the hashes of texts that were embedded, by the id of what embedded them."""
    found: dict[str, list[str]] = {}
    for new in events:
        if isinstance(new.event, MemoryEmbedded):
            found.setdefault(new.event.embedder_id, []).extend(new.event.text_hashes)
    return found


def _template(one: RecordedEvent) -> str:
    assert isinstance(one.event, Event)
    return CODEC.encode(one.event).decode()


def _other(digits: str, time: int) -> str:
    """Return another id or digest of the same form, the same one for the same *time*."""
    last = (int(digits[-DIGITS:], 16) + time * 0x9E3779B97F4A) % 16**DIGITS
    return f"{digits[:-DIGITS]}{last:0{DIGITS}x}"
