"""The tools by which agents consult other models, and the processes that carry their calls out.

Of the standard library alone: the pipe of MCP, which is small and has no packages, loads it where
config.toml has models, and every call is carried out by a process of its own (`omegad.edge.consult`). Who
serves tools otherwise lists `tools`, and calls `consulted`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time

from omegad.runtime import derived

TYPE_CHECKING = False  # typing would be a tenth of what the pipe occupies
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from omegad.runtime.json_types import Fields

AT_ONCE_MAX = 4  # of one session
REQUEST_BYTES_MAX = 512 * 1024
ANSWER_BYTES_MAX = 4 << 20
CHUNK = 65536
TIMEOUT_S = 50.0  # where the configuration names none
ENDING_S = 10.0  # beyond the time-out, for a process to start, and to say that it was one
FAMILIES = ("gpt", "claude")
"""Of models that have a tool of their own, called as they are."""
UNSAID = (
    "the process that asks other models ended without an answer, or did not end in time. What to do: go on"
    " without a second opinion; `omegad consult --dry-run` shows what would be asked"
)
TOO_MANY = (
    f"{AT_ONCE_MAX} other models are being asked already. What to do: wait for an answer, and ask again"
)
TOO_LONG = f"the call is longer than {REQUEST_BYTES_MAX} bytes. What to do: ask for less"

_QUESTION = {"type": "string", "description": "goal, what was tried, the exact error; one question"}
_CONTEXT = {"type": "string", "description": "code or text that the question is about"}
_ROUTE = "Say which of the models that can be consulted fits a task, and why. Nothing is sent."
_STORE = {"type": "boolean", "default": False, "description": "remember the answer, as a decision"}


def tools(configured: bytes) -> dict[str, Fields]:
    """Return what MCP lists of each tool that *configured*, the bytes of config.toml, allows, by its name;
    none where it names no model, or is nothing that the daemon would take.
    """
    models = _consult(configured).get("models")
    models = {name: one for name, one in models.items() if isinstance(one, dict)} if models else {}
    if not models:
        return {}
    known = ", ".join(
        f"{name} ({', '.join(map(str, one.get('strengths') or [one.get('model')]))})"
        for name, one in models.items()
    )
    told = "It leaves this machine, secrets taken out; calls a day are limited."
    asked = {"question": _QUESTION, "context": _CONTEXT, "store": _STORE}
    named = {"model": {"type": "string", "enum": list(models)}}
    about = f"Ask another model for a second opinion: {known}. {told}"
    listed = [
        _tool("omega_consult", about, {**asked, **named}, "question"),
        _tool("omega_route", _ROUTE, {"task": {"type": "string"}}, "task", is_read_only=True),
    ]
    for family, name in families({name: str(one.get("model")) for name, one in models.items()}).items():
        about = f"Ask {name} for a second opinion. {told}"
        listed.append(_tool(f"omega_consult_{family}", about, asked, "question"))
    return {tool["name"]: tool for tool in listed}


def families(models: Mapping[str, str]) -> dict[str, str]:
    """Return the first model of each family that has one, by its name or by what its provider calls it, which
    is what *models* has by their names.
    """
    found = [
        (family, name) for name in models for family in FAMILIES if family in f"{name} {models[name]}".lower()
    ]
    return dict(reversed(found))


def _consult(configured: bytes) -> Fields:
    import tomllib  # noqa: PLC0415  who has configured no model does without it

    try:
        found = tomllib.loads(configured.decode()).get("consult")
    except ValueError:  # no UTF-8, or no TOML
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("models", {}), dict) else {}


def _tool(name: str, about: str, taken: Fields, required: str, *, is_read_only: bool = False) -> Fields:
    schema = {"type": "object", "properties": taken, "required": [required], "additionalProperties": False}
    hints = {"readOnlyHint": is_read_only, "openWorldHint": not is_read_only}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": hints}


class Consultation:
    """A call that is being carried out: its process, the socket to it, what it has said so far, and until
    when it may.
    """

    def __init__(self, data: bytes, deadline: float, environ: Mapping[str, str]) -> None:
        """Begin it. Raises `OSError`."""
        self.said, self.deadline = b"", deadline
        command = [sys.executable, "-P", "-m", "omegad.edge.consult"]
        self.output, its = socket.socketpair()
        self.output.settimeout(ENDING_S)
        with its:
            both = [(os.POSIX_SPAWN_DUP2, its.fileno(), descriptor) for descriptor in (0, 1)]
            # subprocess would be half of what the pipe occupies
            self.pid = os.posix_spawn(sys.executable, command, derived.importing(environ), file_actions=both)
        try:
            self.output.sendall(data)
            self.output.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has ended, as what it says will tell

    def is_over(self) -> bool:
        """Take what it says, and return whether that was all; for when it has said something."""
        try:
            data = self.output.recv(CHUNK)
        except OSError:
            data = b""
        self.said += data
        return not data or len(self.said) > ANSWER_BYTES_MAX


class Consultations:
    """Those of one session that are being carried out, by whatever tells its calls apart."""

    def __init__(self) -> None:
        self._running: dict[int, Consultation] = {}

    def begin(self, key: int, call: Fields, configured: bytes, environ: Mapping[str, str]) -> Fields | None:
        """Begin one; return why it cannot be, None where it is. *call* has a tool's `name` and `arguments`
        and, as far as known, `client`, `session_id`, `project`, `folder` and `request_id`.
        """
        data, seconds = json.dumps(call).encode(), _consult(configured).get("timeout_s")
        if len(self._running) >= AT_ONCE_MAX or len(data) > REQUEST_BYTES_MAX:
            return refused(TOO_LONG if len(data) > REQUEST_BYTES_MAX else TOO_MANY)
        late = time.monotonic() + ENDING_S + (seconds if isinstance(seconds, int | float) else TIMEOUT_S)
        try:
            self._running[key] = Consultation(data, late, environ)
        except OSError as error:
            return refused(f"{UNSAID} ({error})")
        return None

    def outputs(self) -> list[socket.socket]:
        """Return what to wait for."""
        return [one.output for one in self._running.values()]

    @property
    def late(self) -> float:
        """When the first is late, by the monotonic clock; infinite where none is being carried out."""
        return min((one.deadline for one in self._running.values()), default=float("inf"))

    def answers(self, readable: Iterable[object]) -> list[tuple[int, Fields]]:
        """Return those that are over or late, with their answers; *readable* have said something."""
        over: list[tuple[int, Fields]] = []
        for key, one in list(self._running.items()):
            is_over = one.is_over() if one.output in readable else one.deadline < time.monotonic()
            if is_over:
                self.end(key)
                try:
                    over.append((key, json.loads(one.said)))
                except ValueError:
                    over.append((key, refused(UNSAID)))
        return over

    def end(self, key: int) -> None:
        """End one, which has said all, or which nobody waits for."""
        one = self._running.pop(key)
        one.output.close()
        try:
            if os.waitpid(one.pid, os.WNOHANG) == (0, 0):
                os.kill(one.pid, signal.SIGKILL)
                os.waitpid(one.pid, 0)
        except ChildProcessError:
            pass  # a host that ignores the ends of its processes has ours ignored, too


def consulted(call: Fields, configured: bytes, environ: Mapping[str, str]) -> Fields:
    """Have a call carried out, and return its answer, as `tools.call` has it: `content`, `structured`,
    `is_error`. It takes as long as the time-out that is configured, and a little more, at most.
    """
    one = Consultations()
    answer = one.begin(0, call, configured, environ)
    while answer is None:
        readable, _, _ = select.select(one.outputs(), [], [], max(0.0, one.late - time.monotonic()))
        answer = next((said for _, said in one.answers(readable)), None)
    return answer


def refused(why: str) -> Fields:
    """Return the answer of a call that came to nothing."""
    return {"content": [{"type": "text", "text": why}], "structured": None, "is_error": True}
