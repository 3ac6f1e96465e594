"""Whether a host's hooks stopped arriving: the host's own transcripts hold prompts that no hook told of, or a
session calls omegad's tools of which no hook told, and nothing of that host has arrived since.

Of transcripts only the ends of those are read that were written since the last hook; nothing of them is kept
but which session it was, and when.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from omegad.log.event import Position
from omegad.requests.method import Moment, Services
from omegad.runtime import pausing
from omegad.runtime.errors import Invalid, OmegadError, PathHangs
from omegad.runtime.times import parse_time, rfc3339
from omegad.session.events import MemorySurfaced
from omegad.storage.driver import Connection

if TYPE_CHECKING:
    from omegad.agents.hooks.hosts import Hook

VIEWS = ("conversations", "audit")
LOOK_S = 0.1  # of the views, for what has just arrived
WITHIN_S, HOOK_S = 0.25, 0.1
"""How long anybody waits for it, and a hook."""
AGE_US, USED_US = 7 * 86_400_000_000, 30 * 86_400_000_000
"""What is older is no news, and of which nothing arrived for so long, nobody misses."""
SLACK_US = 60_000_000
"""So far a prompt's moment in the transcript may be from its hook's, in a session that hooks tell of."""
FILES_MAX, READ_MAX, END_BYTES, ROOTS_MAX, PAUSED_MAX = 4_096, 8, 256 * 1024, 4, 1_000
LINE = "hooks of {title} stopped arriving: its session {session} of {at} UTC told nothing"
REMEDY = "run `omegad doctor`, and `omegad setup` to have them again"


class _Host(NamedTuple):
    """Where a host keeps its transcripts, and of which version the UUIDs are that its sessions have."""

    title: str
    variable: str
    folder: str
    within: str
    version: str


HOSTS = {
    "claude-code": _Host("Claude Code", "CLAUDE_CONFIG_DIR", ".claude", "projects", "4"),
    "codex": _Host("Codex", "CODEX_HOME", ".codex", "sessions", "7"),
}
_SESSION = re.compile(
    r"(?:^|^rollout-.*-)([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?:\.jsonl)?$"
)
_PROGRAMS = ("sdk-py", "sdk-ts")
"""How Claude Code is run by programs, which load no person's hooks unless they say so."""
_OF_SUBAGENT = b'"source":{"subagent"'
_NO_PROMPT = ("<", "Caveat:", "[Request interrupted")
"""How what stands under a person's name begins that they did not type."""

_TOLD = "SELECT text FROM retrieval_queries WHERE mode = 'warning' ORDER BY id DESC LIMIT 100"
_LAST = "SELECT max(last_us) FROM agent_sessions WHERE host = ?"
_HEARD = """
SELECT max(coalesce((SELECT max(created_at) FROM conversations WHERE session_id = ?1), ''),
  coalesce((SELECT started_at FROM agent_sessions
    WHERE session_id = ?1 AND coalesce(folder, source) IS NOT NULL), ''))
"""
_CALLING = """
SELECT session_id, last_us FROM agent_sessions WHERE last_us > ?1 AND prompts + turns = 0 AND tool_calls > 0
  AND coalesce(folder, source) IS NULL AND substr(session_id, 15, 1) = ?2 AND length(session_id) = 36
  ORDER BY last_us DESC LIMIT 1
"""


class _Last(NamedTuple):
    """Since when nothing has arrived of a host, what time it is, and a session that called tools since."""

    since_us: int
    now_us: int
    calling: tuple[str, int] | None


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """A host whose hooks stopped arriving: the latest session that told nothing, and when it was at work."""

    host: str
    session_id: str
    at_us: int

    @property
    def line(self) -> str:
        """What is said of it, in one line."""
        at = rfc3339(self.at_us)[:16].replace("T", " ")
        return LINE.format(title=HOSTS[self.host].title, session=self.session_id, at=at)

    def subject(self, now_us: int) -> str:
        """Under which name it is known that agents were told of it on this day."""
        return f"hooks of {self.host} on {rfc3339(now_us)[:10]}"


