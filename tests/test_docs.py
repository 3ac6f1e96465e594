"""README.md and docs/ against the code: what they name exists, and what exists in their tables is all there
is.

What they promise by example is executed elsewhere; here their inventories are compared.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", *sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md")))
README_LINES_MAX = 150
README_WORDS_MAX = 1_800
ENTRY_POINT = (  # what the installed command runs
    "import sys; from omegad.edge.cli import main; sys.exit(main())"
)

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


def verbs_named(text: str) -> set[str]:
    shell = [
        re.sub(r"(?:^|\s)#.*", "", line)
        for block in blocks(text)
        if block.language in SHELL_LANGUAGES
        for line in block.body.splitlines()
    ]
    return {verb for code in (*shell, *CODE.findall(FENCE.sub("", text))) for verb in VERB.findall(code)}


def commands_shown(text: str) -> list[list[str]]:
    """Return the words of every line of a shell block that is one call of omegad."""
    lines = [
        line
        for block in blocks(text)
        if block.language in SHELL_LANGUAGES and not block.marker
        for line in block.body.splitlines()
    ]
    words = [
        shlex.split(line.partition(" > ")[0], comments=True) for line in lines if line.startswith("omegad ")
    ]
    return [those[1:] for those in words]


def commands_named(text: str) -> list[tuple[list[str], set[str]]]:
    """Return the verb, and the options, of every call of omegad that is named as code; what stands for
    something else is left out.
    """
    calls = [
        shlex.split(code)[1:]
        for code in sorted(set(CODE.findall(FENCE.sub("", text))))
        if code.startswith("omegad ")
    ]
    verbs = [list(takewhile(re.compile(r"[a-z][a-z-]*").fullmatch, words)) for words in calls]
    return [
        (verb, {word for word in words if word.startswith("--")})
        for verb, words in zip(verbs, calls, strict=True)
        if verb
    ]


def mapped_paths(text: str) -> list[str]:
    return [
        line.split()[0]
        for block in blocks(text)
        if block.marker == "map"
        for line in block.body.splitlines()
        if line.strip()
    ]


def paths_named(text: str) -> set[str]:
    """Return the paths of the project that are named as code."""
    return {
        code
        for code in CODE.findall(FENCE.sub("", text))
        if re.fullmatch(r"(?:omegad|projections|tests|docs)/[\w./@-]+", code)
    }


def links(text: str) -> set[str]:
    return set(re.findall(r"(?<!\\)\]\(<?([^)\s>]+)", FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are linked by."""
    headings = re.findall(r"^#+ +(.+?)\s*$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def readme() -> str:
    return page("README.md")


@pytest.fixture(scope="module")
def verbs() -> set[str]:
    helped = subprocess.run(
        [sys.executable, "-c", ENTRY_POINT, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (helped.returncode, helped.stderr) == (0, "")
    in_braces = {
        verb
        for group in re.findall(r"\{([a-z,-]+)\}", re.sub(r",\s+", ",", helped.stdout))
        for verb in group.split(",")
    }
    return in_braces | set(re.findall(r"^ {2,}([a-z][a-z-]*)\b", helped.stdout, re.MULTILINE))


def test_the_first_two_commands_are_the_one_that_runs_it_and_the_one_that_tests_it(readme: str) -> None:
    commands = [block for block in blocks(readme) if block.language in SHELL_LANGUAGES]
    assert [block.marker for block in commands[:2]] == ["command: run", "command: test"]
    assert "pytest" in commands[1].body


def test_the_readme_is_read_in_ten_minutes_and_leads_to_every_other_page(readme: str) -> None:
    assert len(readme.splitlines()) <= README_LINES_MAX
    assert len(readme.split()) <= README_WORDS_MAX
    assert set(PAGES) - {"README.md"} - links(readme) == set()


def test_the_figures_that_the_readme_names_are_those_that_were_measured(readme: str) -> None:
    told = re.search(r"\*\*How well it finds:\*\*(.*?)\n\n", readme, re.DOTALL)
    measured = re.findall(r"^\| .*\|$", page("docs/benchmarks.md"), re.MULTILINE)
    assert told
    figures = re.findall(r"\d+\.\d", told[1])
    assert figures
    assert set(figures) <= set(re.findall(r"\d+\.\d", "\n".join(measured)))


def test_the_ci_runs_the_readmes_own_test_command() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- command: $1 -->" in script
    assert "readme_command test" in script


def test_every_verb_named_is_one_of_the_commands_verbs(verbs: set[str]) -> None:
    named = {name: verbs_named(page(name)) for name in PAGES}
    assert {name: unknown for name, those in named.items() if (unknown := those - verbs)} == {}
    assert "serve" in named["docs/operations.md"]


@pytest.mark.parametrize("name", PAGES)
def test_every_command_shown_is_one_that_the_command_line_takes(name: str) -> None:
    from omegad.edge.cli import arguments  # noqa: PLC0415  the other comparisons do not need it to import

    for words in commands_shown(page(name)):
        if "--help" not in words:
            arguments.parser(words).parse_args(words)


@pytest.mark.parametrize("name", PAGES)
def test_every_command_named_has_the_options_that_are_named(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from omegad.edge.cli import arguments  # noqa: PLC0415  the other comparisons do not need it to import

    for verb, options in commands_named(page(name)):
        words = [*verb, "--help"]
        with pytest.raises(SystemExit) as ended:
            arguments.parser(words).parse_args(words)
        helped = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
        assert (verb, ended.value.code, options - helped) == (verb, 0, set())


def test_every_method_and_parameter_says_what_it_is() -> None:
    from omegad.catalog import (  # noqa: PLC0415
        describing as describe,
    )

    assert [
        one.name
        for one in describe.every()
        if not one.about or not all(parameter.about for parameter in one.parameters)
    ] == []


def test_the_map_names_paths_that_exist_and_every_package() -> None:
    mapped = mapped_paths(page("docs/architecture.md"))
    assert mapped, "docs/architecture.md has no fenced block right after <!-- map -->"
    assert [path for path in mapped if not (ROOT / path).exists()] == []
    packages = {
        path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "omegad").rglob("__init__.py")
    } | {"projections"}
    assert packages - {path.rstrip("/") for path in mapped} == set()


@pytest.mark.parametrize("name", PAGES)
def test_every_path_that_a_page_names_is_there(name: str) -> None:
    assert [path for path in sorted(paths_named(page(name))) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_module_that_is_to_be_run_is_there(name: str) -> None:
    modules = re.findall(r"python -m ((?:tests|omegad)[\w.]*)", page(name))
    there = [ROOT.joinpath(*module.split(".")) for module in modules]
    assert [
        path for path in there if not (path.with_suffix(".py").exists() or (path / "__main__.py").exists())
    ] == []


def test_the_tables_named_are_those_of_the_views() -> None:
    from projections import ALL  # noqa: PLC0415  the other comparisons do not need it to import

    listed = re.search(
        r"^`views\.db` has the tables (.*?)\s+and\s+the\s+views\s+(.*?)\.",
        page("docs/operations.md"),
        re.MULTILINE | re.DOTALL,
    )
    assert listed, "docs/operations.md does not say which tables `views.db` has"
    made = {
        table
        for projection in ALL
        for table in re.findall(r"CREATE (?:VIRTUAL )?TABLE (\w+)", projection.SCHEMA)
    }
    assert set(CODE.findall(listed[1])) == made
    shown = "".join(getattr(projection, "SQL_VIEWS", "") for projection in ALL)
    assert set(CODE.findall(listed[2])) == set(re.findall(r"CREATE VIEW (\w+)", shown))


def test_every_test_that_a_page_names_is_there() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    there = {path.stem for path in files}
    there |= {
        name
        for path in files
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = {test for name in PAGES for test in re.findall(r"`(test_\w+)`", page(name))}
    assert len(named) > 20
    assert named - there == set()
    promises = re.findall(r"^\| (I\d+) \|.*\|(.*)\|$", page("docs/promises.md"), re.MULTILINE)
    assert [promise for promise, _ in promises] == [f"I{number}" for number in range(1, 16)]
    assert [promise for promise, tests in promises if "`test_" not in tests] == []


@pytest.mark.parametrize("name", [*PAGES, "CHANGELOG.md"])
def test_every_relative_link_leads_somewhere(name: str) -> None:
    here = (ROOT / name).parent
    for link in links(page(name)):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        there = here / target if target else ROOT / name
        assert there.exists(), link
        assert not anchor or anchor in anchors(there.read_text(encoding="utf-8")), link


PAGE = """# omegad

Say `omegad status --json`, see [the parts](#the-parts-and-more), [a page](CHANGELOG.md), `omegad/log/` and `tests/*.txt`.

<!-- command: run -->
```sh
.venv/bin/omegad serve  # omegad answers then
```

```sh
omegad get "mem 1" > file  # all of it
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
"""


def test_a_page_is_read_the_way_a_reader_would() -> None:
    assert [(block.marker, block.body) for block in blocks(PAGE)][:3] == [
        ("command: run", ".venv/bin/omegad serve  # omegad answers then\n"),
        ("", 'omegad get "mem 1" > file  # all of it\n'),
        ("command: test", "python -m pytest\n"),
    ]
    assert commands_shown(PAGE) == [["get", "mem 1"]]
    assert commands_named(PAGE) == [(["status"], {"--json"})]
    assert verbs_named(PAGE) == {"status", "serve", "get"}
    assert mapped_paths(PAGE) == ["omegad/log/", "pyproject.toml"]
    assert paths_named(PAGE) == {"omegad/log/"}
    assert links(PAGE) == {"#the-parts-and-more", "CHANGELOG.md"}
    assert anchors(PAGE) == {"omegad", "the-parts-and-more"}
