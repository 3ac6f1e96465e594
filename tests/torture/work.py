"""What goes on while a daemon is killed: writes, hooks, races for files, erasures, compactions, rebuilds,
a full disk, a clock that jumps.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from omegad.client import AsyncClient
from omegad.runtime.errors import NoDaemon, OmegadError
from tests.acceptance.conftest import PATIENCE_S
from tests.torture.book import Asked, Book, same

AT_ONCE = 4  # requests that each writer has under way
ASKED_AGAIN = 300
FILES = tuple(f"module_{number}.py" for number in range(8))
WORDS = (
    "export",
    "import",
    "ledger",
    "invoice",
    "queue",
    "worker",
    "cache",
    "index",
    "schema",
    "billing",
    "search",
    "session",
    "token",
    "upload",
    "report",
    "mailer",
)
MENDED = 0.3  # of its steps
CLOCK_STEPS_S = (-3 * 3_600, -60, 0, 90, 3_600)


class Caller(AsyncClient):
    """A client that can be asked for the name it gave."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name=name, timeout_s=PATIENCE_S)
        self.name = name


Part = Callable[[Caller], Awaitable[None]]


class Work:
    """Lets all of it go on against one home, and keeps the book."""

    def __init__(
        self, home: Path, socket: Path, book: Book, chance: random.Random, *, clock: Path, full_disk: Path
    ) -> None:
        self._home, self._socket, self._book, self._chance = home, socket, book, chance
        self._clock, self._full_disk = clock, full_disk
        self.refused = Counter[str]()

    async def go_on(self, *, with_rebuilds: bool, with_full_disk: bool) -> None:
        """Work until the daemon is gone."""
        parts: list[Part] = [
            self._hooks,
            self._race,
            self._race,
            self._erase,
            self._compact,
            self._step_clock,
        ]
        parts += [self._write] * 3
        parts += [self._rebuild] * with_rebuilds + [self._fill_disk] * with_full_disk
        await asyncio.gather(
            *(
                self._until_gone(part, f"{part.__name__.strip('_')}-{number}")
                for number, part in enumerate(parts)
            )
        )

    async def send_again(self) -> None:
        """Ask once more for all that was not answered; each must be answered now."""
        unanswered = list(self._book.unanswered.values())
        parts = [
            self._send_all(name, [one for one in unanswered if one.client == name])
            for name in {one.client for one in unanswered}
        ]
        ended = await asyncio.gather(self._erase_all(), *parts, return_exceptions=True)
        for error in filter(None, ended):
            raise error

    async def answered_otherwise(self) -> list[str]:
        """Ask again for some of what was acknowledged and not erased; return a sentence for each answer that
        is another one than the first.
        """
        gone = {*self._book.gone, *self._book.erasing.values()}
        known = [
            (asked, answer)
            for asked, answer in self._book.acknowledged
            if "request_id" in asked.params and asked.mark not in gone
        ]
        wrong = list[str]()
        for asked, first in self._chance.sample(known, min(len(known), ASKED_AGAIN)):
            async with self._client(asked.client) as client:
                answer = await client.call(asked.method, **asked.params)
            if same(answer) != same(first):
                wrong.append(f"{asked.mark} was answered {same(first)}, and then {same(answer)}")
        return wrong

    async def _send_all(self, name: str, unanswered: list[Asked]) -> None:
        async with self._client(name) as client:
            await asyncio.gather(*(self._send(client, asked) for asked in unanswered))

    async def _erase_all(self) -> None:
        async with self._client("eraser") as eraser:
            for memory_id in list(self._book.erasing):
                await self._erase_one(eraser, memory_id)

    def _client(self, name: str) -> Caller:
        return Caller(self._socket, name)

    async def _until_gone(self, part: Part, name: str) -> None:
        with suppress(NoDaemon):
            async with self._client(name) as client:
                while True:
                    await part(client)

    async def _send(self, client: AsyncClient, asked: Asked) -> None:
        """Send a request until it is acknowledged; a full disk refuses it meanwhile."""
        self._book.ask(asked)
        while True:
            try:
                return self._book.answer(asked, await client.call(asked.method, **asked.params))
            except NoDaemon:
                raise
            except OmegadError as error:
                self._note(asked.method, error)
                await asyncio.sleep(0.02)

    def _note(self, method: str, error: OmegadError) -> None:
        told = f"{method}: {error.kind}: {str(error)[:80]}"
        self.refused[told] += 1
        if error.kind not in {"unavailable", "overloaded", "stale", "shutting_down"}:
            raise error

    async def _write(self, client: Caller) -> None:
        await asyncio.gather(*(self._send(client, self._next(client.name)) for _ in range(AT_ONCE)))

    def _next(self, client: str) -> Asked:
        number, chance = self._book.number(), self._chance
        mark = f"mark{number:07d}"
        if chance.random() < 0.7:
            call = {
                "session_id": client,
                "tool_name": "Bash",
                "tool_input": f"make {chance.choice(WORDS)}",
                "tool_use_id": mark,
            }
            return Asked(client, "tool.record", {**call, "request_id": f"r{number}"}, mark)
        words = " ".join(chance.sample(WORDS, 6))
        tags = ["erasable"] if chance.random() < 0.1 else []
        params: dict[str, Any] = {
            "content": f"{mark} {words} {number}",
            "ack": chance.choice(("durable", "related")),
            "tags": tags,
            "project": "atlas",
        }
        if chance.random() < 0.2:
            params |= {
                "event_type": "lesson_learned",
                "content": f"{mark} the nightly export times out at step {number}",
            }
        return Asked(client, "memory.store", {**params, "request_id": f"r{number}"}, mark)

    async def _hooks(self, client: Caller) -> None:
        """Tell of tool calls and prompts, each of them twice."""
        mark = f"mark{self._book.number():07d}"
        payload: dict[str, Any] = {
            "session_id": "hooked",
            "cwd": str(self._home),
            "hook_event_name": "PostToolUse",
        }
        payload |= {
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_use_id": mark,
            "tool_response": {"stdout": "done"},
        }
        if self._chance.random() < 0.3:
            payload = {
                "session_id": "hooked",
                "cwd": str(self._home),
                "hook_event_name": "UserPromptSubmit",
                "prompt": f"{mark} make it faster",
            }
        event = payload["hook_event_name"]
        asked = Asked(
            client.name,
            "hook.dispatch",
            {"event": event, "payload": payload, "delivery_id": mark, "host": "claude-code"},
            mark,
        )
        await self._send(client, asked)
        with suppress(OmegadError):
            await client.call(asked.method, **asked.params)

    async def _race(self, client: Caller) -> None:
        """Claim files that others want as well, and let go of them."""
        paths = self._chance.sample(FILES, self._chance.randint(1, 3))
        try:
            await client.call(
                "claim.files",
                session_id=client.name,
                paths=paths,
                folder=str(self._home.parent),
                request_id=f"c{self._book.number()}",
            )
            await client.call("claim.release", session_id=client.name)
        except NoDaemon:
            raise
        except OmegadError as error:
            if error.kind != "refused":
                self._note("claim.files", error)
        await asyncio.sleep(self._chance.random() * 0.02)

    async def _erase(self, client: Caller) -> None:
        await asyncio.sleep(self._chance.random() * 0.5)
        if self._book.erasable:
            memory_id, mark = self._book.erasable.pop(self._chance.randrange(len(self._book.erasable)))
            self._book.erasing[memory_id] = mark
            await self._erase_one(client, memory_id)
        else:
            await client.call("system.ping")

    async def _erase_one(self, client: AsyncClient, memory_id: str) -> None:
        try:
            await client.call("memory.erase", memory_id=memory_id)
        except NoDaemon:
            raise
        except OmegadError as error:
            if error.kind != "not_found":  # erased already, when the answer was lost
                return self._note("memory.erase", error)
        return self._book.erased(memory_id)

    async def _compact(self, client: Caller) -> None:
        await asyncio.sleep(self._chance.random())
        with_types = ["lesson_learned"]
        try:
            await client.call(
                "memory.compact",
                project="atlas",
                event_types=with_types,
                threshold=0.5,
                min_cluster=2,
                limit=3,
            )
        except NoDaemon:
            raise
        except OmegadError as error:
            self._note("memory.compact", error)

    async def _rebuild(self, client: Caller) -> None:
        await asyncio.sleep(self._chance.random() * 0.2)
        await self._try(client, "views.rebuild")

    async def _step_clock(self, client: Caller) -> None:
        await asyncio.sleep(self._chance.random())
        self._clock.write_text(str(self._chance.choice(CLOCK_STEPS_S)), encoding="ascii")
        await self._try(client, "clock.mend" if self._chance.random() < MENDED else "system.ping")

    async def _try(self, client: Caller, method: str) -> None:
        """Ask for what may be refused meanwhile, by a full disk for one."""
        try:
            await client.call(method)
        except NoDaemon:
            raise
        except OmegadError as error:
            self._note(method, error)
            await asyncio.sleep(0.05)

    async def _fill_disk(self, client: Caller) -> None:
        await asyncio.sleep(self._chance.random() * 0.2)
        self._full_disk.touch()
        await asyncio.sleep(self._chance.random() * 0.3)
        self._full_disk.unlink(missing_ok=True)
        await client.call("system.ping")
