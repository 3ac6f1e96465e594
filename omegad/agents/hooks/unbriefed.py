"""Which sessions began while no daemon answered: they are briefed at a later hook."""

SESSIONS_MAX = 1_024
TELLING_US = 1_000_000  # more than any hook waits


class Unbriefed:
    """The latest of these sessions. They are known until the daemon ends: who began before that has gone on
    without.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[int, int]] = {}
        """When it began last, and when a hook was about to tell it, microseconds since 1970."""

    def note(self, session_id: str, began_us: int) -> None:
        """Note a session whose start lies in the spool, or did: what it was told since then it knows."""
        if began_us > self._sessions.get(session_id, (-1, 0))[0]:
            self._sessions[session_id] = began_us, -TELLING_US
            if len(self._sessions) > SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]

    def taken(self, session_id: str, now_us: int) -> int | None:
        """Return when a session began that is to be briefed unless it was since, None where it is not to, or
        another hook is about to.
        """
        found = self._sessions.get(session_id)
        if found is None or abs(now_us - found[1]) < TELLING_US:
            return None
        self._sessions[session_id] = found[0], now_us
        return found[0]

    def forget(self, session_id: str) -> None:
        """Know that a session was briefed, or that there is nothing to tell."""
        self._sessions.pop(session_id, None)
