"""Who may import whom, and what is written in one place alone.

The tables come first and are made to be edited: a row is a decision about the architecture, and its reason
belongs beside it. What reads them follows; the last tests try every check on a small tree that breaks its
rule.
"""

import ast
import graphlib
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
OURS = ("omegad", "projections")

MODULE_OF = {"Jinja2": "jinja2", "PyStemmer": "Stemmer", "python-dateutil": "dateutil"}
"""The module of a dependency, where the two have different names."""

STDLIB = set(sys.stdlib_module_names)
PURE = {
    *(
        "__future__",
        "abc",
        "bisect",
        "collections",
        "contextlib",
        "copy",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "enum",
        "fnmatch",
        "fractions",
        "functools",
    ),
    *(
        "binascii",
        "calendar",
        "hashlib",
        "heapq",
        "itertools",
        "json",
        "math",
        "operator",
        "posixpath",
        "re",
        "shlex",
        "statistics",
        "string",
        "textwrap",
        "types",
        "typing",
        "unicodedata",
    ),
}

OUTSIDE: dict[str, set[str]] = {
    # Which top-level modules of others a row may import; the longest name that a module is or lies under
    # judges it. What has no row may import every declared dependency.
    "projections": PURE | {"msgspec"},
    "omegad.runtime": STDLIB | {"anyio", "msgspec", "structlog"},
    "omegad.runtime.sealed_notes": {"cryptography"},
    "omegad.runtime.secret_places": STDLIB | {"keyring"},
    "omegad.runtime.times": PURE | {"msgspec"},
    "omegad.text": PURE | {"msgspec"},
    "omegad.text.ingestion": STDLIB | {"msgspec"},  # reads its rules from files
    "omegad.text.evidence.word_lists": PURE | {"importlib", "msgspec"},  # reads them from a file
    "omegad.text.redaction.commands": PURE | {"importlib", "msgspec"},  # reads its table from a file
    "omegad.text.redaction.spoken": PURE | {"importlib", "msgspec"},  # reads its words from a file
    "omegad.text.languages": PURE | {"importlib", "msgspec"},  # reads their words from a file
    "omegad.text.stems": PURE | {"Stemmer", "threading"},
    "omegad.text.tokenizer": PURE,
    "omegad.text.calendars": PURE | {"importlib", "msgspec"},  # reads their names from a file
    "omegad.text.periods": PURE | {"dateutil", "msgspec"},
    "omegad.requests": PURE | {"anyio", "msgspec", "pathlib"},
    "omegad.client.asynchronous": STDLIB | {"msgspec"},
    "omegad.client.blocking": STDLIB | {"msgspec"},
    "omegad.rpc.endpoint": STDLIB,
    "omegad.rpc.protocol": STDLIB | {"msgspec"},
    **dict.fromkeys(
        ("omegad.memory", "omegad.session", "omegad.knowledge", "omegad.person", "omegad.coordination"),
        PURE | {"msgspec"},
    ),
    "omegad.sharing.post": STDLIB | {"anyio", "msgspec", "psycopg"},
    "omegad.memory.strength": PURE | {"numpy"},
    "omegad.memory.embedding": STDLIB | {"anyio", "msgspec", "structlog"},
    "omegad.search": PURE | {"msgspec", "numpy", "time"},  # an answer says how long it took
    "omegad.search.form": PURE | {"importlib", "msgspec", "numpy"},  # reads its direction from a file
    "omegad.search.model": (
        PURE | {"importlib", "msgspec", "numpy"}
    ),  # reads its weights from a file beside it
    "omegad.search.ranking": PURE | {"msgspec", "numpy"},
    "omegad.session.deliveries": PURE | {"anyio", "msgspec", "structlog"},
    "omegad.session.liveness": (
        PURE | {"msgspec", "time"}
    ),  # what the clock shows is compared with the time that went by
    "omegad.person.skill_files": STDLIB,  # other people's files
    "omegad.person.skill": PURE | {"importlib", "msgspec", "tomllib"},
    "omegad.session.sql": PURE | {"msgspec", "pathlib"},
    "omegad.session.projects": PURE | {"pathlib", "urllib"},  # looks for the repository that a file is in
    "omegad.session.merges": PURE | {"pathlib"},  # reads what git keeps
    "omegad.agents.hooks": PURE | {"msgspec", "pathlib"},
    "omegad.agents.hooks.delegated": PURE | {"anyio", "msgspec"},
    "omegad.agents.push_guard": STDLIB,
    "omegad.agents.tools": PURE | {"msgspec"},
    "omegad.hook_client": STDLIB,
    "omegad.mcp_bridge": STDLIB,
    "omegad.edge.hook": STDLIB,
    "omegad.edge.setup": STDLIB,
    "omegad.edge.consult": STDLIB | {"keyring", "msgspec"},
    "omegad.edge.consult.offering": STDLIB,
    "omegad.edge.mcp.pipe": STDLIB,
    "omegad.edge.mcp.messages": STDLIB,
    "omegad.edge.web": STDLIB | {"anyio", "msgspec", "starlette", "structlog", "uvicorn"},
    "omegad.edge.web.door": STDLIB | {"h11", "structlog", "uvicorn"},
    "omegad.edge.web.page": STDLIB | {"anyio", "jinja2", "msgspec", "numpy", "starlette"},
    "omegad.edge.web.rules": STDLIB | {"msgspec"},
    "omegad.edge.web.tools": STDLIB | {"anyio", "mcp", "starlette"},
}

