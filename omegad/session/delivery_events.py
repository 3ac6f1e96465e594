"""What becomes of what tells a hook, or a tool call, that comes again."""

from omegad.log.event import Event, Position


class DeliveriesExpired(Event, frozen=True, kw_only=True, tag="deliveries.expired@1"):
    """What came in before a position is not known again any more: a hook or a tool call that is told once more counts as new.

    Memories are shown again for files that they were shown for before it, and what has waited since then to be told to a session is let go of.
    """

    before: Position