def told(stopped: Iterable[Stopped]) -> str:
    """Return the words for an agent."""
    lines = "\n".join(f"- {one.line}" for one in stopped)
    return f"[omegad] What is done there is not remembered. Tell the person, who can {REMEDY}:\n{lines}"


def warned(one: Stopped, query_id: str, position: Position, now_us: int) -> MemorySurfaced:
    """Return that an agent was told of it."""
    return MemorySurfaced(
        query_id=query_id,
        how="warning",
        subject=one.subject(now_us),
        results=(),
        read_position=position,
        at=now_us,
        embedder_id=None,
    )


class HookArrivals:
    """Looks whether hooks arrive."""

    def __init__(self, home: str, environ: Mapping[str, str], *, is_on: bool) -> None:
        """Look nowhere unless it *is_on*, else where hosts keep their transcripts by *environ*, or by what
        their hooks say.
        """
        self._home = home
        self._is_on = is_on
        user = environ.get("HOME") or str(Path("~").expanduser())
        self._roots = {
            name: {f"{environ.get(host.variable) or f'{user}/{host.folder}'}/{host.within}": None}
            for name, host in HOSTS.items()
        }
        self._paused: dict[str, None] = {}

    def hear(self, hook: "Hook", payload: Mapping[str, object], *, is_paused: bool) -> None:
        """Note where a hook says that its host keeps transcripts, and a session of which nothing is kept."""
        host, path = HOSTS.get(hook.host), payload.get("transcript_path")
        if is_paused:
            self._paused[hook.session_id] = None
            while len(self._paused) > PAUSED_MAX:
                del self._paused[next(iter(self._paused))]
        elif host is not None and isinstance(path, str) and path.startswith("/") and "\0" not in path:
            before, within, _ = path.partition(f"/{host.within}/")
            roots = self._roots[hook.host]
            if within and len(roots) < ROOTS_MAX:
                roots[f"{before}/{host.within}"] = None

    async def stopped(self, services: Services, within_s: float = WITHIN_S) -> list[Stopped]:
        """Return the hosts whose hooks stopped arriving; none where nobody may look, or that takes
        longer.
        """
        with suppress(OmegadError):
            if self._is_on and await services.paused([]) is None and await services.spool_settled(0.0):
                return await services.in_time(self._stopped(services), within_s) or []
        return []

    async def untold(self, services: Services) -> list[Stopped]:
        """Return those that no agent was told of on this day."""
        stopped = await self.stopped(services)
        if not stopped:
            return []

        def read(connection: Connection, moment: Moment) -> list[Stopped]:
            told = {text for (text,) in connection.execute(_TOLD)}
            return [one for one in stopped if one.subject(moment.now_us) not in told]

        return await services.look(read, at_least=services.head, names=("retrievals",), wait_s=LOOK_S)

    async def _stopped(self, services: Services) -> list[Stopped]:
        found = list[Stopped]()
        last = partial(_last, resumed_us=round(pausing.ended(self._home) * 1e6))
        for host, (since_us, now_us, calling) in (
            await services.look(last, at_least=services.head, names=VIEWS, wait_s=LOOK_S)
        ).items():
            silent = [] if calling is None else [calling]
            for root in self._roots[host]:
                with suppress(PathHangs):
                    silent += await services.reach(
                        partial(_prompted, self._home, root, since_us, now_us), root
                    )
            if silent:
                known = await services.look(
                    partial(_heard, silent=silent), at_least=0, names=VIEWS, wait_s=LOOK_S
                )
                late = [
                    (at_us, one)
                    for one, at_us in silent
                    if at_us > known.get(one, 0) and one not in self._paused
                ]
                found += [Stopped(host=host, session_id=one, at_us=at_us) for at_us, one in sorted(late)[-1:]]
        return found


