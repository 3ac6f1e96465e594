"""How present memories are: one number, which the ranking, the lint and whoever looks at a memory are given.

It is read off what events made of a memory and the time, so that it is the same for every copy of the views.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omegad.memory.types import MemoryTypes

Array = npt.NDArray[np.float64]
Uses = tuple[str, int, int, int]

USES = "m.event_type, 1 + m.access_count + m.repeated + max(m.rating, 0), m.created_us, m.used_us"
"""What it is read off, of `memories AS m`: the type; how often the memory was said, found, shown unasked, and
rated as helpful; when it was said first and used last, in microseconds since 1970.
"""

DAY_US = 86_400_000_000.0


def strengths(memories: Sequence[Uses], types: MemoryTypes, now_us: int) -> Array:
    """Return how present each memory is, 0 to 1: 0.5 on the day it is said, less with every day after it, and
    more with every use.

    It is B / (1 + B), B being what ACT-R calls the base level before its logarithm is taken, the sum of
    days^-0.5 over all uses. The last use counts as of when it was, the others as if they were spread evenly
    since the first (Petrov 2006); a day is the least. What is of a type that does not fade was always used
    today.
    """
    kinds, uses, first, last = zip(*memories, strict=True) if memories else ((), (), (), ())
    known = {kind: types.of(kind).decays for kind in {*kinds}}
    fades = np.array([known[kind] for kind in kinds], np.bool_)
    since_first, since_last = (
        np.sqrt(np.where(fades, np.maximum((now_us - np.array(moments, np.float64)) / DAY_US, 1.0), 1.0))
        for moments in (first, last)
    )
    level = 1 / since_last + 2 * (np.array(uses, np.float64) - 1) / (since_first + since_last)
    present: Array = level / (1 + level)
    return present
