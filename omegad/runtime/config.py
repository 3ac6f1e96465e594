"""What can be set: one Struct, read from config.toml in the home and then OMEGAD_* variables, validated once.

Boundary: the composition root and the command line read it; everything else is handed the values it needs.
"""

import difflib
import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from omegad.runtime import unfit
from omegad.runtime.errors import BadConfiguration

SOCKET_PATH_BYTES_MAX = 103  # the shortest sun_path of the supported systems (macOS), less its final NUL
PREFIX = "OMEGAD_"
PLACES = {
    "OMEGAD_HOME",
    "OMEGAD_SOCKET",
    "OMEGAD_PAUSED",
    "OMEGAD_SHARE_URL",
}  # of a process, not how a daemon behaves

Positive = Annotated[int, Meta(ge=1)]
Days = Annotated[int, Meta(ge=0, le=36_500)]
Seconds = Annotated[float, Meta(gt=0)]
Printed = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f]{0,4096}\Z")]
Line = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f]{1,200}\Z")]

PROVIDERS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
"""Where the provider of each API answers."""


class ConsultedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model that may be asked for a second opinion: a table [consult.models.NAME]. Its key is never here,
    but in the keyring, or in a file of its own.
    """

    api: Literal["openai", "anthropic"]
    """What is spoken: chat completions, as most servers of local models do, or messages."""
    model: Line
    """What the provider calls it."""
    base_url: str = ""
    """The provider's own where nothing is said; http is for addresses of this machine alone."""
    key_file: Printed = ""
    """A file of mode 0600 outside the home that holds the key."""
    keyring: Printed = ""
    """SERVICE/USER, under which the system's keyring has the key."""
    strengths: Annotated[tuple[Line, ...], Meta(max_length=32)] = ()
    """What it is good at, in the words in which tasks are put."""
    context_tokens: Positive = 128_000
    output_tokens: Annotated[int, Meta(ge=16, le=100_000)] = 2_000
    """How long an answer may be."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    """What it costs, in whatever unit: of models that fit as well the cheapest is chosen."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address that keys and questions must not be sent to. It is not quoted: a
        key may be in it.
        """
        if self.key_file and self.keyring:
            raise ValueError("name key_file or keyring, not both")
        if self.keyring and not re.fullmatch(r"[^/]+/[^/]+", self.keyring):
            raise ValueError("keyring is not of the form SERVICE/USER")
        if not self.url.isascii() or re.search(r"[\x00-\x20\x7f]", self.url):
            raise ValueError("base_url has a character that no address has")
        parts = urlsplit(self.url)
        if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("base_url is more or less than scheme, host, port and path")
        _ = parts.port  # which raises for what is none
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
            raise ValueError("base_url is not https; http is for addresses of this machine alone")

    @property
    def url(self) -> str:
        """Where it is asked, without a slash at the end."""
        return (self.base_url or PROVIDERS[self.api]).rstrip("/")

    @property
    def host(self) -> str:
        """Whom the question goes to."""
        return urlsplit(self.url).netloc


class Consult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How other models are asked for a second opinion, if there are any; the daemon asks none."""

    calls_per_day: Positive = 20
    tokens_per_day: Positive = 200_000
    """Of questions and answers, all models together."""
    timeout_s: Annotated[float, Meta(gt=0, le=600)] = 50.0
    """Of a question with all that belongs to it. Many hosts give a tool's call up after 60 s."""
    default: str = ""
    """The model that is asked where none is named; the one that fits best where nothing is said."""
    models: Annotated[dict[str, ConsultedModel], Meta(max_length=32)] = {}

    def __post_init__(self) -> None:
        """Raise `ValueError` for names that cannot be."""
        for name in self.models:
            if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,39}", name):
                raise ValueError(
                    "the name of a model is of small letters, digits, dots and dashes, 40 at most"
                )
        if self.default and self.default not in self.models:
            raise ValueError(f"default is none of the models, which are: {', '.join(self.models) or 'none'}")


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a daemon behaves. Every field is a key of config.toml; `model` is also OMEGAD_MODEL, and so on."""

    model: Literal["auto", "all-MiniLM-L6-v2", "bge-small-en-v1.5", "multilingual-e5-small", "none"] = "auto"
    """Which embedding model to use: `auto` takes the best one that is installed, `none` searches full text
    alone.
    """
    model_idle_unload_s: Seconds = 900.0
    """Unload the model from memory after so many seconds without use."""
    connections_max: Positive = 512
    requests_in_flight_max: Positive = 64
    """Requests of one connection that may be waiting for their answers; more are not read until some are
    answered.
    """
    line_bytes_max: Annotated[int, Meta(ge=1024, le=1024**3)] = 16 * 1024 * 1024
    readers: Annotated[int, Meta(ge=1, le=16)] = 2
    """Connections that answer queries, each on a thread of its own."""
    fresh_wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 250
    """How long a query waits for the views to show what other clients have stored, before it says how
    stale it is.
    """
    query_timeout_s: Seconds = 2.0
    """After so long a query falls back from meaning to keywords."""
    read_timeout_s: Seconds = 5.0
    """A read may take so long, and a hook's a quarter of it; then it is interrupted and refused."""
    report_timeout_s: Seconds = 30.0
    """What goes through much may take so long: the lint, pages of the log, lists of what is stale or junk."""
    shutdown_s: Seconds = 5.0
    """How long a stopping daemon gives running requests to end."""
    web: tuple[Literal["page", "api", "mcp"], ...] = ()
    """What `omegad web` serves over HTTP: the page, the routes for programs, MCP."""
    web_port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    """At which port of 127.0.0.1 it does; 0 is any that is free."""
    push_guard: Literal["deny", "ask", "warn", "off"] = "deny"
    """What becomes of a push that lacks what its remote has. Hooks read it themselves, at each push."""
    auto_capture: bool = True
    """Remember decisions, lessons and lasting preferences that are said in agents' sessions, on probation."""
    upkeep: bool = True
    """Once a day, when no session is at work, promote what proved itself, compact, expire, mark what is
    stale.
    """
    lint_days: Annotated[int, Meta(ge=0, le=366)] = 1
    """Every so many days what should be looked at is stored as a report; 0 is never."""
    skills: str = ""
    """Folders that hold skills, separated as in PATH; of two that have a skill the first counts. `skills`
    in the home where nothing is said.
    """
    language: Literal["auto", "en", "de", "es", "fr", "pt", "zh"] = "auto"
    """In which language people are told what became of a skill; `auto` asks the locale."""
    claims: Literal["deny", "ask", "warn", "off"] = "deny"
    """What becomes of an edit of a file that another session holds in the same work tree, and of a push of a
    branch that it holds.
    """
    task_guard: Literal["deny", "ask", "warn", "off"] = "warn"
    """What becomes of an edit of a session that has no task, where its project has tasks that are open."""
    retention: bool = False
    """Let go once a day, by itself, of what is over by the days below; 14 days before, that is said."""
    retention_tools_days: Days = 90
    """What tools were given and answered goes after so many days; 0 keeps it for ever."""
    retention_queries_days: Days = 180
    """What was asked, and which memories were found, goes after so many days; how often each was stays."""
    retention_prompts_days: Days = 0
    """What people and agents said in sessions goes after so many days; it stays unless that is set."""
    git_sync: bool = True
    """Record the merges and pulls that git keeps of a session's work tree, whoever makes them."""
    paused_folders: tuple[str, ...] = ()
    """Folders in which nothing is kept or told unasked. Read at each hook, so that they hold at once."""
    audit: Literal["whole", "changes"] = "whole"
    """`whole` has everything that is asked in the log: reads, coordination that came to nothing, and hooks
    that nothing came of; `changes` only what changes something, queries and tool calls.
    """
    host_transcripts: bool = True
    """Look into the ends of hosts' own transcripts for prompts that no hook told of, to say that hooks
    stopped arriving.
    """
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    event_types: dict[str, dict[str, object]] = {}
    """Memory types beside the built-in ones, by name; of a built-in one what is to be otherwise."""
    consult: Consult = Consult()
    """Which other models may be asked for a second opinion. The daemon asks none, and reads no key."""


