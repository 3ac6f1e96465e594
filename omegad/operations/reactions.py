"""What reactions failed on: listed, and tried again."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.dead_letters import DeadLetter
from omegad.operations.system import Handler
from omegad.reactions.runner import Runner
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.rpc.peer import Call
from omegad.runtime.errors import Invalid, NotFound
from omegad.runtime.times import rfc3339

LISTED_MAX = 1_000


class ListSetAside(Request, frozen=True, kw_only=True, tag="reaction.list"):
    """List the events, and the slots of time, that a reaction failed on and set aside."""


class RetrySetAside(Request, frozen=True, kw_only=True, tag="reaction.retry"):
    """Try again what reactions failed on: all of it, what one of them did, or one event of it."""

    reaction: (
        Annotated[str, Meta(min_length=1, max_length=256, description="only what this reaction failed on")]
        | None
    ) = None
    position: Annotated[int, Meta(ge=0, description="only that event, or slot, of the reaction")] | None = (
        None
    )
    forget: Annotated[bool, Meta(description="try nothing, and let go of it")] = False
    request_id: (
        Annotated[str, Meta(min_length=1, max_length=256, description="the same id gives the first answer")]
        | None
    ) = None


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


def handlers(runner: Runner) -> dict[type[msgspec.Struct], Handler]:
    """Return what answers each of the methods about what is set aside."""
    return {ListSetAside: partial(listed, runner), RetrySetAside: partial(retried, runner)}


async def listed(runner: Runner, _request: ListSetAside, _call: Call) -> AllSetAside:
    """List it."""
    found = await runner.set_aside()
    return AllSetAside(set_aside=_told(found), total=len(found))


async def retried(runner: Runner, request: RetrySetAside, call: Call) -> Retried:
    """Try what is meant again, one after the other. Raises `NotFound` where there is none, and storage
    errors where it cannot be tried now.
    """
    if request.position is not None and request.reaction is None:
        raise Invalid("whose position?", hint="name the reaction too; reaction.list shows what is set aside")
    meant = [
        one
        for one in await runner.set_aside()
        if request.reaction in {None, one.name} and request.position in {None, one.position}
    ]
    if not meant and request.reaction is not None:
        raise NotFound("nothing of that is set aside", hint="reaction.list shows what is")
    failed = []
    for one in meant:
        if request.forget:
            await runner.forget(one)
        elif left := await runner.retry(one):
            failed.append(left)
    call.peer.written = max(call.peer.written, runner.head)
    done = len(meant) - len(failed)
    return Retried(
        done=0 if request.forget else done,
        forgotten=done if request.forget else 0,
        failed=_told(failed),
    )


def _told(found: Sequence[DeadLetter]) -> list[OneSetAside]:
    return [
        OneSetAside(
            reaction=one.name,
            position=one.position,
            is_slot=one.is_slot,
            failed_at=rfc3339(one.failed_at),
            tries=one.tries,
            error=one.error,
        )
        for one in found[:LISTED_MAX]
    ]


METHODS = (
    ServiceMethod(params=ListSetAside, answer=AllSetAside),
    ServiceMethod(params=RetrySetAside, answer=Retried, writes=True),
)
