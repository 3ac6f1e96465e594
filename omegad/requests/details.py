"""Up to when details are gone since their time was over, said beside answers that are made of them."""

from omegad.runtime.times import rfc3339
from omegad.storage.driver import Connection

VIEW = "aged"
"""The view that knows it."""
_UNTIL = "SELECT kind, until_us FROM details_aged"


def gone_until(connection: Connection, *kinds: str, since_us: int = 0) -> str | None:
    """Return up to when those of *kinds* are gone, None where none are that are later than a moment in
    microseconds since 1970.
    """
    until_us = max((until for kind, until in connection.execute(_UNTIL) if kind in kinds), default=0)
    return rfc3339(until_us) if until_us > since_us else None
