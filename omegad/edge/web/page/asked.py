"""What a page asks of the daemon, so that each number can say by which query it came."""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from omegad.edge.cli.arguments import SINGULAR, methods
from omegad.requests.verb import Verb, of
from omegad.runtime.errors import Invalid, Overloaded, Refused
from omegad.runtime.json_types import Json

WAITS_S = (0.1, 0.2, 0.4)
"""Between one try and the next of what too many ask at once."""
Ask = Callable[..., Awaitable[Json]]

READS = frozenset(
    {
        *("audit.sql", "claim.list", "intent.check", "lint.report", "log.diff", "log.read"),
        *("memory.get", "memory.history", "memory.junk", "memory.list", "memory.query", "memory.stale"),
        *("memory.timeline", "memory.traverse", "memory.unsettled", "message.list", "reaction.list"),
        *("receipts.list", "session.get", "session.list", "session.who", "system.status", "task.list"),
        *("thesis.calibration", "thesis.get", "thesis.list", "upkeep.today"),
    }
)
"""Methods that a page may ask: none changes anything."""
BEYOND = {"log.read": "log"}
"""Verbs that ask a method which declares none."""


class Query(NamedTuple):
    """A method with its parameters."""

    method: str
    params: Mapping[str, object]

    @property
    def command(self) -> str:
        """How the command line asks it; as a call of the method where no verb does."""
        known = methods()[self.method]
        words = BEYOND.get(self.method)
        verb = of(known["verb"] | {"method": self.method}) if "verb" in known else Verb(words=words or "")
        if not verb.words:
            return f"{self.method} {msgspec.json.encode(self.params).decode()}"
        parameters = {one["name"]: one for one in known.get("parameters", ())}
        required = tuple(name for name, one in parameters.items() if one.get("is_required"))
        given, options = list[str](), list[str]()
        for name, value in self.params.items():
            values = value if isinstance(value, list | tuple) else [value]
            if name in (required if verb.given is None else verb.given):
                given += [shlex.quote(str(one)) for one in values]
            elif value is True:
                options.append(f"--{name.replace('_', '-')}")
            elif value not in (None, False):
                option = f"--{SINGULAR.get(name, name).replace('_', '-')}"
                options += [part for one in values for part in (option, shlex.quote(str(one)))]
        return " ".join(["omegad", verb.words, *given, *options])

    @property
    def url(self) -> str:
        """The page that asks it alone."""
        with_params = {"params": msgspec.json.encode(self.params).decode()} if self.params else {}
        return f"/page/query?{urlencode({'method': self.method} | with_params)}"


class Asking:
    """Asks the daemon for one page, and keeps what was asked and answered."""

    def __init__(self, ask: Ask, given: Mapping[str, str]) -> None:
        """Take what asks, and the parameters of the page."""
        self._ask = ask
        self.given = given
        self.asked: list[tuple[Query, Json]] = []

    async def __call__(self, method: str, /, **params: object) -> Json:
        """Return what a method answers. Parameters that are None or empty are left out. Raises what the
        daemon raises, and `Refused` for what does more than read.
        """
        if method not in READS:
            raise Refused(f"the page does not ask {method[:80]}", hint="POST /rpc/METHOD asks any method")
        told = {name: value for name, value in params.items() if value not in (None, "", ())}
        place = len(self.asked)
        self.asked.append((Query(method, told), None))
        for wait_s in WAITS_S:
            with suppress(Overloaded):
                answer = await self._ask(method, **told)
                break
            await asyncio.sleep(wait_s)
        else:
            answer = await self._ask(method, **told)
        self.asked[place] = (Query(method, told), answer)
        return answer

    async def unnamed(self, method: str, /, **params: object) -> Json:
        """Ask what no number of the page comes by."""
        return await self._ask(method, **params)

    def text(self, name: str) -> str | None:
        """Return a parameter of the page, None where it is not given or empty."""
        return self.given.get(name, "").strip() or None

    def number(self, name: str, default: int, most: int, least: int = 1) -> int:
        """Return a parameter that is a number, a default where it is not given. Raises `Invalid`."""
        said = self.given.get(name) or str(default)
        if not said.isascii() or not said.isdigit() or not least <= int(said[:19]) <= most:
            raise Invalid(f"{name} is a number from {least} to {most:,}", hint="change the address")
        return int(said)
