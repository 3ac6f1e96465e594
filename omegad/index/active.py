"""When a memory can be found: it is active, and its time is not over. All that asks for it asks here, in
Python or in SQL; `Columns` keeps the same of every vector, as arrays.
"""

from typing import TypeGuard


def is_over(expires_us: int | None, now_us: int) -> TypeGuard[int]:
    """Say whether a time to live is over; what is permanent, None, never is."""
    return expires_us is not None and expires_us <= now_us


def is_active(status: str, expires_us: int | None, now_us: int) -> bool:
    """Say whether a memory can be found, whether or not its expiry has been recorded."""
    return status == "active" and not is_over(expires_us, now_us)


def active(memory: str = "m", now: str = ":now_us") -> str:
    """Return the condition in SQL that a row of `memories` can be found at a moment."""
    return f"{memory}.status = 'active' AND ({memory}.expires_us IS NULL OR {memory}.expires_us > {now})"


def active_or_replaced(now: str) -> str:
    """Return the condition in SQL that it can be found, or could be until another memory replaced it."""
    return f"m.status IN ('active', 'superseded') AND (m.expires_us IS NULL OR m.expires_us > {now})"


def overdue(now: str) -> str:
    """Return the condition in SQL that a row of `memories` is over and nothing recorded that."""
    return f"expires_us <= {now} AND status = 'active'"
