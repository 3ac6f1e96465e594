"""The systems that are measured: how each is started, told a note and asked a question, as its users do."""

import os
import re
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import msgspec

from omegad.client.blocking import Client
from omegad.embedding.catalogue import MINILM
from omegad.runtime.errors import NoDaemon, OmegadError
from tests.bench import homes
from tests.bench.peers.mcp import PeerFailed, StdioServer, ToolRefused
from tests.bench.texts import Note

START_S = 120.0
ANSWER_S = 60.0
LOOK_EVERY_S = 0.005
RESULTS = 10
TOLD_APART = 100  # characters of a note, which every system shows of it
PHRASE = 40  # characters of a note, for what finds nothing but phrases
HYBRID, SEMANTIC, WORDS = "hybrid", "semantic", "words"
MODES = (HYBRID, SEMANTIC, WORDS)
KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")

Tool = tuple[str, dict[str, object]]
"""A tool's name, and what it is given."""


class Asked(Protocol):
    """What is told notes and asked questions."""

    def store(self, note: Note, /) -> str:
        """Have a note remembered; return why it was not taken, "" where it was. Raises `PeerFailed`."""
        ...

    def ask(self, mode: str, note: Note, /) -> list[str]:
        """Ask what *note* answers; return how each result begins, the best first. Raises `PeerFailed`."""
        ...


class System(ABC):
    """A memory service at work in a folder of its own, which outlives its processes."""

    def __init__(self, name: str, version: str, folder: Path) -> None:
        self.name, self.version, self.folder = name, version, folder
        self.stack = ExitStack()
        folder.mkdir(parents=True)

    modes: tuple[str, ...] = MODES

    @abstractmethod
    def start(self) -> None:
        """Start it. Raises `PeerFailed` where it does not answer in time."""

    def stop(self) -> None:
        """End its processes."""
        self.stack.close()

    @abstractmethod
    def store(self, note: Note) -> str:
        """As `Asked` says."""

    @abstractmethod
    def ask(self, mode: str, note: Note) -> list[str]:
        """As `Asked` says."""

    @abstractmethod
    def processes(self) -> list[int]:
        """Return the processes that serve it, without those that these started."""

    def models(self) -> list[Path]:
        """Return the folders with models in its own, which are not counted."""
        return []


class Omegad(System):
    """omegad of some environment, asked through its socket by a client that holds one connection."""

    def __init__(self, name: str, version: str, folder: Path, python: str) -> None:
        super().__init__(name, version, folder)
        self._python = python
        self.environment = homes.environment(folder / "home", MINILM.name)
        self._daemon: subprocess.Popen[bytes]
        self._client: Client

    def start(self) -> None:
        paths, started_s = homes.paths_of(self.folder / "home"), time.perf_counter()
        output = self.stack.enter_context((self.folder / "daemon.out").open("ab"))
        self._daemon = subprocess.Popen(
            [self._python, "-m", "omegad", "serve"],
            env=self.environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
        )
        self.stack.callback(self._end)
        while True:
            try:
                self._client = self.stack.enter_context(Client(paths.socket, timeout_s=ANSWER_S))
                break
            except NoDaemon as error:
                if self._daemon.poll() is not None or time.perf_counter() > started_s + START_S:
                    said = (self.folder / "daemon.out").read_text(encoding="utf-8")[-1000:]
                    raise PeerFailed(f"the daemon does not listen: {said}") from error
                time.sleep(LOOK_EVERY_S)

    def _end(self) -> None:
        self._daemon.terminate()
        try:
            self._daemon.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()

    def store(self, note: Note) -> str:
        given = {"event_type": note.event_type, "session_id": note.session_id, "project": note.project}
        self._call("memory.store", content=note.content, **given)
        return ""

    def ask(self, mode: str, note: Note) -> list[str]:
        asked = {WORDS: "keyword"}.get(mode, mode)
        answer = self._call("memory.query", text=note.question, mode=asked, limit=RESULTS)
        return [result["content"][:TOLD_APART] for result in answer["results"]]

    def _call(self, method: str, **params: object) -> Any:
        try:
            answer = self._client.call(method, **params)
        except OmegadError as error:
            raise PeerFailed(f"{method}: {error}") from error
        if answer["degraded"]:
            raise PeerFailed(f"{method}: answered without its model: {answer['degraded']}")
        return answer

    def processes(self) -> list[int]:
        return [self._daemon.pid]


class Adapter(msgspec.Struct, frozen=True, kw_only=True):
    """How a server of MCP is installed and asked. Settings are the peer's own; all else is as it comes."""

    name: str
    package: str
    requirement: str
    command: tuple[str, ...]
    """A program of its environment, and its arguments."""
    settings: Mapping[str, str] = {}
    model: str = ""
    """Where in its user's home it looks for the model."""
    store: Callable[[Note], Tool]
    asks: Mapping[str, Callable[[Note], Tool]]
    result: re.Pattern[str]
    """What stands before each result."""


