"""Which sessions began while no daemon answered: they are briefed at a later hook."""

from omegad.log.event import Position

SESSIONS_MAX = 1_024
TELLING_US = 1_000_000  # more than any hook waits


class Unbriefed:
    """The latest of these sessions. They are known until the daemon ends: who began before that has gone on
    without.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[Position, int]] = {}
        """Where the log ended when it was heard of, and when a hook was about to tell it."""

    def note(self, session_id: str, head: Position) -> None:
        """Note a session whose start lies in the spool; what was told after *head* it was told since."""
        if session_id not in self._sessions:
            self._sessions[session_id] = head, -TELLING_US
            if len(self._sessions) > SESSIONS_MAX:
                del self._sessions[next(iter(self._sessions))]

    def taken(self, session_id: str, now_us: int) -> Position | None:
        """Return after which position of the log a session is to be briefed, None where it is not to, or
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