WORLDLY = {"open", "print", "input", "eval", "exec", "breakpoint"}  # builtins that no pure module calls
PRESENT = {"now", "utcnow", "today"}  # what of datetime asks for the time
UNREPEATABLE_SQL = re.compile(
    r"\bAUTOINCREMENT\b|\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|'now'|\brandom(?:blob)?\s*\(", re.IGNORECASE
)

TRANSACTIONS = {
    "omegad/storage/": "the one place that opens and ends a transaction",
    "omegad/sharing/post/": "PostgreSQL's, whose functions have bodies that BEGIN",
}
TRANSACTION_SQL = re.compile(r"(?:^|;)\s*(?:BEGIN|COMMIT|END TRANSACTION|ROLLBACK|SAVEPOINT|RELEASE)\b")

LOOSE_TASKS: dict[str, str] = {
    # path: why a task there belongs to no task group
    "omegad/rpc/server.py": (
        "requests belong to the asyncio.TaskGroup of `serve`, whose tasks cost a third of anyio's"
    )
}

BROAD_EXCEPTS: dict[str, str] = {
    # path: why every exception is caught there and not raised again
    "omegad/log/event_log.py": "whoever waits for an append is told, whatever it was",
    "omegad/log/appending.py": (
        "a mistake in one decision is told to its own caller and spoils no other of the batch"
    ),
    "omegad/embedding/embedder.py": (
        "the model's runtime and its tokenizer raise bare Exceptions, and this is where they enter"
    ),
    "omegad/operations/replaying.py": (
        "what a model fails on, which raises bare Exceptions, is found by its words"
    ),
    "omegad/sharing/exchange.py": "whatever keeps this home from its team, it is waited out and told",
    "omegad/reactions/runner.py": (
        "what a reaction fails on is set aside, and the next event is another matter"
    ),
    "omegad/runtime/reaching.py": "what a thread fails on is told to whoever waits for it",
    "omegad/requests/running.py": (
        "of commands that share a commit one that cannot be prepared is told of, and the others go on"
    ),
    "omegad/agents/spool.py": "what cannot be taken in now is tried again, and holds nothing else up",
    "omegad/hook_client.py": "a host takes any other end of a hook for a verdict, or shows it to the person",
    "omegad/edge/hook/delivery.py": (
        "what the push guard fails on keeps nobody from pushing, nor does a daemon from hearing the guard"
    ),
    "omegad/rpc/server.py": "a mistake in one request must not end the service for everyone",
    "omegad/log/folding.py": (
        "whatever a projection raises is its own failure, noted with its position, and the others go on"
    ),
}


NETWORK = {
    "aiohttp",
    "ftplib",
    "http",
    "httpx",
    "psycopg",
    "requests",
    "smtplib",
    "ssl",
    "urllib.request",
    "urllib3",
}
SPEAKING: dict[str, str] = {
    # path: with whom it speaks over a network; everything else is on this machine
    "omegad/edge/consult/exchange.py": "asks other models, in a process of its own",
    "omegad/edge/web/": "serves on the loopback interface",
    "omegad/sharing/post/": "speaks to the database of the team that a person joined",
    "omegad/embedding/install.py": "fetches a model where a person installs one",
}


