"""A bar on standard error for work that takes a while; nothing at all where nobody looks."""

import sys
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from omegad.edge.cli.printing import console, is_terminal, safe

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Bar:
    """Draws over its own line, which is empty again at the end of the block."""

    def __init__(self, title: str) -> None:
        self._title = title
        self.is_shown = is_terminal(sys.stderr)
        self._drawn: tuple[Progress, TaskID] | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self.is_shown:
            from rich.progress import (  # noqa: PLC0415
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
            )

            columns = (
                TextColumn(self._title, markup=False),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("{task.description}", markup=False),
            )
            progress = self._stack.enter_context(
                Progress(*columns, console=console(sys.stderr), transient=True)
            )
            self._drawn = progress, progress.add_task("", total=1.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def update(self, done: float, message: str = "") -> None:
        """Show that *done* (0 to 1) of the work is over."""
        if self._drawn:
            progress, task = self._drawn
            progress.update(task, completed=min(max(done, 0.0), 1.0), description=safe(message))
