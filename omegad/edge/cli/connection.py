"""What a verb asks the daemon, of what was given on the command line; the daemon is started for it when it is
not running and may be.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import msgspec

from omegad import __version__
from omegad.client.blocking import Client
from omegad.edge.cli import starting
from omegad.edge.cli.arguments import TEXTS, WrongUsage, methods
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import (
    console,
    counted,
    is_terminal,
    moment,
    painted,
    safe,
    size,
    warn,
    warn_if_stale,
    write_json,
)
from omegad.requests.verb import WATCHING
from omegad.runtime.config import Paths
from omegad.runtime.errors import NoDaemon, NoHome, OmegadError, ShuttingDown, Stale
from omegad.runtime.json_types import Fields, Json
from omegad.runtime.versions import is_older
from omegad.text.meant import nearest

if TYPE_CHECKING:
    from rich.console import RenderableType

NAME = "omegad-cli"
ANSWER_S = 60.0  # the first text waits for the model to be loaded
SILENT_S = 600.0  # a large file is looked through in one step, of which nothing is told
STALE_S = 300.0  # views that are built anew have thousands of events a second behind them
ASK_AGAIN_S = 0.5
WATCH_S = 1.0
PROGRESS = "progress"
STDIN_BYTES_MAX = 1024 * 1024  # more than the daemon takes

AGED = {
    "tools": "what tools were given and answered",
    "queries": "what was asked and found",
    "prompts": "what was said in sessions",
}
"""What is let go of once its time is over, by kind."""
NAMES = {
    "project": "SELECT project AS name FROM memories",
    "tags": (
        "SELECT value AS name FROM memories, json_each(tags)"
        " UNION SELECT value FROM memories, json_each(auto_tags)"
    ),
    "entity_id": "SELECT entity_id AS name FROM memories",
    "session_id": "SELECT session_id AS name FROM memories",
}
"""Where the names are that filters ask for."""
OF_MEMORIES = frozenset(
    {"session.report", "lint.report", "upkeep.today", "memory.lessons", "memory.timeline"}
)
"""Beside those that filter by tags: whose projects are those of memories."""
NAMES_SQL = "SELECT DISTINCT name FROM ({}) WHERE name IS NOT NULL ORDER BY name = {} DESC, name"
NAMES_SHOWN = 8
SAID = {"tags": "tag", "entity_id": "entity", "session_id": "session"}

Answer: TypeAlias = Json
"""What a method answers: any JSON."""
OnNotice: TypeAlias = Callable[[Answer], object]


def ask(instance: Instance, method: str, **params: object) -> Answer:
    """Return what *method* answers; parameters that are None are left to the daemon.

    A daemon that stops under the question leaves it to the next one, unless it may have written something
    already. What the views do not show yet is waited for, and who looks is told how far they are.
    """
    chosen, writes = given(params), methods()[method].get("writes", False) and not params.get("dry_run")
    try:
        with connected(instance, makes_home=writes) as client:
            return _patiently(client, instance.paths, method, chosen)
    except ShuttingDown:
        pass  # it was refused, and nothing was done
    except NoHome:
        raise
    except NoDaemon:
        if writes or not instance.may_spawn:
            raise
    with connected(instance, makes_home=writes) as client:
        return _patiently(client, instance.paths, method, chosen)


def _patiently(client: Client, paths: Paths, method: str, params: dict[str, object]) -> Answer:
    until, waiting = time.monotonic() + STALE_S, ""
    while True:
        try:
            with starting.told_of_silence(paths):
                return client.call(method, **params)
        except Stale as error:
            if time.monotonic() > until:
                raise
            waiting = painted(safe(f"waiting: {error}"), "dim", sys.stderr)
        finally:
            if waiting and is_terminal(sys.stderr):
                print("\r\033[K", end="", file=sys.stderr, flush=True)
        if is_terminal(sys.stderr):
            print(waiting, end="", file=sys.stderr, flush=True)
        time.sleep(ASK_AGAIN_S)


def given(params: dict[str, object]) -> dict[str, object]:
    """Return the parameters that were given; raises `UnicodeEncodeError` for text that is none, before a
    daemon is started for it.
    """
    chosen = {name: value for name, value in params.items() if value is not None}
    msgspec.json.encode(chosen)
    return chosen


@contextmanager
def connected(
    instance: Instance,
    timeout_s: float | None = ANSWER_S,
    name: str = NAME,
    on_notice: OnNotice | None = None,
    *,
    makes_home: bool = False,
) -> Iterator[Client]:
    """Hold a connection; raises `NoDaemon` where none answers and none may be, or can be, started, and
    `NoHome` as `ensure` does.

    A daemon that is older than this omegad gives way to a new one, or that is said where it may not, or the
    service runs another omegad.
    """
    client = Client(instance.paths.socket, name=name, timeout_s=timeout_s, on_notice=on_notice)
    with ExitStack() as stack:
        try:
            with starting.told_of_silence(instance.paths):
                stack.enter_context(client)
        except (NoDaemon, ShuttingDown):
            ensure(instance, makes_home=makes_home)
            stack.enter_context(client)
        if client.server_version and is_older(client.server_version, __version__):
            from omegad.edge.cli import units  # noqa: PLC0415  needed after an upgrade alone

            if not instance.may_spawn or units.runs_another(instance):
                warn(
                    f"the daemon is older than this omegad, {__version__}: run `omegad service install` if it"
                    " is a service, else `omegad stop`"
                )
            else:
                starting.stop(instance.paths)
                ensure(instance)
                client = stack.enter_context(
                    Client(instance.paths.socket, name=name, timeout_s=timeout_s, on_notice=on_notice)
                )
        yield client


def ensure(instance: Instance, *, makes_home: bool = False) -> None:
    """Start the daemon unless it answers; raises `NoDaemon` where that may not or cannot be, and `NoHome`
    where there is none of the name that was given, and none is to be made.
    """
    if starting.answering(instance.paths) is not None:
        return
    if not instance.may_spawn:
        starting.refuse_elsewhere(instance.paths)
        raise NoDaemon(
            f"no omegad answers on {instance.paths.socket}",
            hint="run `omegad start`, or leave out --no-spawn",
        )
    if instance.is_named and not makes_home:  # a name may be mistyped
        starting.require_home(instance.paths)
    starting.start(instance)


def ask_long(instance: Instance, method: str, title: str, **params: object) -> Answer:
    """Return what *method* answers, however long it takes, and draw a bar meanwhile. Raises `NoAnswer` where
    it comes no further for `SILENT_S`.
    """
    with counted(title) as draw:

        def told(notice: Answer) -> None:
            draw(notice["progress"], notice["total"], "events")

        with connected(instance, SILENT_S, on_notice=told) as client:
            return client.call(method, **given(params | {"progress_token": PROGRESS}))


def watch(
    arguments: Namespace,
    instance: Instance,
    params: dict[str, object],
    draw: "Callable[[Answer], RenderableType]",
) -> NoReturn:
    """Ask the verb's method every second, and draw what it answers; the daemon's end raises `NoDaemon`."""
    with connected(instance, name=WATCHING) as client, ExitStack() as stack:
        live = None
        if not arguments.json:
            if not is_terminal(sys.stdout):
                raise WrongUsage("--watch draws on a terminal; --json prints a line each second")
            from rich.live import Live  # noqa: PLC0415  no other verb needs it

            live = stack.enter_context(Live(console=console(), auto_refresh=False))
        while True:
            answer = client.call(arguments.method, **given(params))
            if live:
                live.update(draw(answer), refresh=True)
            else:
                print(msgspec.json.encode(answer).decode(), flush=True)
            time.sleep(WATCH_S)


def asked(arguments: Namespace, instance: Instance) -> Answer:
    """Return what the verb's method answers to all that was given, and warn where it is of the past, and may
    not be what was given then. Raises `WrongUsage` as `parameters` does.
    """
    answer = ask(instance, arguments.method, **parameters(arguments))
    if not arguments.json and not any(isinstance(value, list) and value for value in answer.values()):
        _warn_of_unknown(arguments, instance)
    then = None if arguments.json else answer.pop("as_of", None)
    if not then:
        return answer
    warn(f"as of position {then['position']:,}, {moment(then['at'])}")
    for name, (before, present) in then["changed"].items():
        warn(f"{name} was {before} then and is {present}: this may not be what was answered")
    if then["query_id"] and not then["is_comparable"]:
        warn("with which versions it was answered then is not recorded")
    if then["erased"]:
        warn(f"{then['erased']} events up to there were erased since, and are not shown")
    if aged := then.get("aged"):
        gone = "; ".join(f"{AGED[kind]}, up to position {through:,}" for kind, through in aged.items())
        warn(f"details are gone since their time was over: {gone}")
    return answer


def _warn_of_unknown(arguments: Namespace, instance: Instance) -> None:
    """Warn of filters that no memory passes, whatever else is asked, and say which names are like theirs."""
    filtered = {parameter["name"] for parameter in methods()[arguments.method].get("parameters", ())}
    is_of_memories = "tags" in filtered or arguments.method in OF_MEMORIES
    if not is_of_memories or methods()[arguments.method].get("writes"):
        return
    for name, table in NAMES.items():
        names = getattr(arguments, name, None) or ()
        for named in [names] if isinstance(names, str) else names:
            with suppress(OmegadError):  # which says no more than that nothing was found
                known = _names(instance, table, named)
                if named in known:
                    continue
                meant = nearest(named, known)
                there = ", ".join(known[:NAMES_SHOWN]) + ", …" * (len(known) > NAMES_SHOWN)
                warn(
                    f"there is no {SAID.get(name, name)} {named!r} here"
                    + (f"; did you mean {meant!r}?" if meant else f": there are {there}" if known else "")
                )


def warn_of_new_project(instance: Instance, project: str, memory_id: str) -> None:
    """Warn of a project that has no memory but this one, where another is called almost the same."""
    others = f"{NAMES['project']} WHERE node_id <> {_quoted(memory_id)}"
    with suppress(OmegadError):  # it is stored whatever it is called
        known = _names(instance, others, project)
        if project not in known and (meant := nearest(project, known)):
            warn(f"a new project {project!r}; did you mean {meant!r}?")


def _names(instance: Instance, table: str, named: str) -> list[str]:
    """Return the names that a table has: *named* before all others, since there may be very many."""
    sql = NAMES_SQL.format(table, _quoted(named))
    return [str(row[0]) for row in ask(instance, "audit.sql", sql=sql, limit=1_000)["rows"]]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def answered(show: Callable[[Answer, Namespace], None]) -> Callable[[Namespace, Instance], None]:
    """Return the verb that asks its method and shows people the answer, which programs get as it is."""

    @wraps(show)
    def verb(arguments: Namespace, instance: Instance) -> None:
        answer = asked(arguments, instance)
        if arguments.json:
            write_json(answer)
        else:
            show(answer, arguments)
        if "stale_by" in answer:
            warn_if_stale(answer)

    return verb


def parameters(arguments: Namespace) -> dict[str, object]:
    """Return all that was given to the verb's method, None for what was left out. Raises `WrongUsage` for
    what is not of its kind.
    """
    return {
        parameter["name"]: _value(parameter, getattr(arguments, parameter["name"], None))
        for parameter in methods()[arguments.method].get("parameters", ())
    }


def _value(parameter: Fields, given: object) -> object:
    name = parameter["name"]
    if given == "-" and name in TEXTS:
        return standard_input()
    if parameter["kind"] != "json" or not isinstance(given, str):
        return given
    wanted, kind = (dict[str, object], "a JSON object") if name == "metadata" else (object, "JSON")
    try:
        return msgspec.json.decode(given, type=wanted)
    except msgspec.DecodeError as error:
        raise WrongUsage(f"{name} is not {kind}: {error}") from error


def standard_input() -> str:
    """Return what standard input says, without the line ends after it. Raises `WrongUsage` for what is not
    UTF-8, or is too much.
    """
    data = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1) if sys.stdin else b""
    if len(data) > STDIN_BYTES_MAX:
        raise WrongUsage(
            f"standard input has more than {size(STDIN_BYTES_MAX)}",
            hint="store the essence, or several memories; `omegad import` takes whole files in",
        )
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise WrongUsage(
            f"standard input is not text in UTF-8, from byte {error.start:,} on",
            hint="`iconv -f LATIN1 -t UTF-8 FILE | omegad …` passes on a text of another encoding",
        ) from error
