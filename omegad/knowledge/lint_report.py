"""The report on what should be looked at: one insight, which takes the place of the last one; none where
nothing has changed. It is stored every few days, and when asked for.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.knowledge import lint
from omegad.knowledge.lint import Figures, Finding, LintReport
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Position
from omegad.memory import store
from omegad.memory.events import MadeOf
from omegad.memory.store import DeriveMemory, PreparedStore, Stored
from omegad.memory.types import MemoryTypes
from omegad.reactions.contract import Reader
from omegad.requests.command import Command, Name
from omegad.requests.method import CommandMethod, Moment, RequestContext, Services
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

VIEWS = lint.VIEWS
IDS = ("mem-", "th-")


class RecurringLint:
    """The schedule that stores the report every few days."""

    NAME = "lint"
    VERSION = 1
    VIEWS = VIEWS

    def __init__(self, days: int, types: MemoryTypes) -> None:
        """Take after how many days there is to be another report, and the known types."""
        self.EVERY = days * 86_400
        self._types = types

    def due(self, _slot: int, reader: Reader) -> Iterator[DeriveMemory]:
        """Store the report, unless it says what the last one said, or there is nothing to say, or nothing
        was there when the last slot began.
        """
        begun_us = reader.now_us - self.EVERY * 1_000_000
        if reader.connection.execute("SELECT 1 FROM memories WHERE created_us < ?", (begun_us,)).fetchone():
            new, _ = _report(reader.connection, reader.now_us, self._types, None)
            yield from () if new is None else (new,)


def recurring(days: int, types: MemoryTypes) -> tuple[RecurringLint, ...]:
    """Return the schedule, none where reports are *days* of 0 apart, which is never."""
    return (RecurringLint(days, types),) if days else ()


class SaveReport(Command, frozen=True, kw_only=True, tag="lint.save"):
    """Keep the report of what should be looked at as a memory, which takes the place of the last one."""

    project: Annotated[Name | None, Meta(description="of this project alone")] = None


class SavedReport(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that is the report: stored now, or unchanged since it was. Without an id there is nothing
    to look at.
    """

    memory_id: str | None = None
    outcome: Literal["stored", "unchanged", "nothing"]
    position: Position = 0


class PreparedReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report as a store, with what that needs; or the one that says the same already."""

    new: DeriveMemory | None = None
    prepared: PreparedStore | None = None
    known: str | None = None


async def prepare(services: Services, command: SaveReport, context: RequestContext) -> PreparedReport:
    """Read what there is to say, and prepare to store it. Raises what a store raises, and `ReadTooLong`."""

    def read(connection: Connection, moment: Moment) -> tuple[DeriveMemory | None, str | None]:
        return _report(connection, moment.now_us, services[MemoryTypes], command.project)

    new, known = await services.look(read, at_least=services.head, names=VIEWS, turn=Turn.LONG)
    if new is None:
        return PreparedReport(known=known)
    return PreparedReport(new=new, prepared=await store.prepare(services, new, context))


def save(command: SaveReport, prepared: PreparedReport, state: DecisionState, now_us: int) -> Decision:
    """Decide the store of a report; raises what a store raises."""
    del command
    if prepared.new is None or prepared.prepared is None:
        outcome: Literal["unchanged", "nothing"] = "unchanged" if prepared.known else "nothing"
        return Decision(answer=SavedReport(memory_id=prepared.known, outcome=outcome))
    done = store.store(prepared.new, prepared.prepared, state, now_us)
    memory_id = done.answer.memory_id if isinstance(done.answer, Stored) else None
    return msgspec.structs.replace(done, answer=SavedReport(memory_id=memory_id, outcome="stored"))


def _report(
    connection: Connection, now_us: int, types: MemoryTypes, project: str | None
) -> tuple[DeriveMemory | None, str | None]:
    """Return the report as a store, None where there is nothing new to say; and the one that says the same
    already.
    """
    report = lint.examine(connection, now_us, types, project)
    former = lint.last_report(connection, now_us, project)
    findings = report.findings[: lint.FINDINGS_MAX]
    digest = blake2b(msgspec.json.encode((findings, report.figures)), digest_size=16).hexdigest()
    known = msgspec.json.decode(former[0][1]) if former else {}
    if not findings or known.get("digest") == digest:
        return None, former[0][0] if findings else None
    metadata: dict[str, object] = {
        "source": lint.SOURCE,
        **({} if project is None else {"project": project}),
        "digest": digest,
        "figures": msgspec.to_builtins(report.figures),
        "findings": msgspec.to_builtins(findings),
    }
    new = DeriveMemory(
        content=text(msgspec.structs.replace(report, findings=findings), _figures(known)),
        event_type="advisor_insight",
        project=project,
        made_of=MadeOf(
            memories=tuple(
                dict.fromkeys(one for finding in findings for one in finding.ids if one.startswith(IDS))
            )
        ),
        source=lint.SOURCE,
        probation=False,
        metadata=metadata,
        supersedes=tuple(memory_id for memory_id, _ in former[:16]),
    )
    return new, None


def _figures(known: dict[str, object]) -> dict[str, int]:
    try:
        return msgspec.convert(known.get("figures", {}), dict[str, int])
    except msgspec.ValidationError:  # anybody may store what looks like a report
        return {}


def text(report: LintReport, former: dict[str, int]) -> str:
    """Write a report: its figures, with what has changed since the former ones, and its findings."""

    def figure(name: str) -> str:
        value = getattr(report.figures, name)
        change = value - former.get(name, value)
        return f"{name.replace('_', ' ')} {value}" + (f" ({change:+d})" if change else "")

    head = "Knowledge report: " + ", ".join(map(figure, Figures.__struct_fields__))
    left = report.total - len(report.findings)
    more = [f"and {left} more: omegad lint --limit 100"] if left else []
    return "\n".join([head, *(f"- {named(one)}" for one in report.findings), *more])


def named(finding: Finding) -> str:
    """Return a finding in a line without the words that it is about: a report must not be the answer to
    the question that it says has none.
    """
    ids = ", ".join(one for one in finding.ids if one.startswith(IDS))
    return f"{finding.rule.replace('_', ' ')} ({finding.count}){f': {ids}' if ids else ''}"


METHODS = (CommandMethod(params=SaveReport, answer=SavedReport, prepare=prepare, decide=save, verb=None),)
