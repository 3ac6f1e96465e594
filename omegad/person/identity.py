"""Record what the files of the identity say."""

from hashlib import sha256
from typing import Annotated

import msgspec
from msgspec import Meta

from omegad.log.decision import Decision, DecisionState
from omegad.log.event import NewEvent
from omegad.memory.content import clean
from omegad.person import identity_reading as identity
from omegad.person.identity_events import IdentityChanged
from omegad.person.identity_reading import IdentityFile
from omegad.requests.command import Acknowledged, Command
from omegad.requests.method import CommandMethod, RequestContext, Services
from omegad.runtime.errors import Invalid, Refused

BYTES_MAX = 16 * 1024


class RecordIdentity(Command, frozen=True, kw_only=True, tag="identity.record"):
    """Record what a file of the identity says; without content, that it is no more."""

    file: Annotated[str, Meta(pattern=r"^[A-Z][A-Z0-9_-]{0,31}\.md\Z", description="its name, like IDENTITY.md")]
    content: Annotated[str | None, Meta(description="all that it says")] = None
    revision: Annotated[str, Meta(pattern=r"^[0-9a-f]{7,64}\Z", description="the commit that it is of")] | None = None


class PreparedIdentity(msgspec.Struct, frozen=True):
    """What a file is to say, and the files as they are."""

    content: str | None
    files: list[IdentityFile]


async def prepare(services: Services, command: RecordIdentity, context: RequestContext) -> PreparedIdentity:
    """Check and clean what a file says; raises `Invalid`."""
    size = len((command.content or "").encode())
    if size > BYTES_MAX:
        raise Invalid(f"{command.file} has {size} bytes; the limit is {BYTES_MAX}", hint="every session begins with it: keep to what matters always")
    content = clean(command.content).text if command.content and command.content.strip() else command.content
    at_least = max(context.written, context.acknowledged)
    known = await services.look(lambda connection, _: identity.files(connection), at_least=at_least, names=("identity",))
    return PreparedIdentity(content, known)


def record(command: RecordIdentity, prepared: PreparedIdentity, state: DecisionState, now_us: int) -> Decision:
    """Decide a change; what a file says already is none. Raises `Refused` for more files than there may be."""
    del state, now_us
    before = next((one for one in prepared.files if one.file == command.file), None)
    if prepared.content == (None if before is None else before.content):
        return Decision(answer=Acknowledged(position=0 if before is None else before.position))
    if before is None and len(prepared.files) >= identity.FILES_MAX:
        raise Refused(f"the identity has {identity.FILES_MAX} files already", hint="put it into one of them")
    digest = None if prepared.content is None else sha256(prepared.content.encode()).hexdigest()
    event = IdentityChanged(file=command.file, content=prepared.content, sha256=digest, revision=command.revision)
    return Decision(events=(NewEvent(event=event),), answer=Acknowledged())


METHODS = (
    CommandMethod(
        params=RecordIdentity,
        answer=Acknowledged,
        prepare=prepare,
        decide=record,
        verb=None,
    ),
)
