"""Who may import whom, and what is written in one place alone.

The tables come first and are made to be edited: a row is a decision about the architecture, and its reason belongs beside it.
What reads them follows; the last tests try every check on a small tree that breaks its rule.
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

ROOT = Path(__file__).parents[1]
OURS = ("omegad", "projections")

LEAVES = {"omegad.runtime.errors", "omegad.runtime.clock", "omegad.runtime.times"}

MAY_IMPORT: dict[str, set[str]] = {
    # A module is judged by the longest name here that it is or lies under; `x.*` is every module directly under x, each for itself.
    # What lies under a row's own name is always allowed. "omegad" alone is the version, and stands for nothing below it.
    "omegad": set(),
    "omegad.runtime.errors": set(),
    "omegad.runtime.clock": {"omegad.runtime.errors"},
    "omegad.session.liveness": {"omegad.runtime.clock"},  # hooks hear of sessions, and whatever a session holds goes by it
    "omegad.runtime.times": {"omegad.runtime.errors"},
    "omegad.memory.types": {"omegad.runtime.errors"},
    "omegad.session.edits": set(),  # what stops an edit and what sums a session up mean the same by one
    "omegad.text.quoting": set(),  # whatever tells agents what others wrote tells it so
    "omegad.text.tokenizer": set(),  # a view is built with it and a question is taken apart with it, so it belongs to neither
    "omegad.text.stems": set(),  # for the texts that evidence compares and those that a ranking does
    "omegad.runtime.precedence": set(),  # whatever computes gives way to a hook: readers, the model and the turns of clients
    "omegad.text.voice": set(),  # what a view notes of a text and a ranking weighs
    "omegad.runtime.config": {"omegad.runtime.errors", "omegad.memory.types"},  # types are declared in the configuration
    "omegad.runtime.telemetry": {"omegad.runtime.errors"},
    "omegad.runtime.supervisor": set(),
    "omegad.runtime.descriptors": set(),
    "omegad.runtime.allocator": set(),
    "omegad.__main__": {"omegad.edge.cli"},
    "omegad.storage": {"omegad.runtime.allocator", "omegad.runtime.errors", "omegad.runtime.precedence"},
    "omegad.runtime.steadiness": {"omegad.runtime.clock"},
    "omegad.catalog.events": {"omegad.log.event", "omegad.log.erasure", "omegad.log.mending", "omegad.log.codec"},
    "omegad.runtime.digests": {"omegad.runtime.errors"},
    "omegad.log": {"omegad.runtime.digests", "omegad.storage", *LEAVES},  # an event store, which knows no noun
    "omegad.text.redaction": {"omegad.log.event", "omegad.runtime.errors"},
    "omegad.log.projection": {"omegad.log.event", "omegad.log.mending"},  # times that every fold keeps are set right in one way
    "omegad.catalog.decision_state": {"omegad.catalog.events", "omegad.log.event", "omegad.log.mending", "omegad.log.projection", "omegad.storage"},
    "omegad.views": {"omegad.log", "omegad.log.projection", "omegad.storage", "omegad.embedding.cache", *LEAVES},
    "omegad.text.evidence": {"omegad.text.stems"},
    "omegad.commands": {
        "omegad.text.evidence",
        "omegad.catalog.events",
        "omegad.text.ingestion",
        "omegad.log.decision",
        "omegad.log.event",
        "omegad.log.mending",
        "omegad.session.liveness",
        "omegad.memory.types",
        "omegad.requests.method",
        "omegad.session.projects",
        "omegad.queries",
        "omegad.text.quoting",
        "omegad.text.redaction",
        "omegad.skills",
        "omegad.catalog.decision_state",
        "omegad.storage",
        *LEAVES,
    },
    "omegad.skills": {"omegad.catalog.events", "omegad.log.event"},  # other people's files
    "omegad.text.ingestion": {"omegad.runtime.errors"},  # rules over text, which know nothing of where it goes
    "omegad.requests.method": {
        "omegad.runtime.clock",
        "omegad.runtime.errors",
        "omegad.text.ingestion",
        "omegad.session.liveness",
        "omegad.log.decision",
        "omegad.log.event",
        "omegad.log.mending",
        "omegad.memory.types",
        "omegad.runtime.steadiness",
        "omegad.storage",
    },
    "omegad.catalog.methods": {"omegad.commands", "omegad.agents.hooks", "omegad.requests.method", "omegad.queries", "omegad.agents.tools"},
    # A tool knows methods by their names alone.
    "omegad.agents.tools": {
        "omegad.runtime.errors",
        "omegad.requests.method",
        "omegad.requests.query",
        "omegad.text.quoting",
        "omegad.runtime.times",
    },
    "omegad.catalog.describing": {"omegad", "omegad.requests.method", "omegad.catalog.methods", "omegad.agents.tools"},
    "omegad.hook_client": {"omegad.edge.hook.delivery"},
    "omegad.edge.hook.delivery": {"omegad.runtime.json_text", "omegad.agents.push_guard"},  # every import is paid for at every hook, these at few
    "omegad.agents.push_guard": {"omegad", "omegad.runtime.json_text", "omegad.text.quoting"},
    "omegad.agents.hooks": {
        "omegad.session.edits",
        "omegad.session.liveness",
        "omegad.session.projects",
        "omegad.agents.push_guard",  # knows each host's form of a verdict
        "omegad.commands",
        "omegad.catalog.events",
        "omegad.log.decision",
        "omegad.log.event",
        "omegad.memory.types",
        "omegad.requests.method",
        "omegad.queries",
        "omegad.text.quoting",
        "omegad.text.redaction",
        "omegad.catalog.decision_state",
        "omegad.storage",
        *LEAVES,
    },
    "omegad.queries": {
        "omegad.catalog.events",
        "omegad.text.evidence",
        "omegad.text.tokenizer",
        "omegad.session.liveness",
        "omegad.log.event",
        "omegad.log.verifying",  # the shape of its report
        "omegad.memory.types",
        "omegad.requests.method",
        "omegad.session.projects",
        "omegad.text.quoting",
        "omegad.text.redaction",
        "omegad.text.stems",
        "omegad.storage",
        *LEAVES,
    },  # a type has a weight in a ranking
    "omegad.search.model": set(),
    "omegad.search.ranking": {"omegad.search.model"},
    "omegad.catalog.reactions": {"omegad.requests.command", "omegad.log.decision", "omegad.log.event", "omegad.storage.driver"},
    "omegad.catalog.reactions.*": {
        "omegad.commands",
        "omegad.session.edits",
        "omegad.catalog.events",
        "omegad.log.event",
        "omegad.queries",
        "omegad.reactions.contract",
        "omegad.skills",
        "omegad.runtime.times",
    },  # a reaction is what it makes of an event, and reaches the world through its commands alone
    "omegad.session.capture": {  # what is worth remembering is a rule over text
        "omegad.session.capturing",
        "omegad.catalog.events",
        "omegad.text.ingestion.statements",
        "omegad.log.event",
        "omegad.queries",
        "omegad.reactions.contract",
    },
    "omegad.reactions.contract": {"omegad.requests.command", "omegad.log", "omegad.storage.driver"},
    "omegad.reactions.runner": {
        "omegad.commands",
        "omegad.log",
        "omegad.requests.method",
        "omegad.queries",
        "omegad.catalog.reactions",
        "omegad.text.redaction",
        "omegad.storage.driver",
        *LEAVES,
    },
    "omegad.session.delivery_sweep": {"omegad.session.deliveries", "omegad.log", "omegad.requests.method"},  # its window is the log's own
    "omegad.memory.embedding_backlog": {
        "omegad.requests.method",
        "omegad.commands",
        "omegad.dispatch",
        "omegad.embedding",
        "omegad.catalog.events",
        "omegad.log",
        "omegad.queries",
        "omegad.storage.driver",
        *LEAVES,
    },
    "omegad.dispatch": {
        "omegad.runtime.precedence",
        "omegad.runtime.digests",
        "omegad.session.liveness",
        "omegad.runtime.steadiness",
        "omegad.text.redaction",
        "omegad.catalog.decision_state",
        "omegad",
        "omegad.commands",
        "omegad.runtime.config",
        "omegad.embedding",
        "omegad.catalog.events",
        "omegad.agents.hooks",
        "omegad.text.ingestion",
        "omegad.runtime.json_text",
        "omegad.log",
        "omegad.memory.types",
        "omegad.queries",
        "omegad.requests.method",
        "omegad.catalog.methods",
        "omegad.rpc.protocol",
        "omegad.rpc.peer",
        "omegad.storage",
        "omegad.agents.tools",
        "omegad.views",
        "omegad.runtime.allocator",
        *LEAVES,
    },
    "omegad.embedding": {"omegad.runtime.allocator", "omegad.runtime.precedence", "omegad.storage", *LEAVES},
    "omegad.client": {
        "omegad.runtime.config",
        "omegad.rpc.answers",
        "omegad.rpc.async_client",
        "omegad.rpc.client",
    },  # the name that other people's programs import
    "omegad.rpc": {"omegad", "omegad.runtime.precedence", *LEAVES},
    "omegad.runtime.json_text": set(),  # whoever reads what others wrote
    "omegad.rpc.protocol": {"omegad.runtime.errors", "omegad.runtime.json_text"},
    "omegad.rpc.endpoint": {"omegad.runtime.errors"},
    "omegad.rpc.answers": {"omegad.runtime.errors", "omegad.rpc.protocol"},
    "omegad.rpc.client": {"omegad.runtime.errors", "omegad.rpc.answers", "omegad.rpc.endpoint", "omegad.rpc.protocol"},
    "omegad.rpc.async_client": {"omegad.runtime.errors", "omegad.rpc.answers", "omegad.rpc.client", "omegad.rpc.endpoint", "omegad.rpc.protocol"},
    "omegad.daemon": {
        "omegad.runtime.digests",
        "omegad.session.liveness",
        "omegad.runtime.steadiness",
        "omegad.requests.method",
        "omegad.catalog.methods",
        "omegad.log.event",
        "omegad.text.redaction",
        "omegad",
        "omegad.runtime.allocator",
        "omegad.commands",
        "omegad.runtime.config",
        "omegad.runtime.descriptors",
        "omegad.dispatch",
        "omegad.embedding",
        "omegad.catalog.events",
        "omegad.text.ingestion",
        "omegad.log",
        "omegad.memory.types",
        "omegad.queries",
        "omegad.catalog.reactions",
        "omegad.runtime.supervisor",
        "omegad.rpc",
        "omegad.skills",
        "omegad.storage",
        "omegad.runtime.telemetry",
        "omegad.log.projection",
        "omegad.catalog.decision_state",
        "omegad.operations.files",  # what a restore that was killed left behind
        "omegad.views",
        "projections",  # and nobody else
        *LEAVES,
    },
    "omegad.catalog.log_worker": {  # what the daemon composes that goes through the whole log, in a process of its own
        "omegad.embedding.lookup",
        "omegad.runtime.errors",
        "omegad.catalog.events",
        "omegad.log",
        "omegad.log.projection",
        "omegad.catalog.decision_state",
        "omegad.runtime.telemetry",
        "omegad.views",
        "projections",
    },
    "omegad.edge.setup": {"omegad", "omegad.runtime.errors"},  # knows the hosts, and nothing of the daemon
    "omegad.edge.mcp.lines": set(),
    "omegad.edge.mcp.bridge": {"omegad.runtime.json_text", "omegad.edge.mcp.lines"},  # started for every session, without the packages of others
    "omegad.runtime.versions": set(),  # what the gateway asks of bridges and of the daemon
    "omegad.session.projects": set(),  # the hooks of a session and its tools speak of one project
    "omegad.edge.mcp.gateway": {
        "omegad.session.projects",
        "omegad",
        "omegad.runtime.errors",
        "omegad.runtime.json_text",
        "omegad.rpc.accepting",
        "omegad.rpc.async_client",
        "omegad.rpc.endpoint",
        "omegad.rpc.protocol",
        "omegad.agents.tools.protocol",
        "omegad.runtime.versions",
    },  # a client of the socket like any other
    "omegad.edge.mcp.http": {"omegad.edge.mcp.gateway", "omegad.rpc.accepting"},
    "omegad.edge.cli": {
        "omegad",
        "omegad.runtime.allocator",
        "omegad.runtime.config",
        "omegad.edge.mcp.gateway",
        "omegad.edge.mcp.http",
        "omegad.runtime.versions",
        "omegad.daemon",  # within `serve` alone, see below
        "omegad.runtime.descriptors",
        "omegad.embedding.catalogue",
        "omegad.embedding.install",
        "omegad.edge.setup",
        "omegad.rpc.async_client",
        "omegad.rpc.client",
        "omegad.rpc.endpoint",
        "omegad.rpc.protocol",
        "omegad.runtime.telemetry",  # within `gateway`
        *LEAVES,
    },
    "omegad.edge.transfer": {
        "omegad.catalog.events",  # of which one says what was erased
        "omegad.text.ingestion.statements",
        "omegad.runtime.json_text",
        "omegad.log",
        "omegad.memory.types",
        "omegad.session.projects",
        "omegad.storage",
        "omegad.views.log_check",
        *LEAVES,
    },
    "omegad.edge.cli.transfer": {
        "omegad.edge.cli",
        "omegad.rpc.endpoint",
        "omegad.edge.transfer",
    },  # they work on files that no daemon need serve
    "omegad.edge.cli.importing": {
        "omegad.edge.cli",
        "omegad.runtime.digests",
        "omegad.text.redaction",
        "omegad.rpc.async_client",
        "omegad.edge.transfer",
        *LEAVES,
    },
    "omegad.edge.cli.salvage": {
        "omegad.edge.cli",
        "omegad.rpc.endpoint",
        "omegad.storage",
        "omegad.views",
        *LEAVES,
    },  # it reads views that no daemon serves
    "projections": {"omegad.log.projection"},
    "projections.*": {
        "omegad.log.event",
        "omegad.log.mending",
        "omegad.catalog.events",
        "omegad.text.tokenizer",
        "omegad.runtime.times",
        "omegad.text.voice",
        "omegad.log.projection",
    },  # how a time is written, not what time it is
}

MODULE_OF = {"PyStemmer": "Stemmer", "python-dateutil": "dateutil"}
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
        "fractions",
        "functools",
    ),
    *("hashlib", "heapq", "itertools", "json", "math", "operator", "re", "statistics", "string", "textwrap", "types", "typing", "unicodedata"),
}

OUTSIDE: dict[str, set[str]] = {
    # Which top-level modules of others a row may import; rows that are not here may import every declared dependency.
    "omegad": set(),
    "omegad.runtime.errors": STDLIB,
    "omegad.runtime.clock": STDLIB | {"msgspec"},
    "omegad.runtime.times": PURE | {"msgspec"},
    "omegad.session.liveness": PURE | {"msgspec", "time"},  # what the clock shows is compared with the time that went by
    "omegad.memory.types": PURE | {"msgspec"},
    "omegad.text.tokenizer": PURE,
    "omegad.text.stems": PURE | {"Stemmer", "threading"},
    "omegad.text.voice": PURE | {"msgspec"},
    "omegad.runtime.config": STDLIB | {"msgspec"},
    "omegad.runtime.telemetry": STDLIB | {"msgspec", "structlog"},
    "omegad.catalog.events": PURE | {"msgspec"},
    "omegad.log.projection": PURE | {"msgspec"},
    "omegad.text.evidence": PURE | {"msgspec"},
    "omegad.commands": PURE | {"msgspec"},
    "omegad.requests.method": PURE | {"msgspec", "pathlib"},
    "omegad.catalog.methods": PURE,
    "omegad.agents.tools": PURE | {"msgspec"},
    "omegad.hook_client": STDLIB,
    "omegad.edge.hook.delivery": STDLIB,
    "omegad.agents.push_guard": STDLIB,
    "omegad.agents.hooks": PURE | {"msgspec"},
    "omegad.agents.hooks.hosts": PURE | {"msgspec"},
    "omegad.agents.hooks.surfacing": PURE | {"msgspec", "pathlib"},
    "omegad.session.projects": PURE | {"pathlib", "posixpath", "urllib"},  # looks for the repository that a folder is in
    "omegad.text.ingestion": STDLIB | {"msgspec"},  # reads its rules from files
    "omegad.catalog.reactions": STDLIB | {"anyio", "msgspec", "structlog"},
    "omegad.catalog.reactions.*": PURE | {"msgspec"},
    "omegad.session.capture": PURE,
    "omegad.reactions.contract": PURE | {"msgspec"},
    "omegad.reactions.runner": STDLIB | {"anyio", "msgspec", "structlog"},
    "omegad.session.delivery_sweep": STDLIB | {"anyio"},
    "omegad.memory.embedding_backlog": STDLIB | {"anyio", "msgspec", "structlog"},
    "omegad.operations.self_check": STDLIB | {"msgspec"},  # what it found is in a file beside the log
    "omegad.search.model": PURE | {"importlib", "msgspec", "numpy"},  # reads its weights from a file beside it
    "omegad.search.ranking": PURE | {"msgspec", "numpy"},
    "omegad.edge.setup": STDLIB,
    "omegad.runtime.json_text": STDLIB,
    "omegad.edge.mcp.lines": STDLIB,
    "omegad.edge.mcp.bridge": STDLIB,
    "omegad.runtime.descriptors": STDLIB,
    "omegad.edge.mcp.gateway": STDLIB | {"anyio", "mcp", "msgspec", "structlog"},
    "omegad.edge.mcp.http": STDLIB | {"anyio", "h11", "mcp", "pydantic", "starlette", "structlog", "uvicorn"},
    "omegad.runtime.versions": PURE,
    "omegad.rpc.protocol": STDLIB | {"msgspec"},
    "omegad.rpc.endpoint": STDLIB,
    "omegad.rpc.accepting": STDLIB | {"anyio", "structlog"},
    "omegad.rpc.answers": STDLIB | {"msgspec"},
    "omegad.rpc.client": STDLIB | {"msgspec"},
    "omegad.rpc.async_client": STDLIB | {"msgspec"},
    "projections": PURE | {"msgspec"},
    "projections.*": PURE | {"msgspec"},
}

WORLDLY = {"open", "print", "input", "eval", "exec", "breakpoint"}  # builtins that no pure module calls
PRESENT = {"now", "utcnow", "today"}  # what of datetime asks for the time
UNREPEATABLE_SQL = re.compile(r"\bAUTOINCREMENT\b|\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b|'now'|\brandom(?:blob)?\s*\(", re.IGNORECASE)

TRANSACTIONS = {"omegad/storage/": "the one place that opens and ends a transaction"}
TRANSACTION_SQL = re.compile(r"(?:^|;)\s*(?:BEGIN|COMMIT|END TRANSACTION|ROLLBACK|SAVEPOINT|RELEASE)\b")

LOOSE_TASKS: dict[str, str] = {
    # path: why a task there belongs to no task group
    "omegad/rpc/server.py": "requests belong to the asyncio.TaskGroup of `serve`, whose tasks cost a third of anyio's",
}

BROAD_EXCEPTS: dict[str, str] = {
    # path: why every exception is caught there and not raised again
    "omegad/log/event_log.py": "whoever waits for an append is told, whatever it was",
    "omegad/log/appending.py": "a mistake in one decision is told to its own caller and spoils no other of the batch",
    "omegad/embedding/embedder.py": "the model's runtime and its tokenizer raise bare Exceptions, and this is where they enter",
    "omegad/reactions/runner.py": "what a reaction fails on is set aside, and the next event is another matter",
    "omegad/runtime/reaching.py": "what a thread fails on is told to whoever waits for it",
    "omegad/requests/running.py": "of commands that share a commit one that cannot be prepared is told of, and the others go on",
    "omegad/agents/spool.py": "what cannot be taken in now is tried again, and holds nothing else up",
    "omegad/hook_client.py": "a host takes any other end of a hook for a verdict, or shows it to the person",
    "omegad/edge/hook/delivery.py": "what the push guard fails on keeps nobody from pushing, nor does a daemon from hearing the guard",
    "omegad/rpc/server.py": "a mistake in one request must not end the service for everyone",
    "omegad/views/applying.py": "whatever a projection raises is its own failure, noted with its position, and the others go on",
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
        modules.append(Module(name, relative.as_posix(), ast.parse(path.read_text(encoding="utf-8"), str(path))))
    known = {module.name for module in modules}
    return Tree(root, modules, [found for module in modules for found in _imports(module, module.tree, known, "")])


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
            yield from (f"{source}.{alias.name}" if f"{source}.{alias.name}" in known else source for alias in names)
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]
        ):
            yield name
        case _:
            pass


def row_of(name: str, table: dict[str, set[str]]) -> tuple[str, str]:
    """Return the key of the row that judges *name*, and the name under which it is at home; two empty strings where there is none."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        prefix, parent = ".".join(parts[:length]), ".".join(parts[: length - 1])
        if prefix in table and (prefix != "omegad" or name == "omegad"):
            return prefix, prefix
        if f"{parent}.*" in table:
            return f"{parent}.*", prefix
    return "", ""


