"""What was taken out of the log for good."""

from omegad.events.fact import Fact, FreeText, Position


class PayloadErased(Fact, frozen=True, kw_only=True, tag="payload.erased@1"):
    """The payloads at these positions were removed; their hashes stay in the chain."""

    positions: tuple[Position, ...]
    reason: FreeText