KNOWN = Config.__struct_fields__
GATEWAY = 'take it out: `omegad web` serves MCP over HTTP, where config.toml has web = ["mcp"], at web_port'
"""What took the place of `gateway_port` and `gateway_idle_s`."""


class _InHome:
    """A file or folder of a home, by its name there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, paths: "Paths", _: object = None) -> Path:
        return paths.home / self._name


class Paths(msgspec.Struct, frozen=True, kw_only=True):
    """Where one home's files are."""

    home: Path
    socket: Path
    models: Path

    log = _InHome("log.db")  # the event log: the data
    embeddings = _InHome("embeddings.db")  # the cache of computed vectors
    spool = _InHome("spool")  # where hooks leave what no daemon took
    identity = _InHome("identity")  # where a person says who the agent is, a git repository
    skills = _InHome("skills")  # the folder of skills, unless others are set
    lock = _InHome("omegad.lock")  # held by the daemon that serves the home
    web_lock = _InHome("web.lock")  # held by the process that speaks HTTP for the home
    web_token = _InHome("web.token")  # what is asked of those who come over HTTP
    web_log = _InHome("web.log")  # what that process prints, where that is sent there
    digest_key = _InHome("digest.key")  # what digests of what was said are made with
    daemon_log = _InHome("omegad.log")  # what a daemon started in the background prints
    self_check = _InHome("self-check.json")  # what the weekly check found
    config = _InHome("config.toml")  # the configuration file
    share = _InHome("share.toml")  # where the team's server is, and the password there
    seal = _InHome("seal.toml")  # that the home is sealed, and where the key is
    consulted = _InHome("consulted.json")  # what was asked of other models today


