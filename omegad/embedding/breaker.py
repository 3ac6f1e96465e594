"""A circuit breaker: something that keeps failing is left alone for a while, then tried once."""

from collections.abc import Callable

from omegad.runtime.errors import ModelFailed

FAILURES_MAX = 3
"""In a row; then the circuit opens."""
OPEN_S = 30.0


class Breaker:
    """Counts failures in a row. Closed: everything may pass. Open: nothing may, until `OPEN_S` have passed
    and a trial decides.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Start closed; *monotonic* gives seconds that never run backwards."""
        self._monotonic = monotonic
        self._failures = 0
        self._open_until: float | None = None
        self.last_error: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether attempts are refused now."""
        return self._open_until is not None and self._monotonic() < self._open_until

    def refusal(self) -> ModelFailed | None:
        """Return the error to answer with while open, with the last reason."""
        if not self.is_open:
            return None
        return ModelFailed(
            f"the embedding model is left alone for up to {OPEN_S:.0f} s after failing: {self.last_error}"
        )

    def succeeded(self) -> None:
        """Close; failures before this one no longer count."""
        self._failures = 0
        self._open_until = None
        self.last_error = None

    def failed(self, error: Exception) -> None:
        """Count a failure; a failed trial opens again at once, since what went before it still counts."""
        self._failures += 1
        self.last_error = str(error)
        if self._failures >= FAILURES_MAX:
            self._open_until = self._monotonic() + OPEN_S
