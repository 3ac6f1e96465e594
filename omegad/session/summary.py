"""What a session was, in a few lines: what was asked, which files changed, which commands failed and passed,
what was stored, where it was left. Pure.

Each line has its room, files and failures the most, since they are what one looks for later.
"""

from collections.abc import Iterable, Sequence
from posixpath import basename
from typing import NamedTuple

from omegad.session.habits import COMMON
from omegad.session.story import Call, Said, Stored
from omegad.text.quoting import shortened

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
    found = dict.fromkeys(one.removeprefix(root) for call in calls for one in call.edited)
    return list(reversed(found))


def text(told: Told) -> str:
    """Return the summary, of at most `CHARACTERS_MAX` characters."""
    edited, runs = files(told.calls, told.folder), ended(told.calls)
    errors = sum(call.status == "error" for call in told.calls)
    head = f"Session in {told.project or 'no project'}: {len(told.calls)} tool calls, {errors} failed."
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
