"""What reactions failed on: listed, and tried again."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request

LISTED_MAX = 1_000


class ListSetAside(Request, frozen=True, kw_only=True, tag="reaction.list"):
    """List the events, and the slots of time, that a reaction failed on and set aside."""


class RetrySetAside(Request, frozen=True, kw_only=True, tag="reaction.retry"):
    """Try again what reactions failed on: all of it, what one of them did, or one event of it."""

    reaction: Annotated[str, Meta(min_length=1, max_length=256, description="only what this reaction failed on")] | None = None
    position: Annotated[int, Meta(ge=0, description="only that event, or slot, of the reaction")] | None = None
    forget: Annotated[bool, Meta(description="try nothing, and let go of it")] = False
    request_id: Annotated[str, Meta(min_length=1, max_length=256, description="the same id gives the first answer")] | None = None


class OneSetAside(msgspec.Struct, frozen=True, kw_only=True):
    """An event at a position of the log, or a slot of time, and what the reaction failed on there."""

    reaction: str
    position: int
    is_slot: bool
    failed_at: str
    tries: int
    error: str


class AllSetAside(msgspec.Struct, frozen=True, kw_only=True):
    """What is set aside: the first 1,000 of `total`, by reaction and position."""

    set_aside: list[OneSetAside]
    total: int


class Retried(msgspec.Struct, frozen=True, kw_only=True):
    """How many of them were done now, or let go of, and those that failed once more."""

    done: int
    forgotten: int
    failed: list[OneSetAside]


METHODS = (
    ServiceMethod(params=ListSetAside, answer=AllSetAside),
    ServiceMethod(params=RetrySetAside, answer=Retried, writes=True),
)