class McpSystem(System):
    """A server of MCP on standard input and output, as agents' hosts start it."""

    def __init__(self, adapter: Adapter, version: str, folder: Path, programs: Path, model: Path) -> None:
        """Take the folder with its environment's programs, and that with the model for it."""
        super().__init__(adapter.name, version, folder)
        self._adapter = adapter
        self._command = [str(programs / adapter.command[0]), *adapter.command[1:]]
        self._environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self._environment |= {"HOME": str(folder), "HF_HUB_OFFLINE": "1", **adapter.settings}
        self._model = folder / adapter.model
        self._model.parent.mkdir(parents=True, exist_ok=True)
        self._model.symlink_to(model)
        self.modes = tuple(adapter.asks)
        self._server: StdioServer

    def start(self) -> None:
        server = StdioServer(self._command, self._environment, self.folder, START_S)
        self._server = self.stack.enter_context(server)

    def store(self, note: Note) -> str:
        try:
            self._server.tool(*self._adapter.store(note), ANSWER_S)
        except ToolRefused as refusal:  # as of what it takes for a duplicate
            return str(refusal)
        return ""

    def ask(self, mode: str, note: Note) -> list[str]:
        said = self._server.tool(*self._adapter.asks[mode](note), ANSWER_S)
        return [one.strip()[:TOLD_APART] for one in self._adapter.result.split(said)[1:]]

    def processes(self) -> list[int]:
        return [self._server.process.pid]

    def models(self) -> list[Path]:
        return [self._model]


class OmegadByMcp(Omegad):
    """omegad asked through `omegad mcp`, beside its daemon."""

    def __init__(self, name: str, version: str, folder: Path, python: str) -> None:
        super().__init__(name, version, folder, python)
        self._command = [python, "-m", "omegad", "mcp"]
        self._bridge: StdioServer

    def start(self) -> None:
        super().start()
        bridge = StdioServer(self._command, self.environment, self.folder, START_S)
        self._bridge = self.stack.enter_context(bridge)

    def store(self, note: Note) -> str:
        given = {"content": note.content, "event_type": note.event_type, "project": note.project}
        self._bridge.tool("omega_store", given, ANSWER_S)
        return ""

    def ask(self, mode: str, note: Note) -> list[str]:
        asked = {WORDS: "keyword"}.get(mode, mode)
        given = {"query": note.question, "mode": asked, "limit": RESULTS, "project": "*"}
        said = self._bridge.tool("omega_query", given, ANSWER_S)
        return [one.strip()[:TOLD_APART] for one in re.split(r"(?m)^- mem-\w+ \[[^\]]*\] ", said)[1:]]

    def processes(self) -> list[int]:
        return [*super().processes(), self._bridge.process.pid]


def _called(tool: str, **given: object) -> Tool:
    return "omega_call", {"tool": tool, "args": given}


OMEGA_MEMORY = Adapter(
    name="omega-memory",
    package="omega-memory",
    requirement="omega-memory[server]",
    command=("omega", "serve"),
    settings={
        "OMEGA_EMBEDDING_MODEL": MINILM.name,
        "OMEGA_CROSS_ENCODER": "0",  # a second model for the order of results, which none of the others has
        # It lets a client write 60 times a minute unless it is told otherwise.
        "OMEGA_RATE_LIMIT_GLOBAL": "1000000",
        "OMEGA_RATE_LIMIT_WRITE": "1000000",
    },
    model=f".cache/omega/models/{MINILM.name}-onnx",
    store=lambda note: (
        "omega_store",
        {
            "content": note.content,
            "event_type": note.event_type,
            "session_id": note.session_id,
            "project": note.project,
        },
    ),
    # Its usual search, which it calls semantic, looks at words as well.
    asks={
        HYBRID: lambda note: _called("omega_query", query=note.question, limit=RESULTS),
        WORDS: lambda note: _called("omega_query", query=note.content[:PHRASE], mode="phrase", limit=RESULTS),
    },
    result=re.compile(r"(?m)^## \d+\. .*\n"),
)
_KINDS = {"decision": "decision", "lesson_learned": "learning", "error_pattern": "error"}
MCP_MEMORY_SERVICE = Adapter(
    name="mcp-memory-service",
    package="mcp-memory-service",
    requirement="mcp-memory-service[sqlite]",
    command=("memory", "server"),
    settings={"MCP_MEMORY_USE_ONNX": "1", "MCP_MEMORY_ONNX_ALLOW_DOWNLOAD": "0"},
    model=f".cache/mcp_memory/onnx_models/{MINILM.name}/onnx",
    store=lambda note: (
        "memory_store",
        {
            "content": note.content,
            "metadata": {
                "tags": [note.project, note.session_id],
                "type": _KINDS.get(note.event_type, "observation"),
            },
        },
    ),
    asks={
        HYBRID: lambda note: ("memory_search", {"query": note.question, "mode": "hybrid", "limit": RESULTS}),
        SEMANTIC: lambda note: ("memory_search", {"query": note.question, "limit": RESULTS}),
        WORDS: lambda note: (
            "memory_search",
            {"query": note.content[:PHRASE], "mode": "exact", "limit": RESULTS},
        ),
    },
    result=re.compile(r"(?m)^\d+\. "),
)
PEERS = (OMEGA_MEMORY, MCP_MEMORY_SERVICE)
