"""docs/adding.md, done to a copy of the code as it is printed there: what is new is on the socket, on the command
line, among the tools of agents, and in the reference.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from omegad.client import Client
from omegad.runtime import config
from tests.acceptance.conftest import PATIENT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE_S = 60.0


class Step(NamedTuple):
    """A block of the page: under which heading, for which file, in which language, and what it says."""

    recipe: str
    path: str
    language: str
    body: str


def steps() -> Iterator[Step]:
    for section in PAGE.split("\n## ")[1:]:
        recipe = section.partition("\n")[0]
        for fence in FENCE.finditer(section):
            *_, path = re.findall(r"^\*\*(\S+)\*\*$", section[: fence.start()], re.MULTILINE)
            yield Step(recipe, path, fence["language"], fence["body"])


def do(step: Step, tree: Path) -> None:
    """Write a file, add to the end of one that is there, or change it as a diff says."""
    file = tree / step.path
    file.parent.mkdir(exist_ok=True)
    said = file.read_text(encoding="utf-8") if file.exists() else ""
    if step.language == "diff":
        lines = step.body.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if not line.startswith("+"))
        after = "".join(line[1:] for line in lines if not line.startswith("-"))
        assert said.count(before) == 1, f"{step.path} does not have {before!r} once"
        file.write_text(said.replace(before, after), encoding="utf-8")
    else:
        file.write_text(f"{said}\n\n{step.body}" if said else step.body, encoding="utf-8")


class Copy:
    """A copy of the code to which everything was done, and a home that it serves."""

    def __init__(self, tree: Path, home: Path) -> None:
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("OMEGAD_")}
        self.tree = tree
        self.environ = {**foreign, **PATIENT, "OMEGAD_HOME": str(home), "OMEGAD_MODEL": "none"}
        self.environ["PYTHONPATH"] = str(tree)
        self.client = Client(config.find_paths(self.environ).socket, timeout_s=PATIENCE_S)

    def run(self, *words: str) -> str:
        command = [sys.executable, *words]
        done = subprocess.run(
            command, cwd=self.tree, env=self.environ, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def omegad(self, *words: str) -> str:
        return self.run("-m", "omegad", *words)

    def call(self, method: str, **params: object) -> Any:
        return self.client.call(method, **params)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    tree = tmp_path_factory.mktemp("added") / "src"
    left_out = shutil.ignore_patterns("__pycache__", "methods.json", "greeting.json", "schemas.json")
    for name in ("omegad", "projections", "tests/golden"):
        shutil.copytree(ROOT / name, tree / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tree)
    for step in steps():
        do(step, tree)
    copied = Copy(tree, tmp_path_factory.mktemp("home"))
    copied.omegad("start")
    with copied.client:
        yield copied
    copied.omegad("stop")


def test_a_command_is_a_verb_and_a_method(copy: Copy) -> None:
    memory_id = copy.call("memory.store", content="herons like shallow ponds")["memory_id"]
    assert copy.omegad("memory", "thank", memory_id) == f"thanked {memory_id}\n"
    assert copy.call("memory.thank", memory_id=memory_id)["position"]
    assert copy.call("memory.get", memory_id=memory_id)["rating"] == 2
    assert re.search(r"^ +thank +Say that a memory helped$", copy.omegad("memory", "--help"), re.MULTILINE)
    assert "omegad memory thank mem-0123456789abcdef" in copy.omegad("memory", "thank", "--help")
    assert "| `memory.thank` | say that a memory helped | `memory_id` |\n" in copy.omegad(
        "methods", "--markdown"
    )


def test_a_query_shows_its_fields_and_is_a_tool_by_one_line(copy: Copy) -> None:
    copy.call("memory.store", content="egrets nest in colonies", project="/src/pond")
    arguments = {"project": "/src/pond"}
    assert copy.call("memory.count", **arguments)["count"] == 1
    assert json.loads(copy.omegad("memory", "count", "--project", "/src/pond", "--json"))["count"] == 1
    (listed,) = (tool for tool in copy.call("tools.list")["tools"] if tool["name"] == "omega_count")
    assert listed["description"] == "Count the memories that hold."
    assert listed["input_schema"]["properties"] == {
        "project": {"description": "of this project", "type": "string"}
    }
    assert listed["read_only"]
    answer = copy.call("tools.call", name="omega_count", arguments=arguments)
    assert answer["content"] == [{"type": "text", "text": "1 memories"}]
    assert answer["structured"]["count"] == 1
    greeting = json.loads((copy.tree / "omegad" / "edge" / "mcp" / "greeting.json").read_bytes())
    assert "omega_count" in {tool["name"] for tool in greeting["tools/list"]["tools"]}


def test_an_event_is_written_and_shown_by_its_projection(copy: Copy) -> None:
    memory_id = copy.call("memory.store", content="bitterns boom at dusk")["memory_id"]
    position = copy.call("memory.pin", memory_id=memory_id)["position"]
    (event,) = (event for event in copy.call("log.read", after=position - 1, limit=1)["events"])
    assert event["tag"] == "memory.pinned@1"
    assert pinned(copy)[memory_id] == position
    assert copy.call("views.verify", name="pins")["views"]["pins"]["equal"]
    assert "| `memory.pinned@1` | a memory was pinned. |\n" in copy.omegad("events", "--markdown")
    golden = copy.tree / "tests" / "golden" / "memory.pinned@1.json"
    decoded = copy.run(
        "-c",
        "import sys; from omegad.catalog.events import CODEC;"
        f" print(CODEC.decode('memory.pinned@1', open({str(golden)!r}, 'rb').read()))",
    )
    assert decoded == "MemoryPinned(memory_id='mem-4f1d2a90c3b7e685')\n"


def test_a_reaction_follows_what_happens(copy: Copy) -> None:
    memory_id = copy.call("memory.store", content="grebes carry their young")["memory_id"]
    copy.call("memory.rate", memory_id=memory_id, rating="helpful")
    deadline = time.monotonic() + PATIENCE_S
    while memory_id not in pinned(copy):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "pins" in copy.call("system.status")["reactions"]


def test_a_noun_is_a_folder_and_a_word(copy: Copy) -> None:
    position = copy.call("heron.sight", place="the pond")["position"]
    (event,) = copy.call("log.read", after=position - 1, limit=1)["events"]
    assert (event["tag"], event["data"]["place"]) == ("heron.sighted@1", "the pond")
    assert re.search(r"^ +heron +Ask about the heron$", copy.omegad("--help"), re.MULTILINE)


def test_each_recipe_touches_no_more_files_than_it_has_to() -> None:
    touched: dict[str, list[str]] = {}
    for step in steps():
        files = touched.setdefault(step.recipe, [])
        files += [step.path] if step.path not in files else []
    assert {recipe: len(files) for recipe, files in touched.items()} == {
        "A command": 1,
        "A query": 1,
        "A tool for agents": 1,
        "An event": 3,
        "A projection": 2,
        "A reaction": 1,
        "A noun": 4,
    }


def pinned(copy: Copy) -> dict[str, int]:
    rows = copy.call("audit.sql", sql="SELECT memory_id, position FROM pins")["rows"]
    return {str(memory_id): int(position) for memory_id, position in rows}
