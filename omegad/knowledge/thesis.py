"""State a thesis, give evidence for and against it, and revise it."""

from itertools import chain, count
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omegad.knowledge.events import (
    Outcome,
    ThesisEvidenced,
    ThesisEvidenceRetracted,
    ThesisPredicted,
    ThesisResolved,
    ThesisRevised,
    ThesisStated,
)
from omegad.knowledge.thesis_state import Theses, ThesisState, evidence_id
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import Event, NewEvent, Position
from omegad.memory import store
from omegad.memory.relating import Replaceable
from omegad.memory.state import Memories, MemoryId, MemoryState, findable, known
from omegad.memory.store import THESIS, THESIS_TYPE, PreparedStore, Stored, StoreMemory
from omegad.requests.command import Acknowledged, Command, Name, Reason
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import Conflict, Invalid, NotFound, Refused
from omegad.runtime.times import parse_time

KEY_ID = "thesis_id"
"""What in the metadata of a decision that is a thesis names it."""

STATEMENT_MAX = 4_096
Statement = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=STATEMENT_MAX,
        description="what is believed, in one sentence that can turn out false",
    ),
]
Domain = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description="the field it is from, by which predictions are scored together",
    ),
]
Due = Annotated[str, Meta(description="when it is to be resolved, like 2026-12-31")]
Criterion = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="by what it will be known whether it came out true")
]
Probability = Annotated[float, Meta(ge=0, le=1, description="how probable it is that it comes out true")]
ThesisId = Annotated[Name, Meta(description="the thesis's id")]


class StateThesis(Command, frozen=True, kw_only=True, tag="thesis.state"):
    """State a thesis: a belief that evidence may speak for or against, kept as a decision.

    A decision stored with the metadata `{"thesis": true}` opens one as well, with `thesis_id`, `domain`,
    `evidence_for`, `evidence_against`, and `confidence` as the prior, from there.
    """

    statement: Statement
    domain: Domain | None = None
    prior: Probability | None = None
    due: Due | None = None
    criterion: Criterion | None = None
    project: Annotated[Name | None, Meta(description="which project it belongs to")] = None
    entity_id: Annotated[Name | None, Meta(description="which person or thing it is about")] = None
    session_id: Annotated[Name | None, Meta(description="which session it is from")] = None


class GiveEvidence(Command, frozen=True, kw_only=True, tag="thesis.evidence"):
    """Say that a memory speaks for a thesis, against it, or only mentions it; the same memory again takes
    back what was said of it before.
    """

    thesis_id: ThesisId
    memory_id: MemoryId
    side: Annotated[
        Literal["for", "against", "mentions"],
        Meta(description="what it says of the thesis; a mention counts nowhere"),
    ]
    weight: Annotated[float, Meta(gt=0, le=1, description="how much it counts")] = 1.0
    why: Reason | None = None


class RetractEvidence(Command, frozen=True, kw_only=True, tag="thesis.retract"):
    """Take a piece of evidence back."""

    thesis_id: ThesisId
    evidence_id: Annotated[Name, Meta(description="its id, as thesis.get shows it")]
    why: Reason | None = None


class ReviseThesis(Command, frozen=True, kw_only=True, tag="thesis.revise"):
    """Let a thesis say something else. It starts again without evidence; what was given stays with the
    version before.
    """

    thesis_id: ThesisId
    statement: Statement
    session_id: Annotated[Name | None, Meta(description="which session says so")] = None
    why: Reason | None = None


class OpenThesis(Command, frozen=True, kw_only=True, tag="thesis.open"):
    """Open the thesis that a decision's metadata speaks of."""

    memory_id: Name
    statement: str
    metadata: dict[str, object]


class ThesisAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The thesis, the memory that says it, and others whose place that may be meant to take."""

    thesis_id: str
    memory_id: str
    version: int = 1
    may_replace: tuple[Replaceable, ...] = ()
    may_contradict: tuple[Replaceable, ...] = ()
    position: Position = 0


class EvidenceGiven(Acknowledged, frozen=True, kw_only=True):
    """The id of what was given, by which it can be retracted."""

    evidence_id: str


class PreparedThesis(msgspec.Struct, frozen=True, kw_only=True):
    """The decision that a thesis is kept as, and how that store was prepared."""

    command: StoreMemory
    store: PreparedStore


async def prepare_statement(
    services: Services, command: StateThesis, context: RequestContext
) -> PreparedThesis:
    """Prepare the decision that states a thesis. Raises `Invalid`, `Refused`."""
    if command.due is not None:
        parse_time(command.due, "due")
    stored = StoreMemory(
        content=command.statement,
        event_type=THESIS_TYPE,
        project=command.project,
        entity_id=command.entity_id,
        session_id=command.session_id,
        metadata={THESIS: True} if command.domain is None else {THESIS: True, "domain": command.domain},
        ack=command.ack,
    )
    return PreparedThesis(command=stored, store=await store.prepare(services, stored, context))


def state_thesis(
    command: StateThesis, prepared: PreparedThesis, state: DecisionState, now_us: int
) -> Decision:
    """Decide a thesis and the memory that says it. Raises `Conflict` where an open thesis says just that,
    and what a store raises.
    """
    kept, told = _kept(store.store(prepared.command, prepared.store, state, now_us))
    if (same := state[Theses].of_memory(told.memory_id)) is not None:
        raise Conflict(
            f"thesis {same.thesis_id} says that already", hint="give evidence for it, or revise it"
        )
    # The same memory may state another one when the first is resolved.
    first = _first_id(told.memory_id)
    ids = chain((first,), (f"{first}-{number}" for number in count(2)))
    stated = ThesisStated(
        thesis_id=next(one for one in ids if state[Theses].get(one) is None),
        memory_id=told.memory_id,
        statement=prepared.store.content,
        domain=command.domain,
        prior=command.prior,
        due_at=None if command.due is None else parse_time(command.due, "due"),
        criterion=command.criterion,
    )
    new = NewEvent(event=stated, session_id=command.session_id, project=command.project, follows=True)
    return Decision(events=(*kept, new), answer=_answer(stated.thesis_id, told))


def open_thesis(command: OpenThesis, state: DecisionState, now_us: int) -> Decision:
    """Decide the thesis that a stored decision asks for, with its evidence; none where its memory has
    stated one. Raises `NotFound`, `Refused`.
    """
    memory = findable(state, command.memory_id, now_us)
    first = _first_id(memory.memory_id)
    if state[Theses].of_memory(memory.memory_id) is not None or state[Theses].get(first) is not None:
        return Decision(answer=Acknowledged())
    named = _valid(command.metadata.get(KEY_ID), Name)
    stated = ThesisStated(
        thesis_id=named if named is not None and state[Theses].get(named) is None else first,
        memory_id=memory.memory_id,
        statement=command.statement[:STATEMENT_MAX],
        domain=_valid(command.metadata.get("domain"), Domain),
        prior=_valid(command.metadata.get("prior", command.metadata.get("confidence")), Probability),
        due_at=_moment(command.metadata.get("due")),
        criterion=_valid(command.metadata.get("criterion"), Criterion),
    )
    thesis = ThesisState(stated.thesis_id, memory.memory_id, 1, memory.project, None)
    events: list[Event] = [stated]
    for side in ("for", "against"):
        named_ids = command.metadata.get(f"evidence_{side}")
        for memory_id in dict.fromkeys(
            one for one in (named_ids if isinstance(named_ids, list) else ()) if isinstance(one, str)
        ):
            if (given := state[Memories].get(memory_id)) is not None and given.memory_id != memory.memory_id:
                evidence = GiveEvidence(
                    thesis_id=thesis.thesis_id,
                    memory_id=memory_id,
                    side="for" if side == "for" else "against",
                )
                events.append(_evidence(evidence, thesis, given))
    new = tuple(
        NewEvent(event=event, session_id=memory.session_id, project=memory.project, follows=place > 0)
        for place, event in enumerate(events)
    )
    return Decision(events=new, answer=Acknowledged())


def give_evidence(command: GiveEvidence, state: DecisionState, now_us: int) -> Decision:
    """Decide a piece of evidence. Raises `NotFound`, and `Refused` for a thesis that is resolved and for
    the memory that states it.
    """
    del now_us
    thesis, memory = open_of(command.thesis_id, state), known(state, command.memory_id)
    if memory.memory_id == thesis.memory_id:
        raise Refused("a thesis is no evidence for itself", hint="name another memory")
    event = _evidence(command, thesis, memory)
    new = NewEvent(event=event, session_id=memory.session_id, project=thesis.project)
    return Decision(events=(new,), answer=EvidenceGiven(evidence_id=event.evidence_id))


def _evidence(command: GiveEvidence, thesis: ThesisState, memory: MemoryState) -> ThesisEvidenced:
    origin = memory.session_id or memory.memory_id
    return ThesisEvidenced(
        thesis_id=thesis.thesis_id,
        version=thesis.version,
        evidence_id=evidence_id(thesis.thesis_id, thesis.version, memory.memory_id, origin),
        memory_id=memory.memory_id,
        side=command.side,
        is_echo=False,
        weight=0.0 if command.side == "mentions" else command.weight,
        origin=origin,
        by="hand",
        why=command.why,
        similarity=None,
    )


def retract(command: RetractEvidence, state: DecisionState, now_us: int) -> Decision:
    """Decide to take evidence back; raises `NotFound`, `Refused` for a thesis that is resolved."""
    del now_us
    thesis = open_of(command.thesis_id, state)
    if not state[Theses].has_evidence(command.thesis_id, command.evidence_id):
        raise NotFound(
            f"{command.thesis_id} has no evidence {command.evidence_id[:80]}",
            hint="thesis.get shows what it has",
        )
    event = ThesisEvidenceRetracted(
        thesis_id=command.thesis_id, evidence_id=command.evidence_id, why=command.why
    )
    return Decision(events=(NewEvent(event=event, project=thesis.project),), answer=Acknowledged())


async def prepare_revision(
    services: Services, command: ReviseThesis, context: RequestContext
) -> PreparedThesis:
    """Prepare the decision that takes the place of the one that states the thesis. Raises `NotFound`,
    `Invalid`, `Refused`.
    """
    found = await services.look(
        lambda connection, _: connection.execute(
            "SELECT m.project, m.entity_id, t.domain FROM theses AS t JOIN memories AS m ON m.node_id ="
            " t.memory_id WHERE t.thesis_id = ?",
            (command.thesis_id,),
        ).fetchone(),
        at_least=max(context.written, context.acknowledged),
        names=("theses", "memories"),
    )
    if found is None:
        raise _missing(command.thesis_id)
    project, entity_id, domain = found
    stated = StateThesis(
        statement=command.statement,
        domain=domain,
        project=project,
        entity_id=entity_id,
        session_id=command.session_id,
        ack=command.ack,
    )
    return await prepare_statement(services, stated, context)


def revise(command: ReviseThesis, prepared: PreparedThesis, state: DecisionState, now_us: int) -> Decision:
    """Decide a thesis's next version, and the memory that says it, which takes the place of the one that
    said the last. Raises as a store does.
    """
    thesis = open_of(command.thesis_id, state)
    former = state[Memories].get(thesis.memory_id)
    is_shown = former is not None and former.is_active(now_us)
    # A memory that says a later version opens no thesis of its own.
    stored = msgspec.structs.replace(
        prepared.command, metadata={}, supersedes=(thesis.memory_id,) if is_shown else ()
    )
    kept, told = _kept(store.store(stored, prepared.store, state, now_us))
    if told.memory_id == thesis.memory_id:
        raise Conflict(
            f"thesis {thesis.thesis_id} says that already",
            hint="revise it to something else, or give evidence",
        )
    event = ThesisRevised(
        thesis_id=thesis.thesis_id,
        version=thesis.version + 1,
        memory_id=told.memory_id,
        statement=prepared.store.content,
        why=command.why,
    )
    new = NewEvent(event=event, session_id=command.session_id, project=thesis.project, follows=True)
    return Decision(events=(*kept, new), answer=_answer(thesis.thesis_id, told, event.version))


def open_of(thesis_id: str, state: DecisionState) -> ThesisState:
    """Return a thesis that is still open; raises `NotFound`, `Refused`."""
    thesis = state[Theses].get(thesis_id)
    if thesis is None:
        raise _missing(thesis_id)
    if thesis.outcome is not None:
        raise Refused(f"thesis {thesis_id} is resolved: {thesis.outcome}", hint="state a new one")
    return thesis


def _missing(thesis_id: str) -> NotFound:
    return NotFound(f"there is no thesis {thesis_id[:80]}", hint="thesis.list names them")


def _kept(decision: Decision) -> tuple[tuple[NewEvent, ...], Stored]:
    assert isinstance(decision.answer, Stored)
    return decision.events, decision.answer


def _answer(thesis_id: str, told: Stored, version: int = 1) -> ThesisAnswer:
    return ThesisAnswer(
        thesis_id=thesis_id,
        memory_id=told.memory_id,
        version=version,
        may_replace=told.may_replace,
        may_contradict=told.may_contradict,
    )


def _first_id(memory_id: str) -> str:
    return f"th-{memory_id.removeprefix('mem-')[:64]}"


# What is given, where it is of the kind, else None
def _valid(value: object, kind: Any) -> Any:  # noqa: ANN401
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return None


def _moment(value: object) -> int | None:
    try:
        return parse_time(value, "due") if isinstance(value, str) else None
    except Invalid:
        return None


class PredictThesis(Command, frozen=True, kw_only=True, tag="thesis.predict"):
    """Say how probable it is that a thesis comes out true; what was said last before it is resolved is
    what is scored.
    """

    thesis_id: ThesisId
    probability: Probability
    due: Due | None = None
    criterion: Criterion | None = None


class ResolveThesis(Command, frozen=True, kw_only=True, tag="thesis.resolve"):
    """Say how a thesis came out. n/a, for one that cannot be judged, leaves every score as it is."""

    thesis_id: ThesisId
    outcome: Annotated[Outcome, Meta(description="how it came out")]
    source: Annotated[str, Meta(min_length=1, max_length=4_096, description="from where that is known")]


def predict(command: PredictThesis, state: DecisionState, now_us: int) -> Decision:
    """Decide a prediction. Raises `NotFound`, `Refused` for a thesis that is resolved, `Invalid` for a due
    date that is none.
    """
    del now_us
    thesis = open_of(command.thesis_id, state)
    event = ThesisPredicted(
        thesis_id=thesis.thesis_id,
        version=thesis.version,
        probability=command.probability,
        due_at=None if command.due is None else parse_time(command.due, "due"),
        criterion=command.criterion,
    )
    return Decision(events=(NewEvent(event=event, project=thesis.project),), answer=Acknowledged())


def resolve(command: ResolveThesis, state: DecisionState, now_us: int) -> Decision:
    """Decide how a thesis came out. Raises `NotFound`, `Refused` for one that is resolved already."""
    del now_us
    thesis = open_of(command.thesis_id, state)
    event = ThesisResolved(
        thesis_id=thesis.thesis_id, version=thesis.version, outcome=command.outcome, source=command.source
    )
    return Decision(events=(NewEvent(event=event, project=thesis.project),), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=StateThesis,
        answer=ThesisAnswer,
        prepare=prepare_statement,
        decide=state_thesis,
        verb=Verb(
            says="stated {thesis_id} in {memory_id}",
            examples=(
                (
                    'omegad thesis state "Postgres full text is enough for our search" --project shop'
                    " --domain architecture --prior 0.7 --due 2027-03-31"
                ),
            ),
        ),
        tool=AgentTool("omega_thesis state", by="thesis.done", takes={"prior": "probability"}),
    ),
    CommandMethod(
        params=GiveEvidence,
        answer=EvidenceGiven,
        decide=give_evidence,
        verb=Verb(
            says="{memory_id} is evidence {evidence_id} of {thesis_id}: {side}",
            given=("thesis_id", "memory_id", "side"),
            examples=(
                (
                    'omegad thesis evidence th-0123456789abcdef mem-fedcba9876543210 against --why "p99 of'
                    ' 900 ms at 2 million rows"'
                ),
            ),
        ),
        tool=AgentTool("omega_thesis evidence", by="thesis.done"),
    ),
    CommandMethod(
        params=RetractEvidence,
        answer=Acknowledged,
        decide=retract,
        verb=Verb(
            examples=("omegad thesis retract th-0123456789abcdef ev-0123456789abcdef",),
            says="{evidence_id} counts no longer for {thesis_id}",
        ),
        tool=AgentTool("omega_thesis retract", by="thesis.done"),
    ),
    CommandMethod(
        params=ReviseThesis,
        answer=ThesisAnswer,
        prepare=prepare_revision,
        decide=revise,
        verb=Verb(
            examples=("omegad thesis revise th-0123456789abcdef 'Most exports fail for their size'",),
            says="{thesis_id} says so from version {version} on, in {memory_id}",
        ),
        tool=AgentTool("omega_thesis revise", by="thesis.done"),
    ),
    CommandMethod(params=OpenThesis, answer=Acknowledged, decide=open_thesis, is_internal=True),
    CommandMethod(
        params=PredictThesis,
        answer=Acknowledged,
        decide=predict,
        verb=Verb(
            examples=("omegad thesis predict th-0123456789abcdef 0.8 --due 2026-12-31",),
            says="{thesis_id} is held to be true with a probability of {probability}",
        ),
        tool=AgentTool("omega_thesis predict", by="thesis.done"),
    ),
    CommandMethod(
        params=ResolveThesis,
        answer=Acknowledged,
        decide=resolve,
        verb=Verb(
            says="{thesis_id} is resolved: {outcome}",
            given=("thesis_id", "outcome", "source"),
            examples=('omegad thesis resolve th-0123456789abcdef no "load test of 2027-01-12"',),
        ),
        tool=AgentTool("omega_thesis resolve", by="thesis.done"),
    ),
)
