"""A handler for a server's tests."""

import asyncio
from typing import Any

import anyio

from omegad.rpc.protocol import MethodNotFound
from omegad.rpc.server import Call

MEGABYTE = 1024 * 1024


class Desk:
    """A handler whose every method misbehaves in its own way, and that remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.cancelled = 0
        self.gate = anyio.Event()
        self.begun = asyncio.Semaphore(0)

    async def __call__(self, call: Call) -> object:
        self.seen.append(call.method)
        self.begun.release()
        match call.method:
            case "echo":
                return call.params
            case "wait":
                await self.gate.wait()
                return call.params
            case "hang":
                await self.hang()
            case "big":
                return "x" * MEGABYTE
        raise MethodNotFound

    async def hang(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled += 1


def code_of(answer: Any) -> int:
    return int(answer["error"]["code"])


def by_id(answers: list[Any]) -> dict[Any, Any]:
    return {answer["id"]: answer for answer in answers}