def _last(connection: Connection, moment: Moment, *, resumed_us: int) -> dict[str, _Last]:
    """Return of each host of which anything arrived when that was last, what time it is, and a session that
    has called tools since and told nothing.
    """
    found = dict[str, _Last]()
    for name, host in HOSTS.items():
        (last_us,) = connection.execute(_LAST, (name,)).fetchone()
        if last_us is not None and last_us > moment.now_us - USED_US and not moment.stale_by:
            since_us = max(last_us, moment.now_us - AGE_US, resumed_us)
            calling = connection.execute(_CALLING, (since_us, host.version)).fetchone()
            found[name] = _Last(since_us, moment.now_us, calling)
    return found


def _heard(connection: Connection, _moment: Moment, *, silent: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return until when the hooks of sessions may have told, of those of which any did."""
    found = dict[str, int]()
    for session_id, _ in silent:
        (heard,) = connection.execute(_HEARD, (session_id,)).fetchone()
        if heard:
            found[session_id] = parse_time(heard, "created_at") + SLACK_US
    return found


def _prompted(home: str, root: str, since_us: int, now_us: int) -> list[tuple[str, int]]:
    """Return the sessions whose transcripts hold a prompt since a moment that was answered, and when that
    was; those of paused folders are left out.
    """
    return [
        (session_id, at_us)
        for _, path, session_id in sorted(_written(root, since_us), reverse=True)[:READ_MAX]
        if (at_us := _last_prompt(home, path)) is not None and since_us < at_us <= now_us
    ]


def _written(root: str, since_us: int) -> Iterator[tuple[int, str, str]]:
    """Yield the transcripts that were written to since a moment: when, where, and their session."""
    count, folders = 0, [(root, 0)]
    while folders and count < FILES_MAX:
        folder, depth = folders.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            found = sorted(islice(entries, FILES_MAX - count), key=lambda one: one.name)
            count += len(found)
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    folders += [(entry.path, depth + 1)] if depth < 3 else []  # noqa: PLR2004  year/month/day
                elif (named := _SESSION.match(entry.name)) and entry.name.endswith(".jsonl"):
                    file = entry.stat(follow_symlinks=False)
                    is_own = stat.S_ISREG(file.st_mode) and file.st_uid == os.geteuid()
                    if is_own and file.st_mtime_ns > since_us * 1_000:
                        yield file.st_mtime_ns, entry.path, named.group(1)


def _last_prompt(home: str, path: str) -> int | None:
    """Return when a person asked last what was answered, in microseconds since 1970; None where that is not
    at the transcript's end, or its folder is paused.
    """
    asked_us, answered_us, folders = None, None, dict[str, None]()
    for line in _end(path):
        payload = line.get("payload")
        said = payload if isinstance(payload, dict) else line.get("message")
        for one in (line, said):
            if isinstance(one, dict) and isinstance(folder := one.get("cwd"), str):
                folders[folder] = None
        if not isinstance(said, dict) or line.get("isMeta") or line.get("isSidechain"):
            continue
        if line.get("entrypoint") in _PROGRAMS:
            return None
        if said.get("role") == "assistant":
            answered_us = asked_us
        elif said.get("role") == "user" and _is_prompt(said.get("content")):
            with suppress(Invalid):
                asked_us = parse_time(str(line.get("timestamp")), "timestamp")
    if answered_us is None or pausing.of_folders(home, folders) is not None:
        return None
    return answered_us


def _is_prompt(content: object) -> bool:
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return any(
        isinstance(text, str) and text.strip() and not text.lstrip().startswith(_NO_PROMPT) for text in texts
    )


def _end(path: str) -> Iterator[dict[str, object]]:
    """Yield the last lines of a transcript; none of a subagent's, and of what cannot be read."""
    with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123  names may be no text
        if _OF_SUBAGENT in file.read(END_BYTES // 4):
            return
        start = max(0, file.seek(0, os.SEEK_END) - END_BYTES)
        file.seek(start)
        for line in file.read(END_BYTES).split(b"\n")[bool(start) :]:
            with suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                found = msgspec.json.decode(line)
                if isinstance(found, dict):
                    yield found