class Module(NamedTuple):
    """One file of ours, parsed."""

    name: str
    path: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """What a relative import starts from."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


class Import(NamedTuple):
    """One module named by another, whichever way."""

    importer: str
    target: str
    place: str
    function: str


class Tree(NamedTuple):
    """All files of ours, and what they import."""

    root: Path
    modules: list[Module]
    imports: list[Import]


Check = Callable[[Tree], Iterator[str]]


def read(root: Path) -> Tree:
    """Parse every module under *root*."""
    modules = []
    for path in sorted(file for package in OURS for file in (root / package).rglob("*.py")):
        relative = path.relative_to(root)
        parts = relative.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(
            Module(name, relative.as_posix(), ast.parse(path.read_text(encoding="utf-8"), str(path)))
        )
    known = {module.name for module in modules}
    return Tree(
        root, modules, [found for module in modules for found in _imports(module, module.tree, known, "")]
    )


def _imports(module: Module, node: ast.AST, known: set[str], function: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for target in _targets(module, child, known):
            yield Import(module.name, target, f"{module.path}:{getattr(child, 'lineno', 0)}", function)
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield from _imports(module, child, known, inside)


def _targets(module: Module, node: ast.AST, known: set[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=base, names=names, level=level):
            above = module.package.split(".")[: -(level - 1) or None] if level else []
            source = ".".join([*above, *([base] if base else [])])
            yield from (
                f"{source}.{alias.name}" if f"{source}.{alias.name}" in known else source for alias in names
            )
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            yield name
        case _:
            pass


def row_of(name: str, table: dict[str, set[str]]) -> tuple[str, str]:
    """Return the key of the row that judges *name*, and the name under which it is at home; two empty
    strings where there is none.
    """
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        prefix = ".".join(parts[:length])
        if prefix in table and (prefix != "omegad" or name == "omegad"):
            return prefix, prefix
    return "", ""


def is_ours(name: str) -> bool:
    """Say whether *name* is a module of this project."""
    return name.partition(".")[0] in OURS


def lies_under(name: str, above: str) -> bool:
    """Say whether *name* is *above* or is found below it."""
    return name == above or (above != "omegad" and name.startswith(f"{above}."))


def circles(tree: Tree) -> Iterator[str]:
    graph: dict[str, set[str]] = {module.name: set() for module in tree.modules}
    for found in tree.imports:
        if found.target in graph:
            graph[found.importer].add(found.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "modules import each other: " + " <- ".join(error.args[1])


def forbidden_outsiders(tree: Tree) -> Iterator[str]:
    for found in tree.imports:
        row, _ = row_of(found.importer, OUTSIDE)
        top = found.target.partition(".")[0]
        if row and not is_ours(top) and top not in OUTSIDE[row]:
            yield (
                f"{found.place}: {found.importer} imports {top}, which the row {row!r} of OUTSIDE does not"
                " allow"
            )


def undeclared_dependencies(tree: Tree) -> Iterator[str]:
    declaring = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, building = declaring["project"], declaring["build-system"]["requires"]
    wanted = [
        *building,
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    names = (re.split(r"[^\w-]", requirement, maxsplit=1)[0] for requirement in wanted)
    declared = {MODULE_OF.get(name, name.replace("-", "_")) for name in names}
    for found in tree.imports:
        top = found.target.partition(".")[0]
        if not is_ours(top) and top not in STDLIB | declared:
            yield f"{found.place}: {top} is not among the dependencies in pyproject.toml"


def impurities(tree: Tree) -> Iterator[str]:
    pure = {row for row, allowed in OUTSIDE.items() if "re" in allowed and "os" not in allowed}
    for module in tree.modules:
        if row_of(module.name, OUTSIDE)[0] not in pure:
            continue
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Name(id=name)) if name in WORLDLY:
                    yield f"{module.path}:{node.lineno}: a pure module calls {name}()"
                case ast.Attribute(
                    value=ast.Name(id="datetime" | "date") | ast.Attribute(attr="datetime" | "date"),
                    attr=name,
                ) if name in PRESENT:
                    yield f"{module.path}:{node.lineno}: a pure module asks for the time ({name})"
                case _:
                    pass


def unrepeatable_sql(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if not module.name.startswith("projections"):
            continue
        for line, text in strings(module.tree):
            if found := UNREPEATABLE_SQL.search(text):
                yield f"{module.path}:{line}: {found[0]!r} gives other rows when the view is built again"


def daemon_outside_serve(tree: Tree) -> Iterator[str]:
    for found in tree.imports:
        if (
            lies_under(found.importer, "omegad.edge.cli")
            and lies_under(found.target, "omegad.daemon")
            and found.function.strip("_") != "serve"
        ):
            yield (
                f"{found.place}: only the function `serve` imports omegad.daemon, so that no other verb waits"
                " for it to load"
            )


def strangers_spoken_to(tree: Tree) -> Iterator[str]:
    for found in tree.imports:
        path = found.place.rpartition(":")[0]
        if any(lies_under(found.target, one) for one in NETWORK) and not excused(path, SPEAKING):
            yield f"{found.place}: {found.target} speaks over a network; only what SPEAKING names does"


def loose_tasks(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr="create_task") if owner.endswith("group"):
                    pass
                case (
                    ast.Attribute(attr="create_task" | "ensure_future" as name)
                    | ast.alias(name="create_task" | "ensure_future" as name)
                ):
                    if not excused(module.path, LOOSE_TASKS):
                        yield f"{module.path}:{node.lineno}: {name} starts a task that no task group watches"
                case _:
                    pass


def strewn_transactions(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if excused(module.path, TRANSACTIONS):
            continue
        for line, text in strings(module.tree):
            if TRANSACTION_SQL.search(text):
                yield f"{module.path}:{line}: {text.strip()[:30]!r} belongs in omegad/storage"
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="commit" | "rollback" as name), args=[]):
                    yield f"{module.path}:{node.lineno}: .{name}() belongs in omegad/storage"
                case _:
                    pass
    for path in sorted(file for package in OURS for file in (tree.root / package).rglob("*.sql")):
        if excused(path.relative_to(tree.root).as_posix(), TRANSACTIONS):
            continue
        if TRANSACTION_SQL.search(re.sub(r"--.*", "", path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(tree.root)}: a transaction is opened in omegad/storage alone"


def scripts(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr == "executescript":
                yield (
                    f"{module.path}:{node.lineno}: executescript commits the transaction it is called in;"
                    " execute one statement at a time"
                )


def broad_excepts(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.ExceptHandler(type=kind, body=body) if _is_broad(kind) and not isinstance(
                    body[-1], ast.Raise
                ):
                    pass
                case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=kinds) if (
                    any(map(_is_broad, kinds))
                ):
                    pass
                case _:
                    continue
            if not excused(module.path, BROAD_EXCEPTS):
                yield (
                    f"{module.path}:{node.lineno}: catches every exception and goes on; name the ones that"
                    " are meant"
                )


def _is_broad(kind: ast.expr | None) -> bool:
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(
        name is None or (isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"})
        for name in names
    )


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return every string of a module but its docstrings, which are statements of their own."""
    talk = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in talk:
            yield node.lineno, node.value


