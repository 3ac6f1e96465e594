"""Whole conversations with a daemon, as transcripts that can be read as documentation.

Each `*.txt` beside this file is one: a request (`method {params}`, or a raw line after `>`), `----`, and what
was answered, with ids, times and other values that differ from run to run replaced by names. A later request
may use those names. `#` begins a remark.

`OMEGAD_BLESS=1 python -m pytest tests/scenarios` writes the transcripts anew. Commit a change to one only if
you understand it.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from tests.acceptance.conftest import Home, Raw, homes_in, until

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
IS_BLESSING = bool(os.environ.get("OMEGAD_BLESS"))
SEPARATOR = "----"

NAMED = (
    ("memory", re.compile(r"\bmem-[0-9a-f]{16}\b")),
    ("id", re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")),
    ("hash", re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b")),
)
"""What is replaced by a kind and a number, the same one each time: `<memory-1>`."""
VIEWS = re.compile(r"the (views|methods) are [a-z_., ]+")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
VOLATILE = {"pid", "took_ms", "took_us", "at", "version", "build"}
"""Names of numbers and words that differ from run to run."""
DIGITS = 4  # of floating-point numbers: the rest depends on the processor


class Step(NamedTuple):
    """What is before a request, the request, and its answer."""

    remarks: str
    request: str
    answer: str


def _steps(text: str) -> Iterator[Step]:
    """Read a transcript: steps are separated by empty lines, and a remark belongs to the step that
    follows.
    """
    for part in re.split(r"\n{2,}(?=[#>a-z])", text.strip()):
        before, _, answer = part.partition(f"\n{SEPARATOR}")
        remarks, request = re.fullmatch(r"((?:#.*\n|\n)*)(.*)", before).groups()  # type: ignore[union-attr]
        yield Step(remarks, request, answer.strip())


def _written(steps: list[Step]) -> str:
    return "\n\n".join(f"{step.remarks}{step.request}\n{SEPARATOR}\n{step.answer}" for step in steps) + "\n"


class Conversation:
    """One client of a fresh daemon."""

    def __init__(self, home: Home, connection: Raw) -> None:
        self._home = home
        self._connection = connection
        self._names: dict[str, str] = {}

    def say(self, request: str) -> str:
        """Send a request, and return its answer as it is written down."""
        line = self._line(self._with_values(request))
        head = self._home.call("system.status")["log"]["head"]
        self._connection.send(line)
        answer = self._connection.receive()
        if request.startswith("memory.query") and "result" in answer:
            until(
                lambda: self._home.call("system.status")["log"]["head"] > head
            )  # a query is logged after its answer
        until(self._home.caught_up)  # so that positions are the same each time
        return self._with_names(self._shown(answer, is_raw=request.startswith(">")))

    def _line(self, request: str) -> bytes:
        if request.startswith(">"):
            return request.removeprefix(">").strip().encode()
        method, _, params = request.partition(" ")
        return b'{"jsonrpc":"2.0","id":1,"method":%s,"params":%s}' % (
            json.dumps(method).encode(),
            params.encode() or b"{}",
        )

    def _shown(self, answer: Any, *, is_raw: bool) -> str:
        told = answer if is_raw else answer.get("result", answer.get("error"))
        shown = json.dumps(_settled(told), indent=2, ensure_ascii=False)
        return shown if is_raw or "result" in answer else f"error {shown}"

    def _with_names(self, text: str) -> str:
        for kind, pattern in NAMED:
            for value in pattern.findall(text):
                if value not in self._names:
                    known = sum(name.startswith(f"<{kind}-") for name in self._names.values())
                    self._names[value] = f"<{kind}-{known + 1}>"
                text = text.replace(value, self._names[value])
        return VIEWS.sub(r"the \1 are <\1>", TIME.sub("<time>", text)).replace(str(self._home.path), "<home>")

    def _with_values(self, text: str) -> str:
        for value, name in self._names.items():
            text = text.replace(name, value)
        return text


def _settled(value: Any, name: str = "") -> Any:
    """Return *value* with what differs from run to run replaced."""
    match value:
        case dict():
            return {key: _settled(item, key) for key, item in value.items()}
        case list():
            return [_settled(item) for item in value]
        case _ if name in VOLATILE and value is not None:
            return f"<{name}>"
        case float():
            return round(value, DIGITS)
        case _:
            return value


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_conversation_goes_as_it_is_written_down(path: Path, tmp_path: Path) -> None:
    steps = list(_steps(path.read_text(encoding="utf-8")))
    with homes_in(tmp_path) as make:
        home = make().start()
        with home.raw() as connection:
            conversation = Conversation(home, connection)
            said = [Step(step.remarks, step.request, conversation.say(step.request)) for step in steps]
    if IS_BLESSING:
        path.write_text(_written(said), encoding="utf-8")
    assert _written(said) == path.read_text(encoding="utf-8")


def test_there_are_conversations() -> None:
    assert len(SCENARIOS) >= 3


def test_a_transcript_is_read_as_it_is_written() -> None:
    steps = [
        Step("# Two lines\n# of remark.\n", 'memory.store {"content": "a"}', '{\n  "a": 1\n}'),
        Step("", "> {", "error {\n}"),
    ]
    assert list(_steps(_written(steps))) == steps


def test_what_differs_from_run_to_run_is_replaced_and_nothing_else() -> None:
    answer = {
        "pid": 17,
        "position": 17,
        "score": 0.123456,
        "took_ms": None,
        "results": [{"at": 5, "rank": 1}],
    }
    assert _settled(msgspec.json.decode(msgspec.json.encode(answer))) == {
        "pid": "<pid>",
        "position": 17,
        "score": 0.1235,
        "took_ms": None,
        "results": [{"at": "<at>", "rank": 1}],
    }
