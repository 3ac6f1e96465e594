"""Dismiss a finding of the lint."""

from typing import Annotated

from msgspec import Meta

from omegad.knowledge.lint import Rule
from omegad.knowledge.lint_events import FindingDismissed
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod
from omegad.requests.verb import Verb


class DismissFinding(Command, frozen=True, kw_only=True, tag="lint.dismiss"):
    """Say that a finding needs nothing done. What was dismissed three times is not shown again."""

    rule: Annotated[Rule, Meta(description="the rule that found it")]
    ids: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=32, description="what it was found of")]


def dismiss(command: DismissFinding, state: DecisionState, now_us: int) -> Decision:
    """Decide a dismissal."""
    del state, now_us
    return Decision(events=(NewEvent(event=FindingDismissed(rule=command.rule, ids=command.ids)),), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=DismissFinding,
        answer=Acknowledged,
        decide=dismiss,
        verb=Verb(
            "dismiss",
            says="dismissed; what was dismissed three times is not shown again",
            given=("rule", "ids"),
            examples=("omegad dismiss orphan mem-0123456789abcdef",),
        ),
    ),
)
