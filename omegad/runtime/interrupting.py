"""Ctrl-C in a process of one command. It raises `KeyboardInterrupt` in the command itself alone, which may
have something to put in order; before and after it ends the process at once and says nothing.

Raised in the middle of an import it would leave modules behind that are there in part, and msgspec can crash
where it is raised while a type is made (`msgspec.defstruct`).
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


def end_at_once(status: int = INTERRUPTED) -> None:
    """Have Ctrl-C end the process with *status* from now on, unless it is ignored, as in the background."""

    def end(_number: int, _frame: FrameType | None) -> None:
        os._exit(status)

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, end)


@contextmanager
def raised() -> Iterator[None]:
    """Have Ctrl-C raise `KeyboardInterrupt` in the block, where `end_at_once` has it end the process, and end
    it again afterwards.
    """
    if getattr(signal.getsignal(signal.SIGINT), "__module__", None) != __name__:
        yield
        return
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        end_at_once()
