"""A bar on standard error for work that takes a while; nothing at all where nobody looks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omegad.edge.cli.printing import console, is_terminal, safe


@contextmanager
def bar(title: str) -> Iterator[Callable[[float, str], None]]:
    """Draw a bar over its own line, which is empty again at the end of the block; hand out what moves it: how
    much of the work is over (0 to 1), and what is said of it.
    """
    if not is_terminal(sys.stderr):
        yield lambda _done, _message: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # noqa: PLC0415

    columns = (
        TextColumn(title, markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda done, message: progress.update(
            task, completed=min(max(done, 0.0), 1.0), description=safe(message)
        )


@contextmanager
def counted(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """Draw the same of work that is counted: how much is done, of how much, and what is counted."""
    with bar(title) as update:
        yield lambda done, total, what: update(done / max(total, 1), f"{done:,} of {total:,} {what}")
