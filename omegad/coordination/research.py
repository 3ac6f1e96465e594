"""Research tasks: what the lint finds that too little is known of, put down as tasks, each once."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from omegad.coordination.events import TaskCreated
from omegad.coordination.task import TaskAnswer
from omegad.coordination.task_state import Tasks
from omegad.knowledge import lint
from omegad.knowledge.lint import Finding, LintReport
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.log.projection import to_json
from omegad.memory.types import MemoryTypes
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, RequestContext, Services
from omegad.storage.driver import Connection
from omegad.storage.readers import Turn

TASKS_MAX = 100
"""At most so many at once; another call puts down the next ones."""
TITLE_CHARACTERS = 200
PRIORITY = 2

_KNOWN = "SELECT description FROM coord_tasks WHERE description IN (SELECT value FROM json_each(?))"


class PutDownResearch(Command, frozen=True, kw_only=True, tag="lint.tasks"):
    """Put down a research task for each gap that the lint finds and that had none, whatever became of it."""

    project: Annotated[Name | None, Meta(description="of this project alone")] = None


class Research(Acknowledged, frozen=True):
    """The tasks that were put down; `known` gaps had theirs before, `left` are those for another call."""

    tasks: tuple[TaskAnswer, ...]
    known: int
    left: int = 0


class Gap(NamedTuple):
    """The task that a gap has or will have, which is always the same one, and its project."""

    task: TaskCreated
    project: str | None
    is_known: bool
    """Whether there was a task for it, as in the home that this one was restored from."""


async def prepare(services: Services, command: PutDownResearch, _context: RequestContext) -> tuple[Gap, ...]:
    """Return the gaps that there are. Raises `ReadTooLong`."""

    def read(connection: Connection, moment: Moment) -> tuple[LintReport, set[str]]:
        report = lint.examine(connection, moment.now_us, services[MemoryTypes], command.project)
        return report, known(connection, report.findings)

    report, put_down_before = await services.look(
        read, at_least=services.head, names=(*lint.VIEWS, "coord_tasks"), turn=Turn.LONG
    )
    gaps = []
    for finding in report.findings:
        if finding.rule == "gap":
            # Where no decision was kept it is about a project; an entity is named by what is known of it.
            is_project = finding.count == 0
            about = msgspec.json.encode((is_project, finding.ids))
            task = TaskCreated(
                task_id=f"task-{services.digests.of(about)[:6].hex()}",
                title=title(finding),
                description=description(finding),
                priority=PRIORITY,
                capability=None,
                depends_on=(),
            )
            project = finding.ids[0] if is_project else command.project
            gaps.append(Gap(task, project, description(finding) in put_down_before))
    return tuple(gaps)


def put_down(
    _command: PutDownResearch, gaps: tuple[Gap, ...], state: DecisionState, _now_us: int
) -> Decision:
    """Decide a task for each gap that never had one."""
    new = [gap for gap in gaps if not gap.is_known and state[Tasks].get(gap.task.task_id) is None]
    created = new[:TASKS_MAX]
    answer = Research(
        tasks=tuple(TaskAnswer(task_id=gap.task.task_id, status="open") for gap in created),
        known=len(gaps) - len(new),
        left=len(new) - len(created),
    )
    events = tuple(NewEvent(event=gap.task, project=gap.project) for gap in created)
    return Decision(events=events, answer=answer)


def known(connection: Connection, findings: Iterable[Finding]) -> set[str]:
    """Return what the tasks say that were ever put down for these findings."""
    asked = to_json([description(finding) for finding in findings])
    return {row[0] for row in connection.execute(_KNOWN, (asked,))}


def title(finding: Finding) -> str:
    """Return the title of the task for a gap."""
    return f"Research: {finding.text}"[:TITLE_CHARACTERS]


def description(finding: Finding) -> str:
    """Return what the task for a gap says, which is the same for the same gap."""
    return f"find out what is missing and remember it: {finding.settle}"


METHODS = (
    CommandMethod(params=PutDownResearch, answer=Research, prepare=prepare, decide=put_down, verb=None),
)
