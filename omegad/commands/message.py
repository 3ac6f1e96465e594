"""Commands by which agents talk: messages, which wait for their reader's next hook, and intents, which others may meet."""

from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.commands.command import Acknowledged, Command, Name, known
from omegad.errors import Invalid, NotFound, Refused
from omegad.events.message import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.log.decision import Decision
from omegad.log.event import NewEvent, Position
from omegad.method import CommandMethod, RequestContext, Services
from omegad.queries.intents import Paths
from omegad.state import DecisionState

MINUTE_US = 60_000_000
READ_AT_ONCE = 20
PREFIX_MIN = 4


class SendMessage(Command, frozen=True, kw_only=True, tag="message.send"):
    """Leave a message for a session or a project, shown once at the reader's next hook."""

    text: Annotated[str, Meta(min_length=1, max_length=2_000, description="what to say; its first 240 characters are shown unasked")]
    to_session: Annotated[Name | None, Meta(description="the session that is to read it, or the beginning of its id")] = None
    to_project: Annotated[Name | None, Meta(description="the project whose every other session is to read it")] = None
    memory_id: Annotated[Name | None, Meta(description="the memory that it hands over: a handoff or checkpoint")] = None
    ttl_minutes: Annotated[int, Meta(ge=1, le=10_080, description="how long it waits for its reader")] = 1_440
    session_id: Annotated[Name | None, Meta(description="the session that says it; a person where left out")] = None


class MessageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The message's id, and the session that is to read it, None where a project is."""

    message_id: str
    to_session: str | None
    position: Position = 0


class ReceiveMessages(Command, frozen=True, kw_only=True, tag="message.receive"):
    """Take the messages that wait for a session as read, so that no hook shows them."""

    session_id: Annotated[Name, Meta(description="the session that reads")]
    project: Annotated[Name | None, Meta(description="its project, where no hook has told of it")] = None


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that were not read before, oldest first, at most 20."""

    message_ids: tuple[str, ...]
    position: Position = 0


class AnnounceIntent(Command, frozen=True, kw_only=True, tag="intent.announce"):
    """Say what a session is about to do, and to which files; told once to the other sessions of its project."""

    session_id: Annotated[Name, Meta(description="the session")]
    text: Annotated[str, Meta(min_length=1, max_length=500, description="what it is about to do")]
    paths: Paths = ()
    project: Annotated[Name | None, Meta(description="which project, where no hook has told of it")] = None
    ttl_minutes: Annotated[int, Meta(ge=1, le=1_440, description="how long it holds, unless another takes its place or the session ends")] = 60


async def prepare(services: Services, command: SendMessage, context: RequestContext) -> str:
    """Return the id of a new message."""
    del command, context
    return f"msg-{services.clock.random_bits(48):012x}"


def send(command: SendMessage, message_id: str, state: DecisionState, now_us: int) -> Decision:
    """Decide a message. Raises `Invalid` without an address, `NotFound` for a session or memory that there is not, `Refused` for one that is over."""
    if (command.to_session is None) == (command.to_project is None):
        raise Invalid("a message is for a session or for a project", hint="give to_session or to_project")
    if command.memory_id is not None:
        known(state, command.memory_id)
    to_session = None if command.to_session is None else _reader(command.to_session, state)
    event = MessagePosted(
        message_id=message_id,
        text=command.text,
        to_session=to_session,
        to_project=command.to_project,
        memory_id=command.memory_id,
        expires_at=now_us + command.ttl_minutes * MINUTE_US,
    )
    new = NewEvent(event=event, session_id=command.session_id, project=command.to_project)
    return Decision(events=(new,), answer=MessageAnswer(message_id=message_id, to_session=to_session))


def _reader(named: str, state: DecisionState) -> str:
    """Return the session that is meant by the beginning of its id."""
    found = [named] if state.session(named) else state.messages.readers(named) if len(named) >= PREFIX_MIN else []
    match found:
        case [session_id]:
            session = state.session(session_id)
            if session is not None and not session.is_open:
                raise Refused(f"session {session_id} has ended", hint="leave it for its project: to_project")
            return session_id
        case []:
            raise NotFound(f"no session is known as {named[:80]!r}", hint="`omegad who` shows those there are")
        case _:
            raise Refused(f"several sessions begin with {named!r}", hint="give more of the id")


def receive(command: ReceiveMessages, state: DecisionState, now_us: int) -> Decision:
    """Decide what a session has read."""
    project = _project(command.session_id, command.project, state)
    unread = tuple(one.message_id for one in state.messages.unread(command.session_id, project, now_us, READ_AT_ONCE))
    event = NewEvent(event=MessageDelivered(message_ids=unread, intents_of=()), session_id=command.session_id, project=project)
    return Decision(events=(event,) if unread else (), answer=Received(message_ids=unread))


def announce(command: AnnounceIntent, state: DecisionState, now_us: int) -> Decision:
    """Decide a session's intent, which takes the place of the one before."""
    event = IntentAnnounced(text=command.text, paths=command.paths, expires_at=now_us + command.ttl_minutes * MINUTE_US)
    project = _project(command.session_id, command.project, state)
    return Decision(events=(NewEvent(event=event, session_id=command.session_id, project=project),), answer=Acknowledged())


def _project(session_id: str, told: str | None, state: DecisionState) -> str | None:
    session = state.session(session_id)
    return told or (session.project if session else None)


METHODS = (
    CommandMethod(params=SendMessage, answer=MessageAnswer, prepare=prepare, decide=send),
    CommandMethod(params=ReceiveMessages, answer=Received, decide=receive),
    CommandMethod(params=AnnounceIntent, answer=Acknowledged, decide=announce),
)
