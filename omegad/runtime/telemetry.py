"""Log records: fixed dotted names, values as keys, JSON for machines and colour for a terminal. Never the
text of a memory.

Bounded, whoever causes them: of records of one kind the first is written at once, and how many more came once
a minute; a log file of omegad's is put aside when it is long, and the one put aside before is dropped.
"""

import atexit
import logging
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TextIO, cast

import structlog
from structlog.typing import EventDict

FILE_BYTES_MAX = 5 * 1024 * 1024
ASIDE = ".1"
GATHER_S = 60.0
KINDS_MAX = 256
LIBRARY_CHARACTERS_MAX = 500
PASSED_ON = {"debug", "info"}


class _Output:
    """Standard error, which may lead to a *file* that is then kept short. What cannot be written is dropped:
    a full disk under the log records must not end the service.
    """

    def __init__(self, stream: TextIO, file: Path | None) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._is_in_line = False
        self._file = None
        with suppress(OSError, ValueError):
            if file and os.path.samestat(file.stat(), os.fstat(stream.fileno())):
                self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError), self._lock:
            if self._file and not self._is_in_line:
                self._put_aside(self._file)
            self._is_in_line = not text.endswith("\n")
            return self._stream.write(text)
        return 0

    def isatty(self) -> bool:
        return self._stream.isatty()

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def _put_aside(self, file: Path) -> None:
        """Go on in a new file where this one is long, also where another process has put it aside. Raises
        `OSError` where that cannot be.
        """
        descriptor = self._stream.fileno()
        here = os.fstat(descriptor)
        if here.st_size <= FILE_BYTES_MAX:
            return
        with suppress(FileNotFoundError):
            if os.path.samestat(file.stat(), here):
                file.replace(file.with_name(file.name + ASIDE))
        new = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        is_both = os.path.samestat(os.fstat(1), here)
        os.dup2(new, descriptor)
        if is_both:
            os.dup2(new, 1)
        os.close(new)

    def __getattr__(self, name: str) -> object:  # whatever else a stream has
        return getattr(self._stream, name)


class _Gathered:
    """A processor of records: lets the first of a kind pass, and counts the others. A kind is a name and
    the texts that come with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, ...], int] = {}
        self._last: dict[tuple[str, ...], tuple[str, EventDict]] = {}
        self._timer: threading.Timer | None = None
        atexit.register(self.tell, is_last=True)

    def __call__(self, logger: object, name: str, record: EventDict) -> EventDict:
        """Return the *record*; raise `DropEvent` where it is counted instead."""
        del logger
        if name in PASSED_ON or "repeated" in record:
            return record
        event = str(record.get("event"))
        failure = sys.exc_info()[0] if record.get("exc_info") else None
        kind = (
            event,
            getattr(failure, "__name__", ""),
            *(value for value in record.values() if isinstance(value, str)),
        )
        with self._lock:
            if kind not in self._kinds and len(self._kinds) >= KINDS_MAX:
                kind = (event,)
            self._timer = self._timer or self._later()
            if kind not in self._kinds:
                self._kinds[kind] = 0
                return record
            self._kinds[kind] += 1
            self._last[kind] = (name, dict(record))
        raise structlog.DropEvent

    def _later(self) -> threading.Timer:
        timer = threading.Timer(GATHER_S, self.tell)
        timer.daemon = True
        timer.start()
        return timer

    def tell(self, *, is_last: bool = False) -> None:
        """Write how many more there were of each kind, and forget the kinds of which there were none;
        again in a minute unless this *is_last*.
        """
        with self._lock:
            told = [(*self._last.pop(kind), count) for kind, count in self._kinds.items() if count]
            self._kinds = {kind: 0 for kind, count in self._kinds.items() if count}
            self._timer = self._later() if self._kinds and not is_last else None
        for name, record, count in told:
            fields = {key: value for key, value in record.items() if key not in {"event", "exc_info"}}
            getattr(structlog.get_logger(), name)(record.get("event"), repeated=count, **fields)


class _Library(logging.Handler):
    """Makes records of ours of what libraries say."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a *record*."""
        said = record.getMessage()[:LIBRARY_CHARACTERS_MAX]
        structlog.get_logger().log(
            record.levelno, "library.said", library=record.name, message=said, exc_info=record.exc_info
        )


_GATHERED = _Gathered()


def configure(level: str, file: Path | None = None) -> None:
    """Send log records of *level* and above to standard error, which may be a log *file* of the home."""
    if not isinstance(sys.stderr, _Output):
        sys.stderr = cast("TextIO", _Output(sys.stderr, file))
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _GATHERED,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", sys.stderr)),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[_Library()], force=True)
