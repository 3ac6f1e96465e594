"""Those who wait for their proposals: what becomes of the futures that they wait for."""

import asyncio

import structlog

from omegad.log.decision import Outcome

_log = structlog.get_logger(__name__)


def tell_failure(answered: asyncio.Future[Outcome]) -> None:
    """Log why a proposal that nobody waits for was not appended."""
    if not answered.cancelled() and (error := answered.exception()):
        _log.warning("log.not_appended", error=repr(error))


def fail(answered: asyncio.Future[Outcome], error: Exception) -> None:
    """Raise *error* where somebody still waits."""
    if not answered.done():
        answered.set_exception(error)
