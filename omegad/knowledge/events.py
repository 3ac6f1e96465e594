"""What happens to theses: beliefs that evidence speaks for or against, until somebody says how they came
out.
"""

from typing import Literal

import msgspec

from omegad.log.event import Event, FreeText, GivenName, MadeId

Side = Literal["for", "against", "mentions"]
"""What a piece of evidence says; a mention counts nowhere."""

Outcome = Literal["yes", "no", "n/a"]
GivenBy = Literal["hand", "rule"]


class ThesisStated(Event, frozen=True, kw_only=True, tag="thesis.stated@1"):
    """A belief that can be tested was stated; `memory_id` is the memory that says it."""

    thesis_id: MadeId
    memory_id: MadeId
    statement: FreeText
    domain: FreeText | None
    prior: float | None
    """How probable it was held to be, 0 to 1."""

    due_at: int | None
    """When it is to be resolved, in microseconds since 1970."""

    criterion: FreeText | None


class ThesisEvidenced(Event, frozen=True, kw_only=True, tag="thesis.evidenced@1"):
    """A memory was taken as evidence. The same `evidence_id` again takes the place of what it said before.

    `weight` is 0 to 1, 0 for what does not count: a mention, and an echo, which repeats what its session had
    been shown or its origin had said. `origin` is the session that said it, or the memory where no session
    did; `similarity` is that to the thesis, where a rule saw it.
    """

    thesis_id: MadeId
    version: int
    evidence_id: MadeId
    memory_id: MadeId
    side: Side
    is_echo: bool
    weight: float
    origin: GivenName
    by: GivenBy
    why: FreeText | None
    similarity: float | None


class ThesisEvidenceRetracted(Event, frozen=True, kw_only=True, tag="thesis.evidence_retracted@1"):
    """A piece of evidence counts no longer."""

    thesis_id: MadeId
    evidence_id: MadeId
    why: FreeText | None


class ThesisRevised(Event, frozen=True, kw_only=True, tag="thesis.revised@1"):
    """A thesis says something else from now on, in a memory of its own; what spoke for the version before
    stays with that.
    """

    thesis_id: MadeId
    version: int
    memory_id: MadeId
    statement: FreeText
    why: FreeText | None


class ThesisPredicted(Event, frozen=True, kw_only=True, tag="thesis.predicted@1"):
    """Somebody said how probable it is that the thesis comes out true. Due date and criterion are as when
    it was stated, None for no change.
    """

    thesis_id: MadeId
    version: int
    probability: float
    due_at: int | None
    criterion: FreeText | None


class ThesisResolved(Event, frozen=True, kw_only=True, tag="thesis.resolved@1"):
    """It is known how a thesis came out, and from where; `n/a` leaves every score as it is."""

    thesis_id: MadeId
    version: int
    outcome: Outcome
    source: FreeText


class Touch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was said is to a thesis, and the kind of reason for its side, where a rule saw it."""

    thesis_id: MadeId
    side: Side
    is_echo: bool
    kind: FreeText | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """What was said does to a memory: how near they are (a cosine), what that comes to, and for the theses
    that it touches.
    """

    memory_id: MadeId
    similarity: float
    side: Side
    is_echo: bool
    theses: tuple[Touch, ...] = ()
    kind: FreeText | None = None


class MemoryRippled(Event, frozen=True, kw_only=True, tag="memory.rippled@1"):
    """What was said, and a memory now holds, has these effects on what is near to it. `origin` is as in
    `thesis.evidenced`.
    """

    memory_id: MadeId
    origin: GivenName
    effects: tuple[Effect, ...]


class FindingDismissed(Event, frozen=True, kw_only=True, tag="finding.dismissed@1"):
    """Somebody said that a rule's finding about these memories, theses, entities or questions needs
    nothing done.
    """

    rule: GivenName
    ids: tuple[FreeText, ...]
