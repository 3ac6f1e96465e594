"""How the C library's allocator behaves in a process that lives for weeks; where it is not glibc, nothing here does anything."""

import ctypes
import gc
from collections.abc import Callable

ARENAS_MAX = 2  # glibc makes eight for each core, and each keeps what its threads once needed
TRIM_THRESHOLD_BYTES = 128 * 1024

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


def _function(name: str) -> Callable[..., int] | None:
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None
    return found
