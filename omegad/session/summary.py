"""At its end a session gets a summary, made of what the log holds of it: what was asked, which files changed,
which commands failed and passed, what was stored, where it was left.

One in which nothing was done gets none; one that goes on after its end gets another in the place of the
first. Each line has its room, files and failures the most, since they are what one looks for later.
"""

from collections.abc import Iterable, Iterator, Sequence
from posixpath import basename
from typing import NamedTuple

from omegad.log.event import RecordedEvent
from omegad.memory.events import MadeOf
from omegad.memory.store import SUMMARISED_BY, DeriveMemory
from omegad.memory.types import DAY_SECONDS
from omegad.reactions.contract import Reader
from omegad.session import story
from omegad.session.events import SessionEnded
from omegad.session.habits import COMMON
from omegad.session.story import Call, Said, Stored
from omegad.text.quoting import shortened

NAME = "session_summaries"
VERSION = 1
EVENTS = (SessionEnded,)
VIEWS = story.VIEWS
TTL_SECONDS = 21 * DAY_SECONDS
"""How long a summary is kept by itself: until the summary of its week has taken its place, and longer where
nobody was there to make that.
"""
SOURCES_MAX = 500
SUPERSEDES_MAX = 16

CHARACTERS_MAX = 1_200
FILES_MAX = 30
SHORT = 30
"""A line with less room than this says nothing, and is left out."""
COMMAND_CHARACTERS, BEGINNING_CHARACTERS, WHY_CHARACTERS = 90, 32, 50
KINDS = ("decision", "lesson_learned", "user_preference", "constraint", "error_pattern")
"""What is named before the rest of what was stored."""
_MORE = " and 999 more"


class Told(NamedTuple):
    """What the log holds of a session; *folder* is where it worked."""

    project: str | None
    folder: str | None
    calls: Sequence[Call]
    stored: Sequence[Stored]
    said: Sequence[Said]


class Ended(NamedTuple):
    """What each command of a session came to last: failed with which call, or passed; the latest first."""

    failed: dict[str, Call]
    passed: dict[str, Call]


def ended(calls: Iterable[Call]) -> Ended:
    """Return the commands whose last run failed, and those whose last run passed; another tool's call is
    known by its name and file.
    """
    last: dict[str, Call] = {}
    for call in calls:
        known = call.command or " ".join((call.tool_name, *map(basename, call.changes[:1])))
        last.pop(known, None)
        last[known] = call
    latest = dict(reversed(last.items()))
    failed = {known: call for known, call in latest.items() if call.status == "error"}
    ordered = sorted(failed.items(), key=lambda item: item[1].command is None)
    passed = {
        known: call
        for known, call in latest.items()
        if call.status == "ok" and call.command and known.partition(" ")[0] not in COMMON
    }
    return Ended(dict(ordered), passed)


def files(calls: Iterable[Call], folder: str | None) -> list[str]:
    """Return the files that a session changed, the latest first, by their path within its folder."""
    root = f"{folder.rstrip('/')}/" if folder else "//"
    return list(reversed(dict.fromkeys(one.removeprefix(root) for call in calls for one in call.edited)))


def text(told: Told) -> str:
    """Return the summary, of at most `CHARACTERS_MAX` characters."""
    edited, runs = files(told.calls, told.folder), ended(told.calls)
    errors = sum(call.status == "error" for call in told.calls)
    head = f"Session in {told.project or 'no project'}: {len(told.calls)} tool"
    head += f" call{'s' * (len(told.calls) != 1)}, {errors} failed."
    asked = [one.content for one in told.said if one.role == "user"]
    answers = [one.content for one in told.said if one.role == "assistant"]
    stored = sorted(told.stored, key=lambda one: one.event_type not in KINDS)
    # By what matters: each takes what it needs of its room, and what is left is there for those after it.
    wanted = (
        ("Edited", 560, _named(edited, 560)),
        ("Failed last", 380, _failed(runs.failed, 380)),
        ("Asked", 220, _asked(asked)),
        ("Left at", 200, shortened(answers[-1], 200) if answers else ""),
        (
            "Stored",
            200,
            _listed([f"{one.event_type} {shortened(one.content, WHY_CHARACTERS)}" for one in stored], 200),
        ),
        (
            "Passed last",
            200,
            _listed([f"`{shortened(one, COMMAND_CHARACTERS)}`" for one in runs.passed], 200),
        ),
    )
    room, found = CHARACTERS_MAX - len(head), dict[str, str]()
    for title, most, said in wanted:
        left = min(most, room - len(title) - 3)
        if said and left >= min(SHORT, len(said)):
            found[title] = f"{title}: {said if len(said) <= left else shortened(said, left)}"
            room -= len(found[title]) + 1
    order = ("Asked", "Edited", "Failed last", "Passed last", "Stored", "Left at")
    return "\n".join([head, *(found[title] for title in order if title in found)])


