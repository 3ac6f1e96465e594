"""What happens in an agent's session, as its host tells it."""

from typing import Literal

import msgspec

from omegad.log.event import Event, Excerpt, FreeText, GivenName, MadeDigest, MadeId, Position
from omegad.search.events import Returned

How = Literal["briefing", "review", "reminder", "prompt", "edit", "error"]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How a hook came in: the id that its client gave it, and a digest of what it says, hex; both tell it when it comes again.

    The digest is made with a key of the home; one of 32 characters was made without. It is all zeros where what it was of is erased.
    """

    delivery_id: GivenName
    digest: MadeDigest


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started@1"):
    """A session began, went on after a pause, or lost its context; `source` is the host's word for which."""

    host: GivenName
    source: FreeText | None
    model: FreeText | None
    folder: FreeText | None
    delivery: Delivery


class PromptSubmitted(Event, frozen=True, kw_only=True, tag="prompt.submitted@1"):
    """A person, or a program in their place, asked an agent for something."""

    host: GivenName
    prompt: Excerpt
    delivery: Delivery


class TurnEnded(Event, frozen=True, kw_only=True, tag="turn.ended@1"):
    """An agent had said all that it had to say for now; `message` is the last of it."""

    host: GivenName
    message: Excerpt | None
    delivery: Delivery


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended@1"):
    """A session was over, at least for now. `after` is the position of the end before this one, 0 for the first.

    `delivery` is None where no host said so.
    """

    host: GivenName
    reason: FreeText | None
    after: Position
    delivery: Delivery | None


class SubagentEnded(Event, frozen=True, kw_only=True, tag="subagent.ended@1"):
    """An agent that worked for the session's own had said all; `message` is the last of it, which the session itself never said."""

    host: GivenName
    agent_id: GivenName | None
    agent_type: GivenName | None
    message: Excerpt | None
    delivery: Delivery


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted@1"):
    """A session's context was about to be replaced by a summary; `trigger` is the host's word for why.

    `after` is the position of the session's latest end, 0 before the first.
    """

    host: GivenName
    trigger: FreeText | None
    after: Position
    delivery: Delivery


class MemorySurfaced(Event, frozen=True, kw_only=True, tag="memory.surfaced@1"):
    """Memories were put before an agent: when its session began, for a prompt, before an edit, after an error.

    `review` are those of a briefing that somebody should look at again, `reminder` those whose time had come, each told unasked but once.
    `subject` is what they were for: a prompt's beginning, a file, an error. Scores are those of the search; a briefing has none, which is 0.
    The moment is described as in `memory.queried`.
    """

    query_id: MadeId
    how: How
    subject: FreeText
    results: tuple[Returned, ...]
    read_position: Position
    at: int
    embedder_id: GivenName | None
    versions: dict[GivenName, int] = msgspec.field(default_factory=dict)
