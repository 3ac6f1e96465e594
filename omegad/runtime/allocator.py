"""Memory in a process that lives for weeks: how the C library's allocator behaves, where it is glibc, and how much there is."""

import ctypes
import gc
import os
import resource
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ARENAS_MAX = 2  # glibc makes eight for each core, and each keeps what its threads once needed
TRIM_THRESHOLD_BYTES = 128 * 1024
STATM = Path("/proc/self/statm")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# <malloc.h>
_M_TRIM_THRESHOLD = -1
_M_ARENA_MAX = -8


def keep_small() -> None:
    """Bound the arenas, and have freed memory at the end of the heap returned; to be called before threads are started."""
    mallopt = _function("mallopt")
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, ARENAS_MAX)
        mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)


def give_back() -> None:
    """Return freed memory to the system now."""
    gc.collect()
    malloc_trim = _function("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(0)


def resident_bytes() -> int:
    """Return how much memory the process occupies, 0 where the system does not say."""
    with suppress(FileNotFoundError), STATM.open("rb") as statm:
        return int(statm.read().split()[1]) * PAGE_BYTES
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: bytes, and the peak


def _function(name: str) -> Callable[..., int] | None:
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None
    return found
