"""README.md against the code: what it names exists, and what exists in its tables is all there is.

What the README promises by example is executed elsewhere; here its inventories are compared.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

ROOT = Path(__file__).parents[1]
ENTRY_POINT = "import sys; from omegad.edge.cli import main; sys.exit(main())"  # what the installed command runs

MARKER = re.compile(r"<!-- ([a-z]+(?:: [a-z]+)?) -->")
FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<language>\w*)\n(?P<body>.*?)^(?P=ticks)$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
SHELL_LANGUAGES = {"sh", "bash", "console"}
VERB = re.compile(r"(?:^|[\s/(|;&$])omegad +([a-z][a-z-]*)")


class Block(NamedTuple):
    """A fenced block, and the marker right before it."""

    marker: str
    language: str
    body: str


def blocks(text: str) -> Iterator[Block]:
    for fence in FENCE.finditer(text):
        above = text[: fence.start()].rstrip().rpartition("\n")[2]
        marker = MARKER.fullmatch(above.strip())
        yield Block(marker[1] if marker else "", fence["language"], fence["body"])


def inventory(text: str, pattern: str) -> set[str]:
    """Return the names that match *pattern* in the first cells of tables."""
    cells = [line.split("|")[1] for line in FENCE.sub("", text).splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in CODE.findall(cell) if re.fullmatch(pattern, name)}


def event_tags(text: str) -> set[str]:
    return inventory(text, r"[a-z]+\.[a-z_]+@\d+")


def verbs_named(text: str) -> set[str]:
    shell = [re.sub(r"(?:^|\s)#.*", "", line) for block in blocks(text) if block.language in SHELL_LANGUAGES for line in block.body.splitlines()]
    return {verb for code in (*shell, *CODE.findall(FENCE.sub("", text))) for verb in VERB.findall(code)}


def mapped_paths(text: str) -> list[str]:
    return [line.split()[0] for block in blocks(text) if block.marker == "map" for line in block.body.splitlines() if line.strip()]


def links(text: str) -> set[str]:
    return set(re.findall(r"(?<!\\)\]\(<?([^)\s>]+)", FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are linked by."""
    headings = re.findall(r"^#+ +(.+?)\s*$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module")
def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_first_two_commands_are_the_one_that_runs_it_and_the_one_that_tests_it(readme: str) -> None:
    commands = [block for block in blocks(readme) if block.language in SHELL_LANGUAGES]
    assert [block.marker for block in commands[:2]] == ["command: run", "command: test"]
    assert "pytest" in commands[1].body


def test_the_ci_runs_the_readmes_own_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- command: $1 -->" in script
    assert "readme_command test" in script


def test_every_verb_named_is_one_of_the_commands_verbs(readme: str) -> None:
    helped = subprocess.run([sys.executable, "-c", ENTRY_POINT, "--help"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (helped.returncode, helped.stderr) == (0, "")
    in_braces = {verb for group in re.findall(r"\{([a-z,-]+)\}", re.sub(r",\s+", ",", helped.stdout)) for verb in group.split(",")}
    opening_a_line = set(re.findall(r"^ {2,}([a-z][a-z-]*)\b", helped.stdout, re.MULTILINE))
    assert verbs_named(readme) - (in_braces | opening_a_line) == set()
    assert "serve" in verbs_named(readme)


def test_what_is_derived_of_the_methods_is_as_they_are(readme: str) -> None:
    from omegad.catalog import describing as describe  # noqa: PLC0415  the other comparisons do not need it to import

    every = describe.every()
    hint = "write it anew with `python -m omegad.catalog.describing`"
    assert describe.table(every) in readme, hint
    assert describe.command_line(every) == describe.COMMAND_LINE.read_text(encoding="utf-8"), hint
    assert describe.mcp_greeting() == describe.MCP_GREETING.read_text(encoding="utf-8"), hint
    assert [one.name for one in every if not one.about or not all(parameter.about for parameter in one.parameters)] == []


def test_the_table_of_events_holds_what_can_have_happened(readme: str) -> None:
    from omegad.catalog.events import AnyEvent  # noqa: PLC0415  the other comparisons do not need it to import

    assert event_tags(readme) == {str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}


def test_the_map_names_paths_that_exist_and_every_package(readme: str) -> None:
    mapped = mapped_paths(readme)
    assert mapped, "README.md has no fenced block right after <!-- map -->"
    assert [path for path in mapped if not (ROOT / path).exists()] == []
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "omegad").rglob("__init__.py")} | {"projections"}
    assert packages - {path.rstrip("/") for path in mapped} == set()


def test_every_test_that_a_promise_names_is_there(readme: str) -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    there = {path.stem for path in files}
    there |= {name for path in files for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)}
    named = set(re.findall(r"`(test_\w+)`", readme))
    assert len(named) > 20
    assert named - there == set()
    promises = re.findall(r"^\| (I\d+) \|.*\|(.*)\|$", readme, re.MULTILINE)
    assert [promise for promise, _ in promises] == [f"I{number}" for number in range(1, 13)]
    assert [promise for promise, tests in promises if "`test_" not in tests] == []


@pytest.mark.parametrize("page", ["README.md", "CHANGELOG.md"])
def test_every_relative_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    relative = {link for link in links(text) if not re.match(r"[a-z]+:", link)}
    assert [link for link in relative if link.startswith("#") and link[1:] not in anchors(text)] == []
    assert [link for link in relative if not link.startswith("#") and not (ROOT / link.partition("#")[0]).exists()] == []


PAGE = """# omegad

Say `omegad status`, see [the parts](#the-parts-and-more), [a page](CHANGELOG.md).

<!-- command: run -->
```sh
.venv/bin/omegad serve  # omegad answers then
```

<!-- command: test -->

```sh
python -m pytest
```

## The parts, and `more`

<!-- map -->
```
omegad/log/   the log
pyproject.toml
```

| method | result |
| --- | --- |
| `memory.store` | position |
| `memory.edit`, `memory.delete` | |
| `log.db` | a file |
| `memory.stored@1` | |
"""


def test_a_page_is_read_the_way_a_reader_would() -> None:
    assert [(block.marker, block.body) for block in blocks(PAGE)][:2] == [
        ("command: run", ".venv/bin/omegad serve  # omegad answers then\n"),
        ("command: test", "python -m pytest\n"),
    ]
    assert verbs_named(PAGE) == {"status", "serve"}
    assert event_tags(PAGE) == {"memory.stored@1"}
    assert mapped_paths(PAGE) == ["omegad/log/", "pyproject.toml"]
    assert links(PAGE) == {"#the-parts-and-more", "CHANGELOG.md"}
    assert anchors(PAGE) == {"omegad", "the-parts-and-more"}
