"""What a log is told of what it holds; of itself it knows no noun."""

from collections.abc import Callable
from dataclasses import dataclass, field

from omegad.log.codec import Codec
from omegad.log.event import NewEvent
from omegad.log.inline import Inline
from omegad.storage.driver import Connection


def _as_it_is(new: NewEvent) -> NewEvent:
    return new


@dataclass(frozen=True)
class Vocabulary:
    """The events of a log, what is folded with them, and what decisions are given; made once, at the
    composition root.
    """

    codec: Codec
    inline: Inline = field(default_factory=lambda: Inline(()))
    state: Callable[[Connection], object] = lambda connection: connection
    """Makes, of the connection whose transaction is open, the decision state that a proposal's `decide` is
    called with.
    """
    sanitise: Callable[[NewEvent], NewEvent] = _as_it_is
    """Returns an event as it may enter the log, which keeps its mistakes for ever."""
