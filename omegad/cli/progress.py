"""A bar on standard error for work that takes a while; nothing at all where nobody looks."""

import shutil
import sys
from types import TracebackType
from typing import Self

from omegad.cli.printing import cut, is_terminal, safe

WIDTH = 24


class Bar:
    """Draws over its own line, which is empty again at the end of the block."""

    def __init__(self, title: str) -> None:
        self._title = title
        self.is_shown = is_terminal(sys.stderr)

    def __enter__(self) -> Self:
        self.update(0.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.is_shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def update(self, done: float, message: str = "") -> None:
        """Show that *done* (0 to 1) of the work is over."""
        if not self.is_shown:
            return
        share = min(max(done, 0.0), 1.0)
        drawn = "█" * round(share * WIDTH)
        text = f"{self._title} {drawn:░<{WIDTH}} {share:4.0%} {safe(message)}".rstrip()
        print(f"\r\033[K{cut(text, shutil.get_terminal_size().columns - 1)}", end="", file=sys.stderr, flush=True)
