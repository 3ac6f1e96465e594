"""What a memory may say: its limits, its clean form, its tags by rule, and the key by which the same words
are recognised.
"""

import unicodedata
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

import msgspec

from omegad.embedding.passages import Embedded
from omegad.log.event import Event
from omegad.log.sanitise import CONTENT_BYTES_MAX, METADATA_BYTES_MAX
from omegad.memory.events import MemoryEmbedded
from omegad.memory.types import EPISODIC_TYPES
from omegad.requests.method import Rules, Services
from omegad.runtime.errors import Invalid, Refused
from omegad.text.ingestion.noise import noise_of
from omegad.text.ingestion.tagging import TAG_CHARACTERS_MAX, tags_of
from omegad.text.redaction import redact

T = TypeVar("T")

LONG_CHARACTERS = 4_096
"""From here on a content is cleaned beside the event loop: 60,000 characters take 20 ms."""


class Clean(msgspec.Struct, frozen=True):
    """A content in NFC without secrets, and the kinds of secret that were taken out."""

    text: str
    redacted: tuple[str, ...] = ()


async def computed_if_long(services: Services, content: str, work: Callable[[], T]) -> T:
    """Do what cleans a content: beside the event loop where it is long. Raises `Invalid` for what is too
    large, before any work is done for it.
    """
    check_size(content)
    return await services.compute(work) if len(content) > LONG_CHARACTERS else work()


def check_size(content: str) -> None:
    """Raise `Invalid` for what is empty or too large."""
    size = len(content.encode())
    if size > CONTENT_BYTES_MAX:
        raise Invalid(
            f"content has {size} bytes; the limit is {CONTENT_BYTES_MAX}",
            hint="store the essence, or several memories",
        )
    if not content.strip():
        raise Invalid("content is empty")


def clean(content: str) -> Clean:
    """Check a content before any work is done for it, and clean it; raises `Invalid` for what is empty or
    too large.
    """
    check_size(content)
    return Clean(*redact(unicodedata.normalize("NFC", content)))


def cleaned(content: str, rules: Rules) -> Clean:
    """Do as `clean`, and raise `Refused` for the noise of a system."""
    found = clean(content)
    if rule := noise_of(found.text, rules.noise):
        raise Refused(
            f"the content is noise of a system ({rule}), not something to remember",
            hint="store what was learned from it",
        )
    return found


def auto_tags(content: str, project: str | None, rules: Rules) -> tuple[str, ...]:
    """Return the tags that a content has by rule."""
    return tuple(tag for tag in tags_of(content, project, rules.tags) if len(tag) <= TAG_CHARACTERS_MAX)


def check_metadata(metadata: dict[str, object]) -> tuple[str, ...]:
    """Return the kinds of secret that will be taken out of a memory's metadata; raises `Invalid` where it
    is too large.
    """
    encoded = msgspec.json.encode(metadata)
    if len(encoded) > METADATA_BYTES_MAX:
        raise Invalid(f"metadata is larger than {METADATA_BYTES_MAX} bytes of JSON")
    return redact(encoded.decode())[1] if metadata else ()


def content_key(
    content: str, event_type: str, project: str | None, entity_id: str | None, session_id: str | None = None
) -> str:
    """Identify content within its scope: the same words in another project, or as another type, are another
    memory.

    Of a type whose memories belong to their sessions, so are the same words in another session.
    """
    of_session = (session_id,) if session_id is not None and event_type in EPISODIC_TYPES else ()
    return sha256(msgspec.json.encode((event_type, project, entity_id, *of_session, content))).hexdigest()


def vectors_of(memory_id: str, embedded: Embedded | None) -> list[Event]:
    """Return the event that a memory's text was embedded, nothing where it was not."""
    if embedded is None:
        return []
    return [
        MemoryEmbedded(
            memory_id=memory_id, embedder_id=embedded.embedder_id, text_hashes=embedded.text_hashes
        )
    ]
