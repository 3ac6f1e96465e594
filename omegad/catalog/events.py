"""The vocabulary of the log: everything that can have happened. A room has its own in modules that are called
`events`, `task_events`.

Invariant: a released event never changes incompatibly. A field may be added with a default; otherwise the
tag's version goes up, and `upcasting` learns the step. The golden files of the shapes before are kept as they
are.
"""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, cast

from omegad.catalog import rooms
from omegad.catalog.upcasting import UPCASTERS
from omegad.log import aging, erasure, mending
from omegad.log.codec import Codec
from omegad.log.event import declared_in

if TYPE_CHECKING:
    from types import UnionType

_DECLARING = (*rooms.modules("events"), mending, erasure, aging)

AnyEvent = cast("UnionType", reduce(or_, (kind for module in _DECLARING for kind in declared_in(module))))

CODEC = Codec(AnyEvent, UPCASTERS)
"""Reads and writes every event of today, and reads those that older versions wrote."""
