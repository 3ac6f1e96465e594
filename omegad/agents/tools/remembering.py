"""Tools that store: memories of any kind, checkpoints, the profile, reminders."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from omegad.agents.tools.tool import (
    DAY_CHARACTERS,
    NOTHING_SHOWN,
    Arguments,
    Fields,
    Project,
    Reply,
    Session,
    Settle,
    Strings,
    Tool,
    brief,
    bullets,
    line,
    without_empty,
)
from omegad.memory.relating import Replaceable
from omegad.memory.store import Stored
from omegad.person.reminder import ReminderList, ReminderSet
from omegad.requests.command import Acknowledged

SEEN_MAX, PREFERENCES_MAX = 500, 30  # of all projects, among which those of none are looked for
NEAR_CHARACTERS = 120
RELATED_MAX = 3


class Store(Arguments, frozen=True, kw_only=True):
    """Remember a decision, lesson, preference, constraint or error for later sessions. One fact each, with
    its why.
    """

    content: Annotated[str, Meta(min_length=1)]
    event_type: Annotated[
        str,
        Meta(
            description=(
                "memory, decision, lesson_learned, user_preference, error_pattern, constraint,"
                " task_completion, advisor_insight"
            )
        ),
    ] = "memory"
    tags: Strings = ()
    priority: Annotated[int, Meta(ge=1, le=5)] | None = None
    project: Project = None
    entity_id: Annotated[str | None, Meta(description="person or thing it is about")] = None
    referenced_date: Annotated[str | None, Meta(description="when it happened")] = None
    supersedes: Annotated[Strings, Meta(description="ids it replaces")] = ()
    settle: Settle = ()
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class Checkpoint(Arguments, frozen=True, kw_only=True):
    """Save where the work stands, so that another session can go on. Use it at milestones and before
    context runs out.
    """

    task: Annotated[str, Meta(min_length=1, description="what is being done")]
    progress: Annotated[str, Meta(description="what is done and known")] = ""
    next_steps: Strings = ()
    files_touched: Strings = ()
    handoff: Annotated[bool, Meta(description="for another agent; kept until replaced")] = False
    project: Project = None


class Profile(Arguments, frozen=True, kw_only=True):
    """Read what is known of the user, for every project, or update facts: preferences and working style."""

    action: str = "list"
    update: Annotated[
        dict[str, str | None], Meta(max_length=20, description="by short key; null forgets")
    ] = msgspec.field(default_factory=dict)


class Remind(Arguments, frozen=True, kw_only=True):
    """Add, list or finish reminders; each is told once when due."""

    action: str = "list"
    content: str | None = None
    due: Annotated[str | None, Meta(description="2026-01-31 or RFC 3339")] = None
    memory_id: Annotated[str | None, Meta(description="for done")] = None
    project: Project = None


def stored(stored: Stored, _session: Session, _given: Store) -> Reply:
    """Say what became of it, and ask what it is to the one memory that it may contradict."""
    structured: Fields = {
        "memory_id": stored.memory_id,
        "outcome": stored.outcome,
        "may_contradict": _offered(stored.may_contradict),
        "may_replace": _offered(stored.may_replace),
        "superseded": list(stored.superseded),
        "contradicts": list(stored.contradicts),
        "related": [one.memory_id for one in stored.related][:RELATED_MAX],
        "redacted": list(stored.redacted),
        "ignored": list(stored.ignored),
        "unfound": list(stored.unfound),
    }
    said = {"stored": "stored as", "duplicate": "known already as", "evolved": "added to"}[stored.outcome]
    parts = [f"{said} {stored.memory_id}"]
    parts += [
        f"{name}: {', '.join(structured[name])}"
        for name in ("superseded", "contradicts", "related", "redacted", "ignored", "unfound")
        if structured[name]
    ]
    if stored.note:
        structured["note"] = stored.note
        parts.append(stored.note)
    for one in structured["may_contradict"]:
        structured["hint"] = (
            f'say so in your next call: settle=["{stored.memory_id} contradicts {one["id"]}"], or supersedes,'
            " or compatible"
        )
        parts.append(f"may contradict {one['id']}: {one['text']}; {structured['hint']}")
    return Reply("\n".join(parts), without_empty(structured))


def _offered(found: Iterable[Replaceable]) -> list[Fields]:
    return [{"id": one.memory_id, "text": line(one.content, NEAR_CHARACTERS)} for one in found]


async def checkpoint(session: Session, given: Checkpoint) -> Reply:
    """Store a checkpoint, or a handoff."""
    parts = [given.task, given.progress]
    parts += [f"Next: {'; '.join(given.next_steps)}"] if given.next_steps else []
    parts += [f"Files: {', '.join(given.files_touched)}"] if given.files_touched else []
    stored = await session.ask(
        "memory.store",
        content="\n".join(part for part in parts if part),
        event_type="handoff" if given.handoff else "checkpoint",
        project=session.project_of(given.project),
        session_id=session.session_id,
        metadata={"task": given.task, "next_steps": given.next_steps, "files_touched": given.files_touched},
    )
    return Reply(
        f"saved as {stored.memory_id}; omega_resume_task finds it",
        {"memory_id": stored.memory_id, "outcome": stored.outcome},
    )


async def profile(session: Session, _given: Profile) -> Reply:
    """Show the facts of the profile and what is preferred everywhere."""
    facts = (await session.ask("profile.get")).facts
    page = await session.ask("memory.list", event_types=("user_preference",), limit=SEEN_MAX)
    found = [brief(memory) for memory in page.memories if memory.project is None][:PREFERENCES_MAX]
    text = "\n".join(
        [*(f"{key}: {value}" for key, value in facts.items()), *([bullets(found)] if found else [])]
    )
    return Reply(text or "nothing is known of the user yet", {"facts": facts, "preferences": found})


def updated(_answer: Acknowledged, _session: Session, given: Profile) -> Reply:
    """Say which facts were set."""
    return Reply(f"set {', '.join(given.update)}", {"set": list(given.update)})


def will_remind(answer: ReminderSet, _session: Session, _given: Remind) -> Reply:
    """Say when."""
    return Reply(
        f"will remind on {answer.due}: {answer.memory_id}", {"memory_id": answer.memory_id, "due": answer.due}
    )


def dismissed(_answer: Acknowledged, _session: Session, given: Remind) -> Reply:
    """Say that a reminder is done."""
    return Reply(f"{given.memory_id} is done", {"memory_id": given.memory_id})


def reminders(answer: ReminderList, _session: Session, _given: Remind) -> Reply:
    """List reminders by when they are due."""
    found = [
        without_empty(
            {
                "id": one.memory_id,
                "due": one.due,
                "is_due": one.is_due,
                "text": line(one.content) or NOTHING_SHOWN,
            }
        )
        for one in answer.reminders
    ]
    text = "\n".join(
        f"- {one['id']} {one['due'][:DAY_CHARACTERS]}{' (due)' if 'is_due' in one else ''} {one['text']}"
        for one in found
    )
    return Reply(text or "no reminders", {"reminders": found})


TOOLS = (
    Tool("omega_store", Store),
    Tool("omega_checkpoint", Checkpoint, {"": checkpoint}),
    Tool(
        "omega_profile",
        Profile,
        {"list": profile},
        meant=lambda given: "update" if given.update else given.action,
    ),
    Tool(
        "omega_remind",
        Remind,
        meant=lambda given: "add" if given.action == "list" and given.content else given.action,
    ),
)
