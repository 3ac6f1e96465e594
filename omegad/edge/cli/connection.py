"""One question to the daemon, which is started for it when it is not running and may be."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NoReturn, TypeAlias

import msgspec

from omegad import __version__
from omegad.client.blocking import Client
from omegad.edge.cli import starting
from omegad.edge.cli.arguments import methods
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import is_terminal, painted, safe, warn
from omegad.edge.cli.progress import Bar
from omegad.runtime.errors import NoDaemon, ShuttingDown, Stale
from omegad.runtime.json_types import Json
from omegad.runtime.versions import is_older

NAME = "omegad-cli"
ANSWER_S = 60.0  # the first text waits for the model to be loaded
STALE_S = 300.0  # views that are built anew have thousands of events a second behind them
ASK_AGAIN_S = 0.5
PROGRESS = "progress"

Answer: TypeAlias = Json
"""What a method answers: any JSON."""


def ask(instance: Instance, method: str, **params: object) -> Answer:
    """Return what *method* answers; parameters that are None are left to the daemon.

    A daemon that stops under the question leaves it to the next one, unless it may have written something
    already. What the views do not show yet is waited for, and who looks is told how far they are.
    """
    chosen = given(params)
    try:
        with connected(instance) as client:
            return _patiently(client, method, chosen)
    except ShuttingDown:
        pass  # it was refused, and nothing was done
    except NoDaemon:
        if methods()[method].get("writes") or not instance.may_spawn:
            raise
    with connected(instance) as client:
        return _patiently(client, method, chosen)


def _patiently(client: Client, method: str, params: dict[str, object]) -> Answer:
    until, waiting = time.monotonic() + STALE_S, ""
    while True:
        try:
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
def connected(instance: Instance, timeout_s: float | None = ANSWER_S, name: str = NAME) -> Iterator[Client]:
    """Hold a connection; raises `NoDaemon` where none answers and none may be, or can be, started."""
    client = Client(instance.paths.socket, name=name, timeout_s=timeout_s)
    with ExitStack() as stack:
        try:
            stack.enter_context(client)
        except (NoDaemon, ShuttingDown):
            ensure(instance)
            stack.enter_context(client)
        if client.server_version and is_older(client.server_version, __version__) and _is_renewed(instance):
            client = stack.enter_context(Client(instance.paths.socket, name=name, timeout_s=timeout_s))
        yield client


def _is_renewed(instance: Instance) -> bool:
    """Put a daemon of this version in the place of an older one; say so where that may not be, or the
    service runs another omegad.
    """
    from omegad.edge.cli import units  # noqa: PLC0415  needed after an upgrade alone

    if not instance.may_spawn or units.runs_another(instance):
        warn(
            f"the daemon is older than this omegad, {__version__}: run `omegad service install` if it is a"
            " service, else `omegad stop`"
        )
        return False
    starting.stop(instance.paths)
    ensure(instance)
    return True


def ensure(instance: Instance) -> None:
    """Start the daemon unless it answers; raises `NoDaemon` where that may not or cannot be."""
    if starting.answering(instance.paths) is not None:
        return
    if not instance.may_spawn:
        raise NoDaemon(
            f"no omegad answers on {instance.paths.socket}",
            hint="run `omegad start`, or leave out --no-spawn",
        )
    starting.start(instance)


def ask_long(instance: Instance, method: str, title: str, **params: object) -> Answer:
    """Return what *method* answers, however long it takes, and draw a bar meanwhile."""
    with Bar(title) as bar:
        if not bar.is_shown:
            with connected(instance, None) as client:
                return client.call(method, **given(params))
        from omegad.edge.cli.streaming import stream  # noqa: PLC0415  asyncio, for long work alone

        def draw(notice: Answer) -> None:
            bar.update(
                notice["progress"] / max(notice["total"], 1),
                f"{notice['progress']:,} of {notice['total']:,} events",
            )

        ensure(instance)
        return stream(instance.paths.socket, NAME, method, given(params) | {"progress_token": PROGRESS}, draw)


def follow(
    instance: Instance, method: str, on_notice: Callable[[Answer], None], **params: object
) -> NoReturn:
    """Hand every notification that *method* causes to *on_notice*, until the daemon ends, which raises
    `NoDaemon`.
    """
    from omegad.edge.cli.streaming import stream  # noqa: PLC0415

    ensure(instance)
    stream(instance.paths.socket, NAME, method, given(params), on_notice)
    raise NoDaemon("the daemon has stopped")
