"""Agents that race for the same files: `python -m tests.acceptance.claiming SOCKET FOLDER PROCESS AGENTS
CLAIMS PAUSE_S`.

Each agent is a session of its own: it claims some of the files, and where it can, works on them for a moment
and lets go of them. Prints a line of JSON for each answer: what was asked, what came of it, and how long it
took. A daemon that is gone is asked again.
"""

import asyncio
import json
import random
import sys
import time
from itertools import count
from pathlib import Path

from omegad.client import AsyncClient
from omegad.runtime.errors import NoDaemon, OmegadError, Refused, ShuttingDown

FILES = tuple(f"src/module_{number}.py" for number in range(20))
AT_ONCE_MAX = 4


class Agent:
    """One session, which asks until it was answered so many times."""

    def __init__(self, socket: Path, folder: str, session_id: str, pause_s: float) -> None:
        self._socket, self._folder, self._session_id, self._pause_s = socket, folder, session_id, pause_s
        self._random = random.Random(session_id)  # noqa: S311  the same requests in every run
        self._requests = count(1)

    async def run(self, claims: int) -> None:
        answered, is_done = 0, False
        while not is_done:
            try:
                async with AsyncClient(self._socket, name=self._session_id) as client:
                    while answered < claims:
                        await self._turn(client)
                        answered += 1
                    # A claim may have been granted whose answer was lost with the daemon.
                    await client.call("claim.release", session_id=self._session_id)
                    is_done = True
            except (NoDaemon, ShuttingDown):
                await asyncio.sleep(0.05)

    async def _turn(self, client: AsyncClient) -> None:
        paths = self._random.sample(FILES, self._random.randint(1, AT_ONCE_MAX))
        began = time.perf_counter()
        try:
            answer = await client.call(
                "claim.files",
                session_id=self._session_id,
                paths=paths,
                folder=self._folder,
                request_id=f"r{next(self._requests)}",
            )
        except Refused as refusal:
            self._say(began, paths, 0, str(refusal))
        else:
            self._say(began, paths, answer["position"], "")
            await asyncio.sleep(self._random.random() * self._pause_s)
            await client.call("claim.release", session_id=self._session_id)
        await asyncio.sleep(self._random.random() * self._pause_s)

    def _say(self, began: float, paths: list[str], position: int, refusal: str) -> None:
        took_ms = (time.perf_counter() - began) * 1e3
        told = {
            "session": self._session_id,
            "paths": sorted(paths),
            "position": position,
            "refusal": refusal,
            "ms": took_ms,
        }
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


async def main() -> None:
    """Let all agents of this process run to their end."""
    socket, folder, process, agents, claims, pause_s = sys.argv[1:]
    run = [
        Agent(Path(socket), folder, f"{process}-{number}", float(pause_s)).run(int(claims))
        for number in range(int(agents))
    ]
    for failure in await asyncio.gather(*run, return_exceptions=True):
        if isinstance(failure, OmegadError):
            raise failure


if __name__ == "__main__":
    asyncio.run(main())
