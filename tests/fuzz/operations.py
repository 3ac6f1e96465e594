"""Requests to every method of the table: as they should be, and with something amiss, over a state that
they make rich.
"""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from omegad.catalog.methods import SERVED
from omegad.catalog.tools import TOOLS
from tests.fuzz.values import DATES, PATHS, RIGHT, SQL, TEXTS, WORDS, Token, Values, written

OFTEN = {
    **dict.fromkeys(("memory.store", "hook.dispatch", "tools.call"), 6.0),
    **dict.fromkeys(("memory.query", "tool.record", "thesis.state", "task.create"), 3.0),
    **dict.fromkeys(("memory.erase", "memory.edit", "memory.supersede", "memory.compact"), 2.0),
}
SELDOM = {
    **dict.fromkeys(("views.rebuild", "views.verify"), 0.01),
    **dict.fromkeys(("log.verify", "log.diff"), 0.05),
    "audit.sql": 0.2,
}
"""Those that go through all there is, or take a process."""

SESSIONS = [f"session-{number}" for number in range(12)]
PROJECTS = ["atlas", "shop", "/src/shop", "数据库"]
EVENTS: tuple[str, ...] = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "SessionEnd",
)
EVENTS += ("beforeSubmitPrompt", "AfterTool", "pre-push", "Notification", "no such")
NAMED: dict[str, Sequence[object]] = {
    **dict.fromkeys(("session_id", "to_session", "owner", "asked_in"), SESSIONS),
    **dict.fromkeys(("project", "to_project"), PROJECTS),
    **dict.fromkeys(
        ("event_type", "event_types"),
        ("memory", "decision", "lesson_learned", "user_preference", "constraint", "checkpoint"),
    ),
    **dict.fromkeys(
        ("due", "timestamp", "since", "until", "referenced_date", "occurred_at"),
        ("2026-01-31", "2030-06-01T09:30:00Z", *DATES[1:3]),
    ),
    **dict.fromkeys(("refs", "ref"), ("main", "refs/heads/main", "refs/heads/other")),
    **dict.fromkeys(("tags", "capabilities", "can"), WORDS),
    **{name: (RIGHT[name],) for name in ("file", "rule", "rating")},
    "event": EVENTS,
    "sql": [*SQL[:2] * 20, *SQL],
    "skill": ("fuzzing",),
}
"""What is right for parameters by their names."""
KNOWN_MAX = 400
"""Ids of each kind that are remembered."""


class Asked(NamedTuple):
    """A request: its method, and its parameters as they are sent."""

    method: str
    params: bytes


