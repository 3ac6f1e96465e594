"""A day's work for a daemon that fails at a step of its own, and proof that it made no difference.

`python -m tests.acceptance.faults [--how kill …] [--every N] [--only PREFIX]` tries every step; the suite
tries a sample.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from omegad.runtime.errors import NoDaemon, OmegadError
from tests.acceptance.conftest import PATIENCE_S, Home, until
from tests.acceptance.failing import KILLED, Fault, How

TRIES_MAX = 40
UNAWAITED = (
    "memory.queried",
    "memory.surfaced",
)  # appended after the answer; asked again, they are recorded again
FAILED = {"unavailable", "shutting_down"}
WEEKLY = "advisor_insight"  # a report that is made at a start where there is something to say


class Of(NamedTuple):
    """What stands in the answer to an earlier request."""

    number: int
    field: str


SESSION = {"session_id": "s-1", "project": "atlas"}


def _hook(event: str, number: int, **fields: object) -> tuple[str, dict[str, Any]]:
    payload = {"session_id": "s-1", "cwd": "/src/atlas", "hook_event_name": event} | fields
    return "hook.dispatch", {
        "event": event,
        "payload": payload,
        "host": "claude-code",
        "delivery_id": f"delivery-{number}",
    }


def _edit_of(number: int) -> tuple[str, dict[str, Any]]:
    return _hook(
        "PostToolUse",
        number,
        tool_name="Edit",
        tool_input={"file_path": "/src/atlas/exporter.py"},
        tool_response={},
        tool_use_id=f"use-{number}",
    )


PLAN: tuple[tuple[str, dict[str, Any]], ...] = (
    _hook("SessionStart", 1, source="startup"),
    (
        "memory.store",
        {
            "content": "Billing runs on PostgreSQL 16, for its row-level security",
            "event_type": "decision",
            **SESSION,
        },
    ),
    (
        "memory.store",
        {
            "content": "The nightly export times out unless fetch_size is 500",
            "event_type": "lesson_learned",
            **SESSION,
        },
    ),
    (
        "memory.store",
        {
            "content": "The nightly export times out unless fetch_size is 500",
            "event_type": "lesson_learned",
            **SESSION,
        },
    ),
    (
        "memory.edit",
        {
            "memory_id": Of(1, "memory_id"),
            "content": "Billing runs on PostgreSQL 17, for its row-level security",
            "reason": "upgraded",
        },
    ),
    (
        "memory.link",
        {"memory_id": Of(1, "memory_id"), "target_id": Of(2, "memory_id"), "edge_type": "related"},
    ),
    ("memory.rate", {"memory_id": Of(2, "memory_id"), "rating": "helpful"}),
    _hook(
        "UserPromptSubmit",
        2,
        prompt="We decided to always use UTC timestamps in the export, because of daylight saving.",
    ),
    _edit_of(3),
    _edit_of(4),
    (
        "tool.record",
        {
            "session_id": "s-1",
            "tool_name": "Bash",
            "tool_input": "make export",
            "result": "error: timed out",
            "status": "error",
        },
    ),
    ("claim.files", {"session_id": "s-1", "paths": ["/src/atlas/exporter.py", "/src/atlas/billing.py"]}),
    ("task.create", {"title": "Mend the export", "project": "atlas"}),
    ("task.claim", {"task_id": Of(12, "task_id"), "session_id": "s-1"}),
    ("message.send", {"text": "The export is being mended", "to_project": "atlas", "session_id": "s-1"}),
    ("memory.query", {"text": "why is the export slow?", "project": "atlas"}),
    (
        "memory.upsert",
        {
            "content": "The importer reads CSV",
            "source": "notes",
            "confidence": 0.5,
            "timestamp": "2026-01-02T03:04:05Z",
        },
    ),
    ("memory.delete", {"memory_id": Of(16, "memory_id"), "reason": "wrong"}),
    ("views.rebuild", {}),
    ("task.complete", {"task_id": Of(12, "task_id"), "session_id": "s-1"}),
    _hook("SessionEnd", 5, reason="exit"),
    ("memory.store", {"content": "The last thing before the end", "ack": "durable"}),
)


class FaultyHome(Home):
    """A home whose daemon can be started with a fault."""

    def serves(self) -> bool:
        """Start the daemon; say whether it serves, or has ended."""
        self.launch()
        until(lambda: self.process.poll() is not None or self.is_heard(), self.printed)
        return self.process.poll() is None


class Outcome(NamedTuple):
    """What a day's work left behind, in words that are the same on every such day."""

    tags: Counter[str]
    memories: list[tuple[Any, ...]]
    tasks: list[tuple[Any, ...]]