def find_paths(environ: Mapping[str, str] = os.environ) -> Paths:
    """Say where the home, its socket and the models are, from the environment alone; raises
    `BadConfiguration` where that cannot be.

    A home that is a link is the one it leads to, so that all its names have the same socket.
    """
    default_home = Path("~/.omegad").expanduser()
    home = _resolved(Path(environ.get("OMEGAD_HOME") or default_home).expanduser())
    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute()
    socket = _socket(home, environ, is_default=home == _resolved(default_home))
    for variable, path in (("OMEGAD_HOME", home), ("OMEGAD_SOCKET", socket), ("XDG_CACHE_HOME", cache)):
        try:
            str(path).encode()
        except UnicodeEncodeError:
            raise BadConfiguration(
                f"{str(path)!a} is not UTF-8", hint=f"set {variable} to a place whose name is"
            ) from None
    return Paths(home=home, socket=socket, models=cache / "omegad" / "models")


def _resolved(path: Path) -> Path:
    return Path(
        os.path.realpath(path)
    )  # which takes a link to itself as it is, to be refused where it is used


def _socket(home: Path, environ: Mapping[str, str], *, is_default: bool) -> Path:
    if explicit := environ.get("OMEGAD_SOCKET"):
        path = Path(explicit).expanduser().absolute()
        if len(os.fsencode(path)) > SOCKET_PATH_BYTES_MAX:
            raise BadConfiguration(
                f"OMEGAD_SOCKET is longer than {SOCKET_PATH_BYTES_MAX} bytes", hint="choose a shorter path"
            )
        return path
    runtime = Path(environ.get("XDG_RUNTIME_DIR", ""))
    candidates = [runtime / "omegad" / "omegad.sock"] if is_default and runtime.is_absolute() else []
    for path in (*candidates, home / "run" / "omegad.sock"):
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX:
            return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    # The directory's owner and mode are checked before use
    return Path(f"/tmp/omegad-{os.getuid()}") / f"{digest}.sock"  # noqa: S108


def load(paths: Paths, environ: Mapping[str, str] = os.environ) -> Config:
    """Read config.toml and the OMEGAD_* variables, which win; variables that name no setting are left to
    `unknown_variables`.

    Raises `BadConfiguration` for a file that is not TOML, an unknown name in it (with the nearest known one)
    or a bad value.
    """
    values: dict[str, object] = {}
    if paths.config.exists():
        try:
            values = tomllib.loads(paths.config.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise BadConfiguration(f"{paths.config}: {error}") from error
    for name in values:
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, 1)
            other = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(KNOWN)}"
            raise BadConfiguration(
                f"unknown setting {name!r}", hint=GATEWAY if name.startswith("gateway_") else other
            )
    values |= {name: environ[variable] for variable, name in _variables(environ) if name in KNOWN}
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise BadConfiguration(unfit.in_words(error, "config.toml", Config)) from error


def is_loopback(host: str) -> bool:
    """Say whether a host is named as this machine itself."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def skill_folders(settings: Config, paths: Paths) -> tuple[Path, ...]:
    """Return the folders that hold skills, the first one first."""
    return tuple(
        Path(folder).expanduser().absolute() for folder in settings.skills.split(os.pathsep) if folder
    ) or (paths.skills,)


def unknown_variables(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return a warning for each OMEGAD_* variable that names no setting: whoever set it may have meant
    another program, or misspelt one.
    """
    warnings = []
    for variable, name in _variables(environ):
        if name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, 1)
            meant = f"; did you mean {PREFIX}{near[0].upper()}?" if near else ""
            warnings.append(f"{variable} is ignored: there is no setting {name!r}{meant}")
    return warnings


def _variables(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (variable, variable.removeprefix(PREFIX).lower())
        for variable in environ
        if variable.startswith(PREFIX) and variable not in PLACES
    ]