class Operations:
    """Invents requests, and learns of their answers what there is to ask for."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        """*folder* is a repository with a pipe and some files that lie where they should not be read."""
        self._chance = chance
        self._files = [
            str(folder / name)
            for name in ("a.py", "b.py", "pipe", "loop", "zero", "none/../a.py", "deep/c.py")
        ]
        self._folder = folder
        self._ids: dict[str, list[object]] = {
            kind: [] for kind in ("memory_id", "thesis_id", "task_id", "evidence_id", "query_id", "position")
        }
        self._phrases: list[str] = []
        self._count = 0
        self._values = Values(chance, self._named)
        names = sorted(set(SERVED) - {"system.shutdown"})
        self._names, self._odds = names, [OFTEN.get(name) or SELDOM.get(name, 1.0) for name in names]

    def next(self) -> Asked:
        """Return one more request."""
        self._count += 1
        method = self._chance.choices(self._names, self._odds)[0]
        kind = self._chance.random()
        if kind < 0.03:
            return Asked(method, written(self._values.anything(4)))
        amiss = 0 if kind < 0.5 else self._chance.choice((1, 1, 2))
        params = self._values.object_of(SERVED[method].params, 0.25, amiss)
        if (
            method == "tools.call"
            and (tool := TOOLS.get(str(params.get("name"))))
            and isinstance(params.get("arguments", {}), dict)
        ):
            params["arguments"] = self._values.object_of(tool.arguments, 0.3, amiss)
        if method == "memory.erase":
            self._choose_one(params, "memory_id", "text")
        if self._chance.random() < 0.1 and "request_id" in SERVED[method].params.__struct_fields__:
            params["request_id"] = f"again-{self._chance.randrange(40)}"  # of whatever method
        return Asked(method, written(params))

    def learn(self, asked: Asked, result: Any) -> None:
        """Note the ids that an answer has."""
        del asked
        if isinstance(result, dict):
            for kind, known in self._ids.items():
                if (told := result.get(kind)) is not None:
                    known.append(told)
                    del known[: -KNOWN_MAX // 2 if len(known) > KNOWN_MAX else 0]

    def _choose_one(self, params: dict[str, object], *names: str) -> None:
        """Leave one of several parameters, mostly."""
        if self._chance.random() < 0.9:
            keep = self._chance.choice(names)
            for name in names:
                params.pop(name, None)
            params[keep] = self._chance.choice(self._named(keep) or ["none"])

    def _named(self, name: str) -> Sequence[object]:
        """Return what is right for a parameter of this name."""
        chance = self._chance
        if name in self._ids and name != "memory_id":
            return self._ids[name]
        if name in {"memory_id", "target_id", "superseded_by", "memory_ids", "ids", "supersedes"}:
            return (
                self._ids["memory_id"]
                if chance.random() < 0.95
                else self._ids["thesis_id"] + self._ids["task_id"]
            )
        if name == "depends_on":
            return self._ids["task_id"]
        if name in {"as_of", "from", "to", "min_position", "after"}:
            return [*self._ids["position"][-40:], 0]
        if name == "name":
            return list(TOOLS) if chance.random() < 0.9 else ()
        return self._invented(name) or NAMED.get(name, ())

    def _invented(self, name: str) -> Sequence[object]:
        """Return what is another one each time."""
        match name:
            case "text" | "query" | "topic":
                return [self._chance.choice(self._phrases or ["nothing yet"]), self._said()]
            case "paths" | "to_file" | "files_touched":
                return self._files
            case "folder":
                return [str(self._folder), str(self._folder / "deep"), "/"]
            case "payload":
                return [self._payload()]
            case "request_id" | "delivery_id":
                return [f"r-{self._count}", f"again-{self._chance.randrange(40)}"]
        return (
            [self._said()]
            if name in {"content", "statement", "title", "lesson", "description", "progress"}
            else ()
        )

    def _said(self) -> str:
        """Return a text to be stored, some of whose words stand nowhere else, or in another text as well."""
        words = " ".join(self._chance.choices(WORDS, k=self._chance.randint(3, 12)))
        said = f"{words} fuzz{self._count} {self._chance.choice(WORDS)} word{self._count % 50}"
        if self._chance.random() < 0.2:
            said += " " + self._chance.choice(TEXTS)
        if self._phrases and self._chance.random() < 0.2:
            said += " " + self._chance.choice(self._phrases)
        if self._chance.random() < 0.3:
            start = self._chance.randrange(max(1, len(said) - 30))
            self._phrases = [
                *self._phrases[-KNOWN_MAX:],
                said[start : start + self._chance.choice((5, 14, 30, 60))],
            ]
        return said

    def _payload(self) -> dict[str, object]:
        """Return what a host gives its hook, with something amiss now and then."""
        chance, values = self._chance, self._values
        payload: dict[str, object] = {
            "session_id": chance.choice(SESSIONS),
            "hook_event_name": chance.choice(EVENTS),
            "cwd": str(self._folder),
            "prompt": self._said(),
            "last_assistant_message": f"{self._said()}\nSKILL_IMPROVE: fuzzing | {self._said()}",
            "tool_name": chance.choice(
                ("Bash", "Edit", "Write", "MultiEdit", "apply_patch", "mcp__filesystem__edit_file", "Read")
            ),
            "tool_use_id": f"use-{self._count}",
            "tool_input": chance.choice(
                [
                    {
                        "file_path": chance.choice([*self._files, *PATHS]),
                        "old_string": "a",
                        "new_string": self._said(),
                    },
                    {
                        "command": chance.choice(
                            (
                                "make",
                                "git push",
                                "git checkout other",
                                "rm -rf x; git push --mirror",
                                "cat <<'E'\n" * 300,
                            )
                        )
                    },
                    {"input": "*** Begin Patch\n*** Update File: ../../a.py\n" * chance.choice((1, 500))},
                    values.anything(4),
                ]
            ),
            "tool_response": chance.choice(
                [{"stdout": self._said(), "exit_code": 1}, "Exit code 1\n" * 900, values.anything(3)]
            ),
            "transcript_path": chance.choice((*self._files, "/dev/zero")),
        }
        for name in chance.sample(sorted(payload), chance.choice((0, 0, 1, 2, 4))):
            payload[name] = chance.choice((values.anything(3), values.text(), Token(b"null")))
        return payload
