"""What has come from all connections and is not answered yet: one budget, so that many long lines take no
more memory than a few.

Each connection may have a little, whatever the others have. Who would have more, while there is no room,
waits; but the one that has waited longest goes on alone, so that lines come to their end, and who sends
nothing more of one while others wait is disconnected.
"""

import asyncio
from typing import Protocol

SMALL_BYTES = 64 * 1024
LOOK_EVERY_S = 0.25


class Sending(Protocol):
    """A connection, as far as what comes from it goes."""

    @property
    def incoming_bytes(self) -> int:
        """What has come and is not answered yet."""
        ...

    def pump(self) -> None:
        """Take what has come, and read more if there is room now."""

    def hang_up_if_stalled(self, after_s: float) -> None:
        """Disconnect a client that is read from, and has not ended a line for so long."""


class Intake:
    """The bytes of all connections, *bytes_max* together, and who waits for room: *line_s* for a long line
    while others wait.
    """

    def __init__(self, bytes_max: int, line_s: float) -> None:
        self.bytes = 0
        self._bytes_max = bytes_max
        self._line_s = line_s
        self._sending: set[Sending] = set()
        """Those who have more than a little."""
        self.waiting: dict[Sending, None] = {}
        """Who waits for room, the one that goes on alone first."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_admitting = False

    def changed(self, sending: Sending, by: int) -> None:
        """Note that a connection has more or less than before."""
        self.bytes += by
        if sending.incoming_bytes > SMALL_BYTES:
            self._sending.add(sending)
        else:
            self._sending.discard(sending)
            if self.waiting:
                self.waiting.pop(sending, None)
        if by < 0 and self.waiting and not self._is_admitting:
            self._is_admitting = True
            asyncio.get_running_loop().call_soon(self._admit)

    def may_read(self, sending: Sending) -> bool:
        """Say whether more may be read from a connection, which is called when it may if not."""
        if sending.incoming_bytes <= SMALL_BYTES or self.bytes <= self._bytes_max:
            self.waiting.pop(sending, None)
            return True
        self.waiting.setdefault(sending)
        self._timer = self._timer or asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)
        return self._is_first(sending)

    def is_waiting(self, sending: Sending) -> bool:
        """Say whether a connection is not read from for want of room."""
        return sending in self.waiting and not self._is_first(sending)

    def _is_first(self, sending: Sending) -> bool:
        return next(iter(self.waiting), None) is sending

    def _admit(self) -> None:
        self._is_admitting = False
        for sending in [*self.waiting]:
            if self.bytes <= self._bytes_max or self._is_first(sending):
                sending.pump()

    def _look(self) -> None:
        """Hang up on those who keep others waiting."""
        self._timer = None
        if self.waiting:
            for sending in [*self._sending]:
                if not self.is_waiting(sending) and self.waiting.keys() - {sending}:
                    sending.hang_up_if_stalled(self._line_s)
            self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)
