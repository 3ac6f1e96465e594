"""Say how probable it is that a thesis comes out true, and how it came out."""

from typing import Annotated

from msgspec import Meta

from omegad.knowledge.events import Outcome, ThesisPredicted, ThesisResolved
from omegad.knowledge.thesis import Criterion, Due, Probability, ThesisId, open_of
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod
from omegad.requests.verb import Verb
from omegad.runtime.times import parse_time


class PredictThesis(Command, frozen=True, kw_only=True, tag="thesis.predict"):
    """Say how probable it is that a thesis comes out true; what was said last before it is resolved is what is scored."""

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
    """Decide a prediction. Raises `NotFound`, `Refused` for a thesis that is resolved, `Invalid` for a due date that is none."""
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
    event = ThesisResolved(thesis_id=thesis.thesis_id, version=thesis.version, outcome=command.outcome, source=command.source)
    return Decision(events=(NewEvent(event=event, project=thesis.project),), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=PredictThesis,
        answer=Acknowledged,
        decide=predict,
        verb=Verb(says="{thesis_id} is held to be true with a probability of {probability}"),
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
    ),
)
