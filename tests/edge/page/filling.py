"""Fills a home from the commits of any git repository, as if agents had made them over some weeks:
`python -m tests.edge.page.filling REPOSITORY HOME [--days 30] [--most 400] [--hostile] [--model auto]`.

Sessions of three hosts are told at their hooks, memories stored, asked for, rated, denied and settled, theses
held, tasks and messages left; the clock of the daemon is moved as the commits were made. The same repository
gives the same history.
"""

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omegad.runtime.errors import OmegadError
from tests.week.run import MovedHome

if TYPE_CHECKING:
    from omegad.client import Client

HOSTS = ("claude-code", "codex", "gemini")
OF_GEMINI = {"UserPromptSubmit": "BeforeAgent", "PostToolUse": "AfterTool", "Stop": "AfterAgent"}
OF_A_SESSION = 9
DAY_S = 86_400
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> in a memory",
    "The invoice is paid to \u202egnp.tseb\u202c, and \u2066isolated\u2069 text goes the other way",
    "bell \x07, escape \x1b[31mred\x1b[0m, zero\u200bwidth, a tag \U000e0041 that nobody sees",
    "</pre></template></svg><svg onload=alert(1)> javascript:alert(1) {{ 7*7 }} {% raw %} &lt;b&gt;",
)
KINDS = (
    (("fix", "mend", "bug", "crash", "wrong"), "lesson_learned"),
    (("refuse", "never", "only", "must"), "constraint"),
    (("measure", "say", "document", "docs"), "memory"),
    (("add", "let", "use", "have", "keep", "make"), "decision"),
)


class Commit(NamedTuple):
    """A commit: what it says, and the files that it changed."""

    sha: str
    at: int
    author: str
    subject: str
    body: str
    files: tuple[str, ...]


def commits(repository: Path, most: int) -> list[Commit]:
    """Return the latest commits of a repository, oldest first."""
    form = "%x01%H%x00%ct%x00%an%x00%s%x00%b%x00"
    told = subprocess.run(
        ["git", "-C", str(repository), "log", "--no-merges", f"-{most}", "--name-only", f"--format={form}"],
        check=True,
        capture_output=True,
    ).stdout.decode(errors="replace")
    found = []
    for one in told.split("\x01")[1:]:
        sha, at, author, subject, body, names = one.split("\0")
        found.append(
            Commit(sha, int(at), author, subject, body.strip(), tuple(filter(None, names.split("\n")))[:4])
        )
    return found[::-1]


def kind_of(commit: Commit) -> str:
    first = commit.subject.lower().split() or [""]
    return next((kind for words, kind in KINDS if any(one in words for one in first)), "task_completion")


