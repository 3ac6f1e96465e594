"""What happens in an agent's session, as its host tells it, and to what is kept of that."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from omegad.log.event import Event, Excerpt, FreeText, GivenName, MadeDigest, MadeId, Position
from omegad.search.events import Returned, Use

How = Literal["briefing", "review", "reminder", "prompt", "edit", "file", "error", "warning"]
TO_JUDGE: tuple[How, ...] = ("review", "reminder")
"""Ways of being shown in which a memory is named to be judged, which is no use of it."""


OWN = "omegad:"
"""What the delivery id of a tool call begins with that omegad's own tool told of itself; those of hooks are
hexadecimal.
"""

RESUMED = "resume"
"""The source of a session that goes on with the context that it had, and begins with no other."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How a hook came in: the id that its client gave it, and a digest of what it says, hex; both tell it
    when it comes again.

    The digest is made with a key of the home; one of 32 characters was made without. It is all zeros where
    what it was of is erased.
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
    """A session was over, at least for now. `after` is the position of the end before this one, 0 for the
    first.

    `delivery` is None where no host said so.
    """

    host: GivenName
    reason: FreeText | None
    after: Position
    delivery: Delivery | None


class SubagentEnded(Event, frozen=True, kw_only=True, tag="subagent.ended@1"):
    """An agent that worked for the session's own had said all; `message` is the last of it, which the
    session itself never said.
    """

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
    """Memories were put before an agent: when its session began, for a prompt, before an edit, after an
    error.

    `review` are those of a briefing that somebody should look at again, `reminder` those whose time had come,
    each told unasked but once; `file` is for one that was read, changed or named in a command. A `warning`
    shows none: it tells that a host's hooks stopped arriving. `subject` is what they were for: a prompt's
    beginning, a file, an error. Scores are those of the search; a briefing has none, which is 0. The moment
    is described as in `memory.queried`. `agent_id` is the host's word for which of the agents that work for
    the session's own was shown them, None for the session's own.
    """

    query_id: MadeId
    how: How
    subject: FreeText
    results: tuple[Returned, ...]
    read_position: Position
    at: int
    embedder_id: GivenName | None
    versions: dict[GivenName, int] = msgspec.field(default_factory=dict)
    agent_id: GivenName | None = None


ToolStatus = Literal["ok", "error", "denied"]


class ToolCalled(Event, frozen=True, kw_only=True, tag="tool.called@1"):
    """An agent called a tool. `call_index` counts a session's calls from 1.

    `delivery` is that of the hook which told of it, where the host gave the call no id.
    """

    tool_name: GivenName
    status: ToolStatus
    call_index: int
    tool_use_id: GivenName | None = None
    duration_ms: float | None = None
    tool_input: Excerpt | None = None
    result: Excerpt | None = None
    delivery: Delivery | None = None


class ToolCallAged(ToolCalled, frozen=True, kw_only=True, tag="tool.call_aged@1", omit_defaults=True):
    """What remains of a tool call whose time is over: how large its input and its result were, the file that
    the input names, those that it was to change, and the memories that both name.
    """

    input_bytes: int | None = None
    result_bytes: int | None = None
    file: FreeText | None = None
    edited: tuple[FreeText, ...] = ()
    given: tuple[FreeText, ...] = ()
    returned: tuple[FreeText, ...] = ()


class SurfacingAged(
    MemorySurfaced, frozen=True, kw_only=True, tag="memory.surfacing_aged@1", omit_defaults=True
):
    """What remains of what was shown unasked once its time is over: how much it was. The last of those that
    aged together counts the `uses` of all.
    """

    subject: FreeText = ""
    results: tuple[Returned, ...] = ()
    embedder_id: GivenName | None = None
    returned: int = 0
    uses: tuple[Use, ...] = ()


class HookNoted(Event, frozen=True, kw_only=True, tag="hook.noted@1", omit_defaults=True):
    """A hook came in that nothing else tells of: before a tool, which may then be called or not, or of a kind
    that nothing follows from. `fired` is the host's name of it, `about` what it says, cut short.
    """

    host: GivenName
    fired: GivenName
    tool_name: GivenName | None = None
    tool_use_id: GivenName | None = None
    about: FreeText | None = None


Verdict = Literal["allowed", "warned", "asked", "denied"]
Found = Literal["new", "same", "ahead", "stale", "unknown", "unasked"]
ObjectId = Annotated[FreeText, Meta(max_length=64)]


class CheckedRef(msgspec.Struct, frozen=True, kw_only=True):
    """A branch of a remote, what was to be pushed to it, and what was found: `ahead` of what is there, or
    `stale`, lacking commits that are there.

    `unknown` is a branch whose commit the clone does not have, `unasked` one whose remote did not answer.
    `lacks` counts the commits that are lacking; `commits` are the latest of them in a line each.
    """

    ref: Annotated[FreeText, Meta(max_length=1_024)]
    local_sha: ObjectId
    remote_sha: ObjectId | None
    found: Found
    is_forced: bool = False
    lacks: Annotated[int, Meta(ge=0)] = 0
    commits: Annotated[tuple[FreeText, ...], Meta(max_length=16)] = ()


class GitPushChecked(Event, frozen=True, kw_only=True, tag="git.push_checked@1"):
    """A push was looked at before it ran: of an agent's command, or by git's own hook (`how`). `reason` is
    why it was not just allowed.
    """

    how: Literal["command", "hook"]
    host: GivenName
    remote: FreeText
    verdict: Verdict
    reason: FreeText | None
    refs: tuple[CheckedRef, ...]
    delivery: Delivery | None


class GitMerged(Event, frozen=True, kw_only=True, tag="git.merged@1"):
    """Git kept that a work tree was pulled into, merged or rebased, whoever did it; `what` is git's own word
    for it, and `ref` the branch, None where none was checked out.
    """

    worktree: FreeText
    ref: Annotated[FreeText, Meta(max_length=1_024)] | None
    before: ObjectId
    after: ObjectId
    what: FreeText


class DeliveriesExpired(Event, frozen=True, kw_only=True, tag="deliveries.expired@1"):
    """What came in before a position is not known again any more: a hook or a tool call that is told once
    more counts as new.

    Memories are shown again for files that they were shown for before it, and what has waited since then to
    be told to a session is let go of.
    """

    before: Position
