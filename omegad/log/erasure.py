"""What was taken out of the log for good."""

from omegad.log.event import Event, FreeText, Position


class PayloadErased(Event, frozen=True, kw_only=True, tag="payload.erased@1"):
    """The payloads at these positions were removed; their hashes stay in the chain."""

    positions: tuple[Position, ...]
    reason: FreeText
