"""What a team remembers of a project, as a section of a file for those who do not run omegad."""

from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import Answer, ask
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import quantity, safe, tell
from omegad.edge.setup import files
from omegad.edge.setup.content import Markers, put_section
from omegad.runtime.errors import NotFound
from omegad.runtime.repository import project_of
from omegad.sharing.outgoing import NEVER
from omegad.text.quoting import BY_CHARACTERS, in_parentheses, name, one_line

MARKERS = Markers("<!-- omegad:team:begin -->", "<!-- omegad:team:end -->")
TITLES = {
    "constraint": "Constraints",
    "decision": "Decisions",
    "user_preference": "Preferences",
    "lesson_learned": "Lessons",
    "error_pattern": "Errors and what they mean",
}
"""Of the types that come first, in this order; the others follow under their own names."""
HEAD = """\
## What the team remembers of {project}

Written by `omegad share file`, which replaces what stands between the two marks. These are notes that people
and their agents kept, not instructions; who said each stands behind it."""
MEMORIES_MAX, TEXT_CHARACTERS = 300, 500
BYTES_MAX = 65_536
"""How long the memories of a section are at most, all together."""
PAGE = 500
DAY_CHARACTERS = len("2026-01-31")


def write(arguments: Namespace, instance: Instance) -> None:
    """Put the section into a file, or print it where none is named; nothing else of the file is touched."""
    project = arguments.project or project_of(str(Path.cwd()))
    if not project:
        raise WrongUsage("this folder is of no project; name one with --project")
    body, told, left_out = section(project, _memories(instance, project))
    answer: dict[str, object] = {"project": project, "memories": told, "left_out": left_out}
    if not arguments.into:
        tell(arguments, answer | {"text": body}, safe(body))
        return
    path = Path(arguments.into)
    before = files.read(path)
    after = put_section(before or "", body, MARKERS)
    if is_changed := after != before:
        files.write(path, before, after, mode=files.SHARED_FILE)
    tell(
        arguments,
        answer | {"file": str(path), "changed": is_changed},
        safe(
            f"{path} {'has now' if is_changed else 'has'} {quantity(told, 'memory', 'memories')} of {project}"
        ),
    )


def _memories(instance: Instance, project: str) -> Iterator[Answer]:
    """Yield what is shared of a project. Raises `NotFound` where nothing is."""
    team = ask(instance, "share.status")
    choice = next((one for one in team["chosen"] if one["project"] == project), None)
    if team["team"] is None:
        raise NotFound("this home shares with no team", hint="`omegad share join` joins one")
    if choice is None:
        raise NotFound(f"{project} is not shared", hint=f"`omegad share choose {project}` begins")
    cursor = None
    while True:
        page = ask(instance, "memory.list", project=project, limit=PAGE, cursor=cursor)
        for one in page["memories"]:
            is_chosen = one["event_type"] in choice["types"] or not choice["types"]
            is_told = is_chosen and one["event_type"] not in NEVER and one["status"] == "active"
            if one["elsewhere"] or is_told:
                yield one
        if (cursor := page["next_cursor"]) is None:
            return


def section(project: str, memories: Iterable[Answer]) -> tuple[str, int, int]:
    """Return the section of a project's memories by type, how many of them it tells, and how many there is no
    room for: what is important comes first, then what is new.
    """
    by_worth = sorted(memories, key=lambda one: str(one["memory_id"]))
    by_worth.sort(key=lambda one: (one["priority"], one["rating"], one["created_at"]), reverse=True)
    kept, room = list[tuple[str, str]](), BYTES_MAX
    for one in by_worth[:MEMORIES_MAX]:
        line = _line(one)
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append((one["event_type"], line))
    first = {kind: place for place, kind in enumerate(TITLES)}
    kept.sort(key=lambda one: (first.get(one[0], len(first)), one[0]))
    lines = [HEAD.format(project=name(project))]
    for kind, told in groupby(kept, key=lambda one: one[0]):
        title = TITLES.get(kind) or one_line(kind.replace("_", " ").capitalize(), BY_CHARACTERS)
        lines += ["", f"### {title}", "", *(line for _, line in told)]
    left_out = len(by_worth) - len(kept)
    if left_out:
        lines += ["", f"There are {left_out} more, which `omegad query` finds."]
    return "\n".join(lines if kept else [*lines, "", "Nothing is shared yet."]), len(kept), left_out


def _line(memory: Answer) -> str:
    person = memory["person"] or "somebody"
    by = in_parentheses(f"{person}, {memory['created_at'][:DAY_CHARACTERS]}", BY_CHARACTERS)
    doubt = " In conflict with a later one." if memory["contradicted_by"] else ""
    return f"- {one_line(memory['content'], TEXT_CHARACTERS)}{doubt} {by}"
