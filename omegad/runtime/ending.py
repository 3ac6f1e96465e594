"""The end of a process that was told to stop: it comes in time, whatever hangs.

What was acknowledged is on the disk by then, so that nobody has to wait for what does not end. The status is
0: a service manager starts anew what fails, and this was asked for.
"""

import os
import sys
import threading
from collections.abc import Callable, Collection
from time import monotonic

import structlog

LAST_S = 1.0  # for threads that are at something when all else is over

_log = structlog.get_logger(__name__)


def within(seconds: float, left: Callable[[], Collection[str]]) -> None:
    """End this process after *seconds* if it has not ended by then, and log which of its parts are *left*."""
    timer = threading.Timer(seconds, lambda: _end(left()))
    timer.daemon = True
    timer.start()


def leave() -> None:
    """Return when no thread is at anything any more, for which Python would wait; end this process where
    that takes longer than `LAST_S`, and log which are.
    """
    until = monotonic() + LAST_S
    for thread in _busy():
        thread.join(max(0.0, until - monotonic()))
    if _busy():
        _end(())


def _busy() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]


def _end(parts: Collection[str]) -> None:
    _log.warning("daemon.not_waited_for", parts=sorted(parts), threads=sorted(one.name for one in _busy()))
    sys.stderr.flush()
    os._exit(0)
