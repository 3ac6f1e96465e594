"""What can be set: one Struct, read from config.toml in the home and then OMEGAD_* variables, validated once.

Boundary: the composition root and the command line read it; everything else is handed the values it needs.
"""

import difflib
import hashlib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omegad.errors import BadConfiguration
from omegad.memory_types import BUILT_IN, MemoryType

SOCKET_PATH_BYTES_MAX = 103  # the shortest sun_path of the supported systems (macOS), less its final NUL
PREFIX = "OMEGAD_"
PLACES = {"OMEGAD_HOME", "OMEGAD_SOCKET"}  # where things are, not how they behave

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a daemon behaves. Every field is a key of config.toml; `model` is also OMEGAD_MODEL, and so on."""

    model: Literal["auto", "all-MiniLM-L6-v2", "bge-small-en-v1.5", "none"] = "auto"
    """Which embedding model to use: `auto` takes the best one that is installed, `none` searches full text alone."""
    model_idle_unload_s: Seconds = 900.0
    """Unload the model from memory after so many seconds without use."""
    connections_max: Positive = 512
    requests_in_flight_max: Positive = 64
    """Requests of one connection that may be waiting for their answers; more are not read until some are answered."""
    line_bytes_max: Annotated[int, Meta(ge=1024)] = 16 * 1024 * 1024
    readers: Annotated[int, Meta(ge=1, le=16)] = 2
    """Connections that answer queries, each on a thread of its own."""
    fresh_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 250
    """How long a query waits for the views to show what other clients have stored, before it says how stale it is."""
    query_timeout_s: Seconds = 2.0
    """After so long a query falls back from meaning to keywords."""
    shutdown_s: Seconds = 5.0
    """How long a stopping daemon gives running requests to end."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    event_types: dict[str, MemoryType] = {}
    """Memory types beside the built-in ones, by name; of a built-in one what is to be otherwise."""


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """Where one home's files are."""

    home: Path
    socket: Path
    models: Path

    @property
    def log(self) -> Path:
        """The event log: the data."""
        return self.home / "log.db"

    @property
    def embeddings(self) -> Path:
        """The cache of computed vectors."""
        return self.home / "embeddings.db"

    @property
    def spool(self) -> Path:
        """Where hooks leave what no daemon took."""
        return self.home / "spool"

    @property
    def lock(self) -> Path:
        """Held by the daemon that serves the home."""
        return self.home / "omegad.lock"

    @property
    def daemon_log(self) -> Path:
        """What a daemon started in the background prints."""
        return self.home / "omegad.log"

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.home / "config.toml"


def find_paths(environ: Mapping[str, str] = os.environ) -> Paths:
    """Say where the home, its socket and the models are, from the environment alone."""
    default_home = Path("~/.omegad").expanduser()
    home = Path(environ.get("OMEGAD_HOME") or default_home).expanduser().absolute()
    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute()
    return Paths(home=home, socket=_socket(home, environ, is_default=home == default_home), models=cache / "omegad" / "models")


def _socket(home: Path, environ: Mapping[str, str], *, is_default: bool) -> Path:
    if explicit := environ.get("OMEGAD_SOCKET"):
        path = Path(explicit).expanduser().absolute()
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
            raise BadConfiguration(f"OMEGAD_SOCKET is longer than {SOCKET_PATH_BYTES_MAX} bytes", hint="choose a shorter path")
        return path
    runtime = Path(environ.get("XDG_RUNTIME_DIR", ""))
    candidates = [runtime / "omegad" / "omegad.sock"] if is_default and runtime.is_absolute() else []
    for path in (*candidates, home / "run" / "omegad.sock"):
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
            return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path(f"/tmp/omegad-{os.getuid()}") / f"{digest}.sock"  # noqa: S108  the directory's owner and mode are checked before use


def load(paths: Paths, environ: Mapping[str, str] = os.environ) -> Config:
    """Read config.toml and the OMEGAD_* variables, which win.

    Raises `BadConfiguration` for a file that is not TOML, an unknown name (with the nearest known one) or a bad value.
    """
    values: dict[str, Any] = {}
    if paths.config.exists():
        try:
            values = tomllib.loads(paths.config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise BadConfiguration(f"{paths.config}: {error}") from error
    values |= {name.removeprefix(PREFIX).lower(): text for name, text in environ.items() if name.startswith(PREFIX) and name not in PLACES}
    known = Config.__struct_fields__
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise BadConfiguration(f"unknown setting {name!r}", hint=f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}")
    if isinstance(types := values.get("event_types"), dict):
        # What is said of a built-in type changes that and nothing else of it.
        values["event_types"] = {name: _over_built_in(name, table) for name, table in types.items()}
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise BadConfiguration(str(error)) from error


def _over_built_in(name: str, table: object) -> object:
    return {**msgspec.to_builtins(BUILT_IN[name]), **table} if name in BUILT_IN and isinstance(table, dict) else table