def excused(path: str, excuses: dict[str, str]) -> bool:
    """Say whether *path* is named in *excuses*, itself or by the directory it is in."""
    return any(path == excuse or (excuse.endswith("/") and path.startswith(excuse)) for excuse in excuses)


CHECKS: list[Check] = [
    *(circles, forbidden_outsiders, undeclared_dependencies, impurities, unrepeatable_sql),
    *(daemon_outside_serve, strangers_spoken_to, loose_tasks, strewn_transactions, scripts, broad_excepts),
]


@pytest.fixture(scope="module")
def project() -> Tree:
    return read(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_code_keeps_the_rule(check: Check, project: Tree) -> None:
    assert "\n".join(check(project)) == ""


def test_nobody_imports_from_a_room_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert lint_imports(no_cache=True) == 0


def test_every_row_and_every_excuse_names_something_that_is_there(project: Tree) -> None:
    rows_in_use = {row_of(module.name, table)[0] for module in project.modules for table in (OUTSIDE,)}
    assert {*OUTSIDE} - rows_in_use == set()
    assert [
        path
        for path in {*SPEAKING, *TRANSACTIONS, *LOOSE_TASKS, *BROAD_EXCEPTS}
        if not (ROOT / path).exists()
    ] == []


@pytest.mark.parametrize(
    ("check", "path", "text"),
    [
        (circles, "omegad/runtime/errors.py", "def late():\n    from omegad.log import event_log"),
        (forbidden_outsiders, "projections/memories.py", "import time"),
        (forbidden_outsiders, "omegad/memory/store.py", "from sqlite3 import connect"),
        (forbidden_outsiders, "omegad/client/blocking.py", "import anyio"),
        (undeclared_dependencies, "omegad/storage/database.py", "import requests"),
        (forbidden_outsiders, "omegad/text/tokenizer.py", "import msgspec"),
        (impurities, "omegad/text/tokenizer.py", "print('found')"),
        (impurities, "projections/memories.py", "import datetime\ndatetime.datetime.now()"),
        (impurities, "omegad/memory/store.py", "from datetime import date\ndate.today()"),
        (impurities, "omegad/search/ranking.py", "open('weights')"),
        (
            unrepeatable_sql,
            "projections/memories.py",
            "SCHEMA = \"CREATE TABLE t (at TEXT DEFAULT (datetime('now')))\"",
        ),
        (
            unrepeatable_sql,
            "projections/memories.py",
            'SCHEMA = "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)"',
        ),
        (daemon_outside_serve, "omegad/edge/cli/daemon.py", "from omegad import daemon"),
        (daemon_outside_serve, "omegad/edge/cli/daemon.py", "def start():\n    import omegad.daemon"),
        (strangers_spoken_to, "omegad/daemon.py", "import http.client"),
        (
            strangers_spoken_to,
            "omegad/edge/consult/keys.py",
            "def late():\n    from urllib.request import urlopen",
        ),
        (loose_tasks, "omegad/views/driver.py", "import asyncio\nasyncio.create_task(work())"),
        (loose_tasks, "omegad/views/driver.py", "from asyncio import ensure_future"),
        (loose_tasks, "omegad/views/driver.py", "loop().create_task(work())"),
        (strewn_transactions, "omegad/log/event_log.py", "connection.execute('BEGIN IMMEDIATE')"),
        (strewn_transactions, "omegad/log/event_log.py", "connection.commit()"),
        (
            strewn_transactions,
            "omegad/log/schema.sql",
            "-- all or nothing\nBEGIN;\nCREATE TABLE t (a);\nCOMMIT;",
        ),
        (broad_excepts, "omegad/views/rebuild.py", "try:\n    work()\nexcept Exception:\n    pass"),
        (
            broad_excepts,
            "omegad/views/rebuild.py",
            "try:\n    work()\nexcept (OSError, BaseException) as error:\n    log(error)",
        ),
        (broad_excepts, "omegad/views/rebuild.py", "try:\n    work()\nexcept:\n    pass"),
        (scripts, "omegad/views/rebuild.py", "connection.executescript(schema)"),
        (broad_excepts, "omegad/views/rebuild.py", "with suppress(Exception):\n    work()"),
    ],
)
def test_a_tree_that_breaks_the_rule_is_told_so(check: Check, path: str, text: str, tmp_path: Path) -> None:
    _small_tree(tmp_path)
    assert list(check(read(tmp_path))) == []
    broken = tmp_path / path
    broken.parent.mkdir(parents=True, exist_ok=True)
    broken.write_text(text)
    complaints = list(check(read(tmp_path)))
    assert len(complaints) == 1
    assert path in complaints[0] or check is circles


def _small_tree(root: Path) -> None:
    files = {
        "omegad/__init__.py": "",
        "omegad/runtime/errors.py": "",
        "omegad/catalog/events.py": "from omegad.memory import events",
        "omegad/memory/events.py": "import msgspec",
        "omegad/storage/transaction.py": (
            "execute('BEGIN')\ntry:\n    work()\nexcept BaseException:\n    undo()\n    raise"
        ),
        "omegad/log/schema.sql": (
            "CREATE TRIGGER t BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is immutable'); END;"
        ),
        "omegad/log/event_log.py": (
            '"""BEGIN."""\nfrom omegad.runtime import errors\nfrom omegad.storage import transaction\nimport'
            " anyio"
        ),
        "omegad/log/projection.py": "from omegad.log import event",
        "omegad/log/event.py": "",
        "omegad/views/driver.py": (
            "from omegad.log import projection\ntask_group.create_task(projection.work())"
        ),
        "omegad/search/pipeline.py": "from omegad.search.ranking import score",
        "omegad/search/ranking.py": "import numpy",
        "omegad/client/blocking.py": "import asyncio\nimport msgspec\nfrom omegad.rpc import protocol",
        "omegad/rpc/protocol.py": "",
        "omegad/daemon.py": "from projections import ALL\nimport omegad.log.event_log",
        "omegad/edge/cli/__init__.py": "def serve():\n    from omegad import daemon",
        "projections/__init__.py": "from projections import edges, memories",
        "projections/edges.py": (
            "from omegad.memory.events import MemoryStored\nfrom omegad.log import projection"
        ),
        "projections/memories.py": "import json",
    }
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
