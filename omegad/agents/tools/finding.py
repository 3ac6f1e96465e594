"""Tools that find: memories, lessons, where a task was left, and what a session should begin with."""

from contextlib import suppress
from typing import Annotated, Literal

from msgspec import Meta

from omegad.agents.assembling import UNCHECKED
from omegad.agents.briefing import Briefing
from omegad.agents.tools.tool import (
    Arguments,
    Around,
    Fields,
    Limit,
    Project,
    Reply,
    Session,
    Settle,
    Strings,
    Tool,
    brief,
    bullets,
    in_full,
)
from omegad.runtime.errors import OmegadError
from omegad.text.meant import nearest
from omegad.text.quoting import name

OF_EACH = 5
PROJECTS_MAX = 1_000
_PROJECTS = "SELECT project FROM memories WHERE project IS NOT NULL GROUP BY 1 ORDER BY project = {} DESC, 1"
ABOUT_SHARE = 0.8  # of the best score, from which a checkpoint is of the task that is named


class Query(Arguments, frozen=True, kw_only=True):
    """Search what was remembered, by meaning and words. Ask before deciding, and when an error looks
    familiar.
    """

    query: Annotated[str, Meta(min_length=1, max_length=8_192)]
    limit: Limit = 5
    event_types: Strings = ()
    tags: Strings = ()
    entity_id: str | None = None
    since: Annotated[str | None, Meta(description="2026-01-31 or RFC 3339")] = None
    until: str | None = None
    mode: Literal["hybrid", "semantic", "keyword", "phrase"] = "hybrid"
    all: Annotated[bool, Meta(description="also what is far less likely to answer")] = False
    project: Around = None
    person: Annotated[str | None, Meta(description="said by this one of the team")] = None
    settle: Settle = ()


class Lessons(Arguments, frozen=True, kw_only=True):
    """Lessons and error patterns, the best proved first, or those about a topic."""

    topic: str | None = None
    limit: Limit = 5
    project: Around = None


class ResumeTask(Arguments, frozen=True, kw_only=True):
    """Where work was left: the latest checkpoint or handoff, of a task if named."""

    task: str | None = None
    project: Project = None


class Welcome(Arguments, frozen=True, kw_only=True):
    """Briefing for session start: constraints, profile, decisions, lessons, last checkpoint, due
    reminders, what to review.
    """

    project: Project = None


async def query(session: Session, given: Query) -> Reply:
    """Search the project that is named; where none is, the session's own and what is of none, and all of them
    where these hardly answer.
    """
    project = session.project_of(given.project)
    answer = await session.ask(
        "memory.query",
        text=given.query,
        limit=given.limit,
        event_types=given.event_types,
        tags=given.tags,
        entity_id=given.entity_id,
        since=given.since,
        until=given.until,
        mode=given.mode,
        all=given.all,
        person=given.person,
        asked_in=session.session_id,
        or_others=given.project is None,
        **session.scope_of(given.project),
    )
    found = [
        brief(result, session.project, score=round(result.score, 3), same=_told(len(result.same)))
        for result in answer.results
    ]
    text = bullets(found) or "nothing is remembered about that"
    told: Fields = {"results": found}
    unknown = "" if found or not project or given.project is None else await _unknown(session, project)
    if unknown:
        text, told = f"{unknown}\n{text}", told | {"unknown": unknown}
    elif answer.nothing_of:
        text, told = f"nothing is of {answer.nothing_of}\n{text}", told | {"nothing_of": answer.nothing_of}
    if answer.unchecked and found:
        text, told = f"{text}\n{UNCHECKED}", told | {"unchecked": True}
    return _with_rest(text, told, answer.more, answer.beyond, unlikely="all=true")


def _with_rest(text: str, told: Fields, more: int, beyond: int, *, unlikely: str) -> Reply:
    """Say how many more there are at least that are less likely, and how they are had, and that the limit
    cut off.
    """
    if more:
        text, told = f"{text}\nat least {more} more, less likely: {unlikely}", told | {"more": more}
    if beyond:
        text, told = (
            f"{text}\nat least {beyond} more, about as likely: raise limit",
            told | {"beyond": beyond},
        )
    return Reply(text, told)


async def _unknown(session: Session, project: str) -> str:
    """Say that no memory is of a project, and which is called almost the same; "" where one is."""
    quoted = "'" + project.replace("'", "''") + "'"
    with suppress(OmegadError):  # which says no more than that nothing was found
        rows = (await session.ask("audit.sql", sql=_PROJECTS.format(quoted), limit=PROJECTS_MAX)).rows
        known = [row[0] for row in rows]
        if project not in known:
            meant = nearest(project, known)
            told = f"there is no project {name(project)} here"
            return f"{told}; did you mean {name(meant)}?" if meant else told
    return ""


def _told(same: int) -> str:
    """Say how many other memories one stands for."""
    return f"{same} more {'say' if same > 1 else 'says'} the same" if same else ""


async def lessons(session: Session, given: Lessons) -> Reply:
    """Show lessons; of a topic, how many more are far less likely to be of it."""
    scope, more, beyond, nothing = session.scope_of(given.project), 0, 0, "no lessons yet"
    if given.topic:
        answer = await session.ask(
            "memory.query",
            text=given.topic,
            event_types=("lesson_learned", "error_pattern"),
            asked_in=session.session_id,
            limit=given.limit,
            or_others=given.project is None,
            **scope,
        )
        memories, more, beyond = answer.results, answer.more, answer.beyond
        nothing = "no lesson is about that"
    else:
        memories = (await session.ask("memory.lessons", limit=given.limit, **scope)).lessons
    found = [brief(memory, session.project) for memory in memories]
    text, told = bullets(found) or nothing, Fields(lessons=found)
    return _with_rest(text, told, more, beyond, unlikely="without a topic")


async def resume_task(session: Session, given: ResumeTask) -> Reply:
    """Show where a task or, where none is named, the project was left, in full; the task may be of none."""
    types = ("checkpoint", "handoff")
    if given.task:
        answer = await session.ask(
            "memory.query",
            text=given.task,
            limit=OF_EACH,
            event_types=types,
            asked_in=session.session_id,
            **session.scope_of(given.project),
        )
        about = [one for one in answer.results if one.score >= answer.results[0].score * ABOUT_SHARE]
        memory = max(about, key=lambda one: one.created_at, default=None)
    else:
        project = session.project_of(given.project)
        page = await session.ask("memory.list", limit=1, event_types=types, project=project)
        memory = next(iter(page.memories), None)
    if memory is None:
        return Reply("nothing was left off here; omega_query may know more", {"found": False})
    head = f"{memory.memory_id} [{memory.event_type}, {memory.created_at}]"
    structured = {
        "id": memory.memory_id,
        "type": memory.event_type,
        "at": memory.created_at,
        "content": memory.content,
    }
    return in_full(head, memory.content, structured)


def briefed(answer: Briefing, session: Session, given: Welcome) -> Reply:
    """Brief a session, as its first hook does."""
    project = session.project_of(given.project) or "any project"
    return Reply(answer.text or f"Nothing is remembered of {project} yet.", as_it_is=bool(answer.text))


TOOLS = (
    Tool("omega_query", Query, {"": query}, is_read_only=True),
    Tool("omega_lessons", Lessons, {"": lessons}, is_read_only=True),
    Tool("omega_resume_task", ResumeTask, {"": resume_task}, is_read_only=True),
    Tool("omega_welcome", Welcome, is_read_only=True),
)