class Filling:
    """A home that is being filled, and what was stored in it so far."""

    def __init__(self, home: MovedHome, clock: Path, project: str) -> None:
        self._clock, self._home, self._project = clock, home, project
        self._random = random.Random(7)  # noqa: S311  the same history each time
        self._client: Client
        self.stored: list[str] = []

    def call(self, method: str, **params: Any) -> Any:
        try:
            return self._client.call(method, **params)
        except OmegadError as error:  # what stands in the way of one step is no end of the story
            print(f"{method}: {error}", file=sys.stderr)  # noqa: T201
            return None

    def at(self, moment: float) -> None:
        """Move the clock."""
        part = self._clock.with_name("part")
        part.write_text(f"0 {int(min(moment - time.time(), 0))}", encoding="ascii")
        part.rename(self._clock)

    def fill(self, made: list[Commit], days: float) -> None:
        """Tell of all commits, the last of which was made a little while ago."""
        now = time.time() - 900
        each = days * DAY_S / len(made) * OF_A_SESSION
        places = {
            commit.sha: now
            - (len(made) // OF_A_SESSION - place // OF_A_SESSION) * each
            + (place % OF_A_SESSION - 8) * 420
            for place, commit in enumerate(made)
        }
        self.at(now - days * DAY_S - 3_600)
        self._home.start()
        try:
            with self._home.client("filling", timeout_s=60) as self._client:
                theses = self._theses()
                for number, group in enumerate(grouped(made)):
                    self._session(number, group, places, theses)
                self._evolve()
                self._work()
                self._others()
        finally:
            self._home.stop()

    def _theses(self) -> list[str]:
        said = (
            ("Small modules with one noun each are changed more safely than layers", "design", 0.7),
            ("Most defects come from what happens between two processes, not within one", "reliability", 0.6),
            ("Tests against real processes find more than fakes do", "testing", 0.55),
            ("Words alone find memories as well as vectors do", "search", 0.4),
            ("A rebuild of all views stays below a minute for a year of work", "speed", 0.8),
        )
        found = []
        for place, (statement, domain, probability) in enumerate(said):
            answer = self.call(
                "thesis.state", statement=statement, domain=domain, project=self._project, prior=0.5
            )
            found.append(answer["thesis_id"])
            due = f"{time.strftime('%Y-%m-%d', time.gmtime(time.time() + (place - 1) * 9 * DAY_S))}"
            self.call("thesis.predict", thesis_id=found[-1], probability=probability, due=due)
        return found

    def _session(self, number: int, group: list[Commit], places: dict[str, float], theses: list[str]) -> None:
        host, choose = HOSTS[number % 3], self._random.random
        session_id = f"{host}-{group[0].sha[:8]}"
        known = {"session_id": session_id, "cwd": f"/src/{self._project}"}

        def hook(event: str, **payload: Any) -> None:
            self._hook(host, event, known | payload)

        self.at(places[group[0].sha] - 60)
        hook("SessionStart", source="startup", model=("opus", "gpt-5", "sonnet")[number % 3])
        for place, commit in enumerate(group):
            self.at(places[commit.sha])
            hook("UserPromptSubmit", prompt=f"{commit.subject}. {commit.body[:300]}")
            for file in commit.files:
                hook(
                    "PostToolUse",
                    tool_name="Edit",
                    tool_use_id=f"{commit.sha[:6]}{file}",
                    tool_input={"file_path": f"/src/{self._project}/{file}"},
                    tool_response={"ok": True},
                )
            failed = choose() < 0.25
            hook(
                "PostToolUseFailure" if failed and host == "claude-code" else "PostToolUse",
                tool_name="Bash",
                tool_use_id=f"{commit.sha[:6]}run",
                tool_input={"command": "python -m pytest -q"},
                **(
                    {"error": "1 failed, 211 passed"}
                    if failed
                    else {"tool_response": {"stdout": "212 passed"}}
                ),
            )
            text = commit.subject + (f"\n\n{commit.body}" if commit.body else "")
            answer = self.call(
                "memory.store",
                content=text,
                event_type=kind_of(commit),
                project=self._project,
                session_id=session_id,
                tags=[commit.files[0].split("/")[0]] if commit.files else [],
                probation=choose() < 0.12,
                entity_id=commit.files[0].split("/")[-1] if commit.files and choose() < 0.3 else None,
            )
            if answer and answer["memory_id"] not in self.stored:
                self.stored.append(answer["memory_id"])
                self._judge(answer["memory_id"], commit, place, session_id, theses)
        hook("Stop", last_assistant_message=f"Done: {group[-1].subject}.")
        if number % 5 != 4 or host != "codex":
            hook("SessionEnd", reason="other")

    def _hook(self, host: str, event: str, payload: dict[str, Any]) -> None:
        fired = OF_GEMINI.get(event, event) if host == "gemini" else event
        self.call("hook.dispatch", event=fired, host=host, payload={"hook_event_name": fired, **payload})

    def _judge(self, memory_id: str, commit: Commit, place: int, session_id: str, theses: list[str]) -> None:
        choose = self._random.random
        if choose() < 0.3:
            words = " ".join(commit.subject.split()[:5])
            self.call("memory.query", text=words, project=self._project, asked_in=session_id, limit=5)
        if choose() < 0.12:
            rating = self._random.choice(("helpful", "helpful", "unhelpful", "outdated"))
            self.call(
                "memory.rate", memory_id=self._random.choice(self.stored), rating=rating, reason="seen in use"
            )
        if choose() < 0.22 and place % 2:
            thesis = self._random.choice(theses)
            side = "for" if choose() < (0.75, 0.6, 0.8, 0.25, 0.5)[theses.index(thesis)] else "against"
            self.call(
                "thesis.evidence", thesis_id=thesis, memory_id=memory_id, side=side, why=commit.subject[:80]
            )
        if choose() < 0.18 and len(self.stored) > 3:
            other = self._random.choice(self.stored[-12:-1])
            self.call(
                "memory.link",
                memory_id=memory_id,
                target_id=other,
                edge_type="related",
                weight=round(choose(), 2),
            )

    def _evolve(self) -> None:
        """Let some memories be denied, edited, replaced and asked for in vain."""
        pairs = (
            ("The port of the gateway is 8377 by default", "The port of the gateway is 8400 by default"),
            ("Releases are cut on Fridays after the long tests", "Releases are never cut on Fridays"),
            (
                "Deploys go out by hand from the release branch",
                "Deploys go out by the pipeline, never by hand",
            ),
            ("The cache keeps vectors for 30 days", "The cache keeps vectors for 90 days"),
        )
        for number, (old, new) in enumerate(pairs):
            ids = [
                self.call(
                    "memory.store",
                    content=text,
                    event_type="decision",
                    project=self._project,
                    session_id=f"{HOSTS[place]}-pair-{number}",
                )
                for place, text in enumerate((old, new))
            ]
            if number == 1:
                self.call(
                    "memory.link",
                    memory_id=ids[1]["memory_id"],
                    target_id=ids[0]["memory_id"],
                    edge_type="contradicts",
                )
        edited = self.stored[len(self.stored) // 2]
        for word in ("again", "and for the last time"):
            content = self.call("memory.get", memory_id=edited)["content"]
            self.call(
                "memory.edit", memory_id=edited, content=f"{content} ({word})", reason="said more exactly"
            )
        for _ in range(3):
            self.call(
                "memory.query",
                text="how do we rotate the certificates of the mail relay?",
                project=self._project,
            )
        self.call(
            "reminder.set",
            content="Look at the size of the log",
            due="2026-01-02T09:00:00Z",
            project=self._project,
        )

    def _work(self) -> None:
        """Have three sessions at work at this moment."""
        self.at(time.time())
        folder = f"/src/{self._project}"
        for host, doing in zip(
            HOSTS, ("the slow export", "the notes of the release", "a flaky test"), strict=True
        ):
            session_id = f"{host}-now"
            known = {"session_id": session_id, "cwd": folder}
            for event, payload in (
                ("SessionStart", {"source": "startup", "model": "opus"}),
                ("UserPromptSubmit", {"prompt": f"Please look at {doing}, and say what it needs"}),
            ):
                self._hook(host, event, known | payload)
            self.call(
                "claim.files", session_id=session_id, paths=[f"{folder}/{doing.split()[-1]}.py"], intent=doing
            )
            self.call("intent.announce", session_id=session_id, text=f"change {doing}", project=self._project)
            self.call("memory.query", text=doing, project=self._project, asked_in=session_id)
            task = self.call(
                "task.create",
                title=f"Finish {doing}",
                project=self._project,
                priority=4,
                session_id=session_id,
            )
            self.call("task.claim", task_id=task["task_id"], session_id=session_id)
        first = self.call(
            "task.create", title="Write down how a release is made", project=self._project, priority=3
        )
        self.call(
            "task.create", title="Cut the release", project=self._project, depends_on=[first["task_id"]]
        )
        self.call(
            "message.send",
            text="The schema changes tonight; finish what writes to it",
            to_project=self._project,
            session_id="codex-now",
        )
        self.call(
            "message.send",
            text="Please take the exporter's tests over",
            to_session="gemini-now",
            session_id="claude-code-now",
        )

    def _others(self) -> None:
        """Store a little for other projects, and what a careful reader would not want run."""
        for project, text in (
            ("billing", "Invoices are rounded per line, not per total"),
            ("site", "Images are served as AVIF with a fallback"),
        ):
            self.call("memory.store", content=text, event_type="decision", project=project)

    def hostile(self) -> None:
        """Store what would do harm where it were not shown as text."""
        with self._home.client("filling", timeout_s=60) as self._client:
            for text in (*HOSTILE, "long " * 50_000):
                self.call(
                    "memory.store",
                    content=text,
                    event_type="memory",
                    project="<b>hostile\u202e</b>",
                    session_id="<i>s\u202e</i>",
                    tags=["<u>tag</u>"],
                    entity_id='"><img src=x>',
                )


def grouped(made: list[Commit]) -> Iterator[list[Commit]]:
    """Yield the commits of each session."""
    rest = iter(made)
    while group := list(islice(rest, OF_A_SESSION)):
        yield group


def fill(repository: Path, home: Path, *, days: float, most: int, model: str) -> tuple[MovedHome, Filling]:
    """Fill a home, whose daemon is stopped then."""
    clock = home.with_name(f"{home.name}.clock")
    filled = MovedHome(home, clock, model)
    work = Filling(
        filled, clock, repository.resolve().name if repository.name in ("", ".") else repository.name
    )
    work.fill(commits(repository, most), days)
    return filled, work


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("home", type=Path)
    parser.add_argument("--project", default="")
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--most", type=int, default=400)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--model", default="auto")
    given = parser.parse_args()
    where = given.home.with_name(f"{given.home.name}.clock")
    moved = MovedHome(given.home, where, given.model)
    filling = Filling(moved, where, given.project or given.repository.resolve().name)
    filling.fill(commits(given.repository, given.most), given.days)
    if given.hostile:
        filling.at(time.time())
        moved.start()
        filling.hostile()
        moved.stop()
    print(f"{len(filling.stored)} memories of commits in {given.home}")  # noqa: T201
