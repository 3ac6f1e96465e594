"""The wish to have a memory removed for good, and what is told of it."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.log.event import Position
from omegad.requests.method import ServiceMethod
from omegad.requests.query import Request
from omegad.requests.verb import Option, Verb

COPIES_TOLD = 1_000
TEXT_MAX = 65_536


class EraseMemory(Request, frozen=True, kw_only=True, tag="memory.erase"):
    """Remove a memory for good: every wording it ever had, and copies of them in other events, from every
    file of the home.

    Or, with `text` instead of `memory_id`, a phrase wherever it stands, such as a password: in prompts, tool
    calls, queries, memories, messages, tasks. What omegad itself cut from what is erased, or put together of
    it, goes as well, or is made again.
    """

    memory_id: Annotated[str, Meta(min_length=1, max_length=256, description="the memory's id")] | None = None
    text: (
        Annotated[
            str, Meta(min_length=1, max_length=TEXT_MAX, description="a phrase to erase wherever it stands")
        ]
        | None
    ) = None
    reason: Annotated[str, Meta(max_length=4_096, description="why; it stays in the log")] | None = None
    dry_run: Annotated[bool, Meta(description="say what would be erased, and erase nothing")] = False
    request_id: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=256,
                description="makes it safe to send again: the same id gives the first answer",
            ),
        ]
        | None
    ) = None


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """An event that holds a copy, and what becomes of it: only the copy is taken out, or all its text."""

    position: Position
    tag: str
    session_id: str | None
    occurred_at: str
    loses: Literal["copy", "text"]


class Affected(msgspec.Struct, frozen=True, kw_only=True):
    """Another memory that holds a copy: one that says the same is `erased`, another `edited`, with the
    copy taken out of what it says.
    """

    memory_id: str
    outcome: Literal["erased", "edited", "history"]


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the home that still holds it and is not the daemon's to change, and what to do about it."""

    file: str
    hint: str


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, or would be (`dry_run`), and where it stands still.

    `wordings` are told only before: all that the memory ever said; a phrase is not. `copies` are the events
    that hold them, its own among them, the first 1,000 of `copy_count`. `whole_values_only` are those
    wordings too short, or too common, to be looked for within other texts. `rebuilt` are views that had to be
    built again. `unfinished` is what keeps its bytes from going out of some file, where something does: it is
    erased all the same, and nothing shows it; the bytes go when they can, at the latest at the next start.
    `names` are those in which a phrase stands as well, such as a session's or a project's, beside events:
    they are not erased.
    """

    memory_id: str | None
    dry_run: bool
    position: Position
    wordings: list[str]
    whole_values_only: int
    copies: list[Copy]
    copy_count: int
    memories: list[Affected]
    left: list[Left]
    rebuilt: list[str] = []
    unfinished: str | None = None
    names: list[str] = []
    took_ms: float = 0.0


METHODS = (
    ServiceMethod(
        params=EraseMemory,
        answer=Erased,
        writes=True,
        verb=Verb(
            by="erasing.erase",
            options=(
                Option("memory_id", "the memory's id", is_given=True),
                Option(
                    "text",
                    "instead of a memory, erase a phrase wherever it stands: it is asked for and not shown,"
                    " or read from standard input, so that no shell remembers it; in an agent's own shell the"
                    " hooks would hear of it",
                    "flag",
                ),
                Option("yes", "erase without asking", "flag"),
            ),
            examples=(
                "omegad memory erase mem-0123456789abcdef --dry-run",
                "omegad memory erase --text",
                "omegad memory erase --text --yes < phrase.txt",
            ),
        ),
    ),
)
