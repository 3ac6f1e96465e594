"""Lives a week on a daemon whose clock is moved, and tells what came of it."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

from tests.acceptance.conftest import Home, until
from tests.forking import ROOT
from tests.week.hosts import HOSTS, begins, ends, told
from tests.week.sessions import Session

MINUTE_S, DAY_S = 60, 86_400
BEGINS_S, ENDS_S = 9 * 3_600, 18 * 3_600
EVENING_LOOKS, LOOK_S = 6, 10 * MINUTE_S
WORKING_DAYS = 5
SCREENS = {0: "Monday", 2: "Wednesday", 4: "Friday"}


class Lived(NamedTuple):
    """What a week came to: the events by tag, what is not as it should be, and what its sessions gave no
    occasion for, so that it was not shown.
    """

    events: Counter[str]
    wrong: list[str]
    unshown: list[str]


class MovedHome(Home):
    """A home whose daemon goes by a clock that a file moves; with the model where one is installed."""

    def __init__(self, path: Path, clock: Path, model: str = "auto") -> None:
        super().__init__(path, OMEGAD_MODEL=model)
        self._clock = clock

    def launch(self) -> Self:
        command = [sys.executable, "-m", "tests.week.serve", str(self._clock)]
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self.environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return self


class Week:
    """A home for a week, from a Monday morning until the next."""

    def __init__(
        self, folder: Path, sessions: Sequence[Session], many: int, tell: Callable[[str], None]
    ) -> None:
        """Take where the home is, the sessions that are had by turns, and how many there are in all."""
        self._tell, self._clock = tell, folder / "clock"
        self._sessions = [(number, sessions[number % len(sessions)]) for number in range(many)]
        self._turn = len(sessions)
        self.home = MovedHome(folder / "home", self._clock)
        now = datetime.now(UTC)
        self._monday = (now + timedelta(days=7 - now.weekday())).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        self._ahead_s = 0
        self._set(self._monday + timedelta(seconds=BEGINS_S))
        self.briefings = list[str]()

    @property
    def now(self) -> datetime:
        """What the daemon's clock says."""
        return datetime.now(UTC) + timedelta(seconds=self._ahead_s)

    def _set(self, moment: datetime) -> None:
        """Move the clock, as if the machine had slept until then."""
        self._ahead_s = max(int((moment - datetime.now(UTC)).total_seconds()) + 1, self._ahead_s)
        part = self._clock.with_name("part")
        part.write_text(f"0 {self._ahead_s}", encoding="ascii")
        part.rename(self._clock)

    def _later(self, seconds: int) -> None:
        self._set(self.now + timedelta(seconds=seconds))

    def live(self) -> Lived:
        """Live the week."""
        self.home.start()
        try:
            each = -(-len(self._sessions) // WORKING_DAYS)
            for day in range(WORKING_DAYS):
                self._work(day, self._sessions[day * each : (day + 1) * each])
            for day in (5, 6, 7):
                self._set(self._day(day, BEGINS_S))
                self._evening()
            self._show("the Monday after")
            return self._proved()
        finally:
            self.home.kill()

    def _day(self, day: int, seconds: int) -> datetime:
        return self._monday + timedelta(days=day, seconds=seconds)

    def _work(self, day: int, sessions: Sequence[tuple[int, Session]]) -> None:
        for place, (number, session) in enumerate(sessions):
            self._set(self._day(day, BEGINS_S + place * (ENDS_S - BEGINS_S) // len(sessions)))
            self._have(number, session)
        self._evening()
        if day in SCREENS:
            self._show(SCREENS[day])

    def _have(self, number: int, session: Session) -> None:
        host = HOSTS[(number + number // self._turn) % len(HOSTS)]
        session_id = f"{host}-{number:02}"
        known = {"session_id": session_id, "cwd": session.folder}
        project = Path(session.folder).name
        with self.home.client(host) as client:

            def tell(event: str, payload: dict[str, Any]) -> str:
                said = {"hook_event_name": event, **known, **payload}
                answer = client.call("hook.dispatch", event=event, host=host, payload=said)
                return str(answer["stdout"])

            if briefing := tell(*begins(host)):
                self.briefings.append(json.loads(briefing)["hookSpecificOutput"]["additionalContext"])
            for place, step in enumerate(session.steps):
                self._later(30)
                for event, payload in told(host, step, place):
                    tell(event, payload)
                if step.kind == "own":
                    client.call(
                        "tools.call",
                        name=step.tool,
                        arguments=step.given,
                        session_id=session_id,
                        project=project,
                    )
            if end := ends(host):
                tell(*end)

    def _evening(self) -> None:
        """Leave the machine on for an hour after work."""
        for _ in range(EVENING_LOOKS):
            self._later(LOOK_S)
            slot = int(self.now.timestamp()) // LOOK_S
            until(lambda slot=slot: self._has_looked(slot))  # type: ignore[misc]
        until(self.home.caught_up)

    def _has_looked(self, slot: int) -> bool:
        reactions: dict[str, Any] = self.home.call("system.status")["reactions"]
        return bool(reactions["upkeep"]["position"] >= slot)

    def _show(self, when: str) -> None:
        """Tell what a person sees."""
        self._tell(f"\n======== {when}, {self.now:%Y-%m-%d %H:%M} UTC")
        for words in (("today",), ("status",)):
            self._tell(f"\n$ omegad {' '.join(words)}\n{self._verb(*words)}")
        if self.briefings:
            self._tell(f"\nthe latest briefing:\n{self.briefings[-1]}")

    def _verb(self, *words: str) -> str:
        command = [sys.executable, "-m", "omegad", *words, "--home", str(self.home.path)]
        command += ["--socket", str(self.home.socket)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return (done.stdout + done.stderr).rstrip()

    def _proved(self) -> Lived:
        until(self.home.caught_up)
        events = self.home.events()
        tags = Counter(str(event["tag"]).partition("@")[0] for event in events)
        upkeeps = [event["data"] for event in events if str(event["tag"]).startswith("upkeep.completed")]
        stored = Counter(
            str(event["data"].get("source")) for event in events if event["tag"].startswith("memory.stored")
        )
        wanted = {
            "briefings": len(self.briefings),
            "upkeeps": len(upkeeps),
            "promotions": sum(len(one["promoted"]) for one in upkeeps),
            "summaries of weeks or likes": sum(len(one["compacted"]) for one in upkeeps),
            "session summaries": stored["auto_summary"],
            "lint reports": stored["auto_lint"],
        }
        self._tell("\n" + ", ".join(f"{count} {name}" for name, count in wanted.items()))
        lacking = [name for name, count in wanted.items() if not count]
        due = self.home.call("memory.consolidate", dry_run=True)
        idle = {
            "promotions": not due["promoted"],
            "summaries of weeks or likes": not due["compacted"]["clusters"],
        }
        unshown = [name for name in lacking if idle.get(name)]
        wrong = [f"no {name}" for name in lacking if name not in unshown]
        if any(one["by"] != "schedule" for one in upkeeps):
            wrong.append("an upkeep that nobody asked for says it was by hand")
        verified = self._verb("verify")
        self._tell(f"$ omegad verify\n{verified}")
        try:
            self.home.check()
        except AssertionError as error:
            wrong.append(f"verify: {error}")
        wrong += self.home.call("system.status")["degraded"]
        return Lived(tags, wrong, unshown)
