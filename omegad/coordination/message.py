"""What agents say to each other: messages, which wait for their reader's next hook, and intents, which
others may meet.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from omegad.coordination.claim import Folder, Path
from omegad.coordination.claim_state import Claims
from omegad.coordination.events import IntentAnnounced, MessageDelivered, MessagePosted
from omegad.coordination.message_state import Messages
from omegad.coordination.targets import Target, folder_for, found_files
from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.state import known
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import One, Query, ViewAnswer
from omegad.requests.verb import MORE, Table, Verb
from omegad.runtime.errors import Invalid, NotFound, Refused
from omegad.runtime.times import rfc3339
from omegad.session.hook_state import Hooks
from omegad.session.liveness import MINUTE_US, Activity, Liveness
from omegad.storage.driver import Connection

PATHS_MAX = 16
Paths = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=256)], ...],
    Meta(max_length=PATHS_MAX, description="a file, folder or pattern, from the repository's root"),
]
SHOWN_MAX = 32
_INTENTS = """
SELECT session_id, project, text, paths, created_at FROM coord_intents
WHERE status = 'current' AND expires_us > :now_us AND project IS :project AND session_id IS NOT :session_id
ORDER BY id DESC LIMIT :limit
"""
_LIST = """
SELECT message_id, sender, to_session, to_project, text, memory_id, created_at, expires_us,
    (SELECT json_group_array(session_id) FROM (SELECT session_id FROM coord_message_deliveries AS d
      WHERE d.message_id = m.message_id ORDER BY 1))
FROM coord_messages AS m
WHERE (:session_id IS NULL OR to_session = :session_id
  OR (to_project = :project AND sender IS NOT :session_id))
AND (:session_id IS NOT NULL OR :project IS NULL OR to_project = :project)
ORDER BY id DESC LIMIT :limit
"""
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


class ListMessages(Query, frozen=True, kw_only=True, tag="message.list"):
    """List messages, the latest first: all of them, or those that a session, or a project, is to read."""

    session_id: Annotated[
        One | None, Meta(description="for this session, and for its project where that is given")
    ] = None
    project: Annotated[One | None, Meta(description="for this project")] = None
    limit: Annotated[int, Meta(ge=1, le=500, description="how many at most")] = 50


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message; `sender` is a session, None for a person; `delivered_to` are those that were shown it."""

    message_id: str
    sender: str | None
    to_session: str | None
    to_project: str | None
    text: str
    memory_id: str | None
    created_at: str
    expires_at: str
    delivered_to: list[str]


class MessagePage(ViewAnswer, frozen=True):
    """Messages, the latest first; `truncated` says that there are more."""

    messages: list[SentMessage]
    truncated: bool


def list_messages(connection: Connection, query: ListMessages, moment: Moment) -> MessagePage:
    """Read messages."""
    values = {"session_id": query.session_id, "project": query.project, "limit": query.limit + 1}
    rows = connection.execute(_LIST, values).fetchall()
    messages = [
        SentMessage(
            message_id=message_id,
            sender=sender,
            to_session=to_session,
            to_project=to_project,
            text=text,
            memory_id=memory_id,
            created_at=created_at,
            expires_at=rfc3339(expires_us),
            delivered_to=msgspec.json.decode(shown, type=list[str]),
        )
        for message_id, sender, to_session, to_project, text, memory_id, created_at, expires_us, shown in rows
    ]
    return MessagePage(messages=messages[: query.limit], truncated=len(rows) > query.limit, **moment.shown)


class CheckIntents(Query, frozen=True, kw_only=True, tag="intent.check"):
    """Show what other sessions are about to do in a project; where paths are given, only what is about the
    same files.
    """

    project: Annotated[One | None, Meta(description="which project")] = None
    paths: Paths = ()
    session_id: Annotated[One | None, Meta(description="the session that asks, whose own is left out")] = None


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is about to do, to which files."""

    session_id: str
    project: str | None
    text: str
    paths: list[str]
    announced_at: str


class Intents(ViewAnswer, frozen=True):
    """Intents that hold, the latest first."""

    intents: list[Intent]


def overlap(some: Sequence[str], others: Sequence[str]) -> bool:
    """Say whether paths name the same files: the same one, one within a folder, or one that a pattern
    matches.

    Two patterns overlap where one's beginning, up to its first wildcard, is that of the other. An absolute
    path is taken for its end.
    """
    return any(_meet(_plain(one), _plain(other)) for one in some for other in others)


def _meet(one: str, other: str) -> bool:
    start, begin = _start(one), _start(other)
    if start != one and begin != other:
        return start.startswith(begin) or begin.startswith(start)
    if start != one or begin != other:
        pattern, path = (one, other) if start != one else (other, one)
        return fnmatchcase(path, pattern) or _start(pattern).startswith(f"{path}/")
    return any(
        f"{a}/".startswith(f"{b}/") or f"/{a}".endswith(f"/{b}") for a, b in ((one, other), (other, one))
    )


def _start(path: str) -> str:
    return path[: min((place for mark in "*?[" if (place := path.find(mark)) >= 0), default=len(path))]


def _plain(path: str) -> str:
    return path.removeprefix("./").rstrip("/")


def check(connection: Connection, query: CheckIntents, moment: Moment) -> Intents:
    """Read the intents of others."""
    values = {
        "now_us": moment.now_us,
        "project": query.project,
        "session_id": query.session_id,
        "limit": SHOWN_MAX,
    }
    found = [
        Intent(
            session_id=who,
            project=project,
            text=text,
            paths=msgspec.json.decode(paths, type=list[str]),
            announced_at=at,
        )
        for who, project, text, paths, at in connection.execute(_INTENTS, values)
    ]
    shown = [one for one in found if not query.paths or overlap(one.paths, query.paths)]
    return Intents(intents=shown, **moment.shown)


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
    CommandMethod(
        params=ReceiveMessages,
        answer=Received,
        decide=receive,
        verb=Verb(examples=("omegad message receive s-1",)),
    ),
    CommandMethod(
        params=AnnounceIntent,
        answer=Acknowledged,
        decide=announce,
        verb=Verb(examples=("omegad intent announce s-1 'move billing to PostgreSQL 17'",)),
    ),
    QueryMethod(
        params=ListMessages,
        answer=MessagePage,
        views=("coord_messages",),
        read=list_messages,
        is_paged=True,
        verb=Verb(
            examples=("omegad message list", "omegad message list --project shop --limit 5"),
            table=Table(
                "messages",
                (
                    ("WHEN", "{created_at:moment}"),
                    ("FROM", "{sender|a person}"),
                    ("TO", "{to_session}{to_project:project %s}"),
                    ("READ BY", "{delivered_to}"),
                    ("TEXT", "{text}"),
                ),
                none="none",
                warns=MORE,
            ),
        ),
    ),
    QueryMethod(
        params=CheckIntents,
        answer=Intents,
        views=("coord_intents",),
        read=check,
        verb=Verb(examples=("omegad intent check --project shop --path src/ledger.py",)),
    ),
)
