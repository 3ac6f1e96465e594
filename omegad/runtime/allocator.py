"""Memory in a process that lives for weeks: how the C library's allocator behaves, where it is glibc, and
how much there is.
"""

import ctypes
import gc
import os
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import process_time

import anyio
import msgspec
from anyio import to_thread

ARENAS_MAX = 2  # glibc makes eight for each core, and each keeps what its threads once needed
TRIM_THRESHOLD_BYTES = 128 * 1024
LOOK_EVERY_S = 5.0
WORKED_S, IDLE_SHARE = 1.0, 0.02  # of processors, between which and now there may be something to return
GROWN_BYTES = 2 * 1024 * 1024  # after which it pays to look for what can be returned
STATM = Path("/proc/self/statm")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

MMAP_THRESHOLD_BYTES, ROOMY_BYTES = 128 * 1024, 32 * 1024 * 1024

# <malloc.h>
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8


def keep_small() -> None:
    """Bound the arenas, have freed memory at the end of the heap returned, and what was imported not looked
    through for circles; to be called before threads are started.
    """
    if mallopt := _function("mallopt"):
        mallopt(_M_ARENA_MAX, ARENAS_MAX)
        mallopt(_M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
    # Python looks for circles among all objects only when a quarter more have come, and holds everyone
    # meanwhile: what was imported is most of them, and stays.
    gc.freeze()
    gc.collect()  # which begins to count anew


def know_structs() -> None:
    """Have msgspec look at every Struct that is imported; to be called before threads are started: where two
    of them decode one for the first time at once, the second reads what the first has not written yet, which
    ends the process. Those that hold what has no JSON are not decoded.
    """
    left = msgspec.Struct.__subclasses__()
    while left:
        struct = left.pop()
        left += struct.__subclasses__()
        with suppress(TypeError, NameError):
            msgspec.json.Decoder(struct)


@contextmanager
def roomy() -> Iterator[None]:
    """Let what takes and frees large blocks many times over, as loading a model does, take each from what
    it has freed, and not from the system, which gets it back in the end.
    """
    mallopt = _function("mallopt") or (lambda _option, _bytes: 0)
    mallopt(_M_MMAP_THRESHOLD, ROOMY_BYTES)
    try:
        yield
    finally:
        mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
        give_back()


def give_back() -> None:
    """Return freed memory to the system now."""
    gc.collect()
    if malloc_trim := _function("malloc_trim"):
        malloc_trim(0)


async def keep_giving_back(let_go: Callable[[], Awaitable[object]]) -> None:
    """Return freed memory to the system when the process has grown, and when it has done its work, for ever:
    then what *let_go* frees, too, which is kept at hand for more of the same work.

    The library does so itself only at the end of the heap, and much is freed between what stays.
    """
    least, worked_s, worked_until_s = resident_bytes(), 0.0, process_time()
    while True:
        await anyio.sleep(LOOK_EVERY_S)
        least = min(least, resident_bytes())
        just_worked_s, worked_until_s = process_time() - worked_until_s, process_time()
        worked_s += just_worked_s
        is_done = worked_s > WORKED_S and just_worked_s < IDLE_SHARE * LOOK_EVERY_S
        if is_done:
            await let_go()
        if is_done or resident_bytes() >= least + GROWN_BYTES:
            await to_thread.run_sync(give_back)
            least, worked_s, worked_until_s = resident_bytes(), 0.0, process_time()


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
