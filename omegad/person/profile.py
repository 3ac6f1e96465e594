"""What may be said of the person."""

from typing import Annotated

from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.person.profile_events import ProfileUpdated
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod
from omegad.requests.verb import Verb
from omegad.runtime.errors import Invalid

UPDATES_MAX = 20
Key = Annotated[str, Meta(min_length=1, max_length=64)]
Value = Annotated[str, Meta(min_length=1, max_length=1_000)]


class UpdateProfile(Command, frozen=True, kw_only=True, tag="profile.update"):
    """Set facts of the profile, each under its key; one that is null is forgotten. At most 20 at once, keys of 64 characters, values of 1,000."""

    update: Annotated[dict[Key, Value | None], Meta(min_length=1, max_length=UPDATES_MAX, description="a JSON object of keys and values")]
    session_id: Annotated[Name | None, Meta(description="the session in which it became known")] = None


def update(command: UpdateProfile, state: DecisionState, now_us: int) -> Decision:
    """Decide an update. Raises `Invalid` for a key that is blank."""
    del state, now_us
    if any(not key.strip() for key in command.update):
        raise Invalid("a key of the profile is blank")
    event = ProfileUpdated(facts={key.strip(): value for key, value in command.update.items()})
    return Decision(events=(NewEvent(event=event, session_id=command.session_id),), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=UpdateProfile,
        answer=Acknowledged,
        decide=update,
        verb=Verb(
            says="updated the profile at position {position}",
            examples=('omegad profile update \'{"editor": "helix", "answers": "short", "shell": null}\'',),
        ),
    ),
)
