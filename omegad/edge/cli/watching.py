"""What a verb shows every second, until it is interrupted."""

import sys
import time
from argparse import Namespace
from contextlib import ExitStack
from typing import TYPE_CHECKING, NoReturn

import msgspec

from omegad.edge.cli.arguments import WrongUsage
from omegad.edge.cli.connection import Answer, connected, given
from omegad.edge.cli.instance import Instance
from omegad.edge.cli.printing import console, is_terminal
from omegad.requests.verb import WATCHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType

WATCH_S = 1.0


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