def _asked(prompts: Sequence[str]) -> str:
    if len(prompts) < 2:  # noqa: PLR2004
        return shortened(prompts[0], 220) if prompts else ""
    return f"{shortened(prompts[0], 105)} … {shortened(prompts[-1], 105)}"


def _why(call: Call) -> str:
    first = next((line for line in call.summary.splitlines() if line.strip()), "")
    return f" ({shortened(first, WHY_CHARACTERS)})" if first and call.summary != call.input_summary else ""


def _failed(failed: dict[str, Call], most: int) -> str:
    """Return commands that failed, and why; where that has no room, more of them by their beginnings."""
    whole = [f"`{shortened(known, COMMAND_CHARACTERS)}`{_why(call)}" for known, call in failed.items()]
    if sum(map(len, whole)) + 2 * len(whole) <= most:
        return "; ".join(whole)
    each = max(BEGINNING_CHARACTERS, (most - len(_MORE)) // len(whole) - len("``; "))
    return _listed([f"`{shortened(known, each)}`" for known in failed], most)


def _named(edited: Sequence[str], most: int) -> str:
    """Return files by their paths, or by their names alone where the paths have no room."""
    whole = ", ".join(edited)
    return whole if len(whole) <= most else _listed(list(dict.fromkeys(map(basename, edited))), most, ", ")


def _listed(items: Sequence[str], most: int, gap: str = "; ") -> str:
    """Return as many items as there is room for, and how many more there are."""
    shown, size = list[str](), 0
    for item in items:
        if size + len(item) + len(gap) > most - len(_MORE):
            break
        shown.append(item)
        size += len(item) + len(gap)
    left = len(items) - len(shown)
    listed = gap.join(shown)
    return f"{listed} and {left} more" if left and listed else listed


def react(recorded: RecordedEvent, reader: Reader) -> Iterator[DeriveMemory]:
    """Store the summary, unless nothing was done since the last end."""
    assert isinstance(recorded.event, SessionEnded)
    session_id, position, after = recorded.session_id or "", recorded.position, recorded.event.after
    calls = story.calls(reader.connection, session_id, position)
    stored = story.stored(reader.connection, session_id, position)
    own = [one for one in stored if one.source == SUMMARISED_BY]
    others = [one for one in stored if one.event_type not in story.STATES and one.source != story.LEARNED_BY]
    if not any(call.position > after and not call.shows_memories for call in calls) and not any(
        one.position > after for one in others
    ):
        return
    said = story.said(reader.connection, session_id, position)
    folder = story.folder(reader.connection, session_id)
    told = Told(recorded.project, folder, calls, others, said)
    made_of = [call.position for call in calls if call.edited or call.status == "error" or call.command]
    made_of += [one.position for one in said]
    yield DeriveMemory(
        content=text(told),
        made_of=MadeOf(
            memories=tuple(one.memory_id for one in others[:SOURCES_MAX]),
            positions=tuple(sorted(made_of)[-SOURCES_MAX:]),
        ),
        event_type="session_summary",
        session_id=recorded.session_id,
        project=recorded.project,
        source=SUMMARISED_BY,
        ttl_seconds=TTL_SECONDS,
        supersedes=tuple(one.memory_id for one in own if one.status == "active")[-SUPERSEDES_MAX:],
        metadata={
            "source": SUMMARISED_BY,
            "files": files(calls, folder)[:FILES_MAX],
            "tool_calls": len(calls),
        },
    )
