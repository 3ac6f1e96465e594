"""What happens to the files that say who an agent is, and for whom it works."""

from omegad.log.event import Event, FreeText, GivenName, MadeDigest


class IdentityChanged(Event, frozen=True, kw_only=True, tag="identity.changed@1"):
    """A file of the identity says `content` from now on, whose SHA-256 is `sha256`; None where it is no more.

    `revision` is the commit, in the repository of these files, that the change is in.
    """

    file: FreeText
    content: FreeText | None
    sha256: MadeDigest | None
    revision: GivenName | None = None
