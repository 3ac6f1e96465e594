"""What agents say to each other, and what they say that they will do. The sender is the session of the event."""

from omegad.log.event import Event, FreeText, GivenName, MadeId


class MessagePosted(Event, frozen=True, kw_only=True, tag="message.posted@1"):
    """A message was left for a session, or for every other session of a project, until `expires_at` (microseconds since 1970).

    `memory_id` is the memory that it hands over.
    """

    message_id: MadeId
    text: FreeText
    to_session: GivenName | None
    to_project: GivenName | None
    memory_id: MadeId | None
    expires_at: int


class MessageDelivered(Event, frozen=True, kw_only=True, tag="message.delivered@1"):
    """A session was shown messages, and the intents of other sessions, in the order in which they stand here."""

    message_ids: tuple[MadeId, ...]
    intents_of: tuple[GivenName, ...]


class IntentAnnounced(Event, frozen=True, kw_only=True, tag="intent.announced@1"):
    """A session said what it is about to do, and to which files; it holds until `expires_at`, its next one, or its end."""

    text: FreeText
    paths: tuple[FreeText, ...]
    expires_at: int
