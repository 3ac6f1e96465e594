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
    "the process that asks other models ended without an answer. What to do: go on without a second opinion;"
    " `omegad consult --dry-run` shows a person what is wrong"
)
LATE = "the process that asks other models did not end in time. What to do: go on without a second opinion"
TOO_MANY = (
    f"{AT_ONCE_MAX} other models are being asked already. What to do: wait for an answer, and ask again"
)
TOO_LONG = f"the call is longer than {REQUEST_BYTES_MAX} bytes. What to do: ask for less"

_QUESTION = {"type": "string", "description": "goal, what was tried, the exact error; one question"}
_CONTEXT = {"type": "string", "description": "code or text that the question is about"}
_STORE = {"type": "boolean", "default": False, "description": "remember the answer, as a decision"}


def tools(configured: bytes) -> dict[str, Fields]:
    """Return what MCP lists of each tool that *configured*, the bytes of config.toml, allows, by its name;
    none where it names no model, or is nothing that the daemon would take.
    """
    models = _tables(configured).get("models")
    if not isinstance(models, dict) or not models:
        return {}
    asked = ", ".join(f"{name} ({_good_at(model)})" for name, model in models.items())
    told = "It leaves this machine, secrets taken out; calls a day are limited."
    listed = [
        _tool(
            "omega_consult",
            f"Ask another model for a second opinion: {asked}. {told}",
            {
                "question": _QUESTION,
                "context": _CONTEXT,
                "model": {"type": "string", "enum": list(models)},
                "store": _STORE,
            },
            "question",
        ),
        _tool(
            "omega_route",
            "Say which of the models that can be consulted fits a task, and why. Nothing is sent.",
            {"task": {"type": "string"}},
            "task",
        ),
    ]
    for family in FAMILIES:
        if name := of_family(family, models):
            about = f"Ask {name} for a second opinion. {told}"
            taken = {"question": _QUESTION, "context": _CONTEXT, "store": _STORE}
            listed.append(_tool(f"omega_consult_{family}", about, taken, "question"))
    return {tool["name"]: tool for tool in listed}


def of_family(family: str, models: Mapping[str, object]) -> str | None:
    """Return the first model of a family, by its name or by what its provider calls it; None where there is
    none.
    """
    return next(
        (name for name, model in models.items() if family in f"{name} {_called(model)}".lower()), None
    )


def _called(model: object) -> object:
    return model.get("model") if isinstance(model, dict) else getattr(model, "model", None)


def _good_at(model: object) -> str:
    said = model.get("strengths") if isinstance(model, dict) else None
    return ", ".join(map(str, said)) if isinstance(said, list) and said else str(_called(model))


def _tables(configured: bytes) -> Fields:
    import tomllib  # noqa: PLC0415  who has configured no model does without it

    try:
        found = tomllib.loads(configured.decode()).get("consult")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _tool(name: str, description: str, properties: Fields, required: str) -> Fields:
    schema = {"type": "object", "properties": properties, "required": [required]}
    return {
        "name": name,
        "description": description,
        "inputSchema": schema | {"additionalProperties": False},
        "annotations": {"readOnlyHint": name == "omega_route", "openWorldHint": name != "omega_route"},
    }


class Consultation:
    """A call that is being carried out: a process, what it has said so far, and until when it may."""

    def __init__(self, call: Fields, configured: bytes, environ: Mapping[str, str]) -> None:
        """Begin it. *call* has a tool's `name` and `arguments` and, as far as known, `client`, `session_id`,
        `project`, `folder` and `request_id`. Raises `OSError`.
        """
        data = json.dumps(call).encode()
        if len(data) > REQUEST_BYTES_MAX:
            raise OSError(TOO_LONG)
        seconds = _tables(configured).get("timeout_s")
        self._said = bytearray()
        self.deadline = (
            time.monotonic() + ENDING_S + (seconds if isinstance(seconds, int | float) else TIMEOUT_S)
        )
        command = [sys.executable, "-P", "-m", "omegad.edge.consult"]
        its_input, ours = os.pipe()
        self.output, its_output = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, its_input, 0), (os.POSIX_SPAWN_DUP2, its_output, 1)]
        try:
            # Popen would be half of what the pipe occupies
            self._pid = os.posix_spawn(
                sys.executable, command, derived.importing(environ), file_actions=actions
            )
        except OSError:
            os.close(ours)
            os.close(self.output)
            raise
        finally:
            os.close(its_input)
            os.close(its_output)
        try:
            with open(ours, "wb") as asking:
                asking.write(data)
        except BrokenPipeError:
            pass  # as its output tells

    def heard(self) -> Fields | None:
        """Return what is answered, None where there is more to come; for when its output can be read."""
        data = os.read(self.output, CHUNK)
        self._said += data
        if data and len(self._said) <= ANSWER_BYTES_MAX:
            return None
        self.end()
        try:
            answer: Fields = json.loads(self._said)
        except ValueError:
            return refused(UNSAID)
        return answer

    def end(self) -> None:
        """End its process, which has nothing more to say."""
        os.close(self.output)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


class Consultations:
    """Those of one session that are being carried out, by whatever tells its calls apart."""

    def __init__(self) -> None:
        self._running: dict[int, Consultation] = {}

    def begin(self, key: int, call: Fields, configured: bytes, environ: Mapping[str, str]) -> Fields | None:
        """Begin one; return why it cannot be, None where it is."""
        if len(self._running) >= AT_ONCE_MAX:
            return refused(TOO_MANY)
        try:
            self._running[key] = Consultation(call, configured, environ)
        except OSError as error:
            return refused(str(error) if str(error) == TOO_LONG else f"{UNSAID} ({error})")
        return None

    def outputs(self) -> list[int]:
        """Return what to wait for."""
        return [one.output for one in self._running.values()]

    @property
    def late(self) -> float:
        """When the first is late, by the monotonic clock; infinite where none is being carried out."""
        return min((one.deadline for one in self._running.values()), default=float("inf"))

    def answers(self, readable: Iterable[object]) -> list[tuple[int, Fields]]:
        """Return those that are over, with their answers: of those that can be read, and of those that are
        late.
        """
        over: list[tuple[int, Fields]] = []
        for key, one in list(self._running.items()):
            answer = one.heard() if one.output in readable else None
            if answer is None and one.deadline < time.monotonic():
                one.end()
                answer = refused(LATE)
            if answer is not None:
                del self._running[key]
                over.append((key, answer))
        return over

    def end(self, key: int) -> None:
        """End one that nobody waits for any more, if it is there."""
        if one := self._running.pop(key, None):
            one.end()


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
