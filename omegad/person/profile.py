"""What is known of the person."""

from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.person.events import ProfileUpdated
from omegad.requests.agent_tool import AgentTool
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, QueryMethod
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import Verb
from omegad.runtime.errors import Invalid
from omegad.storage.driver import Connection

Key = Annotated[str, Meta(min_length=1, max_length=64)]
Value = Annotated[str, Meta(min_length=1, max_length=1_000)]


class UpdateProfile(Command, frozen=True, kw_only=True, tag="profile.update"):
    """Set facts of the profile, each under its key; one that is null is forgotten. At most 20 at once,
    keys of 64 characters, values of 1,000.
    """

    update: Annotated[
        dict[Key, Value | None],
        Meta(min_length=1, max_length=20, description="a JSON object of keys and values"),
    ]
    session_id: Annotated[Name | None, Meta(description="the session in which it became known")] = None


def update(command: UpdateProfile, _state: DecisionState, _now_us: int) -> Decision:
    """Decide an update. Raises `Invalid` for a key that is blank."""
    if any(not key.strip() for key in command.update):
        raise Invalid("a key of the profile is blank")
    event = ProfileUpdated(facts={key.strip(): value for key, value in command.update.items()})
    return Decision(events=(NewEvent(event=event, session_id=command.session_id),), answer=Acknowledged())


class GetProfile(Query, frozen=True, kw_only=True, tag="profile.get"):
    """Show the facts of the profile, which hold in every project."""


class Profile(ViewAnswer, frozen=True):
    """Every fact by its key, in the order of the keys."""

    facts: dict[str, str]


def get(connection: Connection, _query: GetProfile, moment: Moment) -> Profile:
    """Read all facts."""
    facts: dict[str, str] = dict(connection.execute("SELECT key, value FROM facts ORDER BY key").fetchall())
    return Profile(facts=facts, **moment.shown)


METHODS = (
    CommandMethod(
        params=UpdateProfile,
        answer=Acknowledged,
        decide=update,
        verb=Verb(
            says="updated the profile at position {position}",
            examples=('omegad profile update \'{"editor": "helix", "answers": "short", "shell": null}\'',),
        ),
        tool=AgentTool("omega_profile update", by="remembering.updated"),
    ),
    QueryMethod(params=GetProfile, answer=Profile, views=("facts",), read=get),
)