class Day:
    """Does the plan on a home, through whatever happens, and keeps account of it."""

    def __init__(self, home: FaultyHome) -> None:
        self.home = home
        self.answers: list[dict[str, Any]] = []
        self.errors: list[OmegadError] = []
        self.deaths = 0

    def live(self) -> Outcome:
        """Do everything; prove that all of it is there, once; return what is there."""
        self._start()
        for number, (_, params) in enumerate(PLAN):
            if params.get("event") == "SessionEnd":
                self._until_settled()  # what is captured later counts for no checkpoint
            self.answers.append(self._insist(number))
        self._until_settled()
        if self.home.fault:
            self._stop()
            self.home.fault = None
            self.home.start()
        return self._proved()

    def _start(self) -> None:
        """Start the daemon, again where it ends on its fault."""
        if not self.home.serves():
            self._bury()

    def _bury(self) -> None:
        """See how the daemon ended, and start one without the fault."""
        status = self.home.process.wait(PATIENCE_S)
        assert self.home.fault, f"it ended with {status} and without a fault: {self.home.printed()}"
        if self.home.fault.how in {"eio", "enospc"}:
            assert status == 1, (status, self.home.printed())
            assert "hint: " in self.home.printed()
        else:
            assert status == KILLED, (status, self.home.printed())
        self.deaths += 1
        self.home.fault = None
        self.home.start()

    def _insist(self, number: int) -> dict[str, Any]:
        """Ask until it is answered."""
        method, params = PLAN[number]
        for _ in range(TRIES_MAX):
            try:
                return self._ask(method, params, number)
            except NoDaemon:
                until(self._is_decided)
                if self.home.process.poll() is not None:
                    self._bury()
            except OmegadError as error:
                self._note(error)
        raise AssertionError(f"{method} is never answered: {self.errors[-1:]} {self.home.printed()}")

    def _note(self, error: OmegadError) -> None:
        """See that an error says what to do, and wait a little."""
        assert error.kind in FAILED, error
        assert error.hint
        self.errors.append(error)
        time.sleep(0.05)

    def _is_decided(self) -> bool:
        """Say whether the daemon has ended, or answers."""
        return self.home.process.poll() is not None or self.home.is_heard()

    def _ask(self, method: str, params: dict[str, Any], number: int) -> dict[str, Any]:
        meant = {
            name: self.answers[value.number][value.field] if isinstance(value, Of) else value
            for name, value in params.items()
        }
        if method not in {"memory.query", "views.rebuild"}:
            meant["request_id"] = f"r-{number}"
        with self.home.client(name="worker") as client:
            answer: dict[str, Any] = client.call(method, **meant)
        return answer

    def _until_settled(self) -> None:
        """Wait until reactions and views have done what follows."""

        def is_settled() -> bool:
            try:
                status = self.home.call("system.status")
                return (
                    all(not reaction["lag"] for reaction in status["reactions"].values())
                    and self.home.caught_up()
                )
            except OmegadError:
                if self.home.process.poll() is not None:
                    self._bury()
                return False

        until(is_settled, self.home.printed)

    def _stop(self) -> None:
        self.home.process.terminate()
        status = self.home.process.wait(PATIENCE_S)
        if status == KILLED:
            self.deaths += 1
        else:
            assert status == 0, (status, self.home.printed())

    def _proved(self) -> Outcome:
        """Say everything again, which must change nothing, and prove that the log is whole and the views
        equal it.
        """
        self._until_settled()
        before = self._events()
        again = [self._ask(*PLAN[number], number) for number in range(len(PLAN))]
        for (method, _), first, second in zip(PLAN, self.answers, again, strict=True):
            if method not in {"memory.query", "views.rebuild", "hook.dispatch"}:
                assert first == second, (method, first, second)
        self._until_settled()
        assert self._events() == before
        self.home.check()
        memories = self.home.call("memory.list", limit=100)["memories"]
        tasks = self.home.call("task.list")["tasks"]
        names = ("content", "event_type", "project", "status", "repeated")
        rows = sorted(tuple(one[name] for name in names) for one in memories if one["event_type"] != WEEKLY)
        assert self.home.stop() == 0
        return Outcome(before, rows, sorted((one["title"], one["status"]) for one in tasks))

    def _events(self) -> Counter[str]:
        events = self.home.events()
        assert [event["position"] for event in events] == list(range(1, len(events) + 1))
        return Counter(
            event["tag"]
            for event in events
            if not (event["tag"].startswith(UNAWAITED) or event["data"].get("event_type") == WEEKLY)
        )


