"""Commands by which agents talk: messages, which wait for their reader's next hook, and intents, which
others may meet.
"""

from typing import Annotated, NamedTuple

from msgspec import Meta

from omegad.coordination.claim import Folder, Path
from omegad.coordination.claim_state import Claims
from omegad.coordination.events import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.coordination.intents import Paths
from omegad.coordination.message_state import Messages
from omegad.coordination.targets import Target, folder_for, found_files
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.state import known
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.requests.verb import Verb
from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.session.hook_state import Hooks
from omegad.session.liveness import MINUTE_US, Activity, Liveness

READ_AT_ONCE = 20
PREFIX_MIN = 4


class SendMessage(Command, frozen=True, kw_only=True, tag="message.send"):
    """Leave a message for a session, a project or whoever holds a file, shown once at the reader's next
    hook.
    """

    text: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=2_000,
            description="what to say; its first 240 characters are shown unasked",
        ),
    ]
    to_session: Annotated[
        Name | None, Meta(description="the session that is to read it, or the beginning of its id")
    ] = None
    to_project: Annotated[
        Name | None, Meta(description="the project whose every other session is to read it")
    ] = None
    to_file: Annotated[Path | None, Meta(description="the file whose holder is to read it")] = None
    folder: Folder | None = None
    memory_id: Annotated[
        Name | None, Meta(description="the memory that it hands over: a handoff or checkpoint")
    ] = None
    ttl_minutes: Annotated[int, Meta(ge=1, le=10_080, description="how long it waits for its reader")] = 1_440
    session_id: Annotated[
        Name | None, Meta(description="the session that says it; a person where left out")
    ] = None


class MessageAnswer(Acknowledged, frozen=True):
    """The message's id, and the session that is to read it, None where a project is."""

    message_id: str
    to_session: str | None


class ReceiveMessages(Command, frozen=True, kw_only=True, tag="message.receive"):
    """Take the messages that wait for a session as read, so that no hook shows them."""

    session_id: Annotated[Name, Meta(description="the session that reads")]
    project: Annotated[Name | None, Meta(description="its project, where no hook has told of it")] = None


class Received(Acknowledged, frozen=True):
    """The messages that were not read before, oldest first, at most 20."""

    message_ids: tuple[str, ...]


class AnnounceIntent(Command, frozen=True, kw_only=True, tag="intent.announce"):
    """Say what a session is about to do, and to which files; told once to the other sessions of its
    project.
    """

    session_id: Annotated[Name, Meta(description="the session")]
    text: Annotated[str, Meta(min_length=1, max_length=500, description="what it is about to do")]
    paths: Paths = ()
    project: Annotated[Name | None, Meta(description="which project, where no hook has told of it")] = None
    ttl_minutes: Annotated[
        int,
        Meta(
            ge=1,
            le=1_440,
            description="how long it holds, unless another takes its place or the session ends",
        ),
    ] = 60


class Posting(NamedTuple):
    """The id of a new message, and of the file whose holder is to read it where it is, with what is known
    beside the log of those who may hold it.
    """

    message_id: str
    file: Target | None
    activity: Activity


async def prepare(services: Services, command: SendMessage, _context: RequestContext) -> Posting:
    """Make an id, and find where the file is. Raises `Invalid`."""
    file = None
    if command.to_file is not None:
        folder = await folder_for(services, command.session_id, (command.to_file,), command.folder)
        (file,) = await found_files(services, (command.to_file,), folder)
    return Posting(f"msg-{services.clock.random_bits(48):012x}", file, services[Liveness].activity())


def send(command: SendMessage, posting: Posting, state: DecisionState, now_us: int) -> Decision:
    """Decide a message.

    Raises `Invalid` without an address, `NotFound` for a session, holder or memory that there is not,
    `Refused` for a session that is over.
    """
    if sum(to is not None for to in (command.to_session, command.to_project, command.to_file)) != 1:
        raise Invalid(
            "a message is for a session, a project or a file's holder",
            hint="give one of to_session, to_project and to_file",
        )
    if command.memory_id is not None:
        known(state, command.memory_id)
    message_id = posting.message_id
    to_session = None if command.to_session is None else _reader(command.to_session, state)
    if posting.file is not None:
        to_session = _holder(posting.file, command.session_id, posting.activity, state, now_us)
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
    found = (
        [named] if len(named) < PREFIX_MIN or state[Hooks].session(named) else state[Hooks].beginning(named)
    )
    match found:
        case [session_id] if session := state[Hooks].session(session_id):
            if not session.is_open:
                raise Refused(f"session {session_id} has ended", hint="leave it for its project: to_project")
            return session_id
        case [_, _]:
            raise Refused(f"several sessions begin with {named!r}", hint="give more of the id")
        case _:
            raise NotFound(
                f"no session is known as {named[:80]!r}", hint="`omegad who` shows those there are"
            )


def _holder(file: Target, sender: str | None, activity: Activity, state: DecisionState, now_us: int) -> str:
    """Return the session that holds a file: in its work tree, or else in the one of the others where it is
    held.
    """
    held = [
        one
        for one in state[Claims].on_file(file.repository, file.name)
        if activity.status(one.session_id, one.seen_us, now_us) != "gone"
    ]
    held = [one for one in held if one.worktree == file.worktree] or held
    match list({one.session_id for one in held}):
        case [session_id] if session_id == sender:
            raise Refused(
                f"{file.name} is held by the session that writes",
                hint="write to a session, or to its project",
            )
        case [session_id]:
            return session_id
        case []:
            raise NotFound(
                f"nobody holds {file.name}",
                hint="`omegad claims` shows what is held; leave it for the project: to_project",
            )
        case several:
            raise Refused(
                f"{file.name} is held in {len(several)} other work trees",
                hint=f"write to one of them: {', '.join(sorted(several)[:3])}",
            )


def receive(command: ReceiveMessages, state: DecisionState, now_us: int) -> Decision:
    """Decide what a session has read."""
    project = _project(command.session_id, command.project, state)
    unread = tuple(
        one.message_id for one in state[Messages].unread(command.session_id, project, now_us, READ_AT_ONCE)
    )
    event = NewEvent(
        event=MessageDelivered(message_ids=unread, intents_of=()),
        session_id=command.session_id,
        project=project,
    )
    return Decision(events=(event,) if unread else (), answer=Received(message_ids=unread))


def announce(command: AnnounceIntent, state: DecisionState, now_us: int) -> Decision:
    """Decide a session's intent, which takes the place of the one before."""
    event = IntentAnnounced(
        text=command.text, paths=command.paths, expires_at=now_us + command.ttl_minutes * MINUTE_US
    )
    project = _project(command.session_id, command.project, state)
    return Decision(
        events=(NewEvent(event=event, session_id=command.session_id, project=project),), answer=Acknowledged()
    )


def _project(session_id: str, told: str | None, state: DecisionState) -> str | None:
    session = state[Hooks].session(session_id)
    return told or (session.project if session else None)


METHODS = (
    CommandMethod(
        params=SendMessage,
        answer=MessageAnswer,
        prepare=prepare,
        decide=send,
        verb=Verb(
            says="sent {message_id}",
            examples=('omegad message send "Stop at the migration" --to-project shop',),
        ),
    ),
    CommandMethod(params=ReceiveMessages, answer=Received, decide=receive),
    CommandMethod(params=AnnounceIntent, answer=Acknowledged, decide=announce),
)
