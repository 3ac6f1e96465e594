"""What a decision may rely on: inline projections, whose rows are written in the transaction of the append.
Modules of a room that are called after what they are the state of: `state`, `task_state`.

Views lag and never guard anything.
"""

from typing import TYPE_CHECKING, cast

from omegad.catalog import rooms

if TYPE_CHECKING:
    from omegad.log.projection import Projection

ALL = cast("tuple[Projection, ...]", tuple(rooms.modules("state")))