def is_ours(name: str) -> bool:
    """Say whether *name* is a module of this project."""
    return name.partition(".")[0] in OURS


def lies_under(name: str, above: str) -> bool:
    """Say whether *name* is *above* or is found below it."""
    return name == above or (above != "omegad" and name.startswith(f"{above}."))


def forbidden_edges(tree: Tree) -> Iterator[str]:
    for found in tree.imports:
        row, home = row_of(found.importer, MAY_IMPORT)
        allowed = {home, *MAY_IMPORT.get(row, ())}
        if is_ours(found.target) and not any(lies_under(found.target, above) for above in allowed):
            yield f"{found.place}: {found.importer} imports {found.target}, which the row {row!r} of MAY_IMPORT does not allow"


def modules_without_row(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        if not row_of(module.name, MAY_IMPORT)[0]:
            yield f"{module.path}: {module.name} has no row in MAY_IMPORT"


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
            yield f"{found.place}: {found.importer} imports {top}, which the row {row!r} of OUTSIDE does not allow"


def undeclared_dependencies(tree: Tree) -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
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
                case ast.Attribute(value=ast.Name(id="datetime" | "date") | ast.Attribute(attr="datetime" | "date"), attr=name) if name in PRESENT:
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
        if lies_under(found.importer, "omegad.edge.cli") and lies_under(found.target, "omegad.daemon") and found.function.strip("_") != "serve":
            yield f"{found.place}: only the function `serve` imports omegad.daemon, so that no other verb waits for it to load"


def loose_tasks(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Attribute(value=ast.Name(id=owner), attr="create_task") if owner.endswith("group"):
                    pass
                case ast.Attribute(attr="create_task" | "ensure_future" as name) | ast.alias(name="create_task" | "ensure_future" as name):
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
        if TRANSACTION_SQL.search(re.sub(r"--.*", "", path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(tree.root)}: a transaction is opened in omegad/storage alone"


def scripts(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr == "executescript":
                yield f"{module.path}:{node.lineno}: executescript commits the transaction it is called in; execute one statement at a time"


def broad_excepts(tree: Tree) -> Iterator[str]:
    for module in tree.modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.ExceptHandler(type=kind, body=body) if _is_broad(kind) and not isinstance(body[-1], ast.Raise):
                    pass
                case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=kinds) if any(map(_is_broad, kinds)):
                    pass
                case _:
                    continue
            if not excused(module.path, BROAD_EXCEPTS):
                yield f"{module.path}:{node.lineno}: catches every exception and goes on; name the ones that are meant"


def _is_broad(kind: ast.expr | None) -> bool:
    names = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(name is None or (isinstance(name, ast.Name) and name.id in {"Exception", "BaseException"}) for name in names)


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
    *(forbidden_edges, modules_without_row, circles, forbidden_outsiders, undeclared_dependencies, impurities, unrepeatable_sql),
    *(daemon_outside_serve, loose_tasks, strewn_transactions, scripts, broad_excepts),
]


@pytest.fixture(scope="module")
def project() -> Tree:
    return read(ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_code_keeps_the_rule(check: Check, project: Tree) -> None:
    assert "\n".join(check(project)) == ""


def test_every_row_and_every_excuse_names_something_that_is_there(project: Tree) -> None:
    rows_in_use = {row_of(module.name, table)[0] for module in project.modules for table in (MAY_IMPORT, OUTSIDE)}
    assert {*MAY_IMPORT, *OUTSIDE} - rows_in_use == set()
    assert [path for path in {*TRANSACTIONS, *LOOSE_TASKS, *BROAD_EXCEPTS} if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    ("check", "path", "text"),
    [
        (forbidden_edges, "omegad/memory/events.py", "from omegad.runtime.errors import Refused"),
        (forbidden_edges, "omegad/memory/events.py", "from omegad import errors"),
        (forbidden_edges, "omegad/memory/events.py", "from .. import errors"),
        (forbidden_edges, "omegad/memory/events.py", "def late():\n    import omegad.runtime.errors"),
        (forbidden_edges, "omegad/memory/events.py", "if TYPE_CHECKING:\n    from omegad.runtime.errors import Refused"),
        (forbidden_edges, "omegad/memory/events.py", "import importlib\nimportlib.import_module('omegad.runtime.errors')"),
        (forbidden_edges, "omegad/log/event_log.py", "import projections"),
        (forbidden_edges, "omegad/edge/cli/views.py", "from projections import edges"),
        (forbidden_edges, "omegad/log/projection.py", "from omegad.views import driver"),
        (forbidden_edges, "omegad/search/ranking.py", "from omegad.queries import search"),
        (forbidden_edges, "projections/memories.py", "from projections import edges"),
        (forbidden_edges, "projections/memories.py", "import projections"),
        (forbidden_edges, "projections/memories.py", "from omegad.views.driver import Driver"),
        (forbidden_edges, "omegad/text/tokenizer.py", "from omegad.runtime.errors import Refused"),
        (forbidden_edges, "omegad/memory/types.py", "from omegad.catalog.events import memory"),
        (forbidden_edges, "omegad/text/ingestion/noise.py", "from omegad.log import event_log"),
        (modules_without_row, "omegad/manager.py", ""),
        (circles, "omegad/runtime/errors.py", "def late():\n    from omegad.log import event_log"),
        (forbidden_outsiders, "projections/memories.py", "import time"),
        (forbidden_outsiders, "omegad/commands/memory.py", "from sqlite3 import connect"),
        (forbidden_outsiders, "omegad/rpc/client.py", "import anyio"),
        (undeclared_dependencies, "omegad/storage/database.py", "import requests"),
        (forbidden_outsiders, "omegad/text/tokenizer.py", "import msgspec"),
        (impurities, "omegad/text/tokenizer.py", "print('found')"),
        (impurities, "projections/memories.py", "import datetime\ndatetime.datetime.now()"),
        (impurities, "omegad/commands/memory.py", "from datetime import date\ndate.today()"),
        (impurities, "omegad/search/ranking.py", "open('weights')"),
        (unrepeatable_sql, "projections/memories.py", "SCHEMA = \"CREATE TABLE t (at TEXT DEFAULT (datetime('now')))\""),
        (unrepeatable_sql, "projections/memories.py", 'SCHEMA = "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)"'),
        (daemon_outside_serve, "omegad/edge/cli/daemon.py", "from omegad import daemon"),
        (daemon_outside_serve, "omegad/edge/cli/daemon.py", "def start():\n    import omegad.daemon"),
        (loose_tasks, "omegad/views/driver.py", "import asyncio\nasyncio.create_task(work())"),
        (loose_tasks, "omegad/views/driver.py", "from asyncio import ensure_future"),
        (loose_tasks, "omegad/views/driver.py", "loop().create_task(work())"),
        (strewn_transactions, "omegad/log/event_log.py", "connection.execute('BEGIN IMMEDIATE')"),
        (strewn_transactions, "omegad/log/event_log.py", "connection.commit()"),
        (strewn_transactions, "omegad/log/schema.sql", "-- all or nothing\nBEGIN;\nCREATE TABLE t (a);\nCOMMIT;"),
        (broad_excepts, "omegad/views/rebuild.py", "try:\n    work()\nexcept Exception:\n    pass"),
        (broad_excepts, "omegad/views/rebuild.py", "try:\n    work()\nexcept (OSError, BaseException) as error:\n    log(error)"),
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
        "omegad/catalog/events.py": "from omegad.catalog.events import memory",
        "omegad/memory/events.py": "import msgspec",
        "omegad/storage/transaction.py": "execute('BEGIN')\ntry:\n    work()\nexcept BaseException:\n    undo()\n    raise",
        "omegad/log/schema.sql": "CREATE TRIGGER t BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is immutable'); END;",
        "omegad/log/event_log.py": '"""BEGIN."""\nfrom omegad import errors\nfrom omegad.storage import transaction\nimport anyio',
        "omegad/log/projection.py": "from omegad.log import event",
        "omegad/log/event.py": "",
        "omegad/views/driver.py": "from omegad import projection\ntask_group.create_task(projection.work())",
        "omegad/queries/search.py": "from omegad.search.ranking import score",
        "omegad/search/ranking.py": "import numpy",
        "omegad/rpc/client.py": "import asyncio\nimport msgspec\nfrom omegad.rpc import protocol",
        "omegad/rpc/protocol.py": "",
        "omegad/daemon.py": "from projections import ALL\nimport omegad.log.event_log",
        "omegad/edge/cli/__init__.py": "def serve():\n    from omegad import daemon",
        "projections/__init__.py": "from projections import edges, memories",
        "projections/edges.py": "from omegad.memory.events import MemoryStored\nfrom omegad import projection",
        "projections/memories.py": "import json",
    }
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
