"""What becomes known of the person and of their agents: profile, identity, and lessons about skills."""

from typing import Literal

from omegad.log.event import Event, FreeData, FreeText, GivenName, MadeDigest, Position


class ProfileUpdated(Event, frozen=True, kw_only=True, tag="profile.updated@1"):
    """Facts of the profile were set, each under a key of its own; those that are null are known no more."""

    facts: FreeData


class IdentityChanged(Event, frozen=True, kw_only=True, tag="identity.changed@1"):
    """A file of the identity says `content` from now on, whose SHA-256 is `sha256`; None where it is no more.

    `revision` is the commit, in the repository of these files, that the change is in.
    """

    file: FreeText
    content: FreeText | None
    sha256: MadeDigest | None
    revision: GivenName | None = None


FailureReason = Literal["not_found", "name_refused", "unreadable", "unwritable"]


class SkillImproved(Event, frozen=True, kw_only=True, tag="skill.improved@1"):
    """A lesson was added to a skill's file, or is there already. `confirmation` is what the agent is told
    of it, in its person's language.
    """

    skill: FreeText
    lesson: FreeText
    confirmation: FreeText


class SkillImproveFailed(Event, frozen=True, kw_only=True, tag="skill.improve_failed@1"):
    """A lesson could not be added to a skill's file."""

    skill: FreeText
    lesson: FreeText
    reason: FailureReason
    confirmation: FreeText


class SkillConfirmed(Event, frozen=True, kw_only=True, tag="skill.confirmed@1"):
    """An agent was told what became of its lessons: of the events at these positions."""

    outcomes: tuple[Position, ...]
