"""What sessions hold that have been silent for as long as a lease lasts is let go: a host that is killed
says nothing.
"""

from collections.abc import Iterator

from omegad.coordination import claims
from omegad.coordination.claim import ExpireClaims
from omegad.reactions.contract import Reader

NAME = "silent_holders"
VERSION = 1
EVERY = 60
VIEWS = ("coord_claims",)
AT_ONCE_MAX = 500  # in one append


def due(_slot: int, reader: Reader) -> Iterator[ExpireClaims]:
    """Name them; whether the daemon has heard of them meanwhile is for the command to say."""
    if gone := claims.gone(reader.connection, reader.now_us):
        yield ExpireClaims(session_ids=tuple(gone[:AT_ONCE_MAX]))