def fault_in(home: FaultyHome, **fields: Any) -> Fault:
    """Return a fault of a home's daemon."""
    return Fault(within=f"{home.path}/", trace=str(home.path.with_name(home.path.name + ".trace")), **fields)


def lived(home: FaultyHome, **fields: Any) -> tuple[Outcome, Day]:
    """Live a day with a fault, and return what it left, and how it went."""
    home.fault = fault_in(home, **fields)
    day = Day(home)
    return day.live(), day


def steps(folder: Path, **fields: Any) -> tuple[Outcome, list[str]]:
    """Live a day on which nothing fails; return what it left, and the steps of its daemon."""
    home = FaultyHome(folder / "calm")
    try:
        outcome, _ = lived(home, **fields)
    finally:
        home.kill()
    return outcome, (folder / "calm.trace").read_text(encoding="utf-8").splitlines()


def _tried(folder: Path, how: How, only: str, every: int) -> Iterator[str]:
    """Try each step; yield what went wrong."""
    calm, names = steps(folder, only=only)
    _tell(f"{how}: {len(names)} steps; {dict(Counter(names).most_common(12))}")
    for at in range(1, len(names) + every, every):
        home = FaultyHome(folder / f"{how}-{at}")
        try:
            outcome, day = lived(home, how=how, at=at, only=only)
            assert outcome == calm, (outcome, calm)
            assert "Traceback" not in home.printed(), home.printed()
        except Exception as error:  # noqa: BLE001  the next step is tried all the same
            yield (
                f"{how} at {at} ({names[min(at, len(names)) - 1]}): {type(error).__name__}:"
                f" {error}\n{home.printed()[-3000:]}"
            )
        else:
            _tell(
                f"{how} at {at} ({names[min(at, len(names)) - 1]}): deaths {day.deaths}, errors"
                f" {len(day.errors)}"
            )
            shutil.rmtree(home.path)
        finally:
            home.kill()


def _tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201  it is what the program is run for


def main() -> None:
    """Try what the options say, and end with 1 where something was lost, doubled or not explained."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.acceptance.faults", description="Fail at every step of a daemon's day."
    )
    parser.add_argument("--how", nargs="*", choices=get_args(How), default=list(get_args(How)))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wrong: list[str] = []
    for how in options.how:
        folder = Path(tempfile.mkdtemp(prefix="omegad-faults-"))
        wrong += _tried(folder, how, options.only, options.every)
    _tell("\n\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
