"""What is known of the person: facts, and the files that say who an agent is, and for whom it works, recorded
and as they were recorded last.
"""

from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.content import clean
from omegad.person.events import IdentityChanged, ProfileUpdated
from omegad.requests.command import Acknowledged, Command, Name
from omegad.requests.method import CommandMethod, Moment, QueryMethod, RequestContext, Services
from omegad.requests.query import Query, ViewAnswer
from omegad.requests.verb import AgentTool, Verb
from omegad.runtime.errors import Invalid, Refused
from omegad.storage.driver import Connection

FILES_MAX = 16
_FILES = (
    "SELECT file, content, sha256, revision, position, changed_at FROM identity_files ORDER BY file LIMIT"
    f" {FILES_MAX}"
)
_COMMENT, _COMMENT_ENDS = "<!--", "-->"


class GetIdentity(Query, frozen=True, kw_only=True, tag="identity.get"):
    """Show what the identity says, file by file."""


class IdentityFile(msgspec.Struct, frozen=True):
    """A file of the identity: its text with its SHA-256, the commit it is of, the event that told of it,
    and when.
    """

    file: str
    content: str
    sha256: str
    revision: str | None
    position: int
    changed_at: str

    @property
    def said(self) -> str:
        """What it says beside its comments."""
        text, start = self.content, 0
        kept = list[str]()
        while (begins := text.find(_COMMENT, start)) >= 0 and (ends := text.find(_COMMENT_ENDS, begins)) >= 0:
            kept.append(text[start:begins])
            start = ends + len(_COMMENT_ENDS)
        return "".join((*kept, text[start:])).strip()


class Identity(ViewAnswer, frozen=True):
    """The identity's files by name."""

    files: Annotated[list[IdentityFile], Meta(max_length=FILES_MAX)]


def files(connection: Connection) -> list[IdentityFile]:
    """Return the files as they were recorded last."""
    return [IdentityFile(*row) for row in connection.execute(_FILES)]


def get(connection: Connection, _query: GetIdentity, moment: Moment) -> Identity:
    """Read the identity."""
    return Identity(files=files(connection), **moment.shown)


BYTES_MAX = 16 * 1024


class RecordIdentity(Command, frozen=True, kw_only=True, tag="identity.record"):
    """Record what a file of the identity says; without content, that it is no more."""

    file: Annotated[
        str, Meta(pattern=r"^[A-Z][A-Z0-9_-]{0,31}\.md\Z", description="its name, like IDENTITY.md")
    ]
    content: Annotated[str | None, Meta(description="all that it says")] = None
    revision: (
        Annotated[str, Meta(pattern=r"^[0-9a-f]{7,64}\Z", description="the commit that it is of")] | None
    ) = None


async def prepare(
    services: Services, command: RecordIdentity, context: RequestContext
) -> tuple[str | None, list[IdentityFile]]:
    """Check and clean what a file is to say, and read the files as they are; raises `Invalid`."""
    size = len((command.content or "").encode())
    if size > BYTES_MAX:
        raise Invalid(
            f"{command.file} has {size} bytes; the limit is {BYTES_MAX}",
            hint="every session begins with it: keep to what matters always",
        )
    content = clean(command.content).text if command.content and command.content.strip() else command.content
    at_least = max(context.written, context.acknowledged)
    known = await services.look(
        lambda connection, _: files(connection), at_least=at_least, names=("identity",)
    )
    return content, known


def record(
    command: RecordIdentity,
    prepared: tuple[str | None, list[IdentityFile]],
    _state: DecisionState,
    _now_us: int,
) -> Decision:
    """Decide a change; what a file says already is none. Raises `Refused` for more files than there may
    be.
    """
    content, known = prepared
    before = next((one for one in known if one.file == command.file), None)
    if content == (None if before is None else before.content):
        return Decision(answer=Acknowledged(position=0 if before is None else before.position))
    if before is None and len(known) >= FILES_MAX:
        raise Refused(f"the identity has {FILES_MAX} files already", hint="put it into one of them")
    digest = None if content is None else sha256(content.encode()).hexdigest()
    event = IdentityChanged(file=command.file, content=content, sha256=digest, revision=command.revision)
    return Decision(events=(NewEvent(event=event),), answer=Acknowledged())


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


def update_profile(command: UpdateProfile, _state: DecisionState, _now_us: int) -> Decision:
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


def get_profile(connection: Connection, _query: GetProfile, moment: Moment) -> Profile:
    """Read all facts."""
    facts: dict[str, str] = dict(connection.execute("SELECT key, value FROM facts ORDER BY key").fetchall())
    return Profile(facts=facts, **moment.shown)


METHODS = (
    QueryMethod(
        params=GetIdentity,
        answer=Identity,
        views=("identity",),
        read=get,
        verb=Verb("identity show", by="identity.show"),
    ),
    CommandMethod(params=RecordIdentity, answer=Acknowledged, prepare=prepare, decide=record, verb=None),
    CommandMethod(
        params=UpdateProfile,
        answer=Acknowledged,
        decide=update_profile,
        verb=Verb(
            says="updated the profile at position {position}",
            examples=('omegad profile update \'{"editor": "helix", "answers": "short", "shell": null}\'',),
        ),
        tool=AgentTool("omega_profile update", by="remembering.updated"),
    ),
    QueryMethod(params=GetProfile, answer=Profile, views=("facts",), read=get_profile),
)
